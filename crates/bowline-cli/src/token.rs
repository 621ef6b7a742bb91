//! The token that clients send to a gateway of this user: one file that only the user can read, and who has to send it.

use crate::{
    context::Context,
    environment::ProcessEnvironment,
    failure::{Code, Failure},
    paths,
};
use bowline_config::Config;
use bowline_host::gateway::random_token;
use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The largest token file that is read.
const MAX_BYTES: u64 = 4096;

/// What clients have to send.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Access {
    /// The token in a variable that the configuration names.
    Variable { name: String, token: Option<String> },
    /// The user's token, which stays the same.
    User { token: String },
    /// A token for this run, since there is no place to keep one.
    Run { token: String, reason: String },
    /// Nothing: the user asked for it.
    Open,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Variable { .. } => "Variable",
            Self::User { .. } => "User",
            Self::Run { .. } => "Run",
            Self::Open => "Open",
        })
    }
}

impl Access {
    /// Decides what clients have to send: the token of the configuration, or else the user's, unless the user wants none.
    pub(crate) fn choose(context: &Context, config: &Config, no_token: bool) -> Result<Self, Failure> {
        let environment = &context.environment;
        if let Some(name) = &config.gateway.token_env {
            if no_token {
                let sentence =
                    format!("the configuration asks for the token in `{name}`, and `--no-token` for none");
                return Err(
                    Failure::misused(sentence).advise("remove `--no-token`, or `token_env` in `[gateway]`")
                );
            }
            let token = environment.variables.variable(name).map(|token| token.trim().to_owned());
            return Ok(Self::Variable { name: name.clone(), token });
        }
        if no_token {
            return Ok(Self::Open);
        }
        let Some(file) = TokenFile::of(environment) else {
            return Self::for_this_run("there is no home directory to keep a token in".to_owned());
        };
        match file.read_or_create() {
            Ok(token) => Ok(Self::User { token }),
            Err(TokenError::Unusable(error)) => Err(unusable(&error)),
            Err(TokenError::CannotWrite(error)) => {
                Self::for_this_run(format!("cannot keep a token in `{}`: {error}", file.path.display()))
            }
        }
    }

    fn for_this_run(reason: String) -> Result<Self, Failure> {
        let token = random_token()
            .ok_or_else(|| Failure::new(Code::Failed, "the system gives no random numbers for a token"))?;
        Ok(Self::Run { token, reason })
    }

    /// The token, if clients have to send one and it is known.
    pub(crate) fn token(&self) -> Option<&str> {
        match self {
            Self::Variable { token, .. } => token.as_deref(),
            Self::User { token } | Self::Run { token, .. } => Some(token),
            Self::Open => None,
        }
    }
}

/// The failure for a token file that cannot be used as it is.
pub(crate) fn unusable(error: &io::Error) -> Failure {
    Failure::new(Code::Config, error.to_string()).advise("`bowline token rotate` replaces it")
}

/// Why there is no token.
#[derive(Debug)]
pub(crate) enum TokenError {
    /// A file is there and must not be used.
    Unusable(io::Error),
    /// There is none, and none can be written.
    CannotWrite(io::Error),
}

/// The file of the user's token.
#[derive(Debug)]
pub(crate) struct TokenFile {
    path: PathBuf,
}

impl TokenFile {
    /// The file in the user's folder; none without a home directory.
    pub(crate) fn of(environment: &ProcessEnvironment) -> Option<Self> {
        environment.state_dir().map(|folder| Self { path: folder.join("token") })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The token, which is created if there is none.
    pub(crate) fn read_or_create(&self) -> Result<String, TokenError> {
        if let Some(token) = self.read().map_err(TokenError::Unusable)? {
            return Ok(token);
        }
        // Of two programs that start at once, the second takes what the first wrote.
        let _lock = self.lock().map_err(TokenError::CannotWrite)?;
        match self.read().map_err(TokenError::Unusable)? {
            Some(token) => Ok(token),
            None => self.write_new().map_err(TokenError::CannotWrite),
        }
    }

    /// Puts a new token in the place of the old one.
    pub(crate) fn rotate(&self) -> io::Result<String> {
        let _lock = self.lock()?;
        self.write_new()
    }

    fn lock(&self) -> io::Result<fs::File> {
        paths::create_private_dir(self.folder())?;
        let path = self.folder().join(".token.lock");
        let lock = paths::private_options(fs::OpenOptions::new().write(true).create(true)).open(path)?;
        lock.lock()?;
        Ok(lock)
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    fn write_new(&self) -> io::Result<String> {
        let token = random_token().ok_or_else(|| io::Error::other("the system gives no random numbers"))?;
        paths::replace_file(&self.path, |path| paths::write_private(path, format!("{token}\n").as_bytes()))?;
        Ok(token)
    }

    /// The token in the file. Fails if others may read it, or if it is no token.
    fn read(&self) -> io::Result<Option<String>> {
        let invalid = |what: &str| {
            let message =
                format!("expected a token that only you can read in `{}`, {what}", self.path.display());
            io::Error::new(io::ErrorKind::InvalidData, message)
        };
        let file = match bowline_config::open_regular(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(invalid(&format!("which cannot be read: {error}"))),
        };
        if !paths::is_owner_only(&file.metadata()?) {
            return Err(invalid("which belongs to someone else or which others may read"));
        }
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text)?;
        let token = text.trim();
        // Short ones can be guessed, and others cannot be sent in a header.
        if token.len() < 16 || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(invalid("got something else"));
        }
        Ok(Some(token.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &tempfile::TempDir) -> TokenFile {
        TokenFile { path: folder.path().join("state/token") }
    }

    #[test]
    fn a_token_is_created_once_and_stays_until_it_is_rotated() {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let file = file(&folder);
        let token = file.read_or_create().expect("it can be written");
        assert_eq!(file.read_or_create().expect("it is there"), token);
        let rotated = file.rotate().expect("it can be written");
        assert_ne!(rotated, token);
        assert_eq!(file.read_or_create().expect("it is there"), rotated);
    }

    #[test]
    fn programs_that_start_at_once_get_the_same_token() {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let file = file(&folder);
        let tokens: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| file.read_or_create().expect("it can be written"))).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        assert!(tokens.iter().all(|token| *token == tokens[0]), "{tokens:?}");
    }

    #[cfg(unix)]
    #[test]
    fn a_token_that_others_may_read_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let file = file(&folder);
        file.read_or_create().expect("it can be written");
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(file.path()), mode(file.folder())), (0o600, 0o700));
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).expect("it is ours");
        assert!(matches!(file.read_or_create(), Err(TokenError::Unusable(_))));
        file.rotate().expect("it can be replaced");
        file.read_or_create().expect("it is private again");
        for wrong in ["", "short", "with a space in between it"] {
            fs::write(file.path(), wrong).expect("it is ours");
            assert!(matches!(file.read_or_create(), Err(TokenError::Unusable(_))), "{wrong}");
        }
    }
}
