//! Where the program runs: the user's folders, the configuration found in them, and whether a person looks on.

use bowline_host::config::{Config, Disk, Environment, Loader, Platform, Scope, Source, known_files};
use std::{
    io::{self, IsTerminal},
    path::PathBuf,
};

#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) environment: Environment,
    /// The user's folder, where there is one.
    pub(crate) home: Option<PathBuf>,
    /// The folder the program runs in.
    pub(crate) workspace: Option<PathBuf>,
    /// Whether a person sits at both ends: questions can be shown and answered.
    pub(crate) terminal: bool,
    /// The files the user named.
    named: Vec<PathBuf>,
}

impl Surroundings {
    pub(crate) fn of_this_process(named: &[PathBuf]) -> Self {
        Self {
            environment: Environment::new(std::env::vars()),
            home: std::env::home_dir().filter(|home| !home.as_os_str().is_empty()),
            workspace: std::env::current_dir().ok(),
            terminal: io::stdin().is_terminal() && io::stderr().is_terminal(),
            named: named.to_vec(),
        }
    }

    /// Reads the files the user named, or else the program's own: the user's and the project's.
    pub(crate) fn loader(&self) -> Loader {
        let loader = Loader::new(self.environment.clone());
        if !self.named.is_empty() {
            return loader.sources(self.named.iter().map(|path| Source::new(path, Scope::User)));
        }
        let home = self.home.clone().unwrap_or_default();
        let own = known_files(&home, self.workspace.as_deref(), Platform::current())
            .into_iter()
            .filter(|file| file.client == "Bowline" && (self.home.is_some() || file.scope == Scope::Project));
        loader.sources(own)
    }

    /// The files the user named.
    pub(crate) fn named(&self) -> &[PathBuf] {
        &self.named
    }

    pub(crate) fn config(&self) -> Config {
        self.loader().load(&Disk)
    }
}
