//! JSON as the rest of Bowline uses it: values that stay text, and one scanner for everything that reads them.
//!
//! - [`RawJson`] is one checked JSON value as shared bytes; [`RawMap`] is an object of such values.
//! - [`scan`] finds values in a text without decoding them. Everything else that reads JSON here is built on it.
//! - [`write_json`] and [`RawJson::read`] serialize and deserialize like `serde_json`, but handle long strings in wide
//!   steps.
//! - [`canonical`] digests values so that order and spelling do not matter.
//! - [`borrow`] has building blocks for hand-written `Deserialize` implementations.
//!
//! Types are described with `serde`, errors are those of `serde_json`, and so is every result: property tests compare the
//! two.
//!
//! ```
//! use bowline_json::RawJson;
//!
//! let message = RawJson::parse(r#"{"id": 7, "params": {"text": "a\nb"}}"#)?;
//! let params = message.members()?.get("params").cloned().unwrap_or_default();
//! assert_eq!(params.as_str(), r#"{"text": "a\nb"}"#);
//! # Ok::<(), serde_json::Error>(())
//! ```

pub mod borrow;
pub mod canonical;
pub mod map;
mod names;
mod raw;
mod read;
pub mod scan;
mod search;
mod unescape;
mod write;

pub use map::{OrderedMap, RawMap};
pub use raw::RawJson;
pub use write::write_json;
