//! Turns text and results of servers into trees that the page draws with text nodes only.

mod markdown;
mod result;
mod table;
mod text;

pub(crate) use markdown::{link_target, markdown};
pub(crate) use result::{content_parts, prompt_messages, resource_parts};
pub(crate) use table::table;

use serde::Serialize;

/// Text of a server. Hidden, bidirectional and control characters are replaced by visible ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Shown {
    /// The text.
    pub text: String,
    /// How many characters were made visible.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[cfg_attr(test, schemars(extend("x-optional" = true)))]
    pub hidden: usize,
    /// How many bytes are left out at the end.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[cfg_attr(test, schemars(extend("x-optional" = true)))]
    pub left_out: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde needs")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A part of a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentPart {
    /// Text that is drawn as Markdown; `source` is the text itself.
    Markdown {
        /// The blocks.
        blocks: Vec<Block>,
        /// The text.
        source: Shown,
    },
    /// Text that is drawn as it is: JSON, code, HTML source.
    Text {
        /// The text.
        text: Shown,
        /// What it is, such as `json` or a MIME type.
        #[serde(skip_serializing_if = "Option::is_none")]
        language: Option<String>,
    },
    /// An image of the message itself. SVG is drawn in an `<img>` only.
    Image {
        /// The MIME type: `image/…`.
        mime: String,
        /// Base64.
        data: String,
        /// The decoded size.
        bytes: usize,
    },
    /// Audio of the message itself.
    Audio {
        /// The MIME type: `audio/…`.
        mime: String,
        /// Base64.
        data: String,
        /// The decoded size.
        bytes: usize,
    },
    /// A link to a resource of the same server, which can be read in Explore.
    Link {
        /// The URI, exactly.
        uri: String,
        /// The URI to show.
        shown: Shown,
        /// Its name.
        name: Shown,
        /// Its description.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<Shown>,
        /// Its MIME type.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime: Option<Shown>,
    },
    /// An embedded resource, or one of the contents of a resource that was read.
    Resource {
        /// The URI to show.
        uri: Shown,
        /// Its MIME type.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime: Option<Shown>,
        /// Its content.
        content: Box<Self>,
    },
    /// Data that cannot be drawn. It can be saved under a name of ours.
    Binary {
        /// The MIME type.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime: Option<Shown>,
        /// Base64.
        data: String,
        /// The decoded size.
        bytes: usize,
    },
    /// Content of an unknown type, as JSON text.
    Unknown {
        /// The JSON text.
        json: String,
    },
}

/// A message of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PromptMessage {
    /// `user` or `assistant`.
    pub role: Shown,
    /// Its content.
    pub part: ContentPart,
}

/// A block of Markdown.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Block {
    /// A paragraph.
    Paragraph {
        /// Its text.
        inlines: Vec<Inline>,
    },
    /// A heading.
    Heading {
        /// 1 to 6.
        level: u8,
        /// Its text.
        inlines: Vec<Inline>,
    },
    /// Code, or HTML as source.
    Code {
        /// The language.
        #[serde(skip_serializing_if = "Option::is_none")]
        language: Option<String>,
        /// The text.
        text: String,
    },
    /// A quotation.
    Quote {
        /// Its blocks.
        blocks: Vec<Self>,
    },
    /// A list.
    List {
        /// The first number of an ordered list.
        #[serde(skip_serializing_if = "Option::is_none")]
        start: Option<u64>,
        /// The items.
        items: Vec<Vec<Self>>,
    },
    /// A table.
    Table {
        /// `none`, `left`, `center` or `right` per column.
        align: Vec<Align>,
        /// The cells of the head.
        head: Vec<Vec<Inline>>,
        /// The cells of each row.
        rows: Vec<Vec<Vec<Inline>>>,
    },
    /// A horizontal line.
    Rule,
}

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Align {
    /// Not given.
    None,
    /// Left.
    Left,
    /// Centered.
    Center,
    /// Right.
    Right,
}

/// Text of Markdown.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Inline {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// Code, or HTML as source.
    Code {
        /// The text.
        text: String,
    },
    /// Strong.
    Strong {
        /// Its text.
        inlines: Vec<Self>,
    },
    /// Emphasized.
    Emphasis {
        /// Its text.
        inlines: Vec<Self>,
    },
    /// Struck through.
    Strike {
        /// Its text.
        inlines: Vec<Self>,
    },
    /// A link.
    Link {
        /// Its text.
        inlines: Vec<Self>,
        /// Where it leads.
        target: LinkTarget,
    },
    /// An image, which is never fetched: its text and address.
    Image {
        /// The alternative text.
        alt: String,
        /// The address.
        target: LinkTarget,
    },
    /// A line break.
    Break,
}

/// Where a link leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LinkTarget {
    /// The URL as text.
    pub text: Shown,
    /// The URL to open by a click, with `noopener,noreferrer`. Absent for other schemes than `http` and `https`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What is easy to misread.
    pub warnings: Vec<String>,
}

/// A table of structured content.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// The cells of at most 1,000 rows, as text.
    pub rows: Vec<Vec<Cell>>,
    /// How many rows there are.
    pub total: usize,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Column {
    /// Its name.
    pub name: Shown,
    /// Whether all its values are numbers.
    pub numeric: bool,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Cell {
    /// Its text.
    pub text: String,
    /// The number to sort by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<f64>,
}
