//! The access token of the user's gateway: where it is stored and when clients must send it.

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

/// The maximum size of a token file.
const MAX_BYTES: u64 = 4096;

/// The token that clients must send.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Access {
    /// The token in an environment variable named by the configuration.
    Variable { name: String, token: Option<String> },
    /// The user's permanent token.
    User { token: String },
    /// A token for this run only, because it cannot be stored.
    Run { token: String, reason: String },
    /// Access tokens of the issuers in `[gateway.auth]` or of `--auth dev`, and no token of the gateway.
    Issuers,
    /// No token: the user passed `--no-token`.
    Open,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Variable { .. } => "Variable",
            Self::User { .. } => "User",
            Self::Run { .. } => "Run",
            Self::Issuers => "Issuers",
            Self::Open => "Open",
        })
    }
}

impl Access {
    /// Chooses the token: the one of the configuration, or else the user's, unless `--no-token` is set.
    pub(crate) fn choose(context: &Context, config: &Config, no_token: bool) -> Result<Self, Failure> {
        let environment = &context.environment;
        if let Some(name) = &config.gateway.token_env {
            if no_token {
                let sentence =
                    format!("`--no-token` conflicts with `token_env = \"{name}\"` in the configuration");
                return Err(Failure::misused(sentence)
                    .advise("remove `--no-token`, or remove `token_env` from `[gateway]`"));
            }
            let token = environment.variables.variable(name).map(|token| token.trim().to_owned());
            return Ok(Self::Variable { name: name.clone(), token });
        }
        if no_token { Ok(Self::Open) } else { Self::of_user(context) }
    }

    /// Chooses the token of a gateway without a terminal. If clients send access tokens, the user's token would be one more way
    /// in, so it is not accepted then; a token that the configuration names is.
    pub(crate) fn choose_for_gateway(
        context: &Context,
        config: &Config,
        no_token: bool,
        is_dev: bool,
    ) -> Result<Self, Failure> {
        if (config.gateway.auth.is_some() || is_dev) && config.gateway.token_env.is_none() {
            return Ok(Self::Issuers);
        }
        Self::choose(context, config, no_token)
    }

    /// Returns the user's token, creating it if there is none. Without a place to keep it, it is valid for this run only.
    pub(crate) fn of_user(context: &Context) -> Result<Self, Failure> {
        let Some(file) = TokenFile::of(&context.environment) else {
            return Self::for_this_run("cannot store a token without a home directory".to_owned());
        };
        match file.read_or_create() {
            Ok(token) => Ok(Self::User { token }),
            Err(TokenError::Unusable(error)) => Err(unusable(&error)),
            Err(TokenError::CannotWrite(error)) => {
                Self::for_this_run(format!("cannot store a token in `{}`: {error}", file.path.display()))
            }
        }
    }

    fn for_this_run(reason: String) -> Result<Self, Failure> {
        let token = random_token().ok_or_else(|| {
            Failure::new(Code::Failed, "cannot create a token: the system's random number generator failed")
        })?;
        Ok(Self::Run { token, reason })
    }

    /// Returns the token, if clients must send one and it is known.
    pub(crate) fn token(&self) -> Option<&str> {
        match self {
            Self::Variable { token, .. } => token.as_deref(),
            Self::User { token } | Self::Run { token, .. } => Some(token),
            Self::Issuers | Self::Open => None,
        }
    }
}

/// Returns the failure for an unusable token file.
pub(crate) fn unusable(error: &io::Error) -> Failure {
    Failure::new(Code::Config, error.to_string()).advise("run `bowline token rotate` to replace it")
}

/// Why the token cannot be read.
#[derive(Debug)]
pub(crate) enum TokenError {
    /// The file must not be used.
    Unusable(io::Error),
    /// There is no file, and it cannot be created.
    CannotWrite(io::Error),
}

/// The user's token file.
#[derive(Debug)]
pub(crate) struct TokenFile {
    path: PathBuf,
}

impl TokenFile {
    /// Returns the file in the state directory; `None` without a home directory.
    pub(crate) fn of(environment: &ProcessEnvironment) -> Option<Self> {
        environment.state_dir().map(|folder| Self { path: folder.join("token") })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the token, and creates it if necessary.
    pub(crate) fn read_or_create(&self) -> Result<String, TokenError> {
        if let Some(token) = self.read().map_err(TokenError::Unusable)? {
            return Ok(token);
        }
        // If two programs start at once, the second uses the token of the first.
        let _lock = self.lock().map_err(TokenError::CannotWrite)?;
        match self.read().map_err(TokenError::Unusable)? {
            Some(token) => Ok(token),
            None => self.write_new().map_err(TokenError::CannotWrite),
        }
    }

    /// Replaces the token.
    pub(crate) fn rotate(&self) -> io::Result<String> {
        let _lock = self.lock()?;
        self.write_new()
    }

    fn lock(&self) -> io::Result<fs::File> {
        paths::create_private_dir(self.folder())?;
        let path = self.folder().join(".token.lock");
        let lock = bowline_files::private(fs::OpenOptions::new().write(true).create(true)).open(path)?;
        lock.lock()?;
        Ok(lock)
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    fn write_new(&self) -> io::Result<String> {
        let token =
            random_token().ok_or_else(|| io::Error::other("the system's random number generator failed"))?;
        bowline_files::replace(&self.path, format!("{token}\n").as_bytes())?;
        Ok(token)
    }

    /// Reads the token. Fails if other users can read the file, or if it does not contain a token.
    fn read(&self) -> io::Result<Option<String>> {
        let invalid = |what: &str| {
            let message = format!("token file `{}` {what}", self.path.display());
            io::Error::new(io::ErrorKind::InvalidData, message)
        };
        let file = match bowline_config::open_regular(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(invalid(&format!("cannot be read: {error}"))),
        };
        if !bowline_files::is_owner_only(&file.metadata()?) {
            return Err(invalid("belongs to another user or is readable by others"));
        }
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text)?;
        let token = text.trim();
        // Short tokens can be guessed, and other characters cannot be sent in a header.
        if token.len() < 16 || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(invalid("does not contain a token of at least 16 visible ASCII characters"));
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
    fn concurrent_starts_share_one_token() {
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
    fn a_token_readable_by_others_is_rejected() {
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
