//! The servers that come with the program: their options, and how they are set up where nobody gives any.

use crate::{
    context::Context,
    failure::{Code, Failure},
};
use bowline_server::Server;
use bowline_servers::{Database, Files, Git, Web, web::OpenApi};
use clap::{Args, FromArgMatches, Subcommand};
use std::{fmt::Display, path::PathBuf};

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
    /// The folders; the current one if none is given
    #[arg(value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// A folder, as well
    #[arg(long = "root", value_name = "FOLDER")]
    roots: Vec<PathBuf>,
    /// Allow to change files
    #[arg(long)]
    write: bool,
}

#[derive(Args, Debug)]
pub(crate) struct GitOptions {
    /// The repository; that of the current folder if none is given
    #[arg(long, value_name = "FOLDER")]
    repository: Option<PathBuf>,
    /// Allow to commit, and to make and switch branches
    #[arg(long)]
    write: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DatabaseOptions {
    #[command(flatten)]
    which: WhichDatabase,
    /// Allow to change it, each statement after the user has agreed
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

    /// The server.
    pub(crate) fn server(&self, context: &Context) -> Result<Server, Failure> {
        match self {
            Self::Files(options) => {
                let folders = options.folders.iter().chain(&options.roots).cloned().collect::<Vec<_>>();
                let folders = if folders.is_empty() { vec![here(context)?] } else { folders };
                Ok(Files::new(&folders).map_err(unusable)?.writable(options.write).server())
            }
            Self::Git(options) => {
                let folder = options.repository.clone().map_or_else(|| here(context), Ok)?;
                Ok(Git::at(folder).map_err(unusable)?.writable(options.write).server())
            }
            Self::Database(options) => options.server(context),
            Self::Web(options) => options.server(),
            Self::Everything => Ok(bowline_servers::everything::server()),
        }
    }
}

impl DatabaseOptions {
    fn server(&self, context: &Context) -> Result<Server, Failure> {
        let environment = &context.surroundings.environment;
        let database = match &self.which {
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
        Ok(database.server())
    }
}

impl WebOptions {
    fn server(&self) -> Result<Server, Failure> {
        let mut web = Web::new().allow_hosts(&self.hosts).allow_private(self.allow_private);
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
    let here = context.surroundings.workspace.clone();
    here.ok_or_else(|| Failure::new(Code::Failed, "there is no current folder; name the one that is meant"))
}

/// A server that cannot be set up as it is wanted.
pub(crate) fn unusable(error: impl Display) -> Failure {
    Failure::new(Code::Failed, error.to_string())
}
