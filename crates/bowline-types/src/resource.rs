//! Resources: what a server offers to read, the templates of their URIs, and their contents.

use std::fmt;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::RawMap;
use crate::adapt::{Adapt, adapt_cache, adapt_message_meta, adapt_meta, adapt_only_meta, adapt_result_type};
use crate::cache::CacheScope;
use crate::content::{Annotations, adapt_annotations};
use crate::implementation::Icon;
use crate::input::InputResponses;
use crate::meta::Meta;
use crate::record::{once, present, record, unique};
use crate::result::ResultType;
use crate::revision::Revision;
use bowline_json::borrow::Text;

record! {
    /// A resource as the server lists it.
    pub struct Resource {
        /// Where to read it.
        required uri: String = "uri",
        /// The name for programs.
        required name: String = "name",
        /// The name for people.
        optional title: String = "title",
        /// What it is.
        optional description: String = "description",
        /// The media type.
        optional mime_type: String = "mimeType",
        /// Hints.
        optional annotations: Annotations = "annotations",
        /// The size in bytes, before any encoding.
        whole size: u64 = "size",
        /// Pictures to show.
        default icons: Vec<Icon> = "icons",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// A family of resources whose URIs follow a template.
    pub struct ResourceTemplate {
        /// The URI template (RFC 6570).
        required uri_template: String = "uriTemplate",
        /// The name for programs.
        required name: String = "name",
        /// The name for people.
        optional title: String = "title",
        /// What the resources are.
        optional description: String = "description",
        /// The media type, when all of them have the same.
        optional mime_type: String = "mimeType",
        /// Hints.
        optional annotations: Annotations = "annotations",
        /// Pictures to show.
        default icons: Vec<Icon> = "icons",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Contents that are text.
    pub struct TextResourceContents {
        /// The resource.
        required uri: String = "uri",
        /// The media type.
        optional mime_type: String = "mimeType",
        /// The text.
        required text: String = "text",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Contents that are bytes.
    pub struct BlobResourceContents {
        /// The resource.
        required uri: String = "uri",
        /// The media type.
        optional mime_type: String = "mimeType",
        /// The bytes in Base64.
        required blob: String = "blob",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

/// The contents of a resource.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceContents {
    /// Text.
    Text(TextResourceContents),
    /// Bytes.
    Blob(BlobResourceContents),
}

impl ResourceContents {
    /// Contents that are text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Text(TextResourceContents::new(uri, text))
    }

    /// Contents that are bytes, which are written in Base64.
    pub fn blob(uri: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        Self::Blob(BlobResourceContents::new(uri, BASE64_STANDARD.encode(bytes)))
    }

    /// Sets the media type.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.set_mime_type(mime_type);
        self
    }

    /// Sets the media type in place.
    pub fn set_mime_type(&mut self, mime_type: impl Into<String>) {
        match self {
            Self::Text(contents) => contents.mime_type = Some(mime_type.into()),
            Self::Blob(contents) => contents.mime_type = Some(mime_type.into()),
        }
    }

    /// Names another resource as the one these contents are of.
    pub fn set_uri(&mut self, uri: impl Into<String>) {
        match self {
            Self::Text(contents) => contents.uri = uri.into(),
            Self::Blob(contents) => contents.uri = uri.into(),
        }
    }

    /// The resource.
    pub fn uri(&self) -> &str {
        match self {
            Self::Text(contents) => &contents.uri,
            Self::Blob(contents) => &contents.uri,
        }
    }
}

impl From<TextResourceContents> for ResourceContents {
    fn from(contents: TextResourceContents) -> Self {
        Self::Text(contents)
    }
}

impl From<BlobResourceContents> for ResourceContents {
    fn from(contents: BlobResourceContents) -> Self {
        Self::Blob(contents)
    }
}

impl Serialize for ResourceContents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(contents) => contents.serialize(serializer),
            Self::Blob(contents) => contents.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ResourceContents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ContentsVisitor)
    }
}

/// Which kind of contents it is shows only when all members have been read.
struct ContentsVisitor;

impl<'de> Visitor<'de> for ContentsVisitor {
    type Value = ResourceContents;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("resource contents")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut uri, mut mime_type, mut meta) = (None, None, None);
        let (mut text, mut blob) = (None::<Option<String>>, None::<Option<String>>);
        let mut extra = RawMap::new();
        while let Some(Text(key)) = map.next_key()? {
            match key.as_ref() {
                "uri" => read_once(&mut uri, &mut map, "uri")?,
                "mimeType" => read_once(&mut mime_type, &mut map, "mimeType")?,
                "text" => read_once(&mut text, &mut map, "text")?,
                "blob" => read_once(&mut blob, &mut map, "blob")?,
                "_meta" => read_once(&mut meta, &mut map, "_meta")?,
                _ => extra.push_unchecked(key.into_owned(), map.next_value()?),
            }
        }
        unique(&extra)?;
        let uri = present(uri, "uri")?;
        let (mime_type, meta) = (mime_type.flatten(), meta.flatten());
        match (text.flatten(), blob.flatten()) {
            (Some(text), None) => {
                Ok(ResourceContents::Text(TextResourceContents { uri, mime_type, text, meta, extra }))
            }
            (None, Some(blob)) => {
                Ok(ResourceContents::Blob(BlobResourceContents { uri, mime_type, blob, meta, extra }))
            }
            // Text is the more useful of the two; the bytes stay with it.
            (Some(text), Some(blob)) => {
                extra.insert("blob", crate::to_json(&blob));
                Ok(ResourceContents::Text(TextResourceContents { uri, mime_type, text, meta, extra }))
            }
            (None, None) => Err(de::Error::custom("expected `text` or `blob` in resource contents")),
        }
    }
}

fn read_once<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    slot: &mut Option<T>,
    map: &mut A,
    wire: &'static str,
) -> Result<(), A::Error> {
    once(slot.as_ref(), wire)?;
    *slot = Some(map.next_value()?);
    Ok(())
}

record! {
    /// One page of resources.
    #[derive(Default)]
    pub struct ListResourcesResult {
        /// What the result is.
        optional result_type: ResultType = "resultType",
        /// The resources.
        lenient resources: Vec<Resource> = "resources",
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
    /// One page of resource templates.
    #[derive(Default)]
    pub struct ListResourceTemplatesResult {
        /// What the result is.
        optional result_type: ResultType = "resultType",
        /// The templates.
        lenient resource_templates: Vec<ResourceTemplate> = "resourceTemplates",
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
    /// Params of `resources/read`.
    pub struct ReadResourceParams {
        /// The resource.
        required uri: String = "uri",
        /// Answers to the questions of the result before (from 2026-07-28).
        optional input_responses: InputResponses = "inputResponses",
        /// The state that came with the questions (from 2026-07-28).
        optional request_state: String = "requestState",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// What was read.
    #[derive(Default)]
    pub struct ReadResourceResult {
        /// What the result is.
        optional result_type: ResultType = "resultType",
        /// The contents; several when the URI names a collection.
        required contents: Vec<ResourceContents> = "contents",
        /// For how many milliseconds the contents may be kept.
        whole ttl_ms: u64 = "ttlMs",
        /// Who may keep them.
        optional cache_scope: CacheScope = "cacheScope",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Params of `resources/subscribe` and `resources/unsubscribe` (legacy).
    pub struct SubscribeParams {
        /// The resource.
        required uri: String = "uri",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Params of `notifications/resources/updated`.
    pub struct ResourceUpdatedParams {
        /// The resource that changed, or one below the one subscribed to.
        required uri: String = "uri",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

impl Adapt for Resource {
    fn adapt(&mut self, to: Revision) {
        if to < Revision::V2025_06_18 {
            self.title = None;
        }
        if to < Revision::V2025_11_25 {
            self.icons.clear();
        }
        adapt_annotations(&mut self.annotations, to);
        adapt_meta(&mut self.meta, to);
    }
}

impl Adapt for ResourceTemplate {
    fn adapt(&mut self, to: Revision) {
        if to < Revision::V2025_06_18 {
            self.title = None;
        }
        if to < Revision::V2025_11_25 {
            self.icons.clear();
        }
        adapt_annotations(&mut self.annotations, to);
        adapt_meta(&mut self.meta, to);
    }
}

impl Adapt for ResourceContents {
    fn adapt(&mut self, to: Revision) {
        match self {
            Self::Text(contents) => adapt_meta(&mut contents.meta, to),
            Self::Blob(contents) => adapt_meta(&mut contents.meta, to),
        }
    }
}

impl Adapt for ListResourcesResult {
    fn adapt(&mut self, to: Revision) {
        self.resources.adapt(to);
        adapt_result_type(&mut self.result_type, to);
        adapt_message_meta(&mut self.meta, to);
        adapt_cache(&mut self.ttl_ms, &mut self.cache_scope, to);
    }
}

impl Adapt for ListResourceTemplatesResult {
    fn adapt(&mut self, to: Revision) {
        self.resource_templates.adapt(to);
        adapt_result_type(&mut self.result_type, to);
        adapt_message_meta(&mut self.meta, to);
        adapt_cache(&mut self.ttl_ms, &mut self.cache_scope, to);
    }
}

impl Adapt for ReadResourceParams {
    fn adapt(&mut self, to: Revision) {
        adapt_message_meta(&mut self.meta, to);
        if to < Revision::V2026_07_28 {
            self.input_responses = None;
            self.request_state = None;
        }
    }
}

impl Adapt for ReadResourceResult {
    fn adapt(&mut self, to: Revision) {
        self.contents.adapt(to);
        adapt_result_type(&mut self.result_type, to);
        adapt_message_meta(&mut self.meta, to);
        adapt_cache(&mut self.ttl_ms, &mut self.cache_scope, to);
    }
}

adapt_only_meta! { SubscribeParams, ResourceUpdatedParams }
