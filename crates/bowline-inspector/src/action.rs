//! The actions of the page and their replies. An action needs a key with the grade *control*, except for signing out and for asking for control.

use crate::{
    inbox::Answer,
    query::{Grade, ItemKind},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

/// The body of `POST /api/act`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Action {
    /// Sends a request to a server, through the policy, as the client `page`. Reply: [`Sent`], at once.
    Send(SendRequest),
    /// Cancels a call of this page. Reply: [`Done`].
    Cancel {
        /// The call, as `send` returned it.
        call: u64,
    },
    /// Stops a server and starts it again. Reply: [`Done`].
    Restart {
        /// Its configured name.
        server: String,
    },
    /// Stops a server. It starts again when it is used. Reply: [`Done`].
    Stop {
        /// Its configured name.
        server: String,
    },
    /// Starts a server. Reply: [`Done`].
    Start {
        /// Its configured name.
        server: String,
    },
    /// Forgets all messages. Reply: [`Done`].
    Clear,
    /// Revokes the key of this browser, or all keys. Any grade may do so. Reply: [`Done`].
    SignOut {
        /// Whether all browsers are signed out. Needs *control*.
        #[serde(default)]
        all: bool,
    },
    /// Answers a question of the Inbox. Reply: [`Done`], or 409 if somebody else answered first.
    Answer {
        /// The id of the question.
        question: String,
        /// The answer.
        answer: Answer,
    },
    /// Asks a server for completions. Reply: [`Completed`].
    Complete {
        /// The server.
        server: String,
        /// `prompt` or `template`.
        kind: ItemKind,
        /// The prompt, or the URI template.
        name: String,
        /// The argument or variable.
        argument: String,
        /// What was typed so far.
        value: String,
        /// The other arguments that are filled in.
        #[serde(default)]
        #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, String>"))]
        context: serde_json::Map<String, Value>,
    },
    /// Sends the request of a message again, to the same server and tool. Reply: [`Sent`].
    Resend(ResendRequest),
    /// Subscribes to a resource, or ends that. Updates are notifications in Traffic. Reply: [`Done`].
    Subscribe {
        /// The server.
        server: String,
        /// The resource, by its URI on the server.
        uri: String,
        /// Whether to subscribe or to unsubscribe.
        on: bool,
    },
    /// Sets the lowest level of log messages that calls of this page ask for. Reply: [`Done`].
    Level {
        /// The level, such as `debug`; absent for none.
        #[serde(default)]
        level: Option<String>,
    },
    /// Asks the person at the terminal to let this browser act. Any grade may do so. The reply arrives when the question is
    /// answered: [`Done`] if this key has *control* from now on, 403 if not, 409 if no terminal can be asked, 429 if it was asked
    /// too often.
    AskControl {
        /// Four random digits that the page shows, so that the person knows which browser asks.
        digits: String,
    },
    /// Checks a server, over connections of its own; a program is started several times, and no tool is called. Reply: [`Done`] at
    /// once; `changed.checks` grows when they are done.
    RunChecks {
        /// The server.
        server: String,
    },
    /// Accepts the definition of a tool that is new or changed. Reply: [`Done`], or 409 if it changed since it was shown.
    AcceptPin {
        /// The server.
        server: String,
        /// The tool, by its name on the server.
        tool: String,
        /// The `digest` that was shown.
        digest: String,
    },
    /// Forgets a remembered answer, so that a person is asked again. Reply: [`Done`].
    ForgetAnswer {
        /// Its `id`.
        id: String,
    },
    /// Sets the roots that calls of this page offer to servers. Reply: [`Done`].
    Roots {
        /// URIs of folders.
        roots: Vec<String>,
    },
}

/// A request to a server.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[non_exhaustive]
pub struct SendRequest {
    /// The configured name of the server.
    pub server: String,
    /// The method: `tools/call`, `resources/read`, `prompts/get`, or a custom one.
    pub method: String,
    /// The parameters with the names that the server uses, without `_meta`. The text is passed on as it is.
    #[cfg_attr(test, schemars(with = "Value"))]
    pub params: Box<RawValue>,
    /// `_meta` for the server.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<Value>"))]
    pub meta: Option<Box<RawValue>>,
    /// Milliseconds until the call is cancelled; the configured timeout of the server applies in any case.
    #[serde(default)]
    pub timeout: Option<u64>,
    /// Sends it over a connection of its own that speaks this revision, such as `2025-06-18`.
    #[serde(default)]
    pub revision: Option<String>,
}

/// A request that is sent again.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[non_exhaustive]
pub struct ResendRequest {
    /// The number of the request.
    pub seq: u64,
    /// Replaces `arguments`; absent for the same ones, with their secrets.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<Value>"))]
    pub arguments: Option<Box<RawValue>>,
    /// Sends it over a connection of its own that speaks this revision.
    #[serde(default)]
    pub revision: Option<String>,
}

/// A call was started.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Sent {
    /// The call: the `seq` of its request in the stream.
    pub call: u64,
}

/// Nothing to report.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Done {}

/// Completions.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Completed {
    /// The values.
    pub values: Vec<String>,
    /// Whether there are more.
    pub more: bool,
}

/// The body of `POST /api/enter`.
#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Enter {
    /// The one-time code from the fragment of the link.
    pub code: String,
}

/// The key for a code.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Entered {
    /// The key, to be sent as `Authorization: Bearer KEY`. It is valid for this launch.
    pub key: String,
    /// What it may do.
    pub grade: Grade,
    /// The id of this launch.
    pub run: String,
}

/// A new link, for `bowline open`. The request has `Authorization: Bearer LAUNCH-SECRET`.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Link {
    /// The path and fragment to append to the address: `/open#CODE`.
    pub path: String,
    /// What the key for this code may do.
    pub grade: Grade,
}

impl Action {
    /// Reads an action. A tagged enum cannot contain JSON that stays text, so the actions that do are read by their own types.
    pub fn parse(body: &[u8]) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Tag {
            action: String,
        }
        let Tag { action } = serde_json::from_slice(body)?;
        match action.as_str() {
            "send" => serde_json::from_slice(body).map(Self::Send),
            "resend" => serde_json::from_slice(body).map(Self::Resend),
            _ => serde_json::from_slice(body),
        }
    }

    /// Returns the value of `action`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Send(_) => "send",
            Self::Cancel { .. } => "cancel",
            Self::Restart { .. } => "restart",
            Self::Stop { .. } => "stop",
            Self::Start { .. } => "start",
            Self::Clear => "clear",
            Self::SignOut { .. } => "sign_out",
            Self::Answer { .. } => "answer",
            Self::Complete { .. } => "complete",
            Self::Resend(_) => "resend",
            Self::Subscribe { .. } => "subscribe",
            Self::Level { .. } => "level",
            Self::Roots { .. } => "roots",
            Self::AskControl { .. } => "ask_control",
            Self::AcceptPin { .. } => "accept_pin",
            Self::RunChecks { .. } => "run_checks",
            Self::ForgetAnswer { .. } => "forget_answer",
        }
    }

    /// Returns the grade that a key needs for this action.
    pub const fn grade(&self) -> Grade {
        match self {
            Self::SignOut { all: false } | Self::AskControl { .. } => Grade::View,
            Self::Send(_)
            | Self::Cancel { .. }
            | Self::Restart { .. }
            | Self::Stop { .. }
            | Self::Start { .. }
            | Self::Clear
            | Self::SignOut { all: true }
            | Self::Answer { .. }
            | Self::Complete { .. }
            | Self::Resend(_)
            | Self::Subscribe { .. }
            | Self::Level { .. }
            | Self::AcceptPin { .. }
            | Self::RunChecks { .. }
            | Self::ForgetAnswer { .. }
            | Self::Roots { .. } => Grade::Control,
        }
    }
}

impl std::fmt::Debug for Enter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Enter(***)")
    }
}

impl std::fmt::Debug for Entered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entered").field("grade", &self.grade).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("grade", &self.grade).finish_non_exhaustive()
    }
}
