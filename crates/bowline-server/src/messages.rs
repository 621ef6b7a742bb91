//! The types that a prompt may return.

use crate::{Error, IntoError};
use bowline_types::{ContentBlock, GetPromptResult, PromptMessage, Role};
use std::borrow::Cow;

/// A value a prompt may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned from a prompt",
    label = "not the messages of a prompt",
    note = "return text (`String`), `PromptMessage`, `Vec<PromptMessage>`, `GetPromptResult`, or a `Result` of one of these"
)]
pub trait IntoPrompt {
    /// Turns the value into the result of `prompts/get`.
    fn into_prompt(self) -> Result<GetPromptResult, Error>;
}

impl IntoPrompt for String {
    fn into_prompt(self) -> Result<GetPromptResult, Error> {
        PromptMessage::new(Role::User, ContentBlock::text(self)).into_prompt()
    }
}

impl IntoPrompt for &'static str {
    fn into_prompt(self) -> Result<GetPromptResult, Error> {
        self.to_owned().into_prompt()
    }
}

impl IntoPrompt for Cow<'static, str> {
    fn into_prompt(self) -> Result<GetPromptResult, Error> {
        self.into_owned().into_prompt()
    }
}

impl IntoPrompt for PromptMessage {
    fn into_prompt(self) -> Result<GetPromptResult, Error> {
        vec![self].into_prompt()
    }
}

impl IntoPrompt for Vec<PromptMessage> {
    fn into_prompt(self) -> Result<GetPromptResult, Error> {
        Ok(GetPromptResult::new(self))
    }
}

impl IntoPrompt for GetPromptResult {
    fn into_prompt(self) -> Result<GetPromptResult, Error> {
        Ok(self)
    }
}

impl<T: IntoPrompt, E: IntoError> IntoPrompt for Result<T, E> {
    fn into_prompt(self) -> Result<GetPromptResult, Error> {
        self.map_err(IntoError::into_error)?.into_prompt()
    }
}
