//! Remembered answers, as the page shows them.

use crate::render::Shown;
use serde::Serialize;

/// The answers that the policy remembers.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct AnswersView {
    /// The answers, by server.
    pub answers: Vec<AnswerView>,
    /// The file that has the lasting ones, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// A remembered answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct AnswerView {
    /// Names it, for `forget_answer`.
    pub id: String,
    /// `allow` or `deny`.
    pub effect: String,
    /// The configured name of the server.
    pub server: String,
    /// What it is about: the action and its tool, prompt or URI, or a larger part of the server.
    pub what: Shown,
    /// Whether it applies only to the same arguments.
    pub same_arguments: bool,
    /// Whether it is forgotten when the program ends.
    pub this_run: bool,
    /// The project that it applies to; all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Shown>,
    /// The user that it applies to, if users are distinguished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Shown>,
    /// When it expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}
