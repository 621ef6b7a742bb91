//! The values that a configuration can refer to: variables, inputs and commands.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The operating system the configuration is for, as far as paths differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Platform {
    /// Linux and its relatives.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl Platform {
    /// The system this program was built for.
    pub const fn current() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Linux
        }
    }

    /// What separates the parts of a path.
    pub const fn separator(self) -> &'static str {
        match self {
            Self::Linux | Self::MacOs => "/",
            Self::Windows => "\\",
        }
    }
}

/// A value that only a person or their secret store can give.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Input {
    /// The name it is asked for by.
    pub id: String,
    /// The file that asks for it. What was stored for one file is not for another one that uses the same name.
    pub file: Option<PathBuf>,
    /// The server that needs it, where only one does.
    pub server: Option<String>,
    /// What to ask.
    pub description: Option<String>,
    /// Whether the answer is a secret.
    pub password: bool,
    /// What is taken without an answer.
    pub default: Option<String>,
    /// The answers to choose from; any text if empty.
    pub choices: Vec<String>,
}

impl fmt::Debug for Input {
    /// What is taken without an answer may be a secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Input")
            .field("id", &self.id)
            .field("file", &self.file)
            .field("server", &self.server)
            .field("description", &self.description)
            .field("password", &self.password)
            .field("default", &self.default.as_ref().map(|_| "***"))
            .finish_non_exhaustive()
    }
}

/// Where the values of inputs come from: a secret store, or a dialog.
pub trait Inputs: Send + Sync {
    /// The value, or `None` if there is none; the default of the input applies then.
    fn value(&self, input: &Input) -> Option<String>;
}

impl Inputs for BTreeMap<String, String> {
    fn value(&self, input: &Input) -> Option<String> {
        self.get(&input.id).cloned()
    }
}

/// Runs the command of a `${cmd:…}` variable.
pub trait Commands: Send + Sync {
    /// Runs the program with its arguments, without a shell, and gives what it printed; the error says what failed.
    fn run(&self, words: &[String]) -> Result<String, String>;
}

/// What variables stand for. Nothing is read from the process: the caller says it all.
#[derive(Clone)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    home: Option<PathBuf>,
    workspace: Option<PathBuf>,
    folders: BTreeMap<String, PathBuf>,
    platform: Platform,
    inputs: Arc<dyn Inputs>,
    commands: Option<Arc<dyn Commands>>,
}

impl Environment {
    /// An environment with those variables; the home directory is taken from them (`HOME`, `USERPROFILE`).
    pub fn new<I, K, V>(variables: I) -> Self
    where
        I: IntoIterator<Item = (K, V)>,
        K: Into<String>,
        V: Into<String>,
    {
        let variables: BTreeMap<String, String> =
            variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let home = variables.get("HOME").or_else(|| variables.get("USERPROFILE")).map(PathBuf::from);
        Self {
            variables,
            home,
            workspace: None,
            folders: BTreeMap::new(),
            platform: Platform::current(),
            inputs: Arc::new(BTreeMap::<String, String>::new()),
            commands: None,
        }
    }

    /// Sets the home directory.
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// Sets the folder that is worked in.
    pub fn with_workspace(mut self, workspace: impl Into<PathBuf>) -> Self {
        self.workspace = Some(workspace.into());
        self
    }

    /// Adds a folder of a workspace that has several, for `${workspaceFolder:name}`.
    pub fn with_folder(mut self, name: impl Into<String>, folder: impl Into<PathBuf>) -> Self {
        self.folders.insert(name.into(), folder.into());
        self
    }

    /// Sets the system whose path separator counts.
    pub fn with_platform(mut self, platform: Platform) -> Self {
        self.platform = platform;
        self
    }

    /// Sets where the values of inputs come from.
    pub fn with_inputs(mut self, inputs: impl Inputs + 'static) -> Self {
        self.inputs = Arc::new(inputs);
        self
    }

    /// Allows `${cmd:…}` in files that are not of a project, and says how commands are run.
    pub fn with_commands(mut self, commands: impl Commands + 'static) -> Self {
        self.commands = Some(Arc::new(commands));
        self
    }

    /// The variable of that name. Windows does not tell apart the case of names, so neither do we there.
    pub fn variable(&self, name: &str) -> Option<&str> {
        if let Some(value) = self.variables.get(name) {
            return Some(value);
        }
        if self.platform != Platform::Windows {
            return None;
        }
        self.variables
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The names of all variables.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }

    /// The home directory.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// The folder that is worked in.
    pub fn workspace(&self) -> Option<&Path> {
        self.workspace.as_deref()
    }

    /// The folder of that name, in a workspace that has several.
    pub fn folder(&self, name: &str) -> Option<&Path> {
        self.folders.get(name).map(PathBuf::as_path)
    }

    /// The system.
    pub fn platform(&self) -> Platform {
        self.platform
    }

    /// The value of an input, if somebody gives one.
    pub fn input(&self, input: &Input) -> Option<String> {
        self.inputs.value(input)
    }

    pub(crate) fn commands(&self) -> Option<&dyn Commands> {
        self.commands.as_deref()
    }
}

impl fmt::Debug for Environment {
    /// Names only: the values of the environment are secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Environment")
            .field("variables", &self.variables.keys())
            .field("home", &self.home)
            .field("workspace", &self.workspace)
            .field("folders", &self.folders)
            .field("platform", &self.platform)
            .field("commands", &self.commands.is_some())
            .finish_non_exhaustive()
    }
}
