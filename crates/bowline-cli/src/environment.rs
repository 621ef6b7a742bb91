//! The environment of the process: variables, user directories, configuration files, and whether there is a terminal.

use bowline_config::{Config, Disk, Environment, KnownFile, Loader, Platform, Scope, Source, known_files};
use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    sync::OnceLock,
};

#[derive(Debug)]
pub(crate) struct ProcessEnvironment {
    pub(crate) variables: Environment,
    /// The home directory.
    pub(crate) home: Option<PathBuf>,
    /// The current directory.
    pub(crate) workspace: Option<PathBuf>,
    /// The directory for temporary files, which other users can also write to.
    pub(crate) temporary: PathBuf,
    /// Whether standard input and standard error are terminals, so that the user can be prompted.
    pub(crate) terminal: bool,
    /// The files named by `--config`.
    named: Vec<PathBuf>,
    /// The configuration, once it was loaded.
    config: OnceLock<Config>,
}

impl ProcessEnvironment {
    pub(crate) fn of_process(named: &[PathBuf]) -> Self {
        Self {
            variables: Environment::new(std::env::vars()),
            home: home(),
            workspace: std::env::current_dir().ok(),
            temporary: std::env::temp_dir(),
            terminal: io::stdin().is_terminal() && io::stderr().is_terminal(),
            named: named.to_vec(),
            config: OnceLock::new(),
        }
    }

    /// Returns an environment for tests that depends only on one directory.
    #[cfg(test)]
    pub(crate) fn for_test(folder: &Path, variables: &[(&str, &str)]) -> Self {
        Self {
            variables: Environment::new(variables.iter().copied()),
            home: Some(folder.join("home")),
            workspace: Some(folder.join("here")),
            temporary: folder.join("tmp"),
            terminal: false,
            named: Vec::new(),
            config: OnceLock::new(),
        }
    }

    /// Returns a loader for the files named by `--config`, or else for the user's and the project's file.
    pub(crate) fn loader(&self) -> Loader {
        let loader = Loader::new(self.variables.clone());
        if !self.named.is_empty() {
            return loader.sources(self.named.iter().map(|path| Source::new(path, Scope::User)));
        }
        loader.sources(self.own_files())
    }

    /// Returns the files named by `--config`.
    pub(crate) fn named(&self) -> &[PathBuf] {
        &self.named
    }

    /// Returns the user's and the project's configuration file.
    fn own_files(&self) -> Vec<KnownFile> {
        let home = self.home.clone().unwrap_or_default();
        known_files(&home, self.workspace.as_deref(), Platform::current())
            .into_iter()
            .filter(|file| file.client == "Bowline" && (self.home.is_some() || file.scope == Scope::Project))
            .collect()
    }

    /// Returns the first file named by `--config` that does not exist.
    pub(crate) fn missing(&self) -> Option<&Path> {
        self.named.iter().map(PathBuf::as_path).find(|path| !path.exists())
    }

    /// Returns the configuration. It is loaded once, because loading it can run commands.
    pub(crate) fn config(&self) -> &Config {
        self.config.get_or_init(|| self.loader().load(&Disk))
    }

    /// Returns the directory for approvals, remembered answers and history. `None` without a home directory.
    pub(crate) fn state_dir(&self) -> Option<PathBuf> {
        self.user_dir("XDG_STATE_HOME", &[".local", "state"], "Application Support")
    }

    /// Returns the directory for caches. `None` without a home directory.
    pub(crate) fn cache_dir(&self) -> Option<PathBuf> {
        self.user_dir("XDG_CACHE_HOME", &[".cache"], "Caches")
    }

    /// Returns the program's directory of one kind, following the conventions of the platform.
    fn user_dir(&self, variable: &str, unix: &[&str], library: &str) -> Option<PathBuf> {
        let named = self.variables.variable(variable).map(Path::new).filter(|folder| folder.is_absolute());
        let folder = match (named, Platform::current()) {
            (Some(folder), _) => folder.to_owned(),
            (None, Platform::Linux) => unix.iter().fold(self.home.clone()?, |folder, name| folder.join(name)),
            (None, Platform::MacOs) => self.home.clone()?.join("Library").join(library),
            (None, Platform::Windows) => self.home.clone()?.join("AppData").join("Local"),
        };
        Some(folder.join("bowline"))
    }
}

/// Returns the home directory. On Unix only `HOME` counts; without it there is none.
fn home() -> Option<PathBuf> {
    let named = if cfg!(unix) { std::env::var_os("HOME").map(PathBuf::from) } else { std::env::home_dir() };
    named.filter(|home| !home.as_os_str().is_empty())
}
