//! Reads JSON objects in which no name occurs twice, at any depth.
//!
//! RFC 7515, 7517 and 7519 let a parser refuse duplicate names or take the last one. Two parsers that choose differently read
//! two different tokens, so duplicates are refused.

use super::error::{JoseError, Kind, shown};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Reads an object. `part` names the text in errors.
pub(crate) fn object(part: &'static str, text: &[u8]) -> Result<Map<String, Value>, JoseError> {
    let not_object = |reason: &str| JoseError::from(Kind::NotObject(part, reason.to_owned()));
    // `serde_json` does not check the encoding of members that it skips.
    let text = std::str::from_utf8(text).map_err(|_| not_object("it is not UTF-8"))?;
    match serde_json::from_str(text) {
        Ok(Unique(Value::Object(members))) => Ok(members),
        Ok(_) => Err(not_object("it is another value")),
        Err(error) => Err(not_object(&error.to_string())),
    }
}

/// A value without duplicate names.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Self)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(Unique(element)) = elements.next_element()? {
            array.push(element);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom(format_args!("`{}` occurs twice", shown(&name))));
            }
            let Unique(value) = members.next_value()?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &[u8]) -> String {
        object("header", text).unwrap_err().to_string()
    }

    #[test]
    fn values_of_every_kind_are_read() {
        let text = r#"{"a":[null,true,-1,2,1.5,"x",{"a":1}],"b":18446744073709551615}"#;
        let read = object("header", text.as_bytes()).unwrap();
        assert_eq!(Value::Object(read), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn a_name_that_occurs_twice_is_refused_at_any_depth() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"x":{"a":1,"a":2}}"#,
            r#"{"x":[{"a":1,"a":2}]}"#,
        ] {
            assert!(refusal(text.as_bytes()).contains("`a` occurs twice"), "{text}");
        }
    }

    #[test]
    fn only_one_whole_object_is_read() {
        for text in
            ["", "[]", "null", "\"{}\"", "{}{}", "{} x", "\u{feff}{}", "{\"a\":1", "{'a':1}", "{\"a\":01}"]
        {
            object("header", text.as_bytes()).unwrap_err();
        }
        assert!(refusal(b"{\"a\":\"\xff\"}").contains("not UTF-8"));
    }

    #[test]
    fn nesting_is_limited() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let text = format!("{{\"x\":{}1{}}}", open.repeat(100_000), close.repeat(100_000));
            assert!(refusal(text.as_bytes()).contains("recursion limit"));
        }
    }
}
