//! Tools: definitions, calls and results.

use crate::adapt::{
    Adapt, adapt_cache, adapt_message_meta, adapt_meta, adapt_result_type, adapt_schema, describes_object,
};
use crate::cache::CacheScope;
use crate::content::{ContentBlock, adapt_structured_content};
use crate::implementation::Icon;
use crate::input::InputResponses;
use crate::meta::Meta;
use crate::record::{open_enum, record};
use crate::result::ResultType;
use crate::revision::Revision;
use crate::task::TaskMetadata;
use bowline_json::RawJson;

record! {
    /// A tool.
    pub struct Tool {
        /// Name that calls use.
        required name: String = "name",
        /// Display name.
        optional title: String = "title",
        /// Description for the model.
        optional description: String = "description",
        /// Icons.
        default icons: Vec<Icon> = "icons",
        /// JSON Schema of the arguments; its root describes an object.
        required input_schema: RawJson = "inputSchema",
        /// JSON Schema of the structured content.
        optional output_schema: RawJson = "outputSchema",
        /// Hints about behavior.
        optional annotations: ToolAnnotations = "annotations",
        /// Execution options (2025-11-25 only).
        optional execution: ToolExecution = "execution",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Hints about how a tool behaves. They are claims of the server, not guarantees.
    #[derive(Default)]
    pub struct ToolAnnotations {
        /// Display name.
        optional title: String = "title",
        /// The tool changes nothing.
        optional read_only_hint: bool = "readOnlyHint",
        /// The tool may delete or overwrite data.
        optional destructive_hint: bool = "destructiveHint",
        /// Repeating a call with the same arguments has no further effect.
        optional idempotent_hint: bool = "idempotentHint",
        /// The tool interacts with systems outside the server.
        optional open_world_hint: bool = "openWorldHint",
    }
}

record! {
    /// Execution options of a tool (2025-11-25 only).
    #[derive(Default)]
    pub struct ToolExecution {
        /// Whether a call may become a task.
        optional task_support: TaskSupport = "taskSupport",
    }
}

open_enum! {
    /// Whether a call of a tool may become a task.
    pub enum TaskSupport {
        /// Never; the default.
        Forbidden = "forbidden",
        /// If the caller requests it.
        Optional = "optional",
        /// Always.
        Required = "required",
    }
}

record! {
    /// Result of `tools/list`.
    #[derive(Default)]
    pub struct ListToolsResult {
        /// Type of the result.
        optional result_type: ResultType = "resultType",
        /// The tools.
        lenient tools: Vec<Tool> = "tools",
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
    /// Params of `tools/call`.
    pub struct CallToolParams {
        /// The tool.
        required name: String = "name",
        /// The arguments, an object.
        optional arguments: RawJson = "arguments",
        /// Requests that the call runs as a task (2025-11-25 only).
        optional task: TaskMetadata = "task",
        /// Responses to the input requests of the previous result (from 2026-07-28).
        optional input_responses: InputResponses = "inputResponses",
        /// The state of the previous result (from 2026-07-28).
        optional request_state: String = "requestState",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Result of `tools/call`.
    #[derive(Default)]
    pub struct CallToolResult {
        /// Type of the result.
        optional result_type: ResultType = "resultType",
        /// Content for the model.
        lenient content: Vec<ContentBlock> = "content",
        /// Structured content of the result.
        nullable structured_content: RawJson = "structuredContent",
        /// Whether the tool failed; then the content says why.
        bare is_error: bool = "isError",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

impl CallToolResult {
    /// Creates a result with one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], ..Self::default() }
    }

    /// Creates a failed result with a message for the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: Some(true), ..Self::text(text) }
    }

    /// Structured content, with its JSON as text for those that read only text.
    pub fn structured(value: RawJson) -> Self {
        let text = Self::text(value.as_str());
        Self { structured_content: Some(value), ..text }
    }

    /// Returns whether the tool call failed.
    pub fn failed(&self) -> bool {
        self.is_error == Some(true)
    }
}

impl<T: Into<ContentBlock>> FromIterator<T> for CallToolResult {
    fn from_iter<I: IntoIterator<Item = T>>(blocks: I) -> Self {
        Self { content: blocks.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

impl Adapt for Tool {
    fn adapt(&mut self, to: Revision) {
        if to < Revision::V2025_06_18 {
            // 2025-03-26 has a name for people only among the annotations.
            if let Some(title) = self.title.take()
                && to >= Revision::V2025_03_26
            {
                self.annotations.get_or_insert_default().title.get_or_insert(title);
            }
            self.output_schema = None;
        }
        if to < Revision::V2025_03_26 {
            self.annotations = None;
        }
        if to < Revision::V2025_11_25 {
            self.icons.clear();
        }
        if to != Revision::V2025_11_25 {
            self.execution = None;
        }
        adapt_schema(&mut self.input_schema, to);
        if let Some(schema) = &mut self.output_schema {
            adapt_schema(schema, to);
            if to < Revision::V2026_07_28 && !describes_object(schema) {
                self.output_schema = None;
            }
        }
        adapt_meta(&mut self.meta, to);
    }
}

impl Adapt for ListToolsResult {
    fn adapt(&mut self, to: Revision) {
        self.tools.adapt(to);
        adapt_result_type(&mut self.result_type, to);
        adapt_message_meta(&mut self.meta, to);
        adapt_cache(&mut self.ttl_ms, &mut self.cache_scope, to);
    }
}

impl Adapt for CallToolParams {
    fn adapt(&mut self, to: Revision) {
        adapt_message_meta(&mut self.meta, to);
        if to != Revision::V2025_11_25 {
            self.task = None;
        }
        if to < Revision::V2026_07_28 {
            self.input_responses = None;
            self.request_state = None;
        }
    }
}

impl Adapt for CallToolResult {
    fn adapt(&mut self, to: Revision) {
        self.content.adapt(to);
        adapt_structured_content(&mut self.structured_content, &mut self.content, to);
        adapt_result_type(&mut self.result_type, to);
        adapt_message_meta(&mut self.meta, to);
    }
}
