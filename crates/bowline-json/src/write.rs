//! Serializes values into one buffer; the bytes of a string that need no escape are copied in long runs.
//!
//! The result is what `serde_json` writes, byte for byte. `serde_json` looks at every byte of a string on its own, which is
//! most of the cost of a large text.

use crate::{names, search::plain_len};
use serde::{
    Serialize,
    ser::{
        Error as _, Impossible, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
        SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
    },
};
use serde_json::Error;
use std::fmt::{self, Display, Write as _};

/// Appends `value` as JSON. Fails only if the `Serialize` implementation of `value` does.
///
/// ```
/// let mut out = b"data: ".to_vec();
/// bowline_json::write_json(&mut out, &["a", "b"])?;
/// assert_eq!(out, br#"data: ["a","b"]"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn write_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> serde_json::Result<()> {
    value.serialize(Writer { out, verbatim: false })
}

/// From this length on, escapes are counted first, because growing the buffer would double a lot of memory.
const LARGE: usize = 1024 * 1024;

fn write_text(out: &mut Vec<u8>, text: &str) {
    let text = text.as_bytes();
    // Text has an escape per line, so one byte in 16 is enough for most.
    let escapes = if text.len() < LARGE { text.len() / 16 } else { escape_len(text) };
    out.reserve(text.len() + escapes + 2);
    out.push(b'"');
    escape(out, text);
    out.push(b'"');
}

/// Returns how many bytes escapes add at most.
fn escape_len(text: &[u8]) -> usize {
    // Counts per block fit into a byte, so that the compiler can use vector instructions.
    let block_len = |block: &[u8]| {
        let marks = block.iter().fold(0, |sum: u8, byte| sum + u8::from(matches!(byte, b'"' | b'\\')));
        let controls = block.iter().fold(0, |sum: u8, byte| sum + u8::from(*byte < b' '));
        usize::from(marks) + 5 * usize::from(controls)
    };
    text.chunks(128).map(block_len).sum()
}

fn escape(out: &mut Vec<u8>, text: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut rest = text;
    loop {
        let (plain, stop) = rest.split_at(plain_len(rest).min(rest.len()));
        out.extend_from_slice(plain);
        let Some((special, behind)) = stop.split_first() else { break };
        let letter = match special {
            b'"' | b'\\' => *special,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            control => {
                let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or(b'0');
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[digit(control >> 4), digit(control & 15)]);
                rest = behind;
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
        rest = behind;
    }
}

/// Escapes formatted text.
struct Escaping<'a>(&'a mut Vec<u8>);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escape(self.0, text.as_bytes());
        Ok(())
    }
}

/// Writes one value.
struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// Strings and bytes are JSON already and are copied.
    verbatim: bool,
}

impl<'a> Writer<'a> {
    /// Starts an array or object that is closed with `end`; an object of one member `variant` may contain it.
    fn open(self, variant: Option<&str>, start: &[u8], end: &'static [u8]) -> Nested<'a> {
        if let Some(variant) = variant {
            self.out.push(b'{');
            write_text(self.out, variant);
            self.out.push(b':');
        }
        self.out.extend_from_slice(start);
        Nested { out: self.out, end, is_first: true, verbatim: false }
    }
}

/// Numbers are formatted by `serde_json`.
macro_rules! numbers {
    ($($method:ident $type:ty,)*) => { $(
        fn $method(self, value: $type) -> Result<(), Error> {
            serde_json::to_writer(self.out, &value)
        }
    )* };
}

impl<'a> Serializer for Writer<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Nested<'a>;
    type SerializeTuple = Nested<'a>;
    type SerializeTupleStruct = Nested<'a>;
    type SerializeTupleVariant = Nested<'a>;
    type SerializeMap = Nested<'a>;
    type SerializeStruct = Nested<'a>;
    type SerializeStructVariant = Nested<'a>;

    numbers! {
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64, serialize_i128 i128,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64, serialize_u128 u128,
        serialize_f32 f32, serialize_f64 f64,
    }

    /// Tells [`RawJson`](crate::RawJson) that it may pass its text as bytes, which saves checking the encoding again.
    fn is_human_readable(&self) -> bool {
        !self.verbatim
    }

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, text: &str) -> Result<(), Error> {
        if self.verbatim {
            self.out.extend_from_slice(text.as_bytes());
        } else {
            write_text(self.out, text);
        }
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        if self.verbatim {
            self.out.extend_from_slice(value);
            return Ok(());
        }
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let nested = self.open(Some(variant), b"", b"}");
        value.serialize(Writer { out: &mut *nested.out, verbatim: false })?;
        nested.close();
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Nested<'a>, Error> {
        Ok(self.open(None, b"[", b"]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Nested<'a>, Error> {
        Ok(self.open(None, b"[", b"]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Nested<'a>, Error> {
        Ok(self.open(None, b"[", b"]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Nested<'a>, Error> {
        Ok(self.open(Some(variant), b"[", b"]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Nested<'a>, Error> {
        Ok(self.open(None, b"{", b"}"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Nested<'a>, Error> {
        if names::is_verbatim(name) {
            return Ok(Nested { verbatim: true, ..self.open(None, b"", b"") });
        }
        Ok(self.open(None, b"{", b"}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Nested<'a>, Error> {
        Ok(self.open(Some(variant), b"{", b"}}"))
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), Error> {
        self.out.push(b'"');
        write!(Escaping(self.out), "{value}").map_err(Error::custom)?;
        self.out.push(b'"');
        Ok(())
    }
}

/// Writes the parts of an array or object.
struct Nested<'a> {
    out: &'a mut Vec<u8>,
    end: &'static [u8],
    is_first: bool,
    /// The only field is JSON already and is written without a name.
    verbatim: bool,
}

impl Nested<'_> {
    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.separate();
        value.serialize(Writer { out: &mut *self.out, verbatim: false })
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        if !self.verbatim {
            self.separate();
            write_text(self.out, name);
            self.out.push(b':');
        }
        value.serialize(Writer { out: &mut *self.out, verbatim: self.verbatim })
    }

    fn close(self) {
        self.out.extend_from_slice(self.end);
    }
}

macro_rules! parts {
    ($($Trait:ident $add:ident ($($name:ident: $type:ty)?) $write:ident,)*) => { $(
        impl $Trait for Nested<'_> {
            type Ok = ();
            type Error = Error;

            fn $add<T: Serialize + ?Sized>(&mut self, $($name: $type,)? value: &T) -> Result<(), Error> {
                self.$write($($name,)? value)
            }

            fn end(self) -> Result<(), Error> {
                self.close();
                Ok(())
            }
        }
    )* };
}

parts! {
    SerializeSeq serialize_element () element,
    SerializeTuple serialize_element () element,
    SerializeTupleStruct serialize_field () element,
    SerializeTupleVariant serialize_field () element,
    SerializeStruct serialize_field (name: &'static str) field,
    SerializeStructVariant serialize_field (name: &'static str) field,
}

impl SerializeMap for Nested<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.separate();
        key.serialize(Key(&mut *self.out))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.out.push(b':');
        value.serialize(Writer { out: &mut *self.out, verbatim: false })
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

/// Writes the name of a member: a string, or a scalar that `serde_json` turns into one.
struct Key<'a>(&'a mut Vec<u8>);

macro_rules! keys {
    ($($method:ident $type:ty,)*) => { $(
        fn $method(self, value: $type) -> Result<(), Error> {
            self.number(true, &value)
        }
    )* };
}

impl Key<'_> {
    fn number(self, is_finite: bool, value: &impl Serialize) -> Result<(), Error> {
        if !is_finite {
            return Err(Error::custom("float key must be finite"));
        }
        self.0.push(b'"');
        serde_json::to_writer(&mut *self.0, value)?;
        self.0.push(b'"');
        Ok(())
    }
}

fn no_key<T>() -> Result<T, Error> {
    Err(Error::custom("key must be a string"))
}

impl Serializer for Key<'_> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Impossible<(), Error>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Impossible<(), Error>;
    type SerializeStruct = Impossible<(), Error>;
    type SerializeStructVariant = Impossible<(), Error>;

    keys! {
        serialize_bool bool, serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_i128 i128, serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64,
        serialize_u128 u128,
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.number(value.is_finite(), &value)
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.number(value.is_finite(), &value)
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, text: &str) -> Result<(), Error> {
        write_text(self.0, text);
        Ok(())
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), Error> {
        no_key()
    }

    fn serialize_none(self) -> Result<(), Error> {
        no_key()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        no_key()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        no_key()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Error> {
        no_key()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Error> {
        no_key()
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Error> {
        no_key()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Error> {
        no_key()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        no_key()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Error> {
        no_key()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, Error> {
        no_key()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        no_key()
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), Error> {
        Writer { out: self.0, verbatim: false }.collect_str(value)
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

    /// A map whose keys are fractions.
    struct Floats(&'static [(f32, u8)]);

    impl Serialize for Floats {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter().copied())
        }
    }

    #[derive(Serialize)]
    enum Shape {
        Unit,
        Newtype(String),
        Tuple(String, u8),
        Struct { text: String, skipped: Option<u8> },
    }

    #[test]
    fn writes_every_shape_like_serde_json() {
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
    fn writes_keys_and_unusual_values_like_serde_json() {
        macro_rules! same {
            ($($value:expr),* $(,)?) => { $( assert_eq!(written(&$value), serde_json::to_string(&$value).unwrap()); )* };
        }
        same!(
            BTreeMap::from([(1u8, "a"), (2, "b")]),
            BTreeMap::from([(-1i64, 1)]),
            BTreeMap::from([(true, 1)]),
            BTreeMap::from([('"', 1)]),
            BTreeMap::from([(Some("x"), 1)]),
            Floats(&[(0.1, 1), (1e30, 2)]),
            BTreeMap::<String, u8>::new(),
            Vec::<u8>::new(),
            f64::NAN,
            f32::INFINITY,
            1.0f32,
            0.1f32,
            1e300,
            -0.0,
            format_args!("{}\n{}", "a\"b", 1),
            std::net::Ipv4Addr::LOCALHOST,
            Some(None::<u8>),
        );
    }

    #[test]
    fn refuses_keys_that_are_not_scalars() {
        assert!(write_json(&mut Vec::new(), &BTreeMap::from([((1, 2), 3)])).is_err());
    }

    proptest! {
        #[test]
        fn writes_strings_like_serde_json(text in "[\\x00-\\x7f]{0,200}|.{0,200}") {
            prop_assert_eq!(written(&text), serde_json::to_string(&text).unwrap());
        }
    }
}
