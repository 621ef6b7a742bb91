//! Completion: suggested values for an argument.

use serde::de::{self, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::OrderedMap;
use crate::adapt::{Adapt, adapt_message_meta, adapt_result_type};
use crate::meta::Meta;
use crate::record::record;
use crate::result::ResultType;
use crate::revision::Revision;
use bowline_json::borrow::RawText;

record! {
    /// Reference to a prompt.
    pub struct PromptReference ["type" = "ref/prompt"] {
        /// The prompt.
        required name: String = "name",
        /// Display name (from 2025-06-18).
        optional title: String = "title",
    }
}

record! {
    /// Reference to a resource template or resource.
    pub struct ResourceTemplateReference ["type" = "ref/resource"] {
        /// URI template or URI.
        required uri: String = "uri",
    }
}

/// The prompt or resource template that an argument belongs to.
#[derive(Debug, Clone, PartialEq)]
pub enum Reference {
    /// A prompt.
    Prompt(PromptReference),
    /// A resource template.
    Resource(ResourceTemplateReference),
}

impl Reference {
    /// Creates a reference to a prompt.
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::Prompt(PromptReference::new(name))
    }

    /// Creates a reference to a resource template.
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::Resource(ResourceTemplateReference::new(uri))
    }
}

impl Serialize for Reference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Prompt(reference) => reference.serialize(serializer),
            Self::Resource(reference) => reference.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = RawText::deserialize(deserializer)?;
        match text.tag("type")?.as_deref() {
            Some("ref/prompt") => text.decode().map(Self::Prompt),
            Some("ref/resource") => text.decode().map(Self::Resource),
            Some(other) => Err(de::Error::unknown_variant(other, &["ref/prompt", "ref/resource"])),
            None => Err(de::Error::missing_field("type")),
        }
    }
}

record! {
    /// Params of `completion/complete`.
    pub struct CompleteParams {
        /// What the argument belongs to.
        required reference: Reference = "ref",
        /// The argument and its incomplete value.
        required argument: CompleteArgument = "argument",
        /// Values of other arguments (from 2025-06-18).
        optional context: CompleteContext = "context",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// An argument and its incomplete value.
    pub struct CompleteArgument {
        /// The argument.
        required name: String = "name",
        /// The value as far as it was entered.
        required value: String = "value",
    }
}

record! {
    /// Context of a completion request.
    #[derive(Default)]
    pub struct CompleteContext {
        /// Values of other arguments.
        optional arguments: OrderedMap<String> = "arguments",
    }
}

record! {
    /// Result of `completion/complete`.
    #[derive(Default)]
    pub struct CompleteResult {
        /// Type of the result.
        optional result_type: ResultType = "resultType",
        /// The suggestions.
        required completion: Completion = "completion",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Suggestions, best first; at most 100.
    #[derive(Default)]
    pub struct Completion {
        /// The suggestions.
        required values: Vec<String> = "values",
        /// Total number of suggestions.
        whole total: u64 = "total",
        /// Whether there are more suggestions.
        optional has_more: bool = "hasMore",
    }
}

impl Completion {
    /// Maximum number of values in one result.
    pub const MAX_VALUES: usize = 100;
}

impl Adapt for CompleteParams {
    fn adapt(&mut self, to: Revision) {
        adapt_message_meta(&mut self.meta, to);
        if to < Revision::V2025_06_18 {
            self.context = None;
            if let Reference::Prompt(reference) = &mut self.reference {
                reference.title = None;
            }
        }
    }
}

impl Adapt for CompleteResult {
    fn adapt(&mut self, to: Revision) {
        let completion = &mut self.completion;
        if completion.values.len() > Completion::MAX_VALUES {
            let all = u64::try_from(completion.values.len()).unwrap_or(u64::MAX);
            completion.total.get_or_insert(all);
            completion.has_more = Some(true);
            completion.values.truncate(Completion::MAX_VALUES);
        }
        adapt_result_type(&mut self.result_type, to);
        adapt_message_meta(&mut self.meta, to);
    }
}
