//! The result of a tool call.

use crate::{Error, Result, error::Kind};
use bowline_types::{CallToolResult, ContentBlock, Meta, RawJson};
use serde::de::DeserializeOwned;

/// The result of a tool call. A failed tool has a result, too: see [`is_error`](Self::is_error).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The content for the model.
    pub content: Vec<ContentBlock>,
    /// The structured content. `null` is a value, unlike `None`.
    pub structured: Option<RawJson>,
    /// Metadata.
    pub meta: Option<Meta>,
    failed: bool,
}

impl ToolResult {
    /// Returns whether the tool failed. The content then tells the model why.
    pub fn is_error(&self) -> bool {
        self.failed
    }

    /// Returns the text blocks, joined with line breaks.
    pub fn text(&self) -> String {
        let texts: Vec<_> = self.content.iter().filter_map(ContentBlock::as_text).collect();
        texts.join("\n")
    }

    /// Deserializes the structured content, or else text that contains JSON.
    ///
    /// Fails if the tool failed, or the content has another type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        if self.failed {
            return Err(self.error());
        }
        let what = "the tool's result";
        match &self.structured {
            Some(structured) => structured.decode().map_err(|error| Error::malformed(what, error)),
            None => serde_json::from_str(&self.text()).map_err(|error| Error::malformed(what, error)),
        }
    }

    /// Converts the result of a failed tool to an error.
    pub fn ok(self) -> Result<Self> {
        if self.failed { Err(self.error()) } else { Ok(self) }
    }

    fn error(&self) -> Error {
        let text = self.text();
        let text = if text.is_empty() { "the tool failed without an error message".to_owned() } else { text };
        Kind::Tool(text).into()
    }
}

impl From<CallToolResult> for ToolResult {
    fn from(result: CallToolResult) -> Self {
        let failed = result.failed();
        let CallToolResult { content, structured_content: structured, meta, .. } = result;
        Self { content, structured, meta, failed }
    }
}
