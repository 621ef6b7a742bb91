//! Resources: definitions, URI templates and contents.

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
    /// A resource.
    pub struct Resource {
        /// URI of the resource.
        required uri: String = "uri",
        /// Programmatic name.
        required name: String = "name",
        /// Display name.
        optional title: String = "title",
        /// Description.
        optional description: String = "description",
        /// The media type.
        optional mime_type: String = "mimeType",
        /// Annotations.
        optional annotations: Annotations = "annotations",
        /// The size in bytes, before any encoding.
        whole size: u64 = "size",
        /// Icons.
        default icons: Vec<Icon> = "icons",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// A template for the URIs of several resources.
    pub struct ResourceTemplate {
        /// The URI template (RFC 6570).
        required uri_template: String = "uriTemplate",
        /// Programmatic name.
        required name: String = "name",
        /// Display name.
        optional title: String = "title",
        /// Description.
        optional description: String = "description",
        /// Media type, if all resources have the same.
        optional mime_type: String = "mimeType",
        /// Annotations.
        optional annotations: Annotations = "annotations",
        /// Icons.
        default icons: Vec<Icon> = "icons",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Text contents.
    pub struct TextResourceContents {
        /// URI of the resource.
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
    /// Binary contents.
    pub struct BlobResourceContents {
        /// URI of the resource.
        required uri: String = "uri",
        /// The media type.
        optional mime_type: String = "mimeType",
        /// The data in Base64.
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
    /// Text contents.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Text(TextResourceContents::new(uri, text))
    }

    /// Creates binary contents; they are encoded in Base64.
    pub fn blob(uri: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        Self::Blob(BlobResourceContents::new(uri, BASE64_STANDARD.encode(bytes)))
    }

    /// Sets the media type.
    #[must_use]
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

    /// Sets the URI of the resource.
    pub fn set_uri(&mut self, uri: impl Into<String>) {
        match self {
            Self::Text(contents) => contents.uri = uri.into(),
            Self::Blob(contents) => contents.uri = uri.into(),
        }
    }

    /// URI of the resource.
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

/// The kind of the contents is known only after all members were read.
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
    /// Result of `resources/list`.
    #[derive(Default)]
    pub struct ListResourcesResult {
        /// Type of the result.
        optional result_type: ResultType = "resultType",
        /// The resources.
        lenient resources: Vec<Resource> = "resources",
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
    /// Result of `resources/templates/list`.
    #[derive(Default)]
    pub struct ListResourceTemplatesResult {
        /// Type of the result.
        optional result_type: ResultType = "resultType",
        /// The templates.
        lenient resource_templates: Vec<ResourceTemplate> = "resourceTemplates",
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
    /// Params of `resources/read`.
    pub struct ReadResourceParams {
        /// URI of the resource.
        required uri: String = "uri",
        /// Responses to the input requests of the previous result (from 2026-07-28).
        optional input_responses: InputResponses = "inputResponses",
        /// The state of the previous result (from 2026-07-28).
        optional request_state: String = "requestState",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Result of `resources/read`.
    #[derive(Default)]
    pub struct ReadResourceResult {
        /// Type of the result.
        optional result_type: ResultType = "resultType",
        /// Contents; several if the URI names a collection.
        required contents: Vec<ResourceContents> = "contents",
        /// How long the contents may be cached, in milliseconds.
        whole ttl_ms: u64 = "ttlMs",
        /// Who may cache them.
        optional cache_scope: CacheScope = "cacheScope",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Params of `resources/subscribe` and `resources/unsubscribe` (legacy).
    pub struct SubscribeParams {
        /// URI of the resource.
        required uri: String = "uri",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Params of `notifications/resources/updated`.
    pub struct ResourceUpdatedParams {
        /// URI of the resource that changed; may be below the subscribed one.
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
