//! The queries of the page and their replies. A query reads and changes nothing.

mod answers;
mod checks;
mod entries;
mod overview;
mod rules;
mod traffic;

pub use answers::{AnswerView, AnswersView};
pub use checks::{ChecksState, ChecksView, FindingLevel, FindingView};
pub use entries::{Checked, Entries, Entry, ServerEntries};
pub use overview::{
    BufferState, ClientSummary, ConnectHint, Grade, Mode, Overview, ServerDetail, ServerState, ServerSummary,
    TryCall,
};
pub use rules::{
    AuditLine, AuditPage, AuditRequest, DecideRequest, Decided, PinState, PinsView, RuleView, Rules,
    ServerPins, ToolPinView,
};
pub use traffic::{CallNode, CallTree, ErrorView, Found, HeadsPage, Message, Progress, ResultView, Verdict};

use crate::inbox::{AnsweredQuestion, InboxQuestion};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The body of `POST /api/query`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(tag = "query", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Query {
    /// The launch, its limits and all servers. Reply: [`Overview`].
    Overview,
    /// One server. Reply: [`ServerDetail`].
    Server {
        /// Its configured name.
        server: String,
    },
    /// Tools, resources, templates and prompts of all servers. Reply: [`Entries`].
    Entries,
    /// The form for an item. Reply: [`FormPlan`](crate::form::FormPlan).
    Form(ItemName),
    /// Checks arguments against the schema of an item. Reply: [`Checked`].
    Check(CheckRequest),
    /// Heads by page, oldest first. Reply: [`HeadsPage`].
    Calls {
        /// Only heads after this number.
        #[serde(default)]
        after: u64,
        /// How many at most; 10,000 if absent.
        #[serde(default)]
        limit: Option<usize>,
    },
    /// A call with everything it caused. Reply: [`CallTree`].
    Call {
        /// The `seq` of its request.
        call: u64,
    },
    /// One message as sent, with secrets masked. Reply: [`Message`].
    Message {
        /// Its number.
        seq: u64,
        /// Whether a body of more than 64 KiB is wanted whole, as far as it is kept.
        #[serde(default)]
        all: bool,
    },
    /// The result of a call, ready to be drawn. Reply: [`ResultView`].
    Result {
        /// The `seq` of its request.
        call: u64,
    },
    /// Messages whose masked body contains a text. Reply: [`Found`].
    Find {
        /// The text; case does not matter for ASCII letters.
        text: String,
        /// Only messages before this number, for the next page.
        #[serde(default)]
        before: Option<u64>,
    },
    /// The questions that wait, and those that were answered. Reply: [`Inbox`].
    Inbox,
    /// A call as text to paste elsewhere. Reply: [`Copied`].
    Copy {
        /// The `seq` of any message of the call.
        seq: u64,
        /// The form.
        #[serde(rename = "as")]
        form: CopyForm,
    },
    /// The rules. Reply: [`Rules`].
    Rules,
    /// What the policy would decide about a call, without running it. Reply: [`Decided`].
    Decide(DecideRequest),
    /// The accepted definitions of tools, and what changed. Reply: [`PinsView`].
    Pins,
    /// The latest checks of a server. Reply: [`ChecksView`].
    Checks {
        /// Its configured name.
        server: String,
    },
    /// The answers that the policy remembers. Reply: [`AnswersView`].
    Answers,
    /// The latest lines of the audit log. Reply: [`AuditPage`].
    Audit(AuditRequest),
}

impl Query {
    /// Reads a query. A tagged enum cannot contain JSON that stays text, so the queries that do are read by their own types.
    pub fn parse(body: &[u8]) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Tag {
            query: String,
        }
        let Tag { query } = serde_json::from_slice(body)?;
        match query.as_str() {
            "check" => serde_json::from_slice(body).map(Self::Check),
            "decide" => serde_json::from_slice(body).map(Self::Decide),
            _ => serde_json::from_slice(body),
        }
    }
}

/// What kind of item a server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ItemKind {
    /// A tool.
    Tool,
    /// A resource.
    Resource,
    /// A resource template.
    Template,
    /// A prompt.
    Prompt,
}

/// Names an item of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ItemName {
    /// The configured name of the server.
    pub server: String,
    /// Its kind.
    pub kind: ItemKind,
    /// Its name on the server; the URI of a resource or template.
    pub name: String,
}

/// Arguments to check.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[non_exhaustive]
pub struct CheckRequest {
    /// The configured name of the server.
    pub server: String,
    /// The kind of the item.
    pub kind: ItemKind,
    /// Its name on the server; the URI of a resource or template.
    pub name: String,
    /// The arguments.
    #[cfg_attr(test, schemars(with = "serde_json::Value"))]
    pub value: Box<RawValue>,
}

/// The text that `copy` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CopyForm {
    /// A `bowline` command for a shell.
    Command,
    /// A `curl` command for the gateway. Secrets are left out.
    Curl,
    /// The JSON-RPC message.
    Json,
    /// A transcript of the call, as `bowline replay` reads it.
    Transcript,
}

/// Questions.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Inbox {
    /// Those that wait, oldest first.
    pub waiting: Vec<InboxQuestion>,
    /// Those that were answered, newest first, at most 100.
    pub answered: Vec<AnsweredQuestion>,
}

/// Text to paste.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Copied {
    /// The text. Secrets are masked; a command is one line.
    pub text: String,
    /// What is left out or masked, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The body of every reply that is not 2xx.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ApiError {
    /// What happened.
    pub error: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// Where in the request, as a JSON pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
}
