//! Errors of commands: a message, hints, and an exit code.

use crate::target;
use bowline_client::OpenError;
use bowline_http::auth::{self, Scopes};
use bowline_types::RpcError;
use serde_json::{Value, json};
use std::{io, process::ExitCode};

/// The exit codes, for the help and the manual.
pub(crate) const CODES: &str = "\
Exit codes:
    0  success
    1  the operation failed: a tool returned an error, a file cannot be written
    2  invalid command line
    3  invalid configuration, or unknown server
    4  the server cannot be started or reached, or the connection was lost
    5  the server returned a protocol error or violated the protocol
    6  timeout
    7  denied by the user or by a rule, a login is missing, or nobody could be asked
    8  a check found problems
  130  interrupted by Ctrl-C";

/// The exit codes. They are documented and stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    /// The operation failed: a tool returned an error, a file cannot be written.
    Failed = 1,
    /// Invalid command line.
    Misused = 2,
    /// Invalid configuration, or unknown server.
    Config = 3,
    /// The server cannot be started or reached, or the connection was lost.
    Unreachable = 4,
    /// The server returned a protocol error or violated the protocol.
    Protocol = 5,
    /// Timeout.
    TimedOut = 6,
    /// Denied by the user or by a rule, a login is missing, or nobody could be asked.
    Denied = 7,
    /// A check found problems: `doctor`, `replay`, `config check`, `pins diff`, `store check`.
    Found = 8,
    /// Interrupted by the user.
    Interrupted = 130,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// Why a command failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    /// The error message, in lower case and without a full stop.
    pub(crate) sentence: String,
    /// Hints on what to do, one per line.
    pub(crate) advice: Vec<String>,
    /// The JSON-RPC error, if the server sent one.
    pub(crate) rpc: Option<Box<RpcError>>,
    /// The scopes of a login that is missing. The hint is added where the target is known.
    pub(crate) login: Option<Scopes>,
    /// Whether to print nothing: standard output is closed, or the error was already printed.
    pub(crate) silent: bool,
}

impl Failure {
    pub(crate) fn new(code: Code, sentence: impl Into<String>) -> Self {
        Self { code, sentence: sentence.into(), advice: Vec::new(), rpc: None, login: None, silent: false }
    }

    pub(crate) fn misused(sentence: impl Into<String>) -> Self {
        Self::new(Code::Misused, sentence)
    }

    /// Adds a hint.
    pub(crate) fn advise(mut self, line: impl Into<String>) -> Self {
        self.advice.push(line.into());
        self
    }

    /// Adds the hint to log in to a target, if a login is missing.
    pub(crate) fn name_login(&mut self, target: &str, account: Option<&str>) {
        if let Some(scopes) = self.login.take() {
            self.advice.push(target::login_advice(target, account, &scopes));
        }
    }

    /// Returns the failure as `--json` prints it. All members are always present.
    pub(crate) fn to_json(&self) -> Value {
        let data =
            self.rpc.as_ref().and_then(|error| error.data.as_ref()).and_then(|data| data.to_value().ok());
        json!({ "error": {
            "exitCode": self.code as u8,
            "code": self.rpc.as_ref().map(|error| error.code),
            "message": self.sentence,
            "data": data,
            "advice": self.advice,
        } })
    }
}

impl From<bowline_client::Error> for Failure {
    fn from(error: bowline_client::Error) -> Self {
        let code = if error.is_timeout() || matches!(error.open(), Some(OpenError::Silent)) {
            Code::TimedOut
        } else if error.is_tool() || error.is_task_cancelled() {
            Code::Failed
        } else if error.is_cancelled() {
            Code::Interrupted
        } else if error.is_unanswerable() || error.is_login_needed() {
            Code::Denied
        } else if error.is_rpc()
            || error.is_malformed()
            || error.is_unsupported()
            || error.is_task_gone()
            || error.open().is_some()
        {
            Code::Protocol
        } else {
            Code::Unreachable
        };
        let needed = auth::Error::find(&error).and_then(auth::Error::login);
        let login = match needed {
            Some(needed) => Some(needed.scopes.clone()),
            None => error.is_login_needed().then(Scopes::default),
        };
        Self { rpc: error.as_rpc().cloned().map(Box::new), login, ..Self::new(code, error.to_string()) }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let silent = error.kind() == io::ErrorKind::BrokenPipe;
        Self { silent, ..Self::new(Code::Failed, error.to_string()) }
    }
}
