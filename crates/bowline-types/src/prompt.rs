//! Prompts: what a server offers to say, and the messages it comes to.

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
    /// A prompt as the server lists it.
    pub struct Prompt {
        /// The name by which it is asked for.
        required name: String = "name",
        /// The name for people.
        optional title: String = "title",
        /// What it is good for.
        optional description: String = "description",
        /// What it can be filled with.
        default arguments: Vec<PromptArgument> = "arguments",
        /// Pictures to show.
        default icons: Vec<Icon> = "icons",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// One thing a prompt can be filled with.
    pub struct PromptArgument {
        /// The name.
        required name: String = "name",
        /// The name for people.
        optional title: String = "title",
        /// What it means.
        optional description: String = "description",
        /// Whether it has to be given.
        optional required: bool = "required",
    }
}

record! {
    /// One message of a prompt.
    pub struct PromptMessage {
        /// Whose words it holds.
        required role: Role = "role",
        /// The words: one block, never a list.
        required content: ContentBlock = "content",
    }
}

record! {
    /// One page of prompts.
    #[derive(Default)]
    pub struct ListPromptsResult {
        /// What the result is.
        optional result_type: ResultType = "resultType",
        /// The prompts.
        lenient prompts: Vec<Prompt> = "prompts",
        /// Where the next page begins; absent on the last one.
        optional next_cursor: String = "nextCursor",
        /// For how many milliseconds the page may be kept.
        whole ttl_ms: u64 = "ttlMs",
        /// Who may keep it.
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
        /// What to fill it with; the values are strings in every revision.
        optional arguments: OrderedMap<String> = "arguments",
        /// Answers to the questions of the result before (from 2026-07-28).
        optional input_responses: InputResponses = "inputResponses",
        /// The state that came with the questions (from 2026-07-28).
        optional request_state: String = "requestState",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// A prompt, filled in.
    #[derive(Default)]
    pub struct GetPromptResult {
        /// What the result is.
        optional result_type: ResultType = "resultType",
        /// What the prompt is good for.
        optional description: String = "description",
        /// The messages.
        required messages: Vec<PromptMessage> = "messages",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

impl PromptMessage {
    /// A message of the user.
    pub fn user(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::User, content)
    }

    /// A message of the assistant.
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
