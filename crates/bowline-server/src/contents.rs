//! The types that reading a resource may return.

use crate::{Error, IntoError, output::Json};
use bowline_types::{RawJson, ReadResourceResult, ResourceContents};
use bytes::Bytes;
use serde::Serialize;
use std::borrow::Cow;

/// A value that reading a resource may return.
///
/// Contents that name no URI or MIME type get those of the resource.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned from a resource",
    label = "not the contents of a resource",
    note = "return text (`String`), bytes (`Vec<u8>`), `Json<T>`, `ResourceContents`, or an `Option` or `Result` of one of these"
)]
pub trait IntoContents {
    /// Turns the value into the result of `resources/read`.
    fn into_contents(self) -> Result<ReadResourceResult, Error>;
}

fn one(contents: ResourceContents) -> ReadResourceResult {
    ReadResourceResult::new(vec![contents])
}

impl IntoContents for String {
    fn into_contents(self) -> Result<ReadResourceResult, Error> {
        Ok(one(ResourceContents::text("", self)))
    }
}

impl IntoContents for &'static str {
    fn into_contents(self) -> Result<ReadResourceResult, Error> {
        self.to_owned().into_contents()
    }
}

impl IntoContents for Cow<'static, str> {
    fn into_contents(self) -> Result<ReadResourceResult, Error> {
        self.into_owned().into_contents()
    }
}

impl IntoContents for Vec<u8> {
    fn into_contents(self) -> Result<ReadResourceResult, Error> {
        Ok(one(ResourceContents::blob("", &self)))
    }
}

impl IntoContents for Bytes {
    fn into_contents(self) -> Result<ReadResourceResult, Error> {
        Ok(one(ResourceContents::blob("", &self)))
    }
}

impl<T: Serialize> IntoContents for Json<T> {
    fn into_contents(self) -> Result<ReadResourceResult, Error> {
        let json = RawJson::of(&self.0)
            .map_err(|error| Error::internal(format!("the contents are not JSON: {error}")))?;
        Ok(one(ResourceContents::text("", json.as_str()).mime_type("application/json")))
    }
}

impl IntoContents for ResourceContents {
    fn into_contents(self) -> Result<ReadResourceResult, Error> {
        Ok(one(self))
    }
}

impl IntoContents for Vec<ResourceContents> {
    fn into_contents(self) -> Result<ReadResourceResult, Error> {
        Ok(ReadResourceResult::new(self))
    }
}

impl IntoContents for ReadResourceResult {
    fn into_contents(self) -> Result<ReadResourceResult, Error> {
        Ok(self)
    }
}

/// `None` fails the request: the resource does not exist.
impl<T: IntoContents> IntoContents for Option<T> {
    fn into_contents(self) -> Result<ReadResourceResult, Error> {
        self.ok_or_else(Error::nothing_found)?.into_contents()
    }
}

impl<T: IntoContents, E: IntoError> IntoContents for Result<T, E> {
    fn into_contents(self) -> Result<ReadResourceResult, Error> {
        self.map_err(IntoError::into_error)?.into_contents()
    }
}
