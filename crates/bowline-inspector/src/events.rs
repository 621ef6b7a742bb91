//! What the event stream carries: heads of messages, counters of what changed, and gaps.

use serde::{Deserialize, Serialize};

/// One line of the stream of `GET /api/events`. An empty line means that the connection is alive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The first line: the id of this launch. After a restart it differs, and the page's key is worthless.
    Run(String),
    /// New heads in order, at most 500. A head whose `seq` is known already replaces the earlier one.
    Heads(Vec<Head>),
    /// Counters of sections that changed. The page queries a section again if its counter differs.
    Changed(Changed),
    /// Messages of these numbers, first and last, were dropped before they could be sent.
    Gap([u64; 2]),
}

/// Counters that grow whenever a section changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Changed {
    /// State of servers: query `overview`.
    pub servers: u64,
    /// Lists of tools, resources and prompts: query `entries`.
    pub entries: u64,
    /// Connected clients: query `overview`.
    pub clients: u64,
    /// Questions: query `inbox`.
    pub inbox: u64,
    /// The buffer was cleared: query `calls`.
    pub cleared: u64,
    /// Checks of a server began or ended: query `checks`.
    pub checks: u64,
    /// A key may do more than before: query `overview` for its grade.
    pub access: u64,
}

/// What a head describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// A JSON-RPC request.
    Request,
    /// A JSON-RPC response.
    Response,
    /// A JSON-RPC notification.
    Notification,
    /// Something that is not a JSON-RPC message, or a batch.
    Other,
    /// A line that a server program wrote to its standard error.
    Output,
    /// A decision of the policy about a call.
    Policy,
    /// A question to a person. The head with a status is its answer.
    Question,
    /// A request to a model on behalf of a server. The head with a status is its end.
    Model,
    /// A server started, failed or stopped.
    State,
}

/// Which side of the host a message passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Leg {
    /// Between a client, or this page, and the host.
    Client,
    /// Between the host and a server.
    Server,
    /// Inside of the host.
    Host,
}

/// The direction of a message, seen from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Direction {
    /// The host received it.
    In,
    /// The host sent it.
    Out,
}

/// How a request, question or decision ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// With a result.
    Done,
    /// With a tool result that reports an error.
    ToolError,
    /// With a JSON-RPC error; see `code`.
    Rejected,
    /// With a request for input; another round follows.
    InputRequired,
    /// No response: timeout, exit, closed connection.
    NoAnswer,
    /// The caller cancelled it.
    Cancelled,
    /// Allowed by the policy or by a person.
    Allowed,
    /// Denied by the policy or by a person.
    Denied,
    /// The elicitation was accepted.
    Accepted,
    /// The elicitation was declined.
    Declined,
    /// The server is ready.
    Ready,
    /// The server failed.
    Failed,
    /// The server stopped.
    Stopped,
}

/// What a message says about a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct TaskNote {
    /// The id of the task, cut after 200 bytes.
    pub id: String,
    /// Its status, such as `working`; absent if the message does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// What its server says about the status, cut after 200 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What the page knows of every message without asking: about a hundred bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Head {
    /// The number of the message, from 1 on. It never repeats in one launch.
    pub seq: u64,
    /// Milliseconds since 1970, with a fraction.
    pub at: f64,
    /// The number of the connection. Every request of 2026-07-28 over HTTP is a connection of its own.
    pub connection: u64,
    /// The name of the client or server at the other end: as configured for servers, as reported for clients, `page` for
    /// this page. Hidden characters are made visible.
    pub peer: String,
    /// Which side of the host it passed.
    pub leg: Leg,
    /// Its direction.
    pub direction: Direction,
    /// What it is.
    pub kind: Kind,
    /// The method, also of a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The tool, prompt or URI; the text of a line or decision, cut after 200 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The JSON-RPC id, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The call that it belongs to: the `seq` of the request of this connection that it is, answers or notifies about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
    /// The call that caused `call`. A later round of a call has the first round as its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// The size of the message in bytes.
    pub size: u64,
    /// How the call ended; only in the head that ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// The JSON-RPC error code, or the HTTP status if no JSON-RPC message came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// Milliseconds since the request; only in the head that ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<f64>,
    /// The revision of the connection, such as `2026-07-28`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The task that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskNote>,
}
