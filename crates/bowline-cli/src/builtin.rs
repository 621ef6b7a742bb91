//! The built-in servers: their options and their defaults.

use crate::{
    client_handlers::TerminalUser,
    context::Context,
    failure::{Code, Failure},
};
use bowline_server::Server;
use bowline_servers::{Database, Files, Git, Web, web::OpenApi};
use clap::{Args, Subcommand};
use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

/// The default of `--max-rows`.
const MAX_ROWS: usize = 200;

/// A built-in server.
#[derive(Debug, Subcommand)]
pub(crate) enum Builtin {
    /// Read and search files, and edit them with `--write`
    Files(FilesOptions),
    /// Inspect a git repository, and commit to it with `--write`
    Git(GitOptions),
    /// Query a SQLite or PostgreSQL database, and modify it with `--write`
    Database(DatabaseOptions),
    /// Fetch web pages, and call HTTP APIs described by OpenAPI documents
    Web(WebOptions),
    /// Demonstrate every protocol feature, for testing clients
    Everything,
}

#[derive(Args, Debug, Default)]
pub(crate) struct FilesOptions {
    /// The directories to serve [default: the current directory; asks first if that is your home directory or `/`]
    #[arg(value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Another directory to serve; can be repeated
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<PathBuf>,
    /// Allow writing files
    #[arg(long)]
    write: bool,
}

#[derive(Args, Debug, Default)]
pub(crate) struct GitOptions {
    /// The repository [default: the repository that contains the current directory]
    #[arg(long, value_name = "DIR")]
    repository: Option<PathBuf>,
    /// Allow staging and committing files, and creating and switching branches
    #[arg(long)]
    write: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DatabaseOptions {
    #[command(flatten)]
    which: WhichDatabase,
    /// Allow statements that write, after asking the user; creates the SQLite file if it does not exist
    #[arg(long)]
    write: bool,
    /// Do not ask the user before running statements that write
    #[arg(long, requires = "write")]
    without_consent: bool,
    /// The maximum number of rows per result
    #[arg(long, value_name = "COUNT", default_value_t = MAX_ROWS)]
    max_rows: usize,
}

#[derive(Args, Debug, Default)]
#[group(multiple = false)]
struct WhichDatabase {
    /// Use the SQLite database in this file
    #[arg(long, value_name = "FILE")]
    sqlite: Option<PathBuf>,
    /// Use the PostgreSQL database at this URL; other users may see passwords on the command line, so prefer `--postgres-env`
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
    /// Use the PostgreSQL database whose URL is in this environment variable
    #[arg(long, value_name = "VARIABLE")]
    postgres_env: Option<String>,
    /// Use a small sample database in memory; this is the default
    #[arg(long)]
    sample: bool,
}

#[derive(Args, Debug, Default)]
pub(crate) struct WebOptions {
    /// Allow this host even if it is on a private network or on this machine: `NAME` or `NAME:PORT`; can be repeated
    #[arg(long = "allow-host", value_name = "HOST")]
    hosts: Vec<String>,
    /// Allow all hosts on private networks and on this machine
    #[arg(long)]
    allow_private: bool,
    /// Fetch pages even if the site's `robots.txt` disallows it
    #[arg(long)]
    ignore_robots: bool,
    /// Offer the operations of this OpenAPI document as tools; credentials come from the environment
    #[arg(long, value_name = "FILE")]
    openapi: Option<PathBuf>,
    /// The base URL of the API, instead of the one in the document
    #[arg(long, value_name = "URL", requires = "openapi")]
    base_url: Option<String>,
}

impl Builtin {
    /// The names of all built-in servers.
    pub(crate) const NAMES: [&str; 5] = ["files", "git", "database", "web", "everything"];

    /// Returns the server of this name with default options.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "files" => Some(Self::Files(FilesOptions::default())),
            "git" => Some(Self::Git(GitOptions::default())),
            "database" => Some(Self::Database(DatabaseOptions::default())),
            "web" => Some(Self::Web(WebOptions::default())),
            "everything" => Some(Self::Everything),
            _ => None,
        }
    }

    /// Asks before serving the home directory or the whole file system, unless the user named it.
    pub(crate) async fn confirm(&self, context: &Context) -> Result<(), Failure> {
        let Self::Files(options) = self else { return Ok(()) };
        if !options.folders.is_empty() || !options.roots.is_empty() {
            return Ok(());
        }
        let here = here(context)?;
        let Some(what) = wide_folder(&here, context.environment.home.as_deref()) else { return Ok(()) };
        let shown = here.display();
        let refused = || {
            Failure::misused(format!("refusing to serve the current directory `{shown}`, which is {what}")).advise(
                format!(
                    "name a directory with `bowline serve files DIR`, or pass `--root {shown}` to serve all of it"
                ),
            )
        };
        if !context.interactive() {
            return Err(refused());
        }
        let question = format!("Serve all files in `{shown}`, which is {what}? [y/N] ");
        let answer = TerminalUser::new(context.screen).line(&question).await?;
        if matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
            Ok(())
        } else {
            Err(refused())
        }
    }

    /// Builds the server with the default rate limit.
    pub(crate) fn server(&self, context: &Context) -> Result<Server, Failure> {
        self.limited_server(context, bowline_servers::CALLS_PER_MINUTE)
    }

    /// Builds the server with a rate limit per caller; 0 means no limit.
    pub(crate) fn limited_server(&self, context: &Context, calls_per_minute: u32) -> Result<Server, Failure> {
        match self {
            Self::Files(options) => {
                let folders = options.folders.iter().chain(&options.roots).cloned().collect::<Vec<_>>();
                let folders = if folders.is_empty() { vec![here(context)?] } else { folders };
                let files = Files::new(&folders).map_err(unusable)?.writable(options.write);
                Ok(files.calls_per_minute(calls_per_minute).server())
            }
            Self::Git(options) => {
                let folder = options.repository.clone().map_or_else(|| here(context), Ok)?;
                let git = Git::at(folder).map_err(unusable)?.writable(options.write);
                Ok(git.calls_per_minute(calls_per_minute).server())
            }
            Self::Database(options) => options.server(context, calls_per_minute),
            Self::Web(options) => options.server(calls_per_minute),
            Self::Everything => {
                Ok(bowline_servers::rate_limited(bowline_servers::everything::server(), calls_per_minute))
            }
        }
    }
}

/// Describes a directory that users rarely want to serve as a whole: the home directory, a parent of it, or the root.
fn wide_folder(folder: &Path, home: Option<&Path>) -> Option<&'static str> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = real(folder);
    if folder.parent().is_none() {
        return Some("the root of the file system");
    }
    let home = real(home?);
    if folder == home {
        return Some("your home directory");
    }
    home.starts_with(&folder).then_some("a parent of your home directory")
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self { which: WhichDatabase::default(), write: false, without_consent: false, max_rows: MAX_ROWS }
    }
}

impl DatabaseOptions {
    fn server(&self, context: &Context, calls_per_minute: u32) -> Result<Server, Failure> {
        let environment = &context.environment.variables;
        let database = match &self.which {
            WhichDatabase { sqlite: Some(file), .. } if self.write => Database::sqlite_or_create(file),
            WhichDatabase { sqlite: Some(file), .. } if !file.exists() => {
                let missing = format!("file `{}` does not exist", file.display());
                return Err(unusable(missing).advise("pass `--write` to create it"));
            }
            WhichDatabase { sqlite: Some(file), .. } => Database::sqlite(file),
            WhichDatabase { postgres: Some(url), .. } => Database::postgres(url),
            WhichDatabase { postgres_env: Some(name), .. } => {
                let missing = || {
                    Failure::misused(format!(
                        "environment variable `{name}` is not set; expected the URL of a database"
                    ))
                };
                Database::postgres(environment.variable(name).ok_or_else(missing)?)
            }
            WhichDatabase { .. } => Database::sqlite_sample(),
        };
        let database = database.map_err(unusable)?.max_rows(self.max_rows).writable(self.write);
        let database = if self.without_consent { database.without_consent() } else { database };
        Ok(database.calls_per_minute(calls_per_minute).server())
    }
}

impl WebOptions {
    fn server(&self, calls_per_minute: u32) -> Result<Server, Failure> {
        let mut web = Web::new()
            .allow_hosts(&self.hosts)
            .allow_private(self.allow_private)
            .ignore_robots(self.ignore_robots)
            .calls_per_minute(calls_per_minute);
        if let Some(file) = &self.openapi {
            let mut interface = OpenApi::read(file).map_err(unusable)?;
            if let Some(url) = &self.base_url {
                interface = interface.base_url(url);
            }
            web = web.openapi(interface);
        }
        web.server().map_err(unusable)
    }
}

fn here(context: &Context) -> Result<PathBuf, Failure> {
    let here = context.environment.workspace.clone();
    here.ok_or_else(|| Failure::new(Code::Failed, "the current directory is unavailable; name a directory"))
}

/// Returns the failure for a server that cannot be set up.
pub(crate) fn unusable(error: impl Display) -> Failure {
    Failure::new(Code::Failed, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches;

    #[test]
    fn defaults_are_those_of_the_command_line() {
        let command = || Builtin::augment_subcommands(clap::Command::new("serve"));
        let names: Vec<String> =
            command().get_subcommands().map(|server| server.get_name().to_owned()).collect();
        assert_eq!(names, Builtin::NAMES);
        for name in Builtin::NAMES {
            let parsed = command().try_get_matches_from(["serve", name]).expect("no option is required");
            let parsed = Builtin::from_arg_matches(&parsed).expect("it is a subcommand");
            let named = Builtin::named(name).expect("it is a name");
            assert_eq!(format!("{named:?}"), format!("{parsed:?}"));
        }
    }
}
