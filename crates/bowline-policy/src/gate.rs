//! The gate: the questions that a user is asked, and the possible answers.

use bowline_proto::service::BoxFuture;
use bowline_types::{
    CreateMessageParams, CreateMessageResult, ElicitSchema, RawJson, RawMap, Root, ToolAnnotations,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::rules::Action;
use bowline_client::ShownUrl;

/// Asks questions: in a terminal, on a page, through a program, or not at all.
///
/// All texts of a question except `why` come from a server or a model. Show them with
/// [`visible`](bowline_text::visible) or an equivalent, and always show the name of the server.
pub trait Gate: Send + Sync {
    /// Asks a question. Dropping the future withdraws it.
    fn ask(&self, question: Question) -> BoxFuture<'_, Verdict>;
}

impl<G: Gate + ?Sized> Gate for Arc<G> {
    fn ask(&self, question: Question) -> BoxFuture<'_, Verdict> {
        (**self).ask(question)
    }
}

impl fmt::Debug for dyn Gate + '_ {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Gate")
    }
}

/// How long an answer applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// For this question only.
    #[default]
    Once,
    /// Until this program ends.
    Run,
    /// In this project.
    Project,
    /// Everywhere.
    Always,
}

/// How much of a server an answer about one of its tools covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Covers {
    /// The tool of the question.
    #[default]
    Tool,
    /// All tools that the server marks as read-only.
    ReadOnlyTools,
    /// All tools of the server.
    Server,
}

/// A question to the user. `server` is the configured name of the server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Question {
    /// May a server that another person configured be used?
    Start {
        /// The server.
        server: String,
        /// Where it is configured.
        origin: String,
        /// The command or URL to approve, one item per line.
        description: Vec<String>,
    },
    /// May a browser that only looks at the page of the inspector act there, too?
    Control {
        /// The number of the browser's key.
        key: u64,
        /// The digits that the page shows, so that the person knows which browser asks.
        digits: String,
    },
    /// Allow this tool call?
    Call {
        /// The server.
        server: String,
        /// The tool, by its name on the server.
        tool: String,
        /// The display name of the tool.
        title: Option<String>,
        /// The arguments.
        arguments: RawJson,
        /// The annotations of the tool. They are claims of the server, not facts.
        annotations: Option<ToolAnnotations>,
        /// The name that the client reports.
        client: Option<String>,
        /// The reason for the question.
        why: String,
        /// The scopes that an answer may have.
        scopes: Vec<Scope>,
        /// What an answer other than "once" may cover.
        covers: Vec<Covers>,
    },
    /// May this resource be read, or this prompt be fetched?
    Access {
        /// The server.
        server: String,
        /// The action: read or prompt.
        action: Action,
        /// The URI of the resource, or the name of the prompt.
        name: String,
        /// The name that the client reports.
        client: Option<String>,
        /// The reason for the question.
        why: String,
        /// The scopes that an answer may have.
        scopes: Vec<Scope>,
    },
    /// The definition of a tool has changed. May it be used from now on?
    Changed {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// The changes, line by line.
        diff: String,
    },
    /// A known server has a new tool. May it be used from now on?
    New {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// The definition of the tool: JSON with one member per line.
        definition: String,
    },
    /// May this request be sent to the model?
    Sample {
        /// The server.
        server: String,
        /// The request.
        request: Box<CreateMessageParams>,
        /// The reason for the question.
        why: String,
        /// The scopes that an answer may have.
        scopes: Vec<Scope>,
    },
    /// May this response of the model be sent to the server?
    SampleResult {
        /// The server.
        server: String,
        /// The response.
        result: Box<CreateMessageResult>,
    },
    /// The server asks the user to fill in a form.
    Form {
        /// The server.
        server: String,
        /// The message of the server.
        message: String,
        /// The fields.
        schema: Box<ElicitSchema>,
    },
    /// The server asks the user to open a URL.
    Visit {
        /// The server.
        server: String,
        /// The message of the server.
        message: String,
        /// The URL.
        url: ShownUrl,
    },
    /// May these roots be sent to the server?
    Roots {
        /// The server.
        server: String,
        /// The roots.
        roots: Vec<Root>,
        /// The reason for the question.
        why: String,
        /// The scopes that an answer may have.
        scopes: Vec<Scope>,
    },
}

impl Question {
    /// Returns the server that the question is about. A question about the inspector names that.
    pub fn server(&self) -> &str {
        match self {
            Self::Control { .. } => "inspector",
            Self::Start { server, .. }
            | Self::Call { server, .. }
            | Self::Access { server, .. }
            | Self::Changed { server, .. }
            | Self::New { server, .. }
            | Self::Sample { server, .. }
            | Self::SampleResult { server, .. }
            | Self::Form { server, .. }
            | Self::Visit { server, .. }
            | Self::Roots { server, .. } => server,
        }
    }
}

impl Question {
    /// Returns the reason, if a rule or the default of the policy caused the question.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Call { why, .. }
            | Self::Access { why, .. }
            | Self::Sample { why, .. }
            | Self::Roots { why, .. } => Some(why),
            Self::Start { .. }
            | Self::Control { .. }
            | Self::Changed { .. }
            | Self::New { .. }
            | Self::SampleResult { .. }
            | Self::Form { .. }
            | Self::Visit { .. } => None,
        }
    }

    /// Returns whether the server asks for something, rather than a client for something of the server.
    pub(crate) fn is_asked_by_server(&self) -> bool {
        match self {
            Self::Sample { .. }
            | Self::SampleResult { .. }
            | Self::Form { .. }
            | Self::Visit { .. }
            | Self::Roots { .. } => true,
            Self::Start { .. }
            | Self::Control { .. }
            | Self::Call { .. }
            | Self::Access { .. }
            | Self::Changed { .. }
            | Self::New { .. } => false,
        }
    }
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Allowed.
    Allow(Granted),
    /// Denied.
    Decline {
        /// How long the denial applies.
        scope: Scope,
        /// The reason to report.
        reason: Option<String>,
    },
    /// No answer.
    Cancel,
    /// The question was passed to the caller. The decision is made when the call is retried with the answer.
    Deferred,
}

impl Verdict {
    /// Allows once, unchanged.
    pub fn allow() -> Self {
        Self::Allow(Granted::default())
    }

    /// Allows for this scope and time.
    pub fn allow_for(scope: Scope, lasts: Option<Duration>) -> Self {
        Self::Allow(Granted { scope, lasts, ..Granted::default() })
    }

    /// Allows with a changed request, or answers a form with these fields.
    pub fn edited(edit: Edit) -> Self {
        Self::Allow(Granted { edit: Some(edit), ..Granted::default() })
    }

    /// Denies once.
    pub fn decline() -> Self {
        Self::Decline { scope: Scope::Once, reason: None }
    }
}

/// A permission.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Granted {
    /// How long it applies.
    pub scope: Scope,
    /// The duration within that scope, from now.
    pub lasts: Option<Duration>,
    /// What it covers. Only the answer to a question about a call can cover more than that call.
    pub covers: Covers,
    /// The changed request or response. Its kind must match the question. A form requires it.
    pub edit: Option<Edit>,
    /// Whether the gate has opened the URL of a [`Question::Visit`] itself, perhaps on another machine.
    pub opened: bool,
}

/// A changed request or response.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Edit {
    /// For the model, in place of the request of [`Question::Sample`].
    Request(Box<CreateMessageParams>),
    /// For the server, in place of the response of [`Question::SampleResult`].
    Result(Box<CreateMessageResult>),
    /// The fields of a [`Question::Form`].
    Form(RawMap),
}
