//! JSON that is passed on rather than decoded: one checked value as shared bytes.

use std::fmt;

use bytes::Bytes;
use serde::de::Deserializer;
use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::borrow::RawText;
use crate::map::{OrderedMap, RawMap};
use crate::names;
use crate::read::read_json;
use crate::scan::Scanner;
use crate::write::write_json;

/// Exactly one JSON value as UTF-8 text, without blanks around it. Clones share the bytes.
///
/// Equality compares bytes: `1.0` and `1` differ, and so do objects whose members are in another order.
///
/// ```
/// use bowline_json::RawJson;
///
/// let raw = RawJson::parse(r#" {"a": [1, 2]} "#)?;
/// assert_eq!(raw.as_str(), r#"{"a": [1, 2]}"#);
/// assert!(raw.is_object());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(Bytes);

impl RawJson {
    /// Checks that `text` is exactly one JSON value, and keeps it.
    ///
    /// Fails with the error of `serde_json` if it is not.
    pub fn parse(text: impl Into<Bytes>) -> serde_json::Result<Self> {
        let buffer = text.into();
        let scanned = Scanner::from_bytes(&buffer).ok().and_then(|mut scanner| {
            let value = scanner.value().ok()?;
            scanner.end().ok()?;
            value.raw(&buffer)
        });
        match scanned {
            Some(raw) => Ok(raw),
            // Reports the error. It also accepts what nests deeper than the scanner allows.
            None => serde_json::from_slice(&buffer).map(|raw| Self::slice_of(&buffer, raw)),
        }
    }

    /// Shares the part of `buffer` that `raw` was read from. Copies `raw` if it was read from somewhere else.
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

    /// Wraps text that was scanned and is one value.
    #[inline]
    pub(crate) fn checked(text: Bytes) -> Self {
        Self(text)
    }

    /// Serializes a value as JSON. Fails only if its `Serialize` implementation does.
    pub fn of(value: &(impl Serialize + ?Sized)) -> serde_json::Result<Self> {
        let mut text = Vec::with_capacity(128);
        write_json(&mut text, value)?;
        Ok(Self(text.into()))
    }

    /// Returns `null`.
    pub const fn null() -> Self {
        Self(Bytes::from_static(b"null"))
    }

    /// Returns `{}`.
    pub const fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// Returns the JSON text. This checks the encoding again; [`as_bytes`](Self::as_bytes) does not.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("every constructor checks that the text is UTF-8")
    }

    /// Returns the JSON text as bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the shared buffer that contains the text.
    #[inline]
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Deserializes the value. The result may borrow from it.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_str(self.as_str())
    }

    /// Deserializes the value like [`decode`](Self::decode), but faster and with less memory if it contains long strings.
    ///
    /// It generates more code per type, so prefer `decode` for small values.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        read_json(self.as_str())
    }

    /// Deserializes the value into a tree.
    pub fn to_value(&self) -> serde_json::Result<serde_json::Value> {
        self.decode()
    }

    /// Returns the members of an object; their values share the bytes of this one.
    ///
    /// Fails if the value is not an object or contains a name twice.
    pub fn members(&self) -> serde_json::Result<RawMap> {
        let members: OrderedMap<&RawValue> = self.decode()?;
        Ok(members.map(|raw| Self::slice_of(&self.0, raw)))
    }

    /// Copies the value into a buffer of its own. Use it for values that outlive the message they came with.
    pub fn compact(&self) -> Self {
        if self.as_bytes() == b"{}" {
            return Self::empty_object();
        }
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// Returns whether the value is `null`.
    pub fn is_null(&self) -> bool {
        self.0.first() == Some(&b'n')
    }

    /// Returns whether the value is an object.
    #[inline]
    pub fn is_object(&self) -> bool {
        self.0.first() == Some(&b'{')
    }

    /// Returns whether the value is an array.
    pub fn is_array(&self) -> bool {
        self.0.first() == Some(&b'[')
    }

    /// Returns whether the value is a string.
    pub fn is_string(&self) -> bool {
        self.0.first() == Some(&b'"')
    }

    /// Replaces line breaks by spaces, for transports that send one message per line.
    ///
    /// JSON strings escape line breaks, so every line break in the text is a blank between tokens.
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
        Self::of(value).expect("a tree always has a JSON form")
    }
}

impl From<serde_json::Value> for RawJson {
    fn from(value: serde_json::Value) -> Self {
        Self::from(&value)
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Box::<str>::from(raw).into_boxed_bytes().into())
    }
}

impl From<RawText<'_>> for RawJson {
    fn from(RawText(text): RawText<'_>) -> Self {
        Self(text.into_owned().into())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut raw = serializer.serialize_struct(names::raw_value(), 1)?;
        raw.serialize_field(names::raw_value(), &Verbatim(self))?;
        raw.end()
    }
}

/// The text of a raw value inside the struct by which serializers recognize it.
struct Verbatim<'a>(&'a RawJson);

impl Serialize for Verbatim<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(self.0.as_str())
        } else {
            serializer.serialize_bytes(self.0.as_bytes())
        }
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn is_written_verbatim_inside_other_values() {
        let raw = RawJson::parse("{\"b\" : 1.50,\"a\":\"\\u00e9\"}").unwrap();
        assert_eq!(serde_json::to_string(&vec![&raw]).unwrap(), "[{\"b\" : 1.50,\"a\":\"\\u00e9\"}]");
        assert_eq!(serde_json::to_value(&raw).unwrap(), json!({"b": 1.5, "a": "é"}));
    }

    #[test]
    fn parsing_accepts_only_one_value() {
        for text in ["", "1 2", "{", "{\"a\":1,}", "nul", "\"\u{1}\"", "[1]]"] {
            assert!(RawJson::parse(text).is_err(), "{text}");
        }
        assert!(RawJson::parse(&b"\"\xff\""[..]).is_err());
        assert_eq!(RawJson::parse(" 1 ").unwrap().as_str(), "1");
        let error = RawJson::parse("[1,]").unwrap_err().to_string();
        assert_eq!(error, serde_json::from_str::<&RawValue>("[1,]").unwrap_err().to_string());
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
    fn line_breaks_between_tokens_become_spaces() {
        let raw = RawJson::parse("{\r\n\"a\":\"\\n\"\n}").unwrap();
        assert_eq!(raw.to_single_line().as_str(), "{  \"a\":\"\\n\" }");
    }
}
