//! Describes a program to run, with its environment and limits.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use super::child::Child;
use super::environment;
use super::error::{Kind, ProcessError};
use super::group::Group;
use super::limits::Limits;
use super::restart::Restart;
use super::stderr::StderrMode;

/// The default grace period of each step of a shutdown.
const GRACE: Duration = Duration::from_secs(2);

/// Which variables of this process a program receives, in addition to those set with [`Command::env`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Environment {
    /// Variables for search paths, the network and the language: `HOME`, `PATH`, proxies, certificates, locale,
    /// directories, and the settings of npm, uv and pip. Other variables, which may contain secrets, are not passed.
    #[default]
    Minimal,
    /// All of them.
    Inherit,
    /// None of them.
    Empty,
}

/// Describes a program that is a server on its standard input and output. No shell is involved. For a program without
/// arguments use [`Command::new`].
///
/// The program gets a minimal environment; see [`Environment`]. Its standard error is captured for error messages and
/// not shown; see [`StderrMode`].
///
/// ```no_run
/// # async fn example() -> Result<(), bowline_client::ProcessError> {
/// use bowline_client::command;
///
/// let mut child = command("npx", ["-y", "@modelcontextprotocol/server-everything"]).env("DEBUG", "1").spawn()?;
/// child.shutdown().await;
/// # Ok(())
/// # }
/// ```
pub fn command<I>(program: impl Into<OsString>, args: I) -> Command
where
    I: IntoIterator,
    I::Item: Into<OsString>,
{
    Command::new(program).args(args)
}

/// A program to run, as returned by [`command`].
///
/// `Debug` shows the program and its arguments, but no values of environment variables.
#[derive(Clone)]
#[must_use = "it does nothing until it is used"]
pub struct Command {
    program: OsString,
    args: Vec<OsString>,
    environment: Environment,
    /// Names and patterns of further variables to pass.
    inherited: Vec<String>,
    /// Variables to set, or to remove if there is no value.
    env: BTreeMap<OsString, Option<OsString>>,
    current_dir: Option<PathBuf>,
    stderr: StderrMode,
    grace: Duration,
    terminate_grace: Duration,
    restart: Restart,
    limits: Limits,
}

impl Command {
    /// Describes a program without arguments. It is searched in `PATH` unless it is a path.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            environment: Environment::default(),
            inherited: Vec::new(),
            env: BTreeMap::new(),
            current_dir: None,
            stderr: StderrMode::default(),
            grace: GRACE,
            terminate_grace: GRACE,
            restart: Restart::default(),
            limits: Limits::default(),
        }
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args<I>(mut self, args: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), Some(value.into()));
        self
    }

    /// Removes an environment variable, wherever it comes from.
    pub fn env_remove(mut self, name: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), None);
        self
    }

    /// Sets which variables of this process the program receives. Default: [`Environment::Minimal`].
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Passes further variables of this process, by name or by pattern, in which `*` matches any characters. Extends
    /// [`Environment::Minimal`].
    ///
    /// ```
    /// use bowline_client::Command;
    ///
    /// let command = Command::new("deploy-server").inherit_env(["AWS_*", "KUBECONFIG"]);
    /// ```
    pub fn inherit_env<I>(mut self, names: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.inherited.extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets the working directory. Default: that of this process.
    pub fn current_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.current_dir = Some(path.into());
        self
    }

    /// Sets where standard error goes. Default: [`StderrMode::Keep`].
    pub fn stderr(mut self, mode: StderrMode) -> Self {
        self.stderr = mode;
        self
    }

    /// Sets the time for the program to exit after its standard input was closed. Default: 2 s.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the time for the program to exit after SIGTERM. Default: 2 s.
    pub fn terminate_grace(mut self, grace: Duration) -> Self {
        self.terminate_grace = grace;
        self
    }

    /// Sets whether the program is restarted after it exits.
    pub fn restart(mut self, restart: Restart) -> Self {
        self.restart = restart;
        self
    }

    /// Returns the restart policy.
    pub fn restart_policy(&self) -> &Restart {
        &self.restart
    }

    /// Sets resource limits. Default: none.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Starts the program in its own process group, with pipes for its standard streams.
    ///
    /// Fails if the program does not exist, is not executable, or the system lacks resources, and outside of a tokio
    /// runtime. The runtime needs the IO and time drivers.
    pub fn spawn(&self) -> Result<Child, ProcessError> {
        let mut command = tokio::process::Command::new(&self.program);
        command.args(&self.args).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(match self.stderr {
            StderrMode::Keep | StderrMode::Callback(_) => Stdio::piped(),
            StderrMode::Inherit => Stdio::inherit(),
        });
        if let Some(path) = &self.current_dir {
            command.current_dir(path);
        }
        self.fill_environment(&mut command);
        let started = Group::start(command).map_err(|error| self.explain(error))?;
        // If the limits cannot be set, the program is killed with its group.
        started.0.limit(self.limits).map_err(|error| self.explain(error))?;
        Ok(Child::new(self.name(), started, &self.stderr, self.grace, self.terminate_grace))
    }

    fn fill_environment(&self, command: &mut tokio::process::Command) {
        match self.environment {
            Environment::Inherit => {}
            Environment::Empty => {
                command.env_clear();
            }
            Environment::Minimal => {
                command.env_clear();
                command.envs(environment::selected(std::env::vars_os(), &self.inherited));
            }
        }
        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
    }

    fn name(&self) -> String {
        self.program.to_string_lossy().into_owned()
    }

    /// Distinguishes causes that the system reports with the same error number.
    fn explain(&self, error: io::Error) -> ProcessError {
        let kind = match (error.kind(), &self.current_dir) {
            (io::ErrorKind::NotFound | io::ErrorKind::NotADirectory, Some(path)) if !path.is_dir() => {
                Kind::NoDirectory(path.clone())
            }
            (io::ErrorKind::NotFound, _) if self.exists() => Kind::NoInterpreter,
            (io::ErrorKind::NotFound, _) if self.is_path() => Kind::NotFound,
            (io::ErrorKind::NotFound, _) => Kind::NotInPath,
            // An unreadable directory in PATH causes this error even if the program does not exist.
            (io::ErrorKind::PermissionDenied, _) if !self.is_path() && !self.exists() => Kind::NotInPath,
            (io::ErrorKind::PermissionDenied, _) => Kind::PermissionDenied,
            _ => Kind::NotStarted,
        };
        ProcessError::start(self.name(), kind, error)
    }

    fn is_path(&self) -> bool {
        self.program.as_encoded_bytes().iter().any(|byte| std::path::is_separator(char::from(*byte)))
    }

    fn exists(&self) -> bool {
        let directory = self.current_dir.as_deref().unwrap_or_else(|| Path::new(""));
        if self.is_path() {
            return directory.join(&self.program).is_file();
        }
        let path = self.env.get(OsStr::new("PATH")).cloned().unwrap_or_else(|| match self.environment {
            Environment::Minimal | Environment::Inherit => inherited("PATH"),
            Environment::Empty => None,
        });
        let Some(path) = path else { return false };
        std::env::split_paths(&path).any(|entry| directory.join(entry).join(&self.program).is_file())
    }
}

/// Returns a variable of this process, unless it contains a function that some shells would run.
fn inherited(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.as_encoded_bytes().starts_with(b"()"))
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Command");
        shown.field("program", &self.program).field("args", &self.args);
        shown.field("environment", &self.environment);
        if !self.inherited.is_empty() {
            shown.field("inherited", &self.inherited);
        }
        shown
            .field("env", &HiddenValues(&self.env))
            .field("current_dir", &self.current_dir)
            .field("stderr", &self.stderr)
            .field("grace", &self.grace)
            .field("terminate_grace", &self.terminate_grace)
            .field("restart", &self.restart)
            .field("limits", &self.limits)
            .finish()
    }
}

/// Shows the names of variables without their values.
struct HiddenValues<'a>(&'a BTreeMap<OsString, Option<OsString>>);

impl fmt::Debug for HiddenValues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.keys().map(|name| (name, format_args!("***")))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_missing_from_path_is_not_found_even_if_a_directory_is_unreadable() {
        // The error of `execvp` for a missing program if a directory in PATH cannot be searched.
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let missing = Command::new("no-such-program-anywhere").explain(denied());
        assert!(missing.is_not_found() && !missing.is_permission_denied(), "{missing}");
        assert_eq!(missing.to_string(), "program `no-such-program-anywhere` not found in PATH");
        // A program that exists but is not executable is another error.
        let folder = std::env::temp_dir().join(format!("bowline-path-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("present"), "").unwrap();
        let present = Command::new("present").env("PATH", &folder).explain(denied());
        let by_path = Command::new(folder.join("absent")).explain(denied());
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(present.is_permission_denied(), "{present}");
        assert!(by_path.is_permission_denied(), "{by_path}");
    }
}
