//! Learns from `serde_json` the names by which it recognizes its raw values and numbers of arbitrary precision.
//!
//! These names are not part of `serde_json`'s API, so they are not written down here. Serializing one such value with a
//! serializer that only remembers the name yields the one in use, whichever that is in the linked release.

use serde::{
    Serialize,
    ser::{Error, Impossible, Serializer},
};
use serde_json::value::to_raw_value;
use std::{fmt, sync::OnceLock};

/// Returns the name of a raw value: of the struct it is written as, of that struct's field, and of the newtype it is
/// read from.
pub(crate) fn raw_value() -> &'static str {
    static NAME: OnceLock<&str> = OnceLock::new();
    // Not a possible struct name; nothing matches it if raw values have no name.
    NAME.get_or_init(|| raw_struct_name().unwrap_or("\0raw value"))
}

/// Returns the name of the struct that a number is written as, if some crate switched on arbitrary precision.
fn number() -> &'static str {
    static NAME: OnceLock<&str> = OnceLock::new();
    NAME.get_or_init(|| struct_name(&serde_json::Number::from(0)).unwrap_or("\0number"))
}

/// Returns whether a struct of this name contains a single string that is JSON already.
#[inline]
pub(crate) fn is_verbatim(name: &str) -> bool {
    name == raw_value() || name == number()
}

fn raw_struct_name() -> Option<&'static str> {
    struct_name(&to_raw_value(&()).ok()?)
}

/// Returns the name of the struct that `value` is serialized as.
fn struct_name(value: &impl Serialize) -> Option<&'static str> {
    match value.serialize(NameOnly) {
        Ok(()) | Err(Name(None)) => None,
        Err(Name(name)) => name,
    }
}

/// Fails with the name of the struct that is serialized.
struct NameOnly;

#[derive(Debug)]
struct Name(Option<&'static str>);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "serialized as {:?}", self.0)
    }
}

impl std::error::Error for Name {}

impl Error for Name {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(None)
    }
}

macro_rules! nameless {
    ($($method:ident($($type:ty),*) -> $Ok:ty;)*) => { $(
        fn $method(self, $(_: $type),*) -> Result<$Ok, Name> {
            Err(Name(None))
        }
    )* };
}

type No = Impossible<(), Name>;

impl Serializer for NameOnly {
    type Ok = ();
    type Error = Name;
    type SerializeSeq = No;
    type SerializeTuple = No;
    type SerializeTupleStruct = No;
    type SerializeTupleVariant = No;
    type SerializeMap = No;
    type SerializeStruct = No;
    type SerializeStructVariant = No;

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<No, Name> {
        Err(Name(Some(name)))
    }

    nameless! {
        serialize_bool(bool) -> ();
        serialize_i8(i8) -> ();
        serialize_i16(i16) -> ();
        serialize_i32(i32) -> ();
        serialize_i64(i64) -> ();
        serialize_u8(u8) -> ();
        serialize_u16(u16) -> ();
        serialize_u32(u32) -> ();
        serialize_u64(u64) -> ();
        serialize_f32(f32) -> ();
        serialize_f64(f64) -> ();
        serialize_char(char) -> ();
        serialize_str(&str) -> ();
        serialize_bytes(&[u8]) -> ();
        serialize_none() -> ();
        serialize_unit() -> ();
        serialize_unit_struct(&'static str) -> ();
        serialize_unit_variant(&'static str, u32, &'static str) -> ();
        serialize_seq(Option<usize>) -> No;
        serialize_tuple(usize) -> No;
        serialize_tuple_struct(&'static str, usize) -> No;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> No;
        serialize_map(Option<usize>) -> No;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> No;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<(), Name> {
        Err(Name(None))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, _: &T) -> Result<(), Name> {
        Err(Name(None))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Name> {
        Err(Name(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_values_use_a_name_that_no_type_has() {
        assert!(raw_value().contains("serde_json"), "{}", raw_value());
        assert!(is_verbatim(raw_value()));
        assert!(!is_verbatim("Point"));
    }
}
