//! Elicitation: a server asks the client's user, with a form or a URL.

use serde::de::{self, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::RawMap;
use crate::adapt::{Adapt, adapt_message_meta, adapt_only_meta};
use crate::form::ElicitSchema;
use crate::meta::Meta;
use crate::record::{open_enum, record};
use crate::result::ResultType;
use crate::revision::Revision;
use crate::task::TaskMetadata;
use bowline_json::borrow::{RawText, Text};

record! {
    /// A form for the user.
    pub struct ElicitFormParams {
        /// Mode; `form` or absent.
        optional mode: ElicitMode = "mode",
        /// Message for the user.
        required message: String = "message",
        /// The fields of the form.
        required requested_schema: ElicitSchema = "requestedSchema",
        /// Requests that this runs as a task (2025-11-25 only).
        optional task: TaskMetadata = "task",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// A URL for the user to open (from 2025-11-25).
    pub struct ElicitUrlParams ["mode" = "url"] {
        /// Message for the user.
        required message: String = "message",
        /// The URL.
        required url: String = "url",
        /// Id of this elicitation; required in 2025-11-25 and absent in other revisions.
        optional elicitation_id: String = "elicitationId",
        /// Requests that this runs as a task (2025-11-25 only).
        optional task: TaskMetadata = "task",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

open_enum! {
    /// Mode of an elicitation.
    pub enum ElicitMode {
        /// A form; the default.
        Form = "form",
        /// A URL to open.
        Url = "url",
    }
}

/// Params of `elicitation/create`.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitParams {
    /// A form.
    Form(ElicitFormParams),
    /// A URL to open.
    Url(ElicitUrlParams),
}

impl ElicitParams {
    /// Creates a form request.
    pub fn form(message: impl Into<String>, schema: impl Into<ElicitSchema>) -> Self {
        Self::Form(ElicitFormParams::new(message, schema))
    }

    /// Creates a URL request.
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self::Url(ElicitUrlParams::new(message, url))
    }

    /// Returns the message for the user.
    pub fn message(&self) -> &str {
        match self {
            Self::Form(params) => &params.message,
            Self::Url(params) => &params.message,
        }
    }
}

impl From<ElicitFormParams> for ElicitParams {
    fn from(params: ElicitFormParams) -> Self {
        Self::Form(params)
    }
}

impl From<ElicitUrlParams> for ElicitParams {
    fn from(params: ElicitUrlParams) -> Self {
        Self::Url(params)
    }
}

impl Serialize for ElicitParams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Form(params) => params.serialize(serializer),
            Self::Url(params) => params.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ElicitParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = RawText::deserialize(deserializer)?;
        match text.tag("mode")?.as_deref() {
            None | Some("form") => text.decode().map(Self::Form),
            Some("url") => text.decode().map(Self::Url),
            Some(other) => Err(de::Error::unknown_variant(other, &["form", "url"])),
        }
    }
}

/// Action of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElicitAction {
    /// The user answered, or agreed to open the URL.
    Accept,
    /// The user declined.
    Decline,
    /// The user dismissed the question.
    Cancel,
}

impl ElicitAction {
    /// Returns the value on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }
}

impl Serialize for ElicitAction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ElicitAction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Text(text) = Text::deserialize(deserializer)?;
        match text.as_ref() {
            "accept" => Ok(Self::Accept),
            // Drafts of 2025-06-18 said `reject`, and early clients still do.
            "decline" | "reject" => Ok(Self::Decline),
            "cancel" => Ok(Self::Cancel),
            other => Err(de::Error::unknown_variant(other, &["accept", "decline", "cancel"])),
        }
    }
}

record! {
    /// Result of `elicitation/create`.
    pub struct ElicitResult {
        /// Type of the result; never written, because this result has no type.
        optional result_type: ResultType = "resultType",
        /// Action of the user.
        required action: ElicitAction = "action",
        /// The fields of an accepted form.
        optional content: RawMap = "content",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

impl ElicitResult {
    /// Creates an accepted answer with fields.
    pub fn accept(content: impl Into<RawMap>) -> Self {
        Self { content: Some(content.into()), ..Self::new(ElicitAction::Accept) }
    }

    /// Creates an accepted answer to a URL elicitation.
    pub fn consent() -> Self {
        Self::new(ElicitAction::Accept)
    }

    /// Creates a declined answer.
    pub fn decline() -> Self {
        Self::new(ElicitAction::Decline)
    }

    /// Creates a dismissed answer.
    pub fn cancel() -> Self {
        Self::new(ElicitAction::Cancel)
    }
}

record! {
    /// Params of `notifications/elicitation/complete` (2025-11-25 only).
    pub struct ElicitationCompleteParams {
        /// Id of the elicitation.
        required elicitation_id: String = "elicitationId",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

impl Adapt for ElicitFormParams {
    fn adapt(&mut self, to: Revision) {
        adapt_message_meta(&mut self.meta, to);
        if to < Revision::V2025_11_25 {
            self.mode = None;
        }
        if to != Revision::V2025_11_25 {
            self.task = None;
        }
        self.requested_schema.adapt(to);
    }
}

impl Adapt for ElicitUrlParams {
    fn adapt(&mut self, to: Revision) {
        adapt_message_meta(&mut self.meta, to);
        // In 2025-11-25 the sender has to set `elicitation_id`, because it has to be unique.
        if to != Revision::V2025_11_25 {
            self.elicitation_id = None;
            self.task = None;
        }
    }
}

impl Adapt for ElicitParams {
    fn adapt(&mut self, to: Revision) {
        match self {
            Self::Form(params) => params.adapt(to),
            Self::Url(params) => params.adapt(to),
        }
    }
}

impl Adapt for ElicitResult {
    fn adapt(&mut self, to: Revision) {
        adapt_message_meta(&mut self.meta, to);
        // No revision has `resultType` here: legacy results lack it, modern answers are bare.
        self.result_type = None;
        if self.action != ElicitAction::Accept {
            self.content = None;
        }
        if to < Revision::V2025_11_25
            && let Some(content) = &mut self.content
        {
            crate::form::join_lists(content);
        }
    }
}

adapt_only_meta! { ElicitationCompleteParams }
