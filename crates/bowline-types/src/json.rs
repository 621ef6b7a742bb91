//! How JSON that is not yet (or never) decoded is carried: one validated value as shared bytes.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::map::{OrderedMap, RawMap};
use crate::read::read_json;
use crate::write::write_json;

/// The name by which `serde_json` recognizes text that is to be copied verbatim.
const TOKEN: &str = "$serde_json::private::RawValue";

/// Exactly one JSON value as UTF-8 text, without surrounding blanks; cloning shares the bytes.
///
/// Equality compares the bytes, so `1.0` and `1` differ, as do objects in another order.
///
/// ```
/// use bowline_types::RawJson;
///
/// let raw = RawJson::parse(r#" {"a": [1, 2]} "#)?;
/// assert_eq!(raw.as_str(), r#"{"a": [1, 2]}"#);
/// assert!(raw.is_object());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(Bytes);

impl RawJson {
    /// Takes text that must hold exactly one JSON value, and checks that it does.
    pub fn parse(text: impl Into<Bytes>) -> serde_json::Result<Self> {
        let buffer = text.into();
        let raw: &RawValue = serde_json::from_slice(&buffer)?;
        Ok(Self::slice_of(&buffer, raw))
    }

    /// Shares the part of `buffer` that `raw` was read from, or copies `raw` when it lies elsewhere.
    pub fn slice_of(buffer: &Bytes, raw: &RawValue) -> Self {
        let text = raw.get().as_bytes();
        let start = buffer.as_ptr().addr();
        let end = start.saturating_add(buffer.len());
        let inner = text.as_ptr().addr();
        if inner >= start && inner.saturating_add(text.len()) <= end {
            Self(buffer.slice_ref(text))
        } else {
            Self(Bytes::copy_from_slice(text))
        }
    }

    /// Text that a scanner has found to be one value.
    #[inline]
    pub(crate) fn checked(text: Bytes) -> Self {
        Self(text)
    }

    /// Writes a value as JSON.
    pub fn of(value: &(impl Serialize + ?Sized)) -> serde_json::Result<Self> {
        let mut text = Vec::with_capacity(128);
        write_json(&mut text, value)?;
        Ok(Self(text.into()))
    }

    /// Writes a value of this vocabulary, none of which can fail to be written.
    pub(crate) fn of_known(value: &(impl Serialize + ?Sized)) -> Self {
        Self::of(value).expect("a vocabulary type always has a JSON form")
    }

    /// The value `null`.
    pub const fn null() -> Self {
        Self(Bytes::from_static(b"null"))
    }

    /// The value `{}`.
    pub const fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// The JSON text. Checks the encoding again, so prefer [`as_bytes`](Self::as_bytes) where bytes do.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("every constructor has checked that the text is UTF-8")
    }

    /// The JSON text as bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The shared buffer that holds the text.
    #[inline]
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Reads the value as a type, which may borrow from it.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_str(self.as_str())
    }

    /// Reads the value like [`decode`](Self::decode), with less memory and time where strings hold escapes: they are
    /// unescaped straight into where they stay. It takes more code per type, so it is for what may be large.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        read_json(self.as_str())
    }

    /// Reads the value as a tree.
    pub fn to_value(&self) -> serde_json::Result<serde_json::Value> {
        self.decode()
    }

    /// Reads the members of an object; their values share the bytes of this one.
    pub fn members(&self) -> serde_json::Result<RawMap> {
        let members: OrderedMap<&RawValue> = self.decode()?;
        Ok(members.map(|raw| Self::slice_of(&self.0, raw)))
    }

    /// The same value in no more memory than it needs: what is kept for long should not keep the buffer around it.
    pub fn compact(&self) -> Self {
        if self.as_bytes() == b"{}" {
            return Self::empty_object();
        }
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        self.0.first() == Some(&b'n')
    }

    /// Whether this is an object.
    #[inline]
    pub fn is_object(&self) -> bool {
        self.0.first() == Some(&b'{')
    }

    /// Whether this is an array.
    pub fn is_array(&self) -> bool {
        self.0.first() == Some(&b'[')
    }

    /// Whether this is a string.
    pub fn is_string(&self) -> bool {
        self.0.first() == Some(&b'"')
    }

    /// The same value without line breaks, for transports that frame by lines.
    ///
    /// JSON strings cannot hold a raw line break, so every one of them is a blank between tokens.
    pub fn to_single_line(&self) -> Self {
        let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
        if !self.0.iter().any(is_break) {
            return self.clone();
        }
        Self(self.0.iter().map(|byte| if is_break(byte) { b' ' } else { *byte }).collect())
    }
}

impl Default for RawJson {
    fn default() -> Self {
        Self::null()
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl From<&serde_json::Value> for RawJson {
    fn from(value: &serde_json::Value) -> Self {
        Self::of_known(value)
    }
}

impl From<serde_json::Value> for RawJson {
    fn from(value: serde_json::Value) -> Self {
        Self::of_known(&value)
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Box::<str>::from(raw).into_boxed_bytes().into())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut raw = serializer.serialize_struct(TOKEN, 1)?;
        raw.serialize_field(TOKEN, self.as_str())?;
        raw.end()
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

/// The text of one value, borrowed from the input where the input can lend it.
pub(crate) struct RawText<'de>(pub(crate) Cow<'de, str>);

impl RawText<'_> {
    /// Reads the value as a type; the error carries the position inside this value.
    pub(crate) fn decode<T: DeserializeOwned, E: de::Error>(&self) -> Result<T, E> {
        serde_json::from_str(&self.0).map_err(E::custom)
    }

    /// The string under `key` of this object, or `None` when it is absent or no string.
    ///
    /// Writers put the tag first almost always; then nothing else is looked at.
    pub(crate) fn tag<E: de::Error>(&self, key: &'static str) -> Result<Option<Cow<'_, str>>, E> {
        if let Some(found) = leading_tag(&self.0, key) {
            return Ok(Some(Cow::Borrowed(found)));
        }
        let mut reader = serde_json::Deserializer::from_str(&self.0);
        let found = reader.deserialize_map(TagVisitor(key)).map_err(E::custom)?;
        Ok(found)
    }

    pub(crate) fn into_raw(self) -> RawJson {
        RawJson(self.0.into_owned().into())
    }
}

impl<'de> Deserialize<'de> for RawText<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RawVisitor;

        impl<'de> Visitor<'de> for RawVisitor {
            type Value = RawText<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("any JSON value")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                if map.next_key::<Text<'de>>()?.is_none_or(|Text(key)| key != TOKEN) {
                    return Err(de::Error::invalid_type(de::Unexpected::Map, &self));
                }
                map.next_value().map(|Text(text)| RawText(text))
            }
        }

        deserializer.deserialize_newtype_struct(TOKEN, RawVisitor)
    }
}

/// A string, borrowed from the input where the input can lend it.
pub(crate) struct Text<'de>(pub(crate) Cow<'de, str>);

impl<'de> Deserialize<'de> for Text<'de> {
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

/// The value of the first member when that is `key` with a plain string.
fn leading_tag<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    let blanks: &[char] = &[' ', '\n', '\t', '\r'];
    let rest = object.strip_prefix('{')?.trim_start_matches(blanks);
    let rest = rest.strip_prefix('"')?.strip_prefix(key)?.strip_prefix('"')?;
    let rest = rest.trim_start_matches(blanks).strip_prefix(':')?;
    let rest = rest.trim_start_matches(blanks).strip_prefix('"')?;
    let (tag, _) = rest.split_once('"')?;
    (!tag.contains('\\')).then_some(tag)
}

/// Looks for one member of an object and skips the others.
struct TagVisitor(&'static str);

impl<'de> Visitor<'de> for TagVisitor {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "an object with `{}`", self.0)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(Text(key)) = map.next_key::<Text<'de>>()? {
            if key != self.0 {
                map.next_value::<de::IgnoredAny>()?;
                continue;
            }
            let RawText(value) = map.next_value()?;
            found = match value {
                Cow::Borrowed(text) => serde_json::from_str::<Text<'de>>(text).ok().map(|Text(tag)| tag),
                Cow::Owned(text) => serde_json::from_str::<String>(&text).ok().map(Cow::Owned),
            };
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_is_written_verbatim_inside_other_values() {
        let raw = RawJson::parse("{\"b\" : 1.50,\"a\":\"\\u00e9\"}").unwrap();
        assert_eq!(serde_json::to_string(&vec![&raw]).unwrap(), "[{\"b\" : 1.50,\"a\":\"\\u00e9\"}]");
        assert_eq!(serde_json::to_value(&raw).unwrap(), json!({"b": 1.5, "a": "é"}));
    }

    #[test]
    fn the_token_is_the_one_serde_json_uses() {
        // A token that `serde_json` does not know would come out as an object with one odd member.
        let theirs = serde_json::value::to_raw_value(&json!({"a": 1})).unwrap();
        let ours = RawJson::from(theirs.clone());
        assert_eq!(serde_json::to_string(&ours).unwrap(), serde_json::to_string(&theirs).unwrap());
        let RawText(read) = serde_json::from_str(" [1, 2] ").unwrap();
        assert!(matches!(read, Cow::Borrowed("[1, 2]")));
        let RawText(read) = RawText::deserialize(json!([1, 2])).unwrap();
        assert_eq!(read, "[1,2]");
    }

    #[test]
    fn parsing_refuses_all_but_one_value() {
        for text in ["", "1 2", "{", "{\"a\":1,}", "nul", "\"\u{1}\"", "[1]]"] {
            assert!(RawJson::parse(text).is_err(), "{text}");
        }
        assert!(RawJson::parse(&b"\"\xff\""[..]).is_err());
        assert_eq!(RawJson::parse(" 1 ").unwrap().as_str(), "1");
    }

    #[test]
    fn slices_share_the_buffer_they_were_read_from() {
        let buffer = Bytes::from_static(br#"{"params":{"x":1}}"#);
        let map: std::collections::HashMap<&str, &RawValue> = serde_json::from_slice(&buffer).unwrap();
        let shared = RawJson::slice_of(&buffer, map["params"]);
        assert_eq!(shared.as_bytes().as_ptr(), buffer[10..].as_ptr());
        let elsewhere = RawJson::slice_of(&Bytes::from_static(b"12"), map["params"]);
        assert_eq!(shared, elsewhere);
    }

    #[test]
    fn members_share_the_bytes_of_their_object() {
        let object = RawJson::parse(r#"{"a":[1],"b":"x"}"#).unwrap();
        let members = object.members().unwrap();
        assert_eq!(members.get("b").unwrap().as_bytes().as_ptr(), object.as_bytes()[13..].as_ptr());
        assert!(RawJson::parse(r#"{"a":1,"a":2}"#).unwrap().members().is_err());
        assert!(RawJson::null().members().is_err());
    }

    #[test]
    fn a_tag_is_found_wherever_it_stands() {
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

    #[test]
    fn line_breaks_between_tokens_become_blanks() {
        let raw = RawJson::parse("{\r\n\"a\":\"\\n\"\n}").unwrap();
        assert_eq!(raw.to_single_line().as_str(), "{  \"a\":\"\\n\" }");
    }
}
