//! Building blocks for borrowed decoding.

use serde::Deserialize;
use std::borrow::Cow;

/// A string, borrowed where it holds no escapes. `Option<Cow<str>>` would always copy.
#[derive(Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);
