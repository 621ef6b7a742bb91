//! The vocabulary of the Model Context Protocol: every type of its five revisions in one model.
//!
//! There is one type per thing, and it has the members of all revisions. Reading is lenient: a value of
//! any revision is understood, and members that are not known are kept. Writing is exact: [`Adapt`]
//! rewrites a value for a [`Revision`], so that it carries nothing the revision does not have.
//!
//! Values that are passed on rather than looked at stay JSON text ([`RawJson`], [`RawMap`]).
//!
//! ```
//! use bowline_types::{Adapt, CallToolResult, ContentBlock, Revision};
//!
//! let mut result = CallToolResult::new().content(vec![ContentBlock::audio(b"RIFF", "audio/wav")]);
//! result.adapt(Revision::V2024_11_05);
//! assert_eq!(serde_json::to_string(&result)?, r#"{"content":[{"type":"text","text":"[audio/wav]"}]}"#);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod adapt;
mod answer;
mod cache;
mod capability;
mod check;
mod complete;
mod content;
mod elicit;
mod form;
mod implementation;
mod input;
mod lifecycle;
mod log;
pub mod meta;
mod method;
mod progress;
mod prompt;
mod record;
mod resource;
mod result;
mod revision;
mod root;
mod rpc;
mod sampling;
mod subscription;
mod task;
mod tool;
mod trace;

pub use adapt::Adapt;
pub use answer::{Answer, NotAccepted};
pub use bowline_json::{OrderedMap, RawJson, RawMap, map, write_json};
pub use cache::CacheScope;
pub use capability::*;
pub use complete::*;
pub use content::{
    Annotations, AudioContent, ContentBlock, EmbeddedResource, ImageContent, ResourceLink, Role, TextContent,
    ToolResultContent, ToolUseContent,
};
pub use elicit::*;
pub use form::{
    BooleanSchema, ElicitSchema, EnumOption, EnumSchema, MultiSelectItems, MultiSelectSchema, NumberKind,
    NumberSchema, PrimitiveSchema, StringFormat, StringSchema,
};
pub use implementation::*;
pub use input::*;
pub use lifecycle::*;
pub use log::*;
pub use meta::{Meta, MetaKeyError};
pub use method::*;
pub use progress::*;
pub use prompt::*;
pub use resource::*;
pub use result::*;
pub use revision::*;
pub use root::*;
pub use rpc::*;
pub use sampling::*;
pub use subscription::*;
pub use task::*;
pub use tool::*;
pub use trace::*;

/// Serializes a type of this crate, none of which can fail.
fn to_json(value: &(impl serde::Serialize + ?Sized)) -> RawJson {
    RawJson::of(value).expect("a protocol type always has a JSON form")
}
