//! Prompts: definitions, requests and results.

use crate::OrderedMap;
use crate::adapt::{Adapt, adapt_cache, adapt_message_meta, adapt_meta, adapt_result_type};
use crate::cache::CacheScope;
use crate::content::{ContentBlock, Role};
use crate::implementation::Icon;
use crate::input::InputResponses;
use crate::meta::Meta;
use crate::record::record;
use crate::result::ResultType;
use crate::revision::Revision;

record! {
    /// A prompt.
    pub struct Prompt {
        /// Name that requests use.
        required name: String = "name",
        /// Display name.
        optional title: String = "title",
        /// Description.
        optional description: String = "description",
        /// Arguments.
        default arguments: Vec<PromptArgument> = "arguments",
        /// Icons.
        default icons: Vec<Icon> = "icons",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// An argument of a prompt.
    pub struct PromptArgument {
        /// The name.
        required name: String = "name",
        /// Display name.
        optional title: String = "title",
        /// Description.
        optional description: String = "description",
        /// Whether it is required.
        optional required: bool = "required",
    }
}

record! {
    /// One message of a prompt.
    pub struct PromptMessage {
        /// Author of the message.
        required role: Role = "role",
        /// Content: one block, never a list.
        required content: ContentBlock = "content",
    }
}

record! {
    /// Result of `prompts/list`.
    #[derive(Default)]
    pub struct ListPromptsResult {
        /// Type of the result.
        optional result_type: ResultType = "resultType",
        /// The prompts.
        lenient prompts: Vec<Prompt> = "prompts",
        /// Cursor of the next page; absent on the last page.
        optional next_cursor: String = "nextCursor",
        /// How long the page may be cached, in milliseconds.
        whole ttl_ms: u64 = "ttlMs",
        /// Who may cache it.
        optional cache_scope: CacheScope = "cacheScope",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Params of `prompts/get`.
    pub struct GetPromptParams {
        /// The prompt.
        required name: String = "name",
        /// Arguments; their values are strings in every revision.
        optional arguments: OrderedMap<String> = "arguments",
        /// Responses to the input requests of the previous result (from 2026-07-28).
        optional input_responses: InputResponses = "inputResponses",
        /// The state of the previous result (from 2026-07-28).
        optional request_state: String = "requestState",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Result of `prompts/get`.
    #[derive(Default)]
    pub struct GetPromptResult {
        /// Type of the result.
        optional result_type: ResultType = "resultType",
        /// Description.
        optional description: String = "description",
        /// The messages.
        required messages: Vec<PromptMessage> = "messages",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

impl PromptMessage {
    /// Creates a message from the user.
    pub fn user(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::User, content)
    }

    /// Creates a message from the assistant.
    pub fn assistant(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

impl Adapt for Prompt {
    fn adapt(&mut self, to: Revision) {
        if to < Revision::V2025_06_18 {
            self.title = None;
        }
        if to < Revision::V2025_11_25 {
            self.icons.clear();
        }
        self.arguments.adapt(to);
        adapt_meta(&mut self.meta, to);
    }
}

impl Adapt for PromptArgument {
    fn adapt(&mut self, to: Revision) {
        if to < Revision::V2025_06_18 {
            self.title = None;
        }
    }
}

impl Adapt for PromptMessage {
    fn adapt(&mut self, to: Revision) {
        self.content.adapt(to);
    }
}

impl Adapt for ListPromptsResult {
    fn adapt(&mut self, to: Revision) {
        self.prompts.adapt(to);
        adapt_result_type(&mut self.result_type, to);
        adapt_message_meta(&mut self.meta, to);
        adapt_cache(&mut self.ttl_ms, &mut self.cache_scope, to);
    }
}

impl Adapt for GetPromptParams {
    fn adapt(&mut self, to: Revision) {
        adapt_message_meta(&mut self.meta, to);
        if to < Revision::V2026_07_28 {
            self.input_responses = None;
            self.request_state = None;
        }
    }
}

impl Adapt for GetPromptResult {
    fn adapt(&mut self, to: Revision) {
        self.messages.adapt(to);
        adapt_result_type(&mut self.result_type, to);
        adapt_message_meta(&mut self.meta, to);
    }
}
