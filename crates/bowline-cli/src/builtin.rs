//! The servers that come with the program: their options, and how they are set up where nobody gives any.

use crate::{
    client_handlers::TerminalUser,
    context::Context,
    failure::{Code, Failure},
};
use bowline_server::Server;
use bowline_servers::{Database, Files, Git, Web, web::OpenApi};
use clap::{Args, FromArgMatches, Subcommand};
use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

/// A server that comes with the program.
#[derive(Debug, Subcommand)]
pub(crate) enum Builtin {
    /// Read and search the files of some folders, and change them if that is allowed
    Files(FilesOptions),
    /// Look at a git repository, and commit to it if that is allowed
    Git(GitOptions),
    /// Look at a database and query it, and change it if that is allowed
    Database(DatabaseOptions),
    /// Fetch pages of the open internet, and call the interfaces that OpenAPI documents describe
    Web(WebOptions),
    /// Every feature of the protocol, each in the smallest way that shows it
    Everything,
}

#[derive(Args, Debug)]
pub(crate) struct FilesOptions {
    /// The folders; the current one if none is given, after a question if that is your home directory or `/`
    #[arg(value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// A folder, as well
    #[arg(long = "root", value_name = "FOLDER")]
    roots: Vec<PathBuf>,
    /// Allow writing files
    #[arg(long)]
    write: bool,
}

#[derive(Args, Debug)]
pub(crate) struct GitOptions {
    /// The repository; that of the current folder if none is given
    #[arg(long, value_name = "FOLDER")]
    repository: Option<PathBuf>,
    /// Allow staging, committing, and making and switching branches
    #[arg(long)]
    write: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DatabaseOptions {
    #[command(flatten)]
    which: WhichDatabase,
    /// Allow statements that write, each after the user has agreed; a SQLite file that does not exist is created
    #[arg(long)]
    write: bool,
    /// Do not ask before a statement changes something; for where something else does
    #[arg(long, requires = "write")]
    without_consent: bool,
    /// How many rows a result may have
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    max_rows: usize,
}

#[derive(Args, Debug)]
#[group(multiple = false)]
struct WhichDatabase {
    /// The SQLite database in this file
    #[arg(long, value_name = "FILE")]
    sqlite: Option<PathBuf>,
    /// The PostgreSQL database at this URL; where others can see the command line, keep a password out of it
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
    /// The PostgreSQL database at the URL that is in this variable of the environment
    #[arg(long, value_name = "VARIABLE")]
    postgres_env: Option<String>,
    /// A small shop in memory, to try things with; as if nothing is given
    #[arg(long)]
    sample: bool,
}

#[derive(Args, Debug)]
pub(crate) struct WebOptions {
    /// Let this host be in a private network or on this machine: a name, or `name:port`; may be given more than once
    #[arg(long = "allow-host", value_name = "HOST")]
    hosts: Vec<String>,
    /// Let every host be in a private network or on this machine
    #[arg(long)]
    allow_private: bool,
    /// Fetch pages even if the `robots.txt` of their site asks programs not to read them
    #[arg(long)]
    ignore_robots: bool,
    /// Offer the operations of this OpenAPI document as tools; its credentials come from the environment
    #[arg(long, value_name = "FILE")]
    openapi: Option<PathBuf>,
    /// Where the interface of the document is, instead of where the document says
    #[arg(long, value_name = "URL", requires = "openapi")]
    base_url: Option<String>,
}

impl Builtin {
    /// The one of this name, as it is without options.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let matches = Self::command().try_get_matches_from(["serve", name]).ok()?;
        Self::from_arg_matches(&matches).ok()
    }

    /// The names of all.
    pub(crate) fn names() -> Vec<String> {
        Self::command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
    }

    fn command() -> clap::Command {
        Self::augment_subcommands(clap::Command::new("serve")).disable_help_subcommand(true)
    }

    /// Asks before everything in a home directory or on the machine is served that nobody named.
    pub(crate) async fn confirm(&self, context: &Context) -> Result<(), Failure> {
        let Self::Files(options) = self else { return Ok(()) };
        if !options.folders.is_empty() || !options.roots.is_empty() {
            return Ok(());
        }
        let here = here(context)?;
        let Some(what) = wide_folder(&here, context.environment.home.as_deref()) else { return Ok(()) };
        let shown = here.display();
        let refused = || {
            Failure::misused(format!("no folder is named, and the current one, `{shown}`, is {what}")).advise(
                format!(
                    "name a folder: `bowline serve files FOLDER`, or `--root {shown}` to serve all of it"
                ),
            )
        };
        if !context.interactive() {
            return Err(refused());
        }
        let question = format!("Serve all files below `{shown}`, {what}? [y/N] ");
        let answer = TerminalUser::new(context.screen).line(&question).await?;
        if matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
            Ok(())
        } else {
            Err(refused())
        }
    }

    /// The server.
    pub(crate) fn server(&self, context: &Context) -> Result<Server, Failure> {
        self.limited_server(context, bowline_servers::CALLS_PER_MINUTE)
    }

    /// The server, which takes so many calls a minute of each caller; 0 for any number.
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

/// What a folder is that nobody means to serve whole without saying so: a home directory, or one around it.
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
    home.starts_with(&folder).then_some("around your home directory")
}

impl DatabaseOptions {
    fn server(&self, context: &Context, calls_per_minute: u32) -> Result<Server, Failure> {
        let environment = &context.environment.variables;
        let database = match &self.which {
            WhichDatabase { sqlite: Some(file), .. } if self.write => Database::sqlite_or_create(file),
            WhichDatabase { sqlite: Some(file), .. } if !file.exists() => {
                let missing = format!("there is no file `{}`", file.display());
                return Err(unusable(missing).advise("`--write` creates it"));
            }
            WhichDatabase { sqlite: Some(file), .. } => Database::sqlite(file),
            WhichDatabase { postgres: Some(url), .. } => Database::postgres(url),
            WhichDatabase { postgres_env: Some(name), .. } => {
                let missing =
                    || Failure::misused(format!("expected a URL in the variable `{name}`, which is not set"));
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
    here.ok_or_else(|| Failure::new(Code::Failed, "there is no current folder; name the one that is meant"))
}

/// A server that cannot be set up as it is wanted.
pub(crate) fn unusable(error: impl Display) -> Failure {
    Failure::new(Code::Failed, error.to_string())
}
