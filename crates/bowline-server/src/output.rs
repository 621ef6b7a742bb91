//! The types that a tool may return.

use crate::{Error, IntoError, ToJson, schema};
use bowline_types::{CallToolResult, ContentBlock, RawJson};
use std::borrow::Cow;

/// A value a tool may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned from a tool",
    label = "not a tool output",
    note = "return text (`String`), a number or bool, `Json<T>` for structured data, `Content`, or a `Vec<String>`, `Option` or `Result` of one of these"
)]
pub trait IntoOutput {
    /// Turns the value into the result of `tools/call`.
    fn into_output(self) -> Result<CallToolResult, Error>;

    /// Returns the schema of the structured content, if every value has some.
    fn output_schema() -> Option<RawJson>
    where
        Self: Sized,
    {
        None
    }
}

/// Structured data: becomes `structuredContent`, with the same JSON as text for older clients, and gives the tool its
/// `outputSchema`.
///
/// Before 2026-07-28 structured data is an object; a list or a scalar reaches older clients as text alone.
///
/// ```
/// use bowline_server::{Json, Tool};
///
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Forecast {
///     /// Degrees Celsius.
///     high: f64,
/// }
///
/// let forecast = Tool::new("forecast").handler(|| Json(Forecast { high: 21.5 }));
/// assert!(forecast.definition().output_schema.is_some());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: ToJson> IntoOutput for Json<T> {
    fn into_output(self) -> Result<CallToolResult, Error> {
        let structured = RawJson::of(&self.0)
            .map_err(|error| Error::internal(format!("the result is not JSON: {error}")))?;
        let text = ContentBlock::text(structured.as_str());
        let mut result = with_content(vec![text]);
        result.structured_content = Some(structured);
        Ok(result)
    }

    fn output_schema() -> Option<RawJson> {
        Some(schema::of::<T>())
    }
}

/// Sets the field in place, because a setter would move the result, which is large.
fn with_content(content: Vec<ContentBlock>) -> CallToolResult {
    let mut result = CallToolResult::default();
    result.content = content;
    result
}

fn text(text: impl Into<String>) -> CallToolResult {
    with_content(vec![ContentBlock::text(text.into())])
}

impl IntoOutput for String {
    fn into_output(self) -> Result<CallToolResult, Error> {
        Ok(text(self))
    }
}

impl IntoOutput for &'static str {
    fn into_output(self) -> Result<CallToolResult, Error> {
        Ok(text(self))
    }
}

impl IntoOutput for Cow<'static, str> {
    fn into_output(self) -> Result<CallToolResult, Error> {
        Ok(text(self))
    }
}

impl IntoOutput for () {
    fn into_output(self) -> Result<CallToolResult, Error> {
        Ok(CallToolResult::default())
    }
}

macro_rules! as_text {
    ($($scalar:ty)*) => { $(
        impl IntoOutput for $scalar {
            fn into_output(self) -> Result<CallToolResult, Error> {
                Ok(text(self.to_string()))
            }
        }
    )* };
}

as_text!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64 bool char);

impl IntoOutput for ContentBlock {
    fn into_output(self) -> Result<CallToolResult, Error> {
        Ok(with_content(vec![self]))
    }
}

impl IntoOutput for Vec<ContentBlock> {
    fn into_output(self) -> Result<CallToolResult, Error> {
        Ok(with_content(self))
    }
}

impl IntoOutput for CallToolResult {
    fn into_output(self) -> Result<CallToolResult, Error> {
        Ok(self)
    }
}

/// One block of text per element.
impl IntoOutput for Vec<String> {
    fn into_output(self) -> Result<CallToolResult, Error> {
        self.into_iter().map(ContentBlock::text).collect::<Vec<_>>().into_output()
    }
}

/// `None` is the text `null`. The tool has no output schema, because a result may lack structured content.
impl<T: IntoOutput> IntoOutput for Option<T> {
    fn into_output(self) -> Result<CallToolResult, Error> {
        match self {
            Some(value) => value.into_output(),
            None => Ok(text("null")),
        }
    }
}

impl<T: IntoOutput, E: IntoError> IntoOutput for Result<T, E> {
    fn into_output(self) -> Result<CallToolResult, Error> {
        self.map_err(IntoError::into_error)?.into_output()
    }

    fn output_schema() -> Option<RawJson> {
        T::output_schema()
    }
}
