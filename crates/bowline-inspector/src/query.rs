//! The queries of the page and their replies. A query reads and changes nothing.

use crate::{
    events::{Changed, Head, Status},
    form::FormProblem,
    inbox::{AnsweredQuestion, InboxQuestion},
    render::{ContentPart, PromptMessage, Shown, Table},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

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
    #[cfg_attr(test, schemars(with = "Value"))]
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

/// Who may do what with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Grade {
    /// Queries and the stream only.
    View,
    /// Everything.
    Control,
}

/// Which command runs this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// `bowline up`.
    Up,
    /// `bowline inspect`: one server; the page opens Explore.
    Inspect,
    /// `bowline gateway --inspector`.
    Gateway,
}

/// The launch and its servers.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Overview {
    /// The id of this launch.
    pub run: String,
    /// The version of the program.
    pub version: String,
    /// The command.
    pub mode: Mode,
    /// What the key of this request may do.
    pub grade: Grade,
    /// When the host started, in milliseconds since 1970.
    pub started: f64,
    /// The present time of the host, in milliseconds since 1970.
    pub now: f64,
    /// The counters of this moment.
    pub changed: Changed,
    /// The buffer.
    pub buffer: BufferState,
    /// The servers: failed ones first, then by name.
    pub servers: Vec<ServerSummary>,
    /// Clients that are or were connected, the latest first.
    pub clients: Vec<ClientSummary>,
    /// How to connect clients to the gateway; empty without one.
    pub connect: Vec<ConnectHint>,
    /// A call to try, if there is a good one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub try_call: Option<TryCall>,
    /// How many questions wait.
    pub waiting: usize,
}

/// What the buffer holds and may hold.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BufferState {
    /// The limit in bytes.
    pub limit: u64,
    /// Bytes in use.
    pub used: u64,
    /// Whether bodies are kept. If not, `message` has heads only.
    pub bodies: bool,
    /// The oldest number that is kept; 0 if there is none.
    pub first: u64,
    /// The newest number; 0 if there is none.
    pub last: u64,
    /// When the oldest kept message passed, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<f64>,
    /// How many messages were dropped because the buffer was full.
    pub dropped: u64,
}

/// Whether a server can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerState {
    /// Not running, because nobody used it.
    Idle,
    /// Starting.
    Starting,
    /// Running.
    Ready,
    /// It failed; see `reason`.
    Failed,
    /// Switched off in the configuration.
    Disabled,
    /// It needs an approval in the terminal.
    NeedsApproval,
    /// Its configuration is invalid; see `reason`.
    Invalid,
}

/// One row of Home.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ServerSummary {
    /// The configured name.
    pub name: String,
    /// Its state.
    pub state: ServerState,
    /// Why it cannot be used, with exit status and last output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Shown>,
    /// The negotiated revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// How many tools it lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// About how many tokens its tool definitions cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
    /// How often it was started.
    pub starts: u64,
    /// How many calls it received.
    pub calls: u64,
    /// How many failed.
    pub failed: u64,
    /// How many run now.
    pub running: usize,
    /// Milliseconds in this state.
    pub since: f64,
    /// Whether it can be started, stopped and restarted from here.
    pub controllable: bool,
}

/// A client at the gateway.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ClientSummary {
    /// The name that it reports.
    pub name: String,
    /// Its version, as reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// When its first message came, in milliseconds since 1970.
    pub since: f64,
    /// When its latest message came.
    pub latest: f64,
    /// How many tool calls it made.
    pub calls: u64,
}

/// How to connect one client program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ConnectHint {
    /// The client program.
    pub client: String,
    /// A command or a piece of configuration.
    pub text: String,
}

impl ConnectHint {
    /// Creates a hint.
    pub fn new(client: impl Into<String>, text: impl Into<String>) -> Self {
        Self { client: client.into(), text: text.into() }
    }
}

/// A call that Home offers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct TryCall {
    /// The server.
    pub server: String,
    /// The tool, by its name on the server.
    pub tool: String,
    /// Arguments to start with.
    pub arguments: Value,
}

impl TryCall {
    /// Creates a suggestion.
    pub fn new(server: impl Into<String>, tool: impl Into<String>, arguments: Value) -> Self {
        Self { server: server.into(), tool: tool.into(), arguments }
    }
}

/// The page of a server.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ServerDetail {
    /// The row of Home.
    pub summary: ServerSummary,
    /// Name that the server reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_name: Option<Shown>,
    /// Version that the server reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_version: Option<Shown>,
    /// Its capabilities, as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Value>,
    /// Its instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Shown>,
    /// How it is reached: command or URL, with secrets masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Shown>,
    /// The last lines of its output, oldest first.
    pub output: Vec<Shown>,
}

/// Items of all servers.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Entries {
    /// One group per server, by name.
    pub servers: Vec<ServerEntries>,
}

/// Items of one server.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ServerEntries {
    /// The server.
    pub server: String,
    /// Its items: tools, resources, templates, prompts, each in the server's order.
    pub items: Vec<Entry>,
    /// How many tools are hidden by the configuration.
    pub hidden: usize,
    /// Why the lists could not be read, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Shown>,
}

/// One item.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Entry {
    /// Its kind.
    pub kind: ItemKind,
    /// Its name on the server, exactly; the URI of a resource, the template of a template. Send this back.
    pub name: String,
    /// The name to show.
    pub label: Shown,
    /// The name under which clients of the gateway know it.
    pub gateway_name: String,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Shown>,
    /// Its description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Shown>,
    /// What the server says about a tool, as words: `read-only`, `destructive`, `idempotent`, `open world`.
    pub hints: Vec<String>,
    /// MIME type of a resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime: Option<Shown>,
    /// Size of a resource in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// How many required arguments it has.
    pub required: usize,
    /// Whether the tool has an output schema.
    pub has_output_schema: bool,
    /// About how many tokens its definition costs.
    pub tokens: usize,
}

/// Errors of arguments.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Checked {
    /// The errors by position. Empty if the arguments are valid.
    pub problems: Vec<FormProblem>,
}

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
