//! Content blocks of tool results, prompts and sampling messages.

use std::borrow::Cow;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::adapt::{Adapt, adapt_meta};
use crate::meta::Meta;
use crate::record::{open_enum, record};
use crate::resource::{Resource, ResourceContents};
use crate::revision::Revision;
use bowline_json::{RawJson, borrow::RawText};

open_enum! {
    /// Author of a message.
    pub enum Role {
        /// The user, or the program that acts for the user.
        User = "user",
        /// Name of the model.
        Assistant = "assistant",
    }
}

record! {
    /// Hints about the use of a block or resource.
    #[derive(Default)]
    pub struct Annotations {
        /// Intended audience.
        default audience: Vec<Role> = "audience",
        /// Importance from 0 to 1.
        fraction priority: f64 = "priority",
        /// Time of the last change, in ISO 8601.
        optional last_modified: String = "lastModified",
    }
}

record! {
    /// Text.
    pub struct TextContent ["type" = "text"] {
        /// The text.
        required text: String = "text",
        /// Annotations.
        optional annotations: Annotations = "annotations",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// An image.
    pub struct ImageContent ["type" = "image"] {
        /// The data in Base64.
        required data: String = "data",
        /// The media type, such as `image/png`.
        required mime_type: String = "mimeType",
        /// Annotations.
        optional annotations: Annotations = "annotations",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Audio.
    pub struct AudioContent ["type" = "audio"] {
        /// The data in Base64.
        required data: String = "data",
        /// The media type, such as `audio/wav`.
        required mime_type: String = "mimeType",
        /// Annotations.
        optional annotations: Annotations = "annotations",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// A resource that can be read from the server; it need not be listed.
    pub struct ResourceLink ["type" = "resource_link"] {
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
        default icons: Vec<crate::implementation::Icon> = "icons",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// The contents of a resource, embedded in a message.
    pub struct EmbeddedResource ["type" = "resource"] {
        /// The contents.
        required resource: ResourceContents = "resource",
        /// Annotations.
        optional annotations: Annotations = "annotations",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// A tool call that the model requests (sampling).
    pub struct ToolUseContent ["type" = "tool_use"] {
        /// Id that the result has to refer to.
        required id: String = "id",
        /// The tool.
        required name: String = "name",
        /// The arguments, an object.
        required input: RawJson = "input",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// The result of a tool call (sampling).
    pub struct ToolResultContent ["type" = "tool_result"] {
        /// Id of the tool call.
        required tool_use_id: String = "toolUseId",
        /// Content of the result. Sampling blocks are not allowed here and are read as unknown blocks.
        flat content: Vec<ContentBlock> = "content",
        /// Structured content of the result.
        nullable structured_content: RawJson = "structuredContent",
        /// Whether the tool call failed.
        bare is_error: bool = "isError",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

/// One block of content, as it occurs in tool results, prompts and sampling.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(ImageContent),
    /// Audio (from 2025-03-26).
    Audio(AudioContent),
    /// A link to a resource (from 2025-06-18; not in sampling).
    ResourceLink(ResourceLink),
    /// The contents of a resource (not in sampling).
    Resource(EmbeddedResource),
    /// A tool call (from 2025-11-25; only in sampling).
    ToolUse(ToolUseContent),
    /// The result of a tool call (from 2025-11-25; only in sampling).
    ToolResult(ToolResultContent),
    /// A block of another type, unchanged.
    Unknown(RawJson),
}

impl ContentBlock {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Creates an image block from bytes.
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(BASE64_STANDARD.encode(bytes), mime_type))
    }

    /// Creates an audio block from bytes.
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(BASE64_STANDARD.encode(bytes), mime_type))
    }

    /// Returns the contents of a resource.
    pub fn resource(contents: impl Into<ResourceContents>) -> Self {
        Self::Resource(EmbeddedResource::new(contents))
    }

    /// Creates a link to a resource.
    pub fn link(resource: impl Into<ResourceLink>) -> Self {
        Self::ResourceLink(resource.into())
    }

    /// Returns the text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }

    /// Returns the value of `type`; `None` for an unknown block without a type.
    pub fn kind(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(match self {
            Self::Text(_) => "text",
            Self::Image(_) => "image",
            Self::Audio(_) => "audio",
            Self::ResourceLink(_) => "resource_link",
            Self::Resource(_) => "resource",
            Self::ToolUse(_) => "tool_use",
            Self::ToolResult(_) => "tool_result",
            Self::Unknown(raw) => return unknown_kind(raw),
        }))
    }

    /// Returns the annotations, if the block can have any.
    pub fn annotations(&self) -> Option<&Annotations> {
        match self {
            Self::Text(block) => block.annotations.as_ref(),
            Self::Image(block) => block.annotations.as_ref(),
            Self::Audio(block) => block.annotations.as_ref(),
            Self::ResourceLink(block) => block.annotations.as_ref(),
            Self::Resource(block) => block.annotations.as_ref(),
            Self::ToolUse(_) | Self::ToolResult(_) | Self::Unknown(_) => None,
        }
    }

    /// Describes the block as text, for revisions that cannot represent it.
    pub(crate) fn to_words(&self) -> String {
        match self {
            Self::Text(block) => block.text.clone(),
            Self::Image(block) => format!("[{}]", block.mime_type),
            Self::Audio(block) => format!("[{}]", block.mime_type),
            Self::ResourceLink(link) => {
                format!("[{}]({})", link.title.as_deref().unwrap_or(&link.name), link.uri)
            }
            Self::Resource(block) => match &block.resource {
                ResourceContents::Text(contents) => contents.text.clone(),
                ResourceContents::Blob(contents) => format!("[{}]", contents.uri),
            },
            Self::ToolUse(block) => format!("[tool_use {} {}]", block.name, block.input),
            Self::ToolResult(block) => describe_blocks(&block.content),
            Self::Unknown(raw) => format!("[{}]", unknown_kind(raw).as_deref().unwrap_or("unknown")),
        }
    }
}

/// Describes several blocks as text.
pub(crate) fn describe_blocks(blocks: &[ContentBlock]) -> String {
    blocks.iter().map(ContentBlock::to_words).collect::<Vec<_>>().join("\n")
}

fn unknown_kind(raw: &RawJson) -> Option<Cow<'static, str>> {
    let text = RawText(Cow::Borrowed(raw.as_str()));
    let kind = text.tag::<serde_json::Error>("type").ok()??.into_owned();
    Some(Cow::Owned(kind))
}

impl From<TextContent> for ContentBlock {
    fn from(block: TextContent) -> Self {
        Self::Text(block)
    }
}

impl From<ImageContent> for ContentBlock {
    fn from(block: ImageContent) -> Self {
        Self::Image(block)
    }
}

impl From<AudioContent> for ContentBlock {
    fn from(block: AudioContent) -> Self {
        Self::Audio(block)
    }
}

impl From<ResourceLink> for ContentBlock {
    fn from(block: ResourceLink) -> Self {
        Self::ResourceLink(block)
    }
}

impl From<EmbeddedResource> for ContentBlock {
    fn from(block: EmbeddedResource) -> Self {
        Self::Resource(block)
    }
}

impl From<ToolUseContent> for ContentBlock {
    fn from(block: ToolUseContent) -> Self {
        Self::ToolUse(block)
    }
}

impl From<ToolResultContent> for ContentBlock {
    fn from(block: ToolResultContent) -> Self {
        Self::ToolResult(block)
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<Resource> for ResourceLink {
    fn from(resource: Resource) -> Self {
        Self {
            uri: resource.uri,
            name: resource.name,
            title: resource.title,
            description: resource.description,
            mime_type: resource.mime_type,
            annotations: resource.annotations,
            size: resource.size,
            icons: resource.icons,
            meta: resource.meta,
            extra: resource.extra,
        }
    }
}

impl Serialize for ContentBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(block) => block.serialize(serializer),
            Self::Image(block) => block.serialize(serializer),
            Self::Audio(block) => block.serialize(serializer),
            Self::ResourceLink(block) => block.serialize(serializer),
            Self::Resource(block) => block.serialize(serializer),
            Self::ToolUse(block) => block.serialize(serializer),
            Self::ToolResult(block) => block.serialize(serializer),
            Self::Unknown(raw) => raw.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = RawText::deserialize(deserializer)?;
        match text.tag("type")?.as_deref() {
            Some("text") => text.decode().map(Self::Text),
            Some("image") => text.decode().map(Self::Image),
            Some("audio") => text.decode().map(Self::Audio),
            Some("resource_link") => text.decode().map(Self::ResourceLink),
            Some("resource") => text.decode().map(Self::Resource),
            Some("tool_use") => text.decode().map(Self::ToolUse),
            Some("tool_result") => text.decode().map(Self::ToolResult),
            _ => Ok(Self::Unknown(text.into())),
        }
    }
}

/// Blocks inside a block. A nested tool result stays unknown: the protocol does not allow it, and a peer
/// could otherwise nest them until the stack runs out.
pub(crate) struct FlatBlocks(pub(crate) Vec<ContentBlock>);

impl<'de> Deserialize<'de> for FlatBlocks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FlatBlock(ContentBlock);

        impl<'de> Deserialize<'de> for FlatBlock {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = RawText::deserialize(deserializer)?;
                if text.tag::<D::Error>("type")?.as_deref() == Some("tool_result") {
                    return Ok(Self(ContentBlock::Unknown(text.into())));
                }
                text.decode().map(Self)
            }
        }

        let blocks = Vec::<FlatBlock>::deserialize(deserializer)?;
        Ok(Self(blocks.into_iter().map(|FlatBlock(block)| block).collect()))
    }
}

impl Annotations {
    fn is_empty(&self) -> bool {
        self.audience.is_empty()
            && self.priority.is_none()
            && self.last_modified.is_none()
            && self.extra.is_empty()
    }
}

impl Adapt for Annotations {
    fn adapt(&mut self, to: Revision) {
        if to < Revision::V2025_06_18 {
            self.last_modified = None;
        }
    }
}

/// Adapts annotations and drops empty ones.
pub(crate) fn adapt_annotations(annotations: &mut Option<Annotations>, to: Revision) {
    annotations.adapt(to);
    if annotations.as_ref().is_some_and(Annotations::is_empty) {
        *annotations = None;
    }
}

/// The context of a block; it decides which types are allowed.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// In a tool result or a prompt.
    Result,
    /// In a sampling message.
    Sampling,
}

/// Rewrites a block for a revision and context.
pub(crate) fn adapt_block(block: &mut ContentBlock, to: Revision, place: Place) {
    let fits = match (&*block, place) {
        (ContentBlock::Text(_) | ContentBlock::Image(_) | ContentBlock::Unknown(_), _)
        | (ContentBlock::Resource(_), Place::Result) => true,
        (ContentBlock::Audio(_), _) => to >= Revision::V2025_03_26,
        (ContentBlock::ResourceLink(_), Place::Result) => to >= Revision::V2025_06_18,
        (ContentBlock::ToolUse(_) | ContentBlock::ToolResult(_), Place::Sampling) => {
            to >= Revision::V2025_11_25
        }
        (ContentBlock::ResourceLink(_) | ContentBlock::Resource(_), Place::Sampling)
        | (ContentBlock::ToolUse(_) | ContentBlock::ToolResult(_), Place::Result) => false,
    };
    if !fits {
        let text =
            TextContent { annotations: block.annotations().cloned(), ..TextContent::new(block.to_words()) };
        *block = ContentBlock::Text(text);
    }
    match block {
        ContentBlock::Text(block) => {
            adapt_annotations(&mut block.annotations, to);
            adapt_meta(&mut block.meta, to);
        }
        ContentBlock::Image(block) => {
            adapt_annotations(&mut block.annotations, to);
            adapt_meta(&mut block.meta, to);
        }
        ContentBlock::Audio(block) => {
            adapt_annotations(&mut block.annotations, to);
            adapt_meta(&mut block.meta, to);
        }
        ContentBlock::ResourceLink(block) => {
            if to < Revision::V2025_11_25 {
                block.icons.clear();
            }
            adapt_annotations(&mut block.annotations, to);
            adapt_meta(&mut block.meta, to);
        }
        ContentBlock::Resource(block) => {
            block.resource.adapt(to);
            adapt_annotations(&mut block.annotations, to);
            adapt_meta(&mut block.meta, to);
        }
        ContentBlock::ToolResult(block) => {
            block.content.adapt(to);
            adapt_structured_content(&mut block.structured_content, &mut block.content, to);
        }
        ContentBlock::ToolUse(_) | ContentBlock::Unknown(_) => {}
    }
}

/// Structured content is from 2025-06-18, and may be something other than an object from 2026-07-28. What
/// cannot be represented becomes text if the result would otherwise be empty.
pub(crate) fn adapt_structured_content(
    structured: &mut Option<RawJson>,
    content: &mut Vec<ContentBlock>,
    to: Revision,
) {
    let Some(value) = structured else { return };
    let fits = to >= Revision::V2026_07_28 || (to >= Revision::V2025_06_18 && value.is_object());
    if fits {
        return;
    }
    if content.is_empty() {
        content.push(ContentBlock::text(value.as_str()));
    }
    *structured = None;
}

impl Adapt for ContentBlock {
    /// Adapts a block of a tool result or prompt; sampling messages adapt their blocks themselves.
    fn adapt(&mut self, to: Revision) {
        adapt_block(self, to, Place::Result);
    }
}
