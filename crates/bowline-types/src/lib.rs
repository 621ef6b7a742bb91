//! The types of the Model Context Protocol: all five revisions in one model.
//!
//! Each type has the members of all revisions. Deserializing is lenient: a value of
//! any revision is accepted, and unknown members are kept. Serializing is exact: [`Adapt`]
//! rewrites a value for a [`Revision`], so that it has nothing that the revision does not define.
//!
//! Values that are only passed on stay JSON text ([`RawJson`], [`RawMap`]).
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
mod validate_answer;

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
