//! What a user did with a question, on either side of it.

use std::fmt;

use serde::Serialize;

use bowline_json::RawJson;

/// What the user did with a question.
///
/// A server gets one from asking; a client gives one from the handler that asks its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<T = RawJson> {
    /// Answered it.
    Accept(T),
    /// Said no.
    Decline,
    /// Closed it without saying either.
    Cancel,
}

impl Answer {
    /// Accepts with anything that serializes to an object with the fields of the form.
    ///
    /// What does not serialize, or does not fit the form, counts as declined when it is sent.
    pub fn accept(content: impl Serialize) -> Self {
        Self::Accept(RawJson::of(&content).unwrap_or_default())
    }
}

impl Answer<()> {
    /// Consents to visit a page.
    pub const fn consent() -> Self {
        Self::Accept(())
    }
}

impl<T> Answer<T> {
    /// The answer, or an error that says what the user did instead.
    pub fn accepted(self) -> Result<T, NotAccepted> {
        match self {
            Self::Accept(answer) => Ok(answer),
            Self::Decline => Err(NotAccepted::Declined),
            Self::Cancel => Err(NotAccepted::Cancelled),
        }
    }

    /// The answer, if there is one.
    pub fn ok(self) -> Option<T> {
        self.accepted().ok()
    }
}

/// The user did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAccepted {
    /// They said no.
    Declined,
    /// They closed the question.
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
