//! Messages, calls and results, as the page shows them.

use crate::{
    events::{Head, Status, TaskNote},
    form::FormProblem,
    render::{ContentPart, PromptMessage, Shown, Table},
};
use serde::{Deserialize, Serialize};

/// Heads of messages.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct HeadsPage {
    /// The heads, oldest first.
    pub heads: Vec<Head>,
    /// Whether there are more after the last one.
    pub more: bool,
    /// The numbers, first and last, that were asked for and are dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<[u64; 2]>,
}

/// A call with everything it caused.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CallTree {
    /// The call at the top: the one that was asked for, or the one that caused it.
    pub root: CallNode,
}

/// One call of a tree.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CallNode {
    /// The head of the request, decision or question.
    pub head: Head,
    /// The head that ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Head>,
    /// Notifications of the call, oldest first.
    pub notices: Vec<Head>,
    /// What it caused, oldest first.
    pub children: Vec<Self>,
}

/// One message.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Message {
    /// Its head.
    pub head: Head,
    /// The text as it passed, except for masked values. Absent if bodies are not kept or it was dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How many bytes of the message `text` leaves out at its end.
    pub left_out: u64,
    /// SHA-256 of the whole message in hexadecimal, if the buffer keeps only its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// How many values were masked.
    pub masked: usize,
    /// How many hidden characters the text has.
    pub hidden: usize,
    /// Status and headers of the HTTP response that carried it, one `name: value` per line, masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
}

/// How a call ended, in the words of the three headlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// It runs.
    Running,
    /// A result.
    Done,
    /// The tool reported an error.
    ToolError,
    /// The server, or the host, rejected the request.
    Rejected,
    /// No answer.
    NoAnswer,
    /// Cancelled.
    Cancelled,
}

/// A result, ready to be drawn.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ResultView {
    /// The call.
    pub call: u64,
    /// How it ended.
    pub verdict: Verdict,
    /// The number of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<u64>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took: Option<f64>,
    /// Bytes of the response.
    pub size: u64,
    /// About how many tokens the result costs a model.
    pub tokens: usize,
    /// The content of a tool result or resource.
    pub parts: Vec<ContentPart>,
    /// The messages of a prompt.
    pub messages: Vec<PromptMessage>,
    /// `structuredContent`, or the whole result of other methods, as JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<String>,
    /// The structured content as a table, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<Table>,
    /// Whether the result fits the output schema; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fits_schema: Option<bool>,
    /// Where it does not.
    pub problems: Vec<FormProblem>,
    /// The error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
    /// The latest progress while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The task that it became, as its server described it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskNote>,
    /// How often a person is asked right now because of this call.
    pub waiting: usize,
    /// The last lines of the server's output since the call started, if it failed.
    pub output: Vec<Shown>,
}

/// An error of a call.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ErrorView {
    /// The JSON-RPC code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// The words of the server or of the host.
    pub message: Shown,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// `data` of the error, as JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

/// Progress of a call.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Progress {
    /// So far.
    pub progress: f64,
    /// In total, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// What it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Shown>,
}

/// What a search found.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Found {
    /// Numbers of messages, newest first, at most 1,000.
    pub seqs: Vec<u64>,
    /// Continue with `before` set to this number; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

impl From<Status> for Verdict {
    fn from(status: Status) -> Self {
        match status {
            Status::Done
            | Status::Allowed
            | Status::Accepted
            | Status::Declined
            | Status::Ready
            | Status::Stopped => Self::Done,
            Status::ToolError => Self::ToolError,
            Status::Rejected | Status::Denied => Self::Rejected,
            Status::InputRequired => Self::Running,
            Status::NoAnswer | Status::Failed => Self::NoAnswer,
            Status::Cancelled => Self::Cancelled,
        }
    }
}
