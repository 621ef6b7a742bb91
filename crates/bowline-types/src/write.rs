//! How values become JSON text: as `serde_json` writes them, but with long strings escaped many bytes at a time.
//!
//! `serde_json` looks at every byte of a string by itself, which is most of the cost of a large text. Here a long string
//! is escaped first, run by run, and handed on as text that is ready.

use crate::{json::TOKEN, scan::plain_run};
use serde::{
    Serialize,
    ser::{
        SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
        SerializeTupleStruct, SerializeTupleVariant, Serializer,
    },
};
use std::fmt::Display;

/// From which length on it pays to escape a string ahead.
const LONG: usize = 64;

/// Appends `value` as JSON. The types of this vocabulary always succeed; a foreign one that fails is reported.
///
/// ```
/// let mut out = b"data: ".to_vec();
/// bowline_types::write_json(&mut out, &["a", "b"])?;
/// assert_eq!(out, br#"data: ["a","b"]"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn write_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> serde_json::Result<()> {
    value.serialize(Quick { inner: &mut serde_json::Serializer::new(out), verbatim: false })
}

/// A string with its quotes, as it stands in JSON.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 32 + 2);
    out.push('"');
    let mut rest = text;
    loop {
        let (plain, stop) = rest.split_at(plain_run(rest.as_bytes()));
        out.push_str(plain);
        let Some(special) = stop.chars().next() else { break };
        match special {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control => {
                out.push_str("\\u00");
                for digit in [u32::from(control) >> 4, u32::from(control) & 15] {
                    out.push(char::from_digit(digit, 16).unwrap_or('0'));
                }
            }
        }
        rest = stop.get(1..).unwrap_or_default();
    }
    out.push('"');
    out
}

/// A serializer of `serde_json`, or a part of one, with the long strings taken out of its hands.
struct Quick<S> {
    inner: S,
    /// What is written is JSON already.
    verbatim: bool,
}

impl<S> Quick<S> {
    fn of(inner: S) -> Self {
        Self { inner, verbatim: false }
    }
}

/// A value that is written by [`Quick`].
struct Wrapped<'a, T: ?Sized>(&'a T);

impl<T: Serialize + ?Sized> Serialize for Wrapped<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Quick::of(serializer))
    }
}

macro_rules! pass_on {
    ($($method:ident $type:ty,)*) => { $(
        fn $method(self, value: $type) -> Result<S::Ok, S::Error> {
            self.inner.$method(value)
        }
    )* };
}

impl<S: Serializer> Serializer for Quick<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Quick<S::SerializeSeq>;
    type SerializeTuple = Quick<S::SerializeTuple>;
    type SerializeTupleStruct = Quick<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Quick<S::SerializeTupleVariant>;
    type SerializeMap = Quick<S::SerializeMap>;
    type SerializeStruct = Quick<S::SerializeStruct>;
    type SerializeStructVariant = Quick<S::SerializeStructVariant>;

    pass_on! {
        serialize_bool bool, serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_i128 i128, serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64,
        serialize_u128 u128, serialize_f32 f32, serialize_f64 f64, serialize_char char, serialize_bytes &[u8],
        serialize_unit_struct &'static str,
    }

    fn serialize_str(self, text: &str) -> Result<S::Ok, S::Error> {
        if text.len() < LONG {
            return self.inner.serialize_str(text);
        }
        let mut raw = self.inner.serialize_struct(TOKEN, 1)?;
        raw.serialize_field(TOKEN, &escaped(text))?;
        raw.end()
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.inner.serialize_some(&Wrapped(value))
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_newtype_struct(name, &Wrapped(value))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_newtype_variant(name, index, variant, &Wrapped(value))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        self.inner.serialize_seq(length).map(Quick::of)
    }

    fn serialize_tuple(self, length: usize) -> Result<Self::SerializeTuple, S::Error> {
        self.inner.serialize_tuple(length).map(Quick::of)
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        self.inner.serialize_tuple_struct(name, length).map(Quick::of)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        self.inner.serialize_tuple_variant(name, index, variant, length).map(Quick::of)
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        self.inner.serialize_map(length).map(Quick::of)
    }

    fn serialize_struct(self, name: &'static str, length: usize) -> Result<Self::SerializeStruct, S::Error> {
        let inner = self.inner.serialize_struct(name, length)?;
        Ok(Quick { inner, verbatim: name == TOKEN })
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        self.inner.serialize_struct_variant(name, index, variant, length).map(Quick::of)
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.inner.collect_str(value)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! sequences {
    ($($Trait:ident $add:ident,)*) => { $(
        impl<S: $Trait> $Trait for Quick<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn $add<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
                self.inner.$add(&Wrapped(value))
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.inner.end()
            }
        }
    )* };
}

sequences! {
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field,
}

impl<S: SerializeMap> SerializeMap for Quick<S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        self.inner.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.inner.serialize_value(&Wrapped(value))
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.inner.end()
    }
}

impl<S: SerializeStruct> SerializeStruct for Quick<S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), S::Error> {
        if self.verbatim {
            return self.inner.serialize_field(key, value);
        }
        self.inner.serialize_field(key, &Wrapped(value))
    }

    fn skip_field(&mut self, key: &'static str) -> Result<(), S::Error> {
        self.inner.skip_field(key)
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.inner.end()
    }
}

impl<S: SerializeStructVariant> SerializeStructVariant for Quick<S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), S::Error> {
        self.inner.serialize_field(key, &Wrapped(value))
    }

    fn skip_field(&mut self, key: &'static str) -> Result<(), S::Error> {
        self.inner.skip_field(key)
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.inner.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RawJson;
    use proptest::prelude::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn written(value: &impl Serialize) -> String {
        let mut out = Vec::new();
        write_json(&mut out, value).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[derive(Serialize)]
    enum Shape {
        Unit,
        Newtype(String),
        Tuple(String, u8),
        Struct { text: String, skipped: Option<u8> },
    }

    #[test]
    fn every_shape_is_written_as_serde_json_writes_it() {
        let long = "\"ä\n\u{1}\\".repeat(40);
        let shapes = (
            [Shape::Unit, Shape::Newtype(long.clone()), Shape::Tuple(long.clone(), 1)],
            Shape::Struct { text: long.clone(), skipped: None },
            Some(&long),
            BTreeMap::from([(long.clone(), long.clone())]),
            ((), 'x', 1.5, -1, u64::MAX, i128::MIN, true),
            json!({ "a": [long, null, { "b": long }] }),
            RawJson::of(&long).unwrap(),
        );
        assert_eq!(written(&shapes), serde_json::to_string(&shapes).unwrap());
    }

    #[test]
    fn what_cannot_be_a_key_is_refused() {
        assert!(write_json(&mut Vec::new(), &BTreeMap::from([((1, 2), 3)])).is_err());
    }

    proptest! {
        #[test]
        fn strings_are_written_as_serde_json_writes_them(text in "[\\x00-\\x7f]{0,200}|.{0,200}") {
            prop_assert_eq!(written(&text), serde_json::to_string(&text).unwrap());
        }
    }
}
