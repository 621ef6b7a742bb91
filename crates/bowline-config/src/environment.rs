//! The values that a configuration can refer to: environment variables, inputs and commands.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The operating system, as far as paths differ.
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
    /// Returns the platform that this program was built for.
    pub const fn current() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Linux
        }
    }

    /// Returns the path separator.
    pub const fn separator(self) -> &'static str {
        match self {
            Self::Linux | Self::MacOs => "/",
            Self::Windows => "\\",
        }
    }
}

/// A value that the user or a secret store provides.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Input {
    /// The identifier of the input.
    pub id: String,
    /// The file that declares it. A value stored for one file is not used for another file with the same identifier.
    pub file: Option<PathBuf>,
    /// The server that needs it, if there is only one.
    pub server: Option<String>,
    /// The prompt for the user.
    pub description: Option<String>,
    /// Whether the value is a secret.
    pub password: bool,
    /// The default value.
    pub default: Option<String>,
    /// The allowed values. If empty, any text is allowed.
    pub choices: Vec<String>,
}

impl fmt::Debug for Input {
    /// Masks the default value, which may be a secret.
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

/// A source of input values, such as a secret store or a dialog.
pub trait Inputs: Send + Sync {
    /// Returns the value of an input. With `None`, the default of the input applies.
    fn value(&self, input: &Input) -> Option<String>;
}

impl Inputs for BTreeMap<String, String> {
    fn value(&self, input: &Input) -> Option<String> {
        self.get(&input.id).cloned()
    }
}

/// Runs the command of a `${cmd:…}` variable.
pub trait Commands: Send + Sync {
    /// Runs the program with its arguments, without a shell, and returns its output. The error says what failed.
    fn run(&self, words: &[String]) -> Result<String, String>;
}

/// The values of variables. Nothing is read from the process; the caller provides everything.
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
    /// Creates an environment with these variables. The home directory is taken from `HOME` or `USERPROFILE`.
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
    #[must_use]
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// Sets the workspace directory.
    #[must_use]
    pub fn with_workspace(mut self, workspace: impl Into<PathBuf>) -> Self {
        self.workspace = Some(workspace.into());
        self
    }

    /// Adds a folder of a multi-root workspace, for `${workspaceFolder:name}`.
    #[must_use]
    pub fn with_folder(mut self, name: impl Into<String>, folder: impl Into<PathBuf>) -> Self {
        self.folders.insert(name.into(), folder.into());
        self
    }

    /// Sets the platform, which determines the path separator.
    #[must_use]
    pub fn with_platform(mut self, platform: Platform) -> Self {
        self.platform = platform;
        self
    }

    /// Sets the source of input values.
    #[must_use]
    pub fn with_inputs(mut self, inputs: impl Inputs + 'static) -> Self {
        self.inputs = Arc::new(inputs);
        self
    }

    /// Enables `${cmd:…}` in files that do not belong to a project, and sets how commands are run.
    #[must_use]
    pub fn with_commands(mut self, commands: impl Commands + 'static) -> Self {
        self.commands = Some(Arc::new(commands));
        self
    }

    /// Returns the value of a variable. On Windows, names are case-insensitive.
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

    /// Returns the names of all variables.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }

    /// Returns the home directory.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Returns the workspace directory.
    pub fn workspace(&self) -> Option<&Path> {
        self.workspace.as_deref()
    }

    /// Returns a folder of a multi-root workspace.
    pub fn folder(&self, name: &str) -> Option<&Path> {
        self.folders.get(name).map(PathBuf::as_path)
    }

    /// Returns the platform.
    pub fn platform(&self) -> Platform {
        self.platform
    }

    /// Returns the value of an input, if there is one.
    pub fn input(&self, input: &Input) -> Option<String> {
        self.inputs.value(input)
    }

    pub(crate) fn commands(&self) -> Option<&dyn Commands> {
        self.commands.as_deref()
    }
}

impl fmt::Debug for Environment {
    /// Shows only names, because the values are secrets.
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
