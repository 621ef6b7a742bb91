//! Elicitation: a server asks the client's user, by a form or by a page to visit.

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
        /// How to ask; `form` or nothing.
        optional mode: ElicitMode = "mode",
        /// What to ask.
        required message: String = "message",
        /// The fields of the form.
        required requested_schema: ElicitSchema = "requestedSchema",
        /// The wish to have this run as a task (2025-11-25 only).
        optional task: TaskMetadata = "task",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// A page for the user to visit (from 2025-11-25).
    pub struct ElicitUrlParams ["mode" = "url"] {
        /// Why to visit it.
        required message: String = "message",
        /// The page.
        required url: String = "url",
        /// Names this question; required in 2025-11-25 and only there.
        optional elicitation_id: String = "elicitationId",
        /// The wish to have this run as a task (2025-11-25 only).
        optional task: TaskMetadata = "task",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

open_enum! {
    /// How to ask.
    pub enum ElicitMode {
        /// By a form; also the meaning of an absent value.
        Form = "form",
        /// By a page to visit.
        Url = "url",
    }
}

/// Params of `elicitation/create`.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitParams {
    /// A form.
    Form(ElicitFormParams),
    /// A page to visit.
    Url(ElicitUrlParams),
}

impl ElicitParams {
    /// A form.
    pub fn form(message: impl Into<String>, schema: impl Into<ElicitSchema>) -> Self {
        Self::Form(ElicitFormParams::new(message, schema))
    }

    /// A page to visit.
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self::Url(ElicitUrlParams::new(message, url))
    }

    /// What to tell the user.
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

/// What the user did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElicitAction {
    /// Answered, or agreed to visit the page.
    Accept,
    /// Said no.
    Decline,
    /// Went away without a word.
    Cancel,
}

impl ElicitAction {
    /// The value on the wire.
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
    /// The user's answer.
    pub struct ElicitResult {
        /// What the result is; never written, for this result travels without it.
        optional result_type: ResultType = "resultType",
        /// What the user did.
        required action: ElicitAction = "action",
        /// The fields of an accepted form.
        optional content: RawMap = "content",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

impl ElicitResult {
    /// An accepted form.
    pub fn accept(content: impl Into<RawMap>) -> Self {
        Self { content: Some(content.into()), ..Self::new(ElicitAction::Accept) }
    }

    /// The consent to visit a page.
    pub fn consent() -> Self {
        Self::new(ElicitAction::Accept)
    }

    /// A refusal.
    pub fn decline() -> Self {
        Self::new(ElicitAction::Decline)
    }

    /// No answer.
    pub fn cancel() -> Self {
        Self::new(ElicitAction::Cancel)
    }
}

record! {
    /// Params of `notifications/elicitation/complete` (2025-11-25 only).
    pub struct ElicitationCompleteParams {
        /// The question that is settled.
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
        // Whoever sends this under 2025-11-25 has to supply `elicitation_id`: it has to be unique.
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
