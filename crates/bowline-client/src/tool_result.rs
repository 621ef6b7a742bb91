//! What a tool call gave.

use crate::{Error, Result, error::Kind};
use bowline_types::{CallToolResult, ContentBlock, Meta, RawJson};
use serde::de::DeserializeOwned;

/// The result of a tool call. A tool that failed has a result too: see [`is_error`](Self::is_error).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// What came out, for the model.
    pub content: Vec<ContentBlock>,
    /// What came out, as data. `null` is a value, and not the same as nothing.
    pub structured: Option<RawJson>,
    /// Metadata.
    pub meta: Option<Meta>,
    failed: bool,
}

impl ToolResult {
    /// Whether the tool failed; then the content says why, for the model to read.
    pub fn is_error(&self) -> bool {
        self.failed
    }

    /// The blocks of text, one below the other.
    pub fn text(&self) -> String {
        let texts: Vec<_> = self.content.iter().filter_map(ContentBlock::as_text).collect();
        texts.join("\n")
    }

    /// Reads what came out as a type: the structured content, or text that is JSON where there is none.
    ///
    /// Fails when the tool failed, or gave something else.
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

    /// Turns the result of a tool that failed into an error.
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
