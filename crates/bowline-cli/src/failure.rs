//! How a command ends other than well: a sentence, advice, and the exit code that scripts look at.

use bowline_client::OpenError;
use bowline_types::RpcError;
use serde_json::{Value, json};
use std::{io, process::ExitCode};

/// The exit codes, for the help and the manual.
pub(crate) const CODES: &str = "\
Exit codes:
    0  success
    1  the command ran and failed: a tool reports failure, a file cannot be written
    2  the command line cannot be understood
    3  the configuration has mistakes, or lacks the server that was named
    4  the server cannot be started or reached, or went away
    5  the server answered with a protocol error, or broke the rules of the protocol
    6  no answer in time
    7  refused: by the user, by a rule of the gateway, or because nobody could be asked
    8  a check found something
  130  ended by Ctrl-C";

/// The exit codes, which are documented and stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    /// The command ran and failed: a tool reports failure, a file cannot be written.
    Failed = 1,
    /// The command line cannot be understood.
    Misused = 2,
    /// The configuration has mistakes, or lacks the server that was named.
    Config = 3,
    /// The server cannot be started or reached, or went away.
    Unreachable = 4,
    /// The server answered with a protocol error, or broke the rules of the protocol.
    Protocol = 5,
    /// No answer in time.
    TimedOut = 6,
    /// The user or a rule refused, or nobody could be asked.
    Denied = 7,
    /// A check found something: `doctor`, `replay`, `config check`.
    Found = 8,
    /// Ended by the user.
    Interrupted = 130,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// Why a command ended.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    /// What went wrong, in a sentence without a capital and a full stop.
    pub(crate) sentence: String,
    /// What to do about it, a line each.
    pub(crate) advice: Vec<String>,
    /// The error that the server sent, if it sent one.
    pub(crate) rpc: Option<Box<RpcError>>,
    /// Whether there is nobody left to tell: the reader of standard output has gone, or it was told already.
    pub(crate) silent: bool,
}

impl Failure {
    pub(crate) fn new(code: Code, sentence: impl Into<String>) -> Self {
        Self { code, sentence: sentence.into(), advice: Vec::new(), rpc: None, silent: false }
    }

    pub(crate) fn misused(sentence: impl Into<String>) -> Self {
        Self::new(Code::Misused, sentence)
    }

    /// Adds a line of advice.
    pub(crate) fn advise(mut self, line: impl Into<String>) -> Self {
        self.advice.push(line.into());
        self
    }

    /// The failure as `--json` prints it. Every member is always there.
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
        } else if error.is_tool() {
            Code::Failed
        } else if error.is_cancelled() {
            Code::Interrupted
        } else if error.is_unanswerable() {
            Code::Denied
        } else if error.is_rpc() || error.is_malformed() || error.is_unsupported() || error.open().is_some() {
            Code::Protocol
        } else {
            Code::Unreachable
        };
        Self { rpc: error.as_rpc().cloned().map(Box::new), ..Self::new(code, error.to_string()) }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let silent = error.kind() == io::ErrorKind::BrokenPipe;
        Self { silent, ..Self::new(Code::Failed, error.to_string()) }
    }
}
