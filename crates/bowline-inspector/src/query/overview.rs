//! The launch and its servers, as the page shows them.

use crate::{events::Changed, render::Shown};
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// `bowline inspect FOLDER`: messages of an earlier launch, without servers; the page opens Traffic.
    Folder,
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
    /// Whether a terminal can be asked to let this browser act.
    pub can_ask_control: bool,
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
    /// The revisions that a call can be sent with, oldest first.
    pub revisions: Vec<String>,
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
    /// The command that logs in, if a missing login is why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<String>,
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
