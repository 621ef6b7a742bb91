//! The names of records and of what they belong to.

use std::fmt;
use std::sync::Arc;

/// The longest name, in bytes.
pub const MAX_NAME_BYTES: usize = 512;

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidName {
    /// It is empty.
    Empty,
    /// It is longer than [`MAX_NAME_BYTES`]; the length in bytes.
    TooLong(usize),
    /// It contains a control character.
    ControlCharacter,
}

impl fmt::Display for InvalidName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a name in the store is not empty"),
            Self::TooLong(length) => {
                write!(f, "a name in the store has at most {MAX_NAME_BYTES} bytes, this one has {length}")
            }
            Self::ControlCharacter => f.write_str("a name in the store contains no control character"),
        }
    }
}

impl std::error::Error for InvalidName {}

fn check(name: &str) -> Result<(), InvalidName> {
    if name.is_empty() {
        Err(InvalidName::Empty)
    } else if name.len() > MAX_NAME_BYTES {
        Err(InvalidName::TooLong(name.len()))
    } else if name.chars().any(char::is_control) {
        Err(InvalidName::ControlCharacter)
    } else {
        Ok(())
    }
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks a name: 1 to [`MAX_NAME_BYTES`] bytes, no control characters.
            pub fn new(name: impl Into<Arc<str>>) -> Result<Self, InvalidName> {
                let name = name.into();
                check(&name)?;
                Ok(Self(name))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )* };
}

names! {
    /// The name of a record. Keys are ordered by their bytes.
    Key;
    /// What records are listed and counted by.
    Group;
    /// Where a record waits to be claimed.
    Queue;
    /// What a hint is about.
    Topic;
}

#[cfg(test)]
mod tests {
    use super::{InvalidName, Key, MAX_NAME_BYTES};

    #[test]
    fn names_have_limits() {
        assert!(Key::new("task/1").is_ok());
        assert!(Key::new("ä".repeat(MAX_NAME_BYTES / 2)).is_ok());
        assert_eq!(Key::new(""), Err(InvalidName::Empty));
        assert_eq!(Key::new("a".repeat(MAX_NAME_BYTES + 1)), Err(InvalidName::TooLong(MAX_NAME_BYTES + 1)));
        assert_eq!(Key::new("a\0b"), Err(InvalidName::ControlCharacter));
    }
}
