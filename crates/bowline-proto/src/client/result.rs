//! What a result means: done, or first answer these questions.

use bowline_json::borrow::Text;
use bowline_types::{Era, InputRequiredResult, RawJson, Revision};
use serde::Deserialize;
use std::fmt;

/// A result that means something to this client.
#[derive(Debug)]
pub enum Fulfilled {
    /// The request is done.
    Complete(RawJson),
    /// The request has to be made again with answers.
    InputRequired(Box<InputRequiredResult>),
    /// A result of a kind that a negotiated extension defines.
    Extension(Box<str>, RawJson),
}

/// A result that a client must not treat as a success.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResultError {
    /// Its `resultType` was not negotiated.
    UnknownType(String),
    /// It is not an object, or a member has the wrong type.
    Malformed(String),
}

impl fmt::Display for ResultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownType(kind) => write!(f, "unknown result type `{kind}`"),
            Self::Malformed(reason) => write!(f, "the result is malformed: {reason}"),
        }
    }
}

impl std::error::Error for ResultError {}

/// Sorts a result. `extensions` are the result types of the extensions in use.
pub fn classify(revision: Revision, result: RawJson, extensions: &[&str]) -> Result<Fulfilled, ResultError> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow, default, rename = "resultType")]
        result_type: Option<Text<'a>>,
    }
    let malformed = |error: serde_json::Error| ResultError::Malformed(error.to_string());
    if !result.is_object() {
        return Err(ResultError::Malformed("expected an object".into()));
    }
    if revision.era() == Era::Legacy {
        return Ok(Fulfilled::Complete(result));
    }
    let kind = result.decode::<Head<'_>>().map_err(malformed)?.result_type;
    match kind.as_ref().map(|Text(kind)| &**kind) {
        // Absent at older servers, for whom every result is complete.
        None | Some("complete") => Ok(Fulfilled::Complete(result)),
        Some("input_required") => {
            let required: InputRequiredResult = result.decode().map_err(malformed)?;
            if required.input_requests.is_none() && required.request_state.is_none() {
                return Err(ResultError::Malformed(
                    "`inputRequests` and `requestState` are both missing".into(),
                ));
            }
            Ok(Fulfilled::InputRequired(Box::new(required)))
        }
        Some(kind) if extensions.contains(&kind) => {
            let kind = kind.into();
            Ok(Fulfilled::Extension(kind, result))
        }
        Some(kind) => Err(ResultError::UnknownType(kind.to_owned())),
    }
}
