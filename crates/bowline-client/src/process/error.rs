//! The error of a program that cannot be started or exited too early.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// The number of lines of standard error in an error message.
const SHOWN_LINES: usize = 10;
/// The number of characters per line.
const SHOWN_CHARACTERS: usize = 400;

/// How a program exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// Because of this signal.
    Signal(i32),
    /// Unknown: the program is gone, or cannot be stopped.
    Unknown,
}

impl Exit {
    /// Returns whether the program exited with code zero.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "was terminated by signal {signal} ({name})"),
                None => write!(f, "was terminated by signal {signal}"),
            },
            Self::Unknown => f.write_str("exited with an unknown status"),
        }
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            return Self::Signal(signal);
        }
        status.code().map_or(Self::Unknown, Self::Code)
    }
}

/// Returns the name of a signal whose number is the same on every Unix.
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return None,
    })
}

/// The error of a program that cannot be started, or that exited before it responded.
///
/// The message names the program and the cause, and ends with the last lines of the program's standard error, with
/// control characters escaped.
#[derive(Debug)]
pub struct ProcessError {
    program: String,
    kind: Kind,
    stderr: String,
    source: Option<io::Error>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    NotInPath,
    NotFound,
    NoInterpreter,
    NoDirectory(PathBuf),
    PermissionDenied,
    NotStarted,
    Exited(Exit),
    OutputClosed,
}

impl ProcessError {
    pub(super) fn start(program: String, kind: Kind, source: io::Error) -> Self {
        Self { program, kind, stderr: String::new(), source: Some(source) }
    }

    pub(super) fn lost(program: String, kind: Kind, stderr: String) -> Self {
        Self { program, kind, stderr, source: None }
    }

    /// Returns the program as named in the command.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Returns whether the program, its interpreter or its working directory does not exist.
    pub fn is_not_found(&self) -> bool {
        match self.kind {
            Kind::NotInPath | Kind::NotFound | Kind::NoInterpreter | Kind::NoDirectory(_) => true,
            Kind::PermissionDenied | Kind::NotStarted | Kind::Exited(_) | Kind::OutputClosed => false,
        }
    }

    /// Returns whether the program is not executable.
    pub fn is_permission_denied(&self) -> bool {
        self.kind == Kind::PermissionDenied
    }

    /// Returns how the program exited, if it has.
    pub fn exit(&self) -> Option<Exit> {
        match self.kind {
            Kind::Exited(exit) => Some(exit),
            _ => None,
        }
    }

    /// Returns the end of the program's standard error, unescaped.
    pub fn stderr(&self) -> &str {
        &self.stderr
    }
}

impl fmt::Display for ProcessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = &self.program;
        match &self.kind {
            Kind::NotInPath => write!(f, "program `{program}` not found in PATH")?,
            Kind::NotFound => write!(f, "program `{program}` not found")?,
            Kind::NoInterpreter => {
                write!(f, "the interpreter or loader of program `{program}` was not found")?;
            }
            Kind::NoDirectory(path) => {
                write!(
                    f,
                    "program `{program}` not started: working directory `{}` not found",
                    path.display()
                )?;
            }
            Kind::PermissionDenied => write!(f, "permission denied to run program `{program}`")?,
            Kind::NotStarted => write!(f, "program `{program}` could not be started")?,
            Kind::Exited(exit) => write!(f, "program `{program}` {exit} before answering")?,
            Kind::OutputClosed => write!(f, "program `{program}` closed its output before answering")?,
        }
        if let (Kind::NotStarted, Some(source)) = (&self.kind, &self.source) {
            write!(f, ": {source}")?;
        }
        LastLines(&self.stderr).fmt(f)
    }
}

/// The last lines of a program's standard error, escaped for a terminal. Empty if there are none.
pub(crate) struct LastLines<'a>(pub(crate) &'a str);

impl fmt::Display for LastLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<&str> = self.0.lines().filter(|line| !line.trim().is_empty()).collect();
        let shown = lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default();
        if !shown.is_empty() {
            f.write_str("; its standard error ended with:")?;
        }
        shown.iter().try_for_each(|line| write!(f, "\n  {}", harmless(line)))
    }
}

impl std::error::Error for ProcessError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

/// Escapes control characters, so that a program cannot control the terminal, and shortens the line.
fn harmless(line: &str) -> String {
    let mut text = String::with_capacity(line.len().min(SHOWN_CHARACTERS));
    for (count, character) in line.trim_end().chars().enumerate() {
        if count == SHOWN_CHARACTERS {
            text.push('…');
            break;
        }
        match character {
            '\t' => text.push(' '),
            // In addition to control characters, those that reorder text.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => text.extend(character.escape_unicode()),
            _ if character.is_control() => text.extend(character.escape_unicode()),
            _ => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: Kind, stderr: &str, expected: &str) {
        assert_eq!(ProcessError::lost("demo".into(), kind, stderr.into()).to_string(), expected);
    }

    #[test]
    fn message_has_program_reason_and_lines() {
        check(
            Kind::Exited(Exit::Code(3)),
            "first\n\nsecond\n",
            "program `demo` exited with code 3 before answering; its standard error ended with:\n  first\n  second",
        );
        check(
            Kind::Exited(Exit::Signal(9)),
            "",
            "program `demo` was terminated by signal 9 (SIGKILL) before answering",
        );
        check(
            Kind::Exited(Exit::Signal(64)),
            " \n",
            "program `demo` was terminated by signal 64 before answering",
        );
        check(Kind::OutputClosed, "", "program `demo` closed its output before answering");
    }

    #[test]
    fn message_shows_the_last_lines_only() {
        let text: String = (1..=SHOWN_LINES + 1)
            .flat_map(|number| ["line ".into(), number.to_string(), ".\n".into()])
            .collect();
        let message = ProcessError::lost("demo".into(), Kind::OutputClosed, text).to_string();
        assert!(!message.contains("line 1.") && message.contains("line 2.") && message.ends_with("line 11."));
    }

    #[test]
    fn long_lines_are_cut() {
        let exact = "é".repeat(SHOWN_CHARACTERS);
        assert_eq!(harmless(&exact), exact);
        assert_eq!(harmless(&format!("{exact}é")), format!("{exact}…"));
    }

    #[test]
    fn terminal_control_is_escaped() {
        // V-74
        assert_eq!(harmless("\u{1b}[2Jred\tgreen\u{7}\u{202e}"), r"\u{1b}[2Jred green\u{7}\u{202e}");
    }

    #[test]
    fn start_failure_has_its_cause() {
        let cause = io::Error::other("no more processes");
        let error = ProcessError::start("demo".into(), Kind::NotStarted, cause);
        assert_eq!(error.to_string(), "program `demo` could not be started: no more processes");
        assert!(
            std::error::Error::source(&error).is_some() && !error.is_not_found() && error.exit().is_none()
        );
    }
}
