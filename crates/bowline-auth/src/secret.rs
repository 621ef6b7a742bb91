//! Secret text: tokens, client secrets, codes.

use crate::Error;
use std::fmt;
use zeroize::Zeroizing;

/// Text that must not be seen. `Debug` and `Display` print `***`, and the memory is overwritten when it is dropped.
///
/// ```
/// use bowline_auth::Secret;
///
/// let secret = Secret::new("s3cret");
/// assert_eq!(format!("{secret} {secret:?}"), "*** ***");
/// assert_eq!(secret.expose(), "s3cret");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes over secret text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// Reads an environment variable. Fails if it is not set, is empty, or is not Unicode.
    pub fn env(name: &str) -> Result<Self, Error> {
        match std::env::var(name) {
            Ok(text) if !text.is_empty() => Ok(Self::new(text)),
            _ => Err(Error::misuse(format!("the environment variable `{name}` has no value"))),
        }
    }

    /// Returns the text itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_without_a_value_is_an_error_that_names_it() {
        let error = Secret::env("BOWLINE_TEST_NO_SUCH_VARIABLE").unwrap_err();
        assert!(error.to_string().contains("BOWLINE_TEST_NO_SUCH_VARIABLE"), "{error}");
    }
}
