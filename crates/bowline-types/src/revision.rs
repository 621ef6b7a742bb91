//! Revisions of the protocol and their order.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use bowline_json::borrow::Text;

/// A published revision of the protocol, ordered by date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Revision {
    /// Handshake, tools, resources, prompts, sampling, roots.
    V2024_11_05,
    /// Streamable HTTP, batches, audio, tool annotations.
    V2025_03_26,
    /// Structured output, elicitation, resource links; no batches.
    V2025_06_18,
    /// Tasks, icons, URL elicitation, tools in sampling.
    V2025_11_25,
    /// Stateless: every request describes itself, and results ask for input.
    V2026_07_28,
}

/// The two generations of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize` opens a session in which both sides may send requests.
    Legacy,
    /// No handshake: each request carries its revision and capabilities, and only clients send requests.
    Modern,
}

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;

    /// Returns the date that names the revision on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the revision of this date.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// Returns the era of the revision.
    pub const fn era(self) -> Era {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => Era::Legacy,
            Self::V2026_07_28 => Era::Modern,
        }
    }

    /// Returns whether the revision belongs to the legacy era.
    pub const fn is_legacy(self) -> bool {
        matches!(self.era(), Era::Legacy)
    }

    /// Returns whether the revision belongs to the modern era.
    pub const fn is_modern(self) -> bool {
        matches!(self.era(), Era::Modern)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// The text does not name a known revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownRevision(Box<str>);

impl UnknownRevision {
    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UnknownRevision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "expected a protocol revision such as `{}`, got `{}`", Revision::LATEST, self.0)
    }
}

impl std::error::Error for UnknownRevision {}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, UnknownRevision> {
        Self::parse(text).ok_or_else(|| UnknownRevision(text.into()))
    }
}

impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Revision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Text(text) = Text::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_ordered_by_date() {
        assert!(Revision::ALL.is_sorted());
        assert!(Revision::ALL.map(Revision::as_str).is_sorted());
        assert_eq!(Revision::ALL.last(), Some(&Revision::LATEST));
    }

    #[test]
    fn text_and_revision_are_inverse() {
        for revision in Revision::ALL {
            let text = serde_json::to_string(&revision).unwrap();
            assert_eq!(serde_json::from_str::<Revision>(&text).unwrap(), revision);
        }
        assert_eq!(Revision::parse("2025-06-19"), None);
        let error = "latest".parse::<Revision>().unwrap_err();
        assert_eq!(error.to_string(), "expected a protocol revision such as `2026-07-28`, got `latest`");
    }

    #[test]
    fn only_the_newest_is_modern() {
        assert_eq!(Revision::ALL.map(Revision::is_modern), [false, false, false, false, true]);
    }
}
