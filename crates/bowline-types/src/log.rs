//! Logging: messages from the server for the client's log.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::adapt::adapt_only_meta;
use crate::meta::Meta;
use crate::record::record;
use bowline_json::{RawJson, borrow::Text};

/// Severity of a log message, lowest first (RFC 5424).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoggingLevel {
    /// Debugging details.
    Debug,
    /// Normal operation.
    Info,
    /// Normal but significant.
    Notice,
    /// A possible problem.
    Warning,
    /// An error.
    Error,
    /// A component failed.
    Critical,
    /// Immediate action is required.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LoggingLevel {
    /// All levels, lowest first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Returns the value on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// Returns the level of this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }
}

impl fmt::Display for LoggingLevel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// The text does not name a level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownLoggingLevel(Box<str>);

impl fmt::Display for UnknownLoggingLevel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "expected a level from `debug` to `emergency`, got `{}`", self.0)
    }
}

impl std::error::Error for UnknownLoggingLevel {}

impl FromStr for LoggingLevel {
    type Err = UnknownLoggingLevel;

    fn from_str(text: &str) -> Result<Self, UnknownLoggingLevel> {
        Self::parse(text).ok_or_else(|| UnknownLoggingLevel(text.into()))
    }
}

impl Serialize for LoggingLevel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for LoggingLevel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Text(text) = Text::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

record! {
    /// Params of `logging/setLevel` (legacy).
    pub struct SetLevelParams {
        /// Lowest level to send.
        required level: LoggingLevel = "level",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Params of `notifications/message`.
    pub struct LogMessageParams {
        /// Severity.
        required level: LoggingLevel = "level",
        /// Component of the server that logs.
        optional logger: String = "logger",
        /// The message: a string or any other value.
        required data: RawJson = "data",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

adapt_only_meta! { SetLevelParams, LogMessageParams }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_and_closed() {
        assert!(LoggingLevel::ALL.is_sorted());
        let error = serde_json::from_str::<LoggingLevel>("\"warn\"").unwrap_err().to_string();
        assert!(error.contains("expected a level from `debug` to `emergency`, got `warn`"), "{error}");
    }

    #[test]
    fn null_is_a_message_too() {
        let text = r#"{"level":"info","data":null}"#;
        let params: LogMessageParams = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&params).unwrap(), text);
    }
}
