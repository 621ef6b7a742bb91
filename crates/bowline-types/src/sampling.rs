//! Sampling: a server asks the client's model.

use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::RawMap;
use crate::adapt::{Adapt, adapt_message_meta};
use crate::content::{ContentBlock, Place, Role, adapt_block, describe_blocks};
use crate::meta::Meta;
use crate::record::{open_enum, record};
use crate::result::ResultType;
use crate::revision::Revision;
use crate::task::TaskMetadata;
use crate::tool::Tool;
use bowline_json::borrow::RawText;

record! {
    /// Params of `sampling/createMessage`.
    pub struct CreateMessageParams {
        /// The conversation so far.
        required messages: Vec<SamplingMessage> = "messages",
        /// Model preferences.
        optional model_preferences: ModelPreferences = "modelPreferences",
        /// System prompt.
        optional system_prompt: String = "systemPrompt",
        /// Which context to include.
        optional include_context: IncludeContext = "includeContext",
        /// Sampling temperature.
        fraction temperature: f64 = "temperature",
        /// Maximum number of tokens to generate.
        required max_tokens: u64 = "maxTokens",
        /// Stop sequences.
        optional stop_sequences: Vec<String> = "stopSequences",
        /// Provider-specific metadata.
        optional metadata: RawMap = "metadata",
        /// Tools the model may use (from 2025-11-25).
        optional tools: Vec<Tool> = "tools",
        /// How the model may use the tools (from 2025-11-25).
        optional tool_choice: ToolChoice = "toolChoice",
        /// Requests that this runs as a task (2025-11-25 only).
        optional task: TaskMetadata = "task",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// One message of a conversation with a model.
    pub struct SamplingMessage {
        /// Author of the message.
        required role: Role = "role",
        /// Content: one block, or several from 2025-11-25 on.
        required content: OneOrMany<ContentBlock> = "content",
        /// Metadata (from 2025-11-25).
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Result of `sampling/createMessage`.
    pub struct CreateMessageResult {
        /// Type of the result; never written, because this result has no type.
        optional result_type: ResultType = "resultType",
        /// Author of the message: the assistant.
        required role: Role = "role",
        /// Content.
        required content: OneOrMany<ContentBlock> = "content",
        /// Name of the model.
        required model: String = "model",
        /// Why the model stopped.
        optional stop_reason: StopReason = "stopReason",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Model preferences; each priority is from 0 to 1.
    #[derive(Default)]
    pub struct ModelPreferences {
        /// Preferred models, best first.
        optional hints: Vec<ModelHint> = "hints",
        /// Importance of low cost.
        fraction cost_priority: f64 = "costPriority",
        /// Importance of speed.
        fraction speed_priority: f64 = "speedPriority",
        /// Importance of capability.
        fraction intelligence_priority: f64 = "intelligencePriority",
    }
}

record! {
    /// A preferred model.
    #[derive(Default)]
    pub struct ModelHint {
        /// Name of the model, or part of it.
        optional name: String = "name",
    }
}

record! {
    /// How the model may use tools.
    #[derive(Default)]
    pub struct ToolChoice {
        /// Whether the model may or must use tools.
        optional mode: ToolChoiceMode = "mode",
    }
}

open_enum! {
    /// Whether a model may or must use tools.
    pub enum ToolChoiceMode {
        /// The model decides; the default.
        Auto = "auto",
        /// At least one tool.
        Required = "required",
        /// No tools.
        None = "none",
    }
}

open_enum! {
    /// Which context to include.
    pub enum IncludeContext {
        /// None; the default.
        None = "none",
        /// The context of the requesting server.
        ThisServer = "thisServer",
        /// The context of all servers.
        AllServers = "allServers",
    }
}

open_enum! {
    /// Why a model stopped.
    pub enum StopReason {
        /// The model finished.
        EndTurn = "endTurn",
        /// A stop sequence was generated.
        StopSequence = "stopSequence",
        /// The maximum number of tokens was generated.
        MaxTokens = "maxTokens",
        /// The model wants to use a tool (from 2025-11-25).
        ToolUse = "toolUse",
    }
}

/// One value, or a list of values; they differ on the wire.
#[derive(Debug, Clone, PartialEq)]
pub enum OneOrMany<T> {
    /// One value.
    One(T),
    /// A list, of any length.
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// Returns all values in order.
    pub fn as_slice(&self) -> &[T] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }

    /// Returns all values in order for modification.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            Self::One(value) => std::slice::from_mut(value),
            Self::Many(values) => values,
        }
    }

    /// Returns all values in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.as_slice().iter()
    }

    /// Converts to a list.
    pub fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(value) => vec![value],
            Self::Many(values) => values,
        }
    }
}

impl<'a, T> IntoIterator for &'a OneOrMany<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<ContentBlock> for OneOrMany<ContentBlock> {
    fn from(block: ContentBlock) -> Self {
        Self::One(block)
    }
}

impl From<&str> for OneOrMany<ContentBlock> {
    fn from(text: &str) -> Self {
        Self::One(text.into())
    }
}

impl From<String> for OneOrMany<ContentBlock> {
    fn from(text: String) -> Self {
        Self::One(text.into())
    }
}

impl<T> From<Vec<T>> for OneOrMany<T> {
    fn from(values: Vec<T>) -> Self {
        Self::Many(values)
    }
}

impl<T: Serialize> Serialize for OneOrMany<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(value) => value.serialize(serializer),
            Self::Many(values) => values.serialize(serializer),
        }
    }
}

impl<'de, T: serde::de::DeserializeOwned> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = RawText::deserialize(deserializer)?;
        if text.0.starts_with('[') { text.decode().map(Self::Many) } else { text.decode().map(Self::One) }
    }
}

impl SamplingMessage {
    /// Creates a message from the user.
    pub fn user(content: impl Into<OneOrMany<ContentBlock>>) -> Self {
        Self::new(Role::User, content)
    }

    /// Creates a message from the assistant.
    pub fn assistant(content: impl Into<OneOrMany<ContentBlock>>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

/// Rewrites the content of a message. Before 2025-11-25 that is a single block; several become one text.
fn adapt_content(content: &mut OneOrMany<ContentBlock>, to: Revision) {
    for block in content.as_mut_slice() {
        adapt_block(block, to, Place::Sampling);
    }
    if to >= Revision::V2025_11_25 {
        return;
    }
    if let OneOrMany::Many(blocks) = content {
        let single = match blocks.len() {
            1 => blocks.remove(0),
            _ => ContentBlock::text(describe_blocks(blocks)),
        };
        *content = OneOrMany::One(single);
    }
    // Blocks had metadata from 2025-06-18, so `adapt_block` has dealt with it.
}

impl Adapt for SamplingMessage {
    fn adapt(&mut self, to: Revision) {
        adapt_content(&mut self.content, to);
        if to < Revision::V2025_11_25 {
            self.meta = None;
        }
    }
}

impl Adapt for CreateMessageParams {
    fn adapt(&mut self, to: Revision) {
        adapt_message_meta(&mut self.meta, to);
        self.messages.adapt(to);
        if to < Revision::V2025_11_25 {
            self.tools = None;
            self.tool_choice = None;
        }
        self.tools.adapt(to);
        if to != Revision::V2025_11_25 {
            self.task = None;
        }
    }
}

impl Adapt for CreateMessageResult {
    fn adapt(&mut self, to: Revision) {
        adapt_message_meta(&mut self.meta, to);
        // No revision has `resultType` here: legacy results lack it, modern answers are bare.
        self.result_type = None;
        adapt_content(&mut self.content, to);
        if to < Revision::V2025_11_25 && self.stop_reason == Some(StopReason::ToolUse) {
            self.stop_reason = Some(StopReason::EndTurn);
        }
    }
}
