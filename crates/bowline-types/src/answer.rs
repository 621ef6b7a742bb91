//! The answer of a user to a question, for servers and clients.

use std::fmt;

use serde::Serialize;

use bowline_json::RawJson;

/// What the user did with a question.
///
/// Returned by `ask` in a server, and by the elicitation handler in a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<T = RawJson> {
    /// The user answered it.
    Accept(T),
    /// The user declined.
    Decline,
    /// The user dismissed the question.
    Cancel,
}

impl Answer {
    /// Accepts with a value that serializes to an object with the fields of the form.
    ///
    /// A value that does not serialize or does not fit the form is sent as declined.
    pub fn accept(content: impl Serialize) -> Self {
        Self::Accept(RawJson::of(&content).unwrap_or_default())
    }
}

impl Answer<()> {
    /// Agrees to open a URL.
    pub const fn consent() -> Self {
        Self::Accept(())
    }
}

impl<T> Answer<T> {
    /// Returns the answer, or an error that says what the user did instead.
    pub fn accepted(self) -> Result<T, NotAccepted> {
        match self {
            Self::Accept(answer) => Ok(answer),
            Self::Decline => Err(NotAccepted::Declined),
            Self::Cancel => Err(NotAccepted::Cancelled),
        }
    }

    /// Returns the answer, if there is one.
    pub fn ok(self) -> Option<T> {
        self.accepted().ok()
    }
}

/// The user did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotAccepted {
    /// The user declined.
    Declined,
    /// The user dismissed the question.
    Cancelled,
}

impl fmt::Display for NotAccepted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Declined => "the user declined",
            Self::Cancelled => "the user cancelled",
        })
    }
}

impl std::error::Error for NotAccepted {}
