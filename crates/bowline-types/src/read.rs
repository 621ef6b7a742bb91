//! How JSON text becomes values: strings are found many bytes at a time and unescaped straight into where they stay.
//!
//! What comes out is what `serde_json` reads; that one collects a string with escapes in a buffer of its own first, which
//! doubles the memory of a large text. What this reader does not want to decide, an error above all, is left to
//! `serde_json`, so that its words and positions are what callers see.

use crate::scan::{MAX_DEPTH, plain_run};
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor, value::BorrowedStrDeserializer,
};
use serde_json::Error;
use std::borrow::Cow;

/// The name by which `serde_json` recognizes text that is wanted as it is.
const RAW: &str = "$serde_json::private::RawValue";

/// Reads a value from text that is known to be one JSON value.
pub(crate) fn read_json<'de, T: Deserialize<'de>>(text: &'de str) -> serde_json::Result<T> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let read = T::deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    match read {
        Ok(value) => Ok(value),
        Err(_) => serde_json::from_str(text),
    }
}

/// Passes over JSON text, value by value. Whatever is wrong ends it; what exactly, `serde_json` will say.
struct Reader<'de> {
    text: &'de str,
    at: usize,
    depth: usize,
}

fn unreadable() -> Error {
    Error::custom("not readable")
}

impl<'de> Reader<'de> {
    /// The first byte of what comes next; 0 at the end.
    #[inline]
    fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied().unwrap_or_default()
    }

    #[inline]
    fn expect(&mut self, sign: u8) -> Result<(), Error> {
        if self.peek() != sign {
            return Err(unreadable());
        }
        self.at += 1;
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        self.peek();
        if self.at == self.text.len() { Ok(()) } else { Err(unreadable()) }
    }

    fn literal(&mut self, word: &str) -> Result<(), Error> {
        if self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            self.at += word.len();
            return Ok(());
        }
        Err(unreadable())
    }

    /// The text between here and `end`.
    fn slice(&self, start: usize, end: usize) -> Result<&'de str, Error> {
        self.text.get(start..end).ok_or_else(unreadable)
    }

    /// The number that comes next, as text.
    fn number(&mut self) -> Result<&'de str, Error> {
        self.peek();
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = rest.iter().take_while(is_part).count();
        let number = self.slice(self.at, self.at + length)?;
        self.at += length;
        Ok(number)
    }

    /// The string that comes next.
    fn string(&mut self) -> Result<Cow<'de, str>, Error> {
        self.expect(b'"')?;
        let start = self.at;
        let bytes = self.text.as_bytes();
        self.at += plain_run(bytes.get(self.at..).unwrap_or_default());
        if bytes.get(self.at) == Some(&b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(self.slice(start, self.at - 1)?));
        }
        // Where it ends comes first, so that there is room for exactly as much as can come.
        let end = closing_quote(bytes, self.at).ok_or_else(unreadable)?;
        let text = unescape(self.slice(start, end)?).ok_or_else(unreadable)?;
        self.at = end + 1;
        Ok(Cow::Owned(text))
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(unreadable());
        }
        let value = read(self)?;
        self.depth -= 1;
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

    /// The value that comes next, as text.
    fn raw(&mut self) -> Result<&'de str, Error> {
        self.peek();
        let start = self.at;
        de::IgnoredAny::deserialize(&mut *self)?;
        self.slice(start, self.at)
    }
}

/// Where the string ends that goes on at `at`.
fn closing_quote(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at),
            // What is behind a backslash belongs to the string, whatever it is.
            b'\\' => at += 2,
            _ => return None,
        }
        at += plain_run(bytes.get(at..)?);
    }
}

/// What is between two quotes without its escapes.
fn unescape(quoted: &str) -> Option<String> {
    let mut text = String::with_capacity(quoted.len());
    let mut rest = quoted;
    loop {
        let (plain, special) = rest.split_at_checked(plain_run(rest.as_bytes()))?;
        text.push_str(plain);
        let Some(escape) = special.strip_prefix('\\') else {
            return special.is_empty().then_some(text);
        };
        let kind = escape.as_bytes().first()?;
        rest = escape.get(1..)?;
        text.push(match kind {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let (unit, behind) = code_unit(rest)?;
                rest = behind;
                match unit {
                    0xd800..=0xdbff => {
                        let (low, behind) = code_unit(rest.strip_prefix("\\u")?)?;
                        rest = behind;
                        char::decode_utf16([unit, low]).next()?.ok()?
                    }
                    _ => char::from_u32(u32::from(unit))?,
                }
            }
            _ => return None,
        });
    }
}

/// Four hexadecimal digits, and what is behind them.
fn code_unit(text: &str) -> Option<(u16, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    // A sign is no digit.
    let unit = digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(digits)?;
    Some((u16::from_str_radix(unit, 16).ok()?, rest))
}

/// Gives a number to a visitor the way `serde_json` does.
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
            self.literal("true")?;
            visitor.visit_bool(true)
        } else {
            self.literal("false")?;
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

    /// A string as bytes may hold what no text can.
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        Err(Error::invalid_type(Unexpected::Other("bytes"), &visitor))
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.peek() == b'n' {
            self.literal("null")?;
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.peek();
        self.literal("null")?;
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
        if name == RAW {
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
        self.at += 1;
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
        if self.peek() != b'"' {
            return self.deserialize_any(visitor);
        }
        // Nobody will look at it: it is passed over, but not unescaped.
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let first = start + plain_run(bytes.get(start..).unwrap_or_default());
        self.at = closing_quote(bytes, first).ok_or_else(unreadable)? + 1;
        visitor.visit_unit()
    }
}

/// The elements of a list, or the members of an object.
struct Parts<'a, 'de> {
    reader: &'a mut Reader<'de>,
    is_first: bool,
    end: u8,
}

impl Parts<'_, '_> {
    /// Whether there is another one, at which the reader then is.
    fn has_next(&mut self) -> Result<bool, Error> {
        let next = self.reader.peek();
        if next == self.end {
            return Ok(false);
        }
        if std::mem::take(&mut self.is_first) {
            return Ok(true);
        }
        self.reader.expect(b',')?;
        // Nothing ends with a comma.
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

/// The name of a member, which is a string. Names that stand for numbers and booleans are `serde_json`'s to read.
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
        if name == RAW { Err(unreadable()) } else { visitor.visit_newtype_struct(self) }
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

/// Text under the name that `serde_json` gives it.
struct Raw<'de>(Option<&'de str>);

impl<'de> MapAccess<'de> for Raw<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        if self.0.is_none() {
            return Ok(None);
        }
        seed.deserialize(BorrowedStrDeserializer::new(RAW)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let text = self.0.take().ok_or_else(unreadable)?;
        seed.deserialize(BorrowedStrDeserializer::new(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::{Value, value::RawValue};
    use std::collections::BTreeMap;

    /// Reads without leaving anything to `serde_json`.
    fn alone<'de, T: Deserialize<'de>>(text: &'de str) -> Option<T> {
        let mut reader = Reader { text, at: 0, depth: 0 };
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
    fn every_kind_of_type_is_read() {
        let text = r#" { "text" : "a\n\"\\\/\b\f\r\t\u00e9\ud83d\ude00 é" , "lent":"plain", "perhaps":"a\tb",
            "number":-12, "float":1.5e3, "letter":"\u20ac", "flag":true, "nothing":null, "none":null, "some":7,
            "pair":[1,"x"], "list":["Unit",{"New":"n"},{"Tuple":[1,2]},{"Struct":{"a":1}},{"Struct":[3]}],
            "unknown":{"a":["\"",{}, [] ,1.0,false]}, "map":{"k":1} } "#;
        let read: Everything<'_> = alone(text).expect("it is all readable");
        assert_eq!(read, serde_json::from_str(text).unwrap());
        assert_eq!(read.text, "a\n\"\\/\u{8}\u{c}\r\té😀 é");
    }

    #[test]
    fn raw_text_is_taken_as_it_is() {
        let text = r#"{"a": {"b" :[1, "\u0041"]} }"#;
        let read: BTreeMap<String, &RawValue> = alone(text).expect("it is readable");
        assert_eq!(read["a"].get(), r#"{"b" :[1, "\u0041"]}"#);
        let owned: Box<RawValue> = alone("[1]").expect("it is readable");
        assert_eq!(owned.get(), "[1]");
    }

    #[test]
    fn a_text_has_room_for_itself_and_no_more() {
        let long = "x\\n".repeat(1000);
        let read: String = alone(&format!("\"{long}\"")).expect("it is readable");
        assert_eq!((read.len(), read.capacity()), (2000, 3000));
    }

    #[test]
    fn what_is_wrong_is_told_in_the_words_of_serde_json() {
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
            let told = read_json::<Value>(text).unwrap_err().to_string();
            assert_eq!(told, serde_json::from_str::<Value>(text).unwrap_err().to_string());
        }
        assert_eq!(
            read_json::<u8>("\"x\"").unwrap_err().to_string(),
            "invalid type: string \"x\", expected u8 at line 1 column 3"
        );
    }

    #[test]
    fn what_only_serde_json_reads_is_read_all_the_same() {
        let names: BTreeMap<u8, bool> = read_json(r#"{"1":true}"#).unwrap();
        assert_eq!(names, BTreeMap::from([(1, true)]));
    }

    #[test]
    fn texts_may_be_as_deep_as_scanners_allow() {
        let deep = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        assert!(read_json::<de::IgnoredAny>(&deep).is_ok());
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
        fn what_is_written_is_read(value in json()) {
            let text = value.to_string();
            prop_assert_eq!(alone::<Value>(&text), Some(serde_json::from_str(&text).unwrap()));
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(alone::<Value>(&pretty), Some(serde_json::from_str(&pretty).unwrap()));
        }

        #[test]
        fn nothing_is_read_that_serde_json_refuses(text in r#"[\[\]{}:,"\\u0-9a-f ntrue.\-+eE]{0,24}"#) {
            if let Some(read) = alone::<Value>(&text) {
                prop_assert_eq!(Some(read), serde_json::from_str(&text).ok());
            }
        }
    }
}
