//! Rules, decisions in advance, pins and the audit log, as the page shows them.

use super::ItemKind;
use crate::{inbox::DiffLine, render::Shown};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

/// The policy.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Rules {
    /// The rules. The first that matches decides.
    pub rules: Vec<RuleView>,
    /// Rules of the command line that allow what would otherwise ask.
    pub unasked: Vec<RuleView>,
    /// What happens if no rule matches: `ask`, `client` or `deny`.
    pub consent: String,
}

/// A rule.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RuleView {
    /// `allow`, `ask` or `deny`.
    pub effect: String,
    /// The rule in words, with its position.
    pub text: String,
    /// The file and line, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// A call to decide about in advance.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[non_exhaustive]
pub struct DecideRequest {
    /// The configured name of the server.
    pub server: String,
    /// `tool`, `resource` or `prompt`.
    pub kind: ItemKind,
    /// Its name on the server; the URI of a resource.
    pub name: String,
    /// The arguments; none if absent.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<Value>"))]
    pub arguments: Option<Box<RawValue>>,
    /// The name that the calling client reports.
    #[serde(default)]
    pub client: Option<String>,
}

/// What the policy would decide.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Decided {
    /// `allow`, `ask` or `deny`.
    pub effect: String,
    /// What decides: `rule`, `default`, `remembered` (an earlier answer) or `check` (a changed definition, ambiguous arguments).
    pub by: String,
    /// The reason in words.
    pub reason: String,
    /// The place of the rule in `rules`, if one of them decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<usize>,
    /// The file and line of that rule, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// How the tool compares with the definition that was accepted; absent for other items, and if definitions are not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<PinState>,
}

/// How a tool compares with the definition that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PinState {
    /// It is the same.
    Same,
    /// It was not accepted yet.
    New,
    /// It changed.
    Changed,
    /// The server does not list it any more.
    Removed,
    /// The server has not listed its tools yet.
    Unknown,
}

/// Accepted definitions of all servers.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PinsView {
    /// The servers, by name.
    pub servers: Vec<ServerPins>,
}

/// Accepted definitions of a server.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ServerPins {
    /// The configured name.
    pub server: String,
    /// Its tools, by name.
    pub tools: Vec<ToolPinView>,
}

/// The accepted definition of a tool.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ToolPinView {
    /// The name, to be sent back.
    pub name: String,
    /// The name, to be shown.
    pub label: Shown,
    /// How it compares.
    pub state: PinState,
    /// The digest of the listed definition, for `accept_pin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What changed.
    pub diff: Vec<DiffLine>,
}

/// Which lines of the audit log are wanted.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[non_exhaustive]
pub struct AuditRequest {
    /// Only lines before this position: `next` of the page before.
    #[serde(default)]
    pub before: Option<u64>,
    /// How many lines at most; 200 if absent.
    #[serde(default)]
    pub limit: Option<usize>,
    /// Only lines about this server.
    #[serde(default)]
    pub server: Option<String>,
    /// Only lines of this kind: `decision`, `call`, `pin`, `refusal`, `login` or `page`.
    #[serde(default)]
    pub event: Option<String>,
    /// Only lines that contain this text, masked; case does not matter for ASCII letters.
    #[serde(default)]
    pub text: Option<String>,
}

/// Lines of the audit log, the latest first.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct AuditPage {
    /// Whether there is an audit log; `[audit] file` of the configuration sets it.
    pub is_on: bool,
    /// The lines.
    pub lines: Vec<AuditLine>,
    /// The position to continue at, if there may be more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A line of the audit log.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct AuditLine {
    /// Its position in the file.
    pub at: u64,
    /// The entry; see the chapter about the audit log for its members. Keys that only look get no arguments.
    pub entry: Value,
}
