//! Deserializes a type from checked JSON text; strings are found in wide steps and unescaped into their final place.
//!
//! The result is what `serde_json` reads. `serde_json` collects a string with escapes in a buffer of its own first, which
//! doubles the memory of a large text. Errors are left to `serde_json`: if this reader fails, `serde_json` reads the text
//! again, so callers see its messages and positions.

use crate::{
    names,
    scan::{ScanError, Scanner, Span},
    unescape::unescape,
};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor, value::BorrowedStrDeserializer,
};
use serde_json::Error;
use std::borrow::Cow;

/// Deserializes a value from `text`, which must be one valid JSON value.
pub(crate) fn read_json<'de, T: Deserialize<'de>>(text: &'de str) -> serde_json::Result<T> {
    let mut reader = Reader::new(text);
    let read = T::deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    match read {
        Ok(value) => Ok(value),
        Err(_) => serde_json::from_str(text),
    }
}

/// Deserializes from a text that was scanned before, value by value. Its errors carry no detail: see [`read_json`].
struct Reader<'de> {
    text: &'de str,
    scanner: Scanner<'de>,
}

fn unreadable() -> Error {
    Error::custom("cannot read this value")
}

fn unreadable_at(_: ScanError) -> Error {
    unreadable()
}

impl<'de> Reader<'de> {
    fn new(text: &'de str) -> Self {
        Self { text, scanner: Scanner::new(text) }
    }

    #[inline]
    fn peek(&mut self) -> u8 {
        self.scanner.peek()
    }

    #[inline]
    fn expect(&mut self, sign: u8) -> Result<(), Error> {
        self.scanner.expect(sign).map_err(unreadable_at)
    }

    fn end(&mut self) -> Result<(), Error> {
        self.scanner.end().map_err(unreadable_at)
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), Error> {
        self.scanner.literal(word).map_err(unreadable_at)
    }

    fn slice(&self, span: Span) -> Result<&'de str, Error> {
        span.str(self.text).ok_or_else(unreadable)
    }

    /// Returns the text of the next value, a number.
    fn number(&mut self) -> Result<&'de str, Error> {
        let number = self.scanner.number().map_err(unreadable_at)?;
        self.slice(number)
    }

    /// Returns the next value, a string.
    fn string(&mut self) -> Result<Cow<'de, str>, Error> {
        let (inner, may_be_escaped) = self.scanner.checked_string().map_err(unreadable_at)?;
        let inner = self.slice(inner)?;
        if may_be_escaped { unescape(inner).ok_or_else(unreadable) } else { Ok(Cow::Borrowed(inner)) }
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.scanner.descend().map_err(unreadable_at)?;
        let value = read(self)?;
        self.scanner.ascend();
        Ok(value)
    }

    fn list<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Error> {
        self.expect(b'[')?;
        self.nested(|reader| {
            let value = visitor.visit_seq(Parts { reader: &mut *reader, is_first: true, end: b']' })?;
            reader.expect(b']')?;
            Ok(value)
        })
    }

    fn object<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Error> {
        self.expect(b'{')?;
        self.nested(|reader| {
            let value = visitor.visit_map(Parts { reader: &mut *reader, is_first: true, end: b'}' })?;
            reader.expect(b'}')?;
            Ok(value)
        })
    }

    /// Returns the text of the next value.
    fn raw(&mut self) -> Result<&'de str, Error> {
        let value = self.scanner.value().map_err(unreadable_at)?;
        self.slice(value)
    }
}

/// Passes a number to a visitor the way `serde_json` does.
macro_rules! numbers {
    ($($method:ident)*) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let mut number = serde_json::Deserializer::from_str(self.number()?);
            let value = number.$method(visitor)?;
            number.end().map(|()| value)
        }
    )* };
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Error;

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.peek() {
            b'"' => self.deserialize_string(visitor),
            b'{' => self.object(visitor),
            b'[' => self.list(visitor),
            b't' | b'f' => self.deserialize_bool(visitor),
            b'n' => self.deserialize_unit(visitor),
            _ => {
                let mut number = serde_json::Deserializer::from_str(self.number()?);
                let value = number.deserialize_any(visitor)?;
                number.end().map(|()| value)
            }
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.peek() == b't' {
            self.literal(b"true")?;
            visitor.visit_bool(true)
        } else {
            self.literal(b"false")?;
            visitor.visit_bool(false)
        }
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_string(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_string(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.string()? {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    /// Left to `serde_json`: a string that is read as bytes may contain what no `str` can.
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        Err(Error::invalid_type(Unexpected::Other("bytes"), &visitor))
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.peek() == b'n' {
            self.literal(b"null")?;
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.peek();
        self.literal(b"null")?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == names::raw_value() {
            return visitor.visit_map(Raw(Some(self.raw()?)));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.list(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.list(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.list(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.object(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.peek() == b'[' { self.list(visitor) } else { self.object(visitor) }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.peek() != b'{' {
            return visitor.visit_enum(self.string()?.into_deserializer());
        }
        self.expect(b'{')?;
        self.nested(|reader| {
            let value = visitor.visit_enum(Variant(&mut *reader))?;
            reader.expect(b'}')?;
            Ok(value)
        })
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_string(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.raw()?;
        visitor.visit_unit()
    }
}

/// The elements of an array or the members of an object.
struct Parts<'a, 'de> {
    reader: &'a mut Reader<'de>,
    is_first: bool,
    end: u8,
}

impl Parts<'_, '_> {
    /// Moves to the next part, if there is one.
    fn has_next(&mut self) -> Result<bool, Error> {
        let next = self.reader.peek();
        if next == self.end {
            return Ok(false);
        }
        if std::mem::take(&mut self.is_first) {
            return Ok(true);
        }
        self.reader.expect(b',')?;
        // A comma before the end is an error.
        if self.reader.peek() == self.end { Err(unreadable()) } else { Ok(true) }
    }
}

impl<'de> SeqAccess<'de> for Parts<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        if self.has_next()? { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }
}

impl<'de> MapAccess<'de> for Parts<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        if !self.has_next()? {
            return Ok(None);
        }
        seed.deserialize(Name(&mut *self.reader)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        self.reader.expect(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}

/// The name of a member. Types that turn names into numbers or booleans are left to `serde_json`.
struct Name<'a, 'de>(&'a mut Reader<'de>);

impl<'de> Deserializer<'de> for Name<'_, 'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.0.deserialize_string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == names::raw_value() { Err(unreadable()) } else { visitor.visit_newtype_struct(self) }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self.0.string()?.into_deserializer())
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// `{"variant": content}`.
struct Variant<'a, 'de>(&'a mut Reader<'de>);

impl<'de> EnumAccess<'de> for Variant<'_, 'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        let variant = seed.deserialize(&mut *self.0)?;
        self.0.expect(b':')?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Deserialize::deserialize(self.0)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.0.list(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.deserialize_struct("", fields, visitor)
    }
}

/// A raw value in the form that `serde_json` passes to its `RawValue`.
struct Raw<'de>(Option<&'de str>);

impl<'de> MapAccess<'de> for Raw<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        if self.0.is_none() {
            return Ok(None);
        }
        seed.deserialize(BorrowedStrDeserializer::new(names::raw_value())).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let text = self.0.take().ok_or_else(unreadable)?;
        seed.deserialize(BorrowedStrDeserializer::new(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::MAX_DEPTH;
    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::{Value, value::RawValue};
    use std::collections::BTreeMap;

    /// Reads checked text without the help of `serde_json`.
    fn alone<'de, T: Deserialize<'de>>(text: &'de str) -> Option<T> {
        let mut scanner = Scanner::new(text);
        scanner.value().and_then(|_| scanner.end()).ok()?;
        let mut reader = Reader::new(text);
        let value = T::deserialize(&mut reader).ok()?;
        reader.end().ok().map(|()| value)
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Everything<'a> {
        text: String,
        #[serde(borrow)]
        lent: &'a str,
        #[serde(borrow)]
        perhaps: Cow<'a, str>,
        number: i64,
        float: f32,
        letter: char,
        flag: bool,
        nothing: (),
        none: Option<u8>,
        some: Option<u8>,
        pair: (u8, String),
        list: Vec<Shape>,
        map: BTreeMap<String, Wrapped>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Wrapped(u8);

    #[derive(Debug, Deserialize, PartialEq)]
    enum Shape {
        Unit,
        New(String),
        Tuple(u8, u8),
        Struct { a: u8 },
    }

    #[test]
    fn reads_every_kind_of_type() {
        let text = r#" { "text" : "a\n\"\\\/\b\f\r\t\u00e9\ud83d\ude00 é" , "lent":"plain", "perhaps":"a\tb",
            "number":-12, "float":1.5e3, "letter":"\u20ac", "flag":true, "nothing":null, "none":null, "some":7,
            "pair":[1,"x"], "list":["Unit",{"New":"n"},{"Tuple":[1,2]},{"Struct":{"a":1}},{"Struct":[3]}],
            "unknown":{"a":["\"",{}, [] ,1.0,false]}, "map":{"k":1} } "#;
        let read: Everything<'_> = alone(text).unwrap();
        assert_eq!(read, serde_json::from_str(text).unwrap());
        assert_eq!(read.text, "a\n\"\\/\u{8}\u{c}\r\té😀 é");
    }

    #[test]
    fn borrows_raw_values() {
        let text = r#"{"a": {"b" :[1, "\u0041"]} }"#;
        let read: BTreeMap<String, &RawValue> = alone(text).unwrap();
        assert_eq!(read["a"].get(), r#"{"b" :[1, "\u0041"]}"#);
        let owned: Box<RawValue> = alone("[1]").unwrap();
        assert_eq!(owned.get(), "[1]");
    }

    #[test]
    fn a_string_allocates_once() {
        let long = "x\\n".repeat(1000);
        let read: String = alone(&format!("\"{long}\"")).unwrap();
        assert_eq!((read.len(), read.capacity()), (2000, 3000));
    }

    #[test]
    fn errors_are_those_of_serde_json() {
        for text in [
            "",
            "{",
            "[1,]",
            "[1 2]",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"\\u+123\"",
            "nul",
            "1 2",
            "{\"a\"}",
            "01",
            "-",
        ] {
            assert!(alone::<Value>(text).is_none(), "{text}");
            let ours = read_json::<Value>(text).unwrap_err().to_string();
            assert_eq!(ours, serde_json::from_str::<Value>(text).unwrap_err().to_string());
        }
        assert_eq!(
            read_json::<u8>("\"x\"").unwrap_err().to_string(),
            "invalid type: string \"x\", expected u8 at line 1 column 3"
        );
    }

    #[test]
    fn numeric_names_are_left_to_serde_json() {
        let names: BTreeMap<u8, bool> = read_json(r#"{"1":true}"#).unwrap();
        assert_eq!(names, BTreeMap::from([(1, true)]));
    }

    #[test]
    fn depth_limit_is_that_of_the_scanner() {
        let deep = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        assert!(read_json::<serde::de::IgnoredAny>(&deep).is_ok());
        assert!(read_json::<Value>(&format!("[{deep}]")).is_err());
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[a\"\\\\\n\t\u{1}é😀]{0,40}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn reads_what_serde_json_writes(value in json()) {
            let text = value.to_string();
            prop_assert_eq!(alone::<Value>(&text), Some(serde_json::from_str(&text).unwrap()));
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(alone::<Value>(&pretty), Some(serde_json::from_str(&pretty).unwrap()));
        }

        #[test]
        fn reads_nothing_that_serde_json_refuses(text in r#"[\[\]{}:,"\\u0-9a-f ntrue.\-+eE]{0,24}"#) {
            if let Some(read) = alone::<Value>(&text) {
                prop_assert_eq!(Some(read), serde_json::from_str(&text).ok());
            }
        }
    }
}
