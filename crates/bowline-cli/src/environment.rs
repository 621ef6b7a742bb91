//! Where the program runs: the user's folders, the configuration found in them, and whether a person looks on.

use bowline_config::{Config, Disk, Environment, KnownFile, Loader, Platform, Scope, Source, known_files};
use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    sync::OnceLock,
};

#[derive(Debug)]
pub(crate) struct ProcessEnvironment {
    pub(crate) variables: Environment,
    /// The user's folder, where there is one.
    pub(crate) home: Option<PathBuf>,
    /// The folder the program runs in.
    pub(crate) workspace: Option<PathBuf>,
    /// The folder for temporary files, which others may write as well.
    pub(crate) temporary: PathBuf,
    /// Whether a person sits at both ends: questions can be shown and answered.
    pub(crate) terminal: bool,
    /// The files the user named.
    named: Vec<PathBuf>,
    /// What the files said when they were read.
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

    /// ProcessEnvironment of a test: nothing of the machine but one folder.
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

    /// Reads the files the user named, or else the program's own: the user's and the project's.
    pub(crate) fn loader(&self) -> Loader {
        let loader = Loader::new(self.variables.clone());
        if !self.named.is_empty() {
            return loader.sources(self.named.iter().map(|path| Source::new(path, Scope::User)));
        }
        loader.sources(self.own_files())
    }

    /// The files the user named.
    pub(crate) fn named(&self) -> &[PathBuf] {
        &self.named
    }

    /// The program's own files: the user's and the project's.
    fn own_files(&self) -> Vec<KnownFile> {
        let home = self.home.clone().unwrap_or_default();
        known_files(&home, self.workspace.as_deref(), Platform::current())
            .into_iter()
            .filter(|file| file.client == "Bowline" && (self.home.is_some() || file.scope == Scope::Project))
            .collect()
    }

    /// A file that the user named and that is not there.
    pub(crate) fn missing(&self) -> Option<&Path> {
        self.named.iter().map(PathBuf::as_path).find(|path| !path.exists())
    }

    /// What the files say. They are read once, for what stands in them may run commands.
    pub(crate) fn config(&self) -> &Config {
        self.config.get_or_init(|| self.loader().load(&Disk))
    }

    /// Where the program keeps what it must not forget: approvals, remembered answers, what was typed. None without a home.
    pub(crate) fn state_dir(&self) -> Option<PathBuf> {
        self.user_dir("XDG_STATE_HOME", &[".local", "state"], "Application Support")
    }

    /// Where it keeps what it can find out again. None without a home.
    pub(crate) fn cache_dir(&self) -> Option<PathBuf> {
        self.user_dir("XDG_CACHE_HOME", &[".cache"], "Caches")
    }

    /// The program's folder among those of a kind, as the system has them.
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

/// The user's folder. Where a variable names it, nothing but that variable does: without it there is none.
fn home() -> Option<PathBuf> {
    let named = if cfg!(unix) { std::env::var_os("HOME").map(PathBuf::from) } else { std::env::home_dir() };
    named.filter(|home| !home.as_os_str().is_empty())
}
