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

/// Where questions go: a terminal, a page, a program, or nobody.
///
/// All texts of a question but `why` come from a server or a model: show them with
/// [`visible`](bowline_text::visible) or what does the same, and always show the server.
pub trait Gate: Send + Sync {
    /// Asks. Dropping the future withdraws the question.
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

/// How long an answer holds.
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
    /// The tool that was asked about.
    #[default]
    Tool,
    /// Every tool of the server that it marks as read-only.
    ReadOnlyTools,
    /// Every tool of the server.
    Server,
}

/// What is asked. `server` is the name the user gave the server that the question comes from, or goes to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Question {
    /// A server that somebody else wrote into the configuration: may it be used from now on?
    Start {
        /// The server.
        server: String,
        /// Where it is configured.
        origin: String,
        /// All that would be started or connected to, a line each.
        description: Vec<String>,
    },
    /// Allow this tool call?
    Call {
        /// The server.
        server: String,
        /// The tool, by the server's name for it.
        tool: String,
        /// The tool's name for people.
        title: Option<String>,
        /// With which arguments.
        arguments: RawJson,
        /// What the server says about the tool; claims, not facts.
        annotations: Option<ToolAnnotations>,
        /// The name the calling client gives itself.
        client: Option<String>,
        /// Why this is asked.
        why: String,
        /// The scopes an answer may have.
        scopes: Vec<Scope>,
        /// What an answer other than "once" may cover.
        covers: Vec<Covers>,
    },
    /// May this resource be read, or this prompt be fetched?
    Access {
        /// The server.
        server: String,
        /// Which of the two.
        action: Action,
        /// The URI of the resource, or the name of the prompt.
        name: String,
        /// The name the calling client gives itself.
        client: Option<String>,
        /// Why this is asked.
        why: String,
        /// The scopes an answer may have.
        scopes: Vec<Scope>,
    },
    /// A tool is not what it was when it was first used: may it be used from now on?
    Changed {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// What is different, line by line.
        diff: String,
    },
    /// A server that is known has a tool it did not have: may it be used from now on?
    New {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// What the server says about it: JSON, one member per line.
        definition: String,
    },
    /// May this be sent to the model?
    Sample {
        /// The server.
        server: String,
        /// What is to be sent.
        request: Box<CreateMessageParams>,
        /// Why this is asked.
        why: String,
        /// The scopes an answer may have.
        scopes: Vec<Scope>,
    },
    /// Allow sending this answer of the model to the server?
    SampleResult {
        /// The server.
        server: String,
        /// The answer.
        result: Box<CreateMessageResult>,
    },
    /// The server asks the user to fill in a form.
    Form {
        /// The server.
        server: String,
        /// What it says.
        message: String,
        /// The fields.
        schema: Box<ElicitSchema>,
    },
    /// The server asks the user to visit a page.
    Visit {
        /// The server.
        server: String,
        /// What it says.
        message: String,
        /// The page.
        url: ShownUrl,
    },
    /// May the server learn these roots?
    Roots {
        /// The server.
        server: String,
        /// The roots.
        roots: Vec<Root>,
        /// Why this is asked.
        why: String,
        /// The scopes an answer may have.
        scopes: Vec<Scope>,
    },
}

impl Question {
    /// The server the question is about.
    pub fn server(&self) -> &str {
        match self {
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
    /// Why it is asked, where a rule or the default of the policy is the reason.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Call { why, .. }
            | Self::Access { why, .. }
            | Self::Sample { why, .. }
            | Self::Roots { why, .. } => Some(why),
            Self::Start { .. }
            | Self::Changed { .. }
            | Self::New { .. }
            | Self::SampleResult { .. }
            | Self::Form { .. }
            | Self::Visit { .. } => None,
        }
    }

    /// Whether a server asks for something, rather than a client for something of the server.
    pub(crate) fn is_asked_by_server(&self) -> bool {
        match self {
            Self::Sample { .. }
            | Self::SampleResult { .. }
            | Self::Form { .. }
            | Self::Visit { .. }
            | Self::Roots { .. } => true,
            Self::Start { .. }
            | Self::Call { .. }
            | Self::Access { .. }
            | Self::Changed { .. }
            | Self::New { .. } => false,
        }
    }
}

/// What came back.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Yes.
    Allow(Granted),
    /// No.
    Decline {
        /// How long the no holds.
        scope: Scope,
        /// What to tell whoever wanted it.
        reason: Option<String>,
    },
    /// No answer.
    Cancel,
    /// The question was handed to the caller. The decision is made again when the call comes back with the answer.
    Deferred,
}

impl Verdict {
    /// Yes, this once, as asked.
    pub fn allow() -> Self {
        Self::Allow(Granted::default())
    }

    /// Yes, for so long.
    pub fn allow_for(scope: Scope, lasts: Option<Duration>) -> Self {
        Self::Allow(Granted { scope, lasts, ..Granted::default() })
    }

    /// Yes, with this instead of what was asked; or, to a form, with these fields.
    pub fn edited(edit: Edit) -> Self {
        Self::Allow(Granted { edit: Some(edit), ..Granted::default() })
    }

    /// No, this once.
    pub fn decline() -> Self {
        Self::Decline { scope: Scope::Once, reason: None }
    }
}

/// A yes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Granted {
    /// How long it holds.
    pub scope: Scope,
    /// When it ends within that scope, counted from now.
    pub lasts: Option<Duration>,
    /// What it covers. Only a question about a call can be answered for more than itself.
    pub covers: Covers,
    /// What to use instead of what was asked. Only of the kind that the question is about; a form needs it.
    pub edit: Option<Edit>,
}

/// What a person put in the place of what was asked.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Edit {
    /// For the model, instead of [`Question::Sample`]'s.
    Request(Box<CreateMessageParams>),
    /// For the server, instead of [`Question::SampleResult`]'s.
    Result(Box<CreateMessageResult>),
    /// The fields of a [`Question::Form`].
    Form(RawMap),
}
