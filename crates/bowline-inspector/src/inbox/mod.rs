//! The Inbox: questions of the gate that wait for a person, shown in the page and in the terminal.

mod gate;
mod view;

pub(crate) use gate::{AnswerError, Beside, Questions};
pub(crate) use view::diff_lines;

use crate::{
    form::FormPlan,
    render::{LinkTarget, Shown},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How long an answer applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerScope {
    /// For this question only.
    #[default]
    Once,
    /// Until the program ends.
    Run,
    /// In this project.
    Project,
    /// Everywhere.
    Always,
}

/// What an answer about a tool covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerCovers {
    /// The tool.
    #[default]
    Tool,
    /// All tools that the server marks as read-only.
    ReadOnlyTools,
    /// All tools of the server.
    Server,
}

/// An answer of the page.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Answer {
    /// Yes.
    Allow {
        /// How long, one of the `scopes` of the question.
        #[serde(default)]
        scope: AnswerScope,
        /// What it covers, one of the `covers` of the question.
        #[serde(default)]
        covers: AnswerCovers,
        /// The fields of a form; the edited request or result of sampling.
        #[serde(default)]
        edit: Option<Value>,
        /// The page opened the URL itself, so the host does not.
        #[serde(default)]
        opened: bool,
    },
    /// No.
    Decline {
        /// How long.
        #[serde(default)]
        scope: AnswerScope,
    },
    /// Neither: the question is cancelled.
    Cancel,
}

/// A question that waits.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct InboxQuestion {
    /// A random id.
    pub id: String,
    /// When it was asked, in milliseconds since 1970.
    pub at: f64,
    /// The configured name of the server.
    pub server: String,
    /// The client whose call caused it, as reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<Shown>,
    /// The call that caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
    /// Why it is asked, in our words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether it can be answered in the terminal only.
    pub terminal_only: bool,
    /// How long a yes may hold.
    pub scopes: Vec<AnswerScope>,
    /// What a yes may cover.
    pub covers: Vec<AnswerCovers>,
    /// What is asked.
    pub asks: Asks,
}

/// What is asked. All `Shown` values are text of a server and are drawn in a box of their own.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Asks {
    /// Use a server that another person configured? Terminal only.
    Start {
        /// Where it is configured.
        origin: String,
        /// The command or URL.
        description: Vec<Shown>,
    },
    /// Allow a tool call?
    Call {
        /// The tool.
        tool: Shown,
        /// Its title.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<Shown>,
        /// The arguments as JSON text.
        arguments: Shown,
        /// What the server says about the tool, as words.
        hints: Vec<String>,
    },
    /// Read a resource, or get a prompt?
    Access {
        /// `read` or `prompt`.
        action: String,
        /// The URI or name.
        name: Shown,
    },
    /// A tool changed. Use it from now on?
    Changed {
        /// The tool.
        tool: Shown,
        /// The difference, line by line.
        diff: Vec<DiffLine>,
    },
    /// A known server has a new tool. Use it from now on?
    New {
        /// The tool.
        tool: Shown,
        /// Its definition as JSON text.
        definition: Shown,
    },
    /// Send this request to the model?
    Sample {
        /// The request, which can be edited.
        request: Value,
    },
    /// Send this response of the model to the server?
    SampleResult {
        /// The response, which can be edited.
        result: Value,
    },
    /// Fill in a form.
    Form {
        /// What the server says.
        message: Shown,
        /// The form.
        plan: Box<FormPlan>,
    },
    /// Visit a page.
    Visit {
        /// What the server says.
        message: Shown,
        /// The URL, whole.
        target: LinkTarget,
    },
    /// Send these roots?
    Roots {
        /// Their URIs.
        roots: Vec<Shown>,
    },
}

/// A line of a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DiffLine {
    /// `same`, `added` or `removed`.
    pub change: String,
    /// The line.
    pub text: Shown,
}

/// Who answered a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnsweredBy {
    /// This page, in some browser.
    Page,
    /// The terminal.
    Terminal,
    /// Nobody: the call ended before.
    Nobody,
}

/// An answered question.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct AnsweredQuestion {
    /// The question.
    pub question: InboxQuestion,
    /// When it was answered, in milliseconds since 1970.
    pub at: f64,
    /// Who answered.
    pub by: AnsweredBy,
    /// Whether the answer was yes; absent if it was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<bool>,
}
