//! Values that borrow from the input where they can, for hand-written `Deserialize` implementations.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, Visitor};

use crate::names;
use crate::scan::{ScanError, Scanner, Span};

/// A string that borrows from the input unless it contains escapes. `Cow<str>` alone always copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }

            fn visit_string<E: de::Error>(self, text: String) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text)))
            }
        }

        deserializer.deserialize_str(TextVisitor)
    }
}

/// The text of one value, borrowed from the input if the deserializer supports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawText<'a>(pub Cow<'a, str>);

impl RawText<'_> {
    /// Deserializes the value. Positions in the error are relative to this value.
    pub fn decode<T: DeserializeOwned, E: de::Error>(&self) -> Result<T, E> {
        serde_json::from_str(&self.0).map_err(E::custom)
    }

    /// Returns the first member `name` of this object if it is a string.
    ///
    /// Most writers put the member with the type of an object first, so the rest is not read once it is found.
    ///
    /// Fails if the value is not an object.
    pub fn tag<E: de::Error>(&self, name: &'static str) -> Result<Option<Cow<'_, str>>, E> {
        let text = self.0.as_ref();
        let mut found = Span::default();
        let scanned = Scanner::new(text).members(|member, scanner| {
            let value = scanner.value()?;
            if member == name.as_bytes() {
                found = value;
                // Any error ends the scan.
                return Err(ScanError::Syntax);
            }
            Ok(())
        });
        if scanned.is_err() && found.is_absent() {
            // Reports the error.
            self.decode::<crate::OrderedMap<de::IgnoredAny>, E>()?;
        }
        Ok(found.text(text.as_bytes()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RawVisitor;

        impl<'de> Visitor<'de> for RawVisitor {
            type Value = RawText<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("any JSON value")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                if map.next_key::<Text<'de>>()?.is_none_or(|Text(key)| key != names::raw_value()) {
                    return Err(de::Error::invalid_type(de::Unexpected::Map, &self));
                }
                map.next_value().map(|Text(text)| RawText(text))
            }
        }

        deserializer.deserialize_newtype_struct(names::raw_value(), RawVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RawJson;
    use serde_json::json;

    #[test]
    fn the_name_is_the_one_that_serde_json_uses() {
        // Under a name that `serde_json` does not know, the value would be written as an object with one odd member.
        let theirs = serde_json::value::to_raw_value(&json!({"a": 1})).unwrap();
        let ours = RawJson::from(theirs.clone());
        assert_eq!(serde_json::to_string(&ours).unwrap(), serde_json::to_string(&theirs).unwrap());
        let RawText(read) = serde_json::from_str(" [1, 2] ").unwrap();
        assert!(matches!(read, Cow::Borrowed("[1, 2]")));
        let RawText(read) = RawText::deserialize(json!([1, 2])).unwrap();
        assert_eq!(read, "[1,2]");
    }

    #[test]
    fn finds_a_tag_at_any_position() {
        let tag = |text: &str| {
            RawText(Cow::Borrowed(text)).tag::<serde_json::Error>("type").map(|tag| tag.map(Cow::into_owned))
        };
        assert_eq!(tag(r#"{"type":"text"}"#).unwrap().as_deref(), Some("text"));
        assert_eq!(tag("{ \"type\" :\n \"text\" }").unwrap().as_deref(), Some("text"));
        assert_eq!(tag(r#"{"a":{"type":"no"},"type":"te\u0078t"}"#).unwrap().as_deref(), Some("text"));
        assert_eq!(tag(r#"{"type":1}"#).unwrap(), None);
        assert_eq!(tag("{}").unwrap(), None);
        assert!(tag("[]").is_err());
    }
}
