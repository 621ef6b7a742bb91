//! Decoding of string arguments: prompts and URI templates bring only text, handlers want types.

use serde::{
    de::{
        DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor,
        value::StrDeserializer,
    },
    forward_to_deserialize_any,
};
use serde_json::Error;

/// Decodes names and values into `A`. A value turns into a number or a boolean where `A` wants one.
pub(crate) fn decode<A: DeserializeOwned>(pairs: &[(String, String)]) -> Result<A, Error> {
    A::deserialize(Pairs { rest: pairs, value: None })
}

struct Pairs<'a> {
    rest: &'a [(String, String)],
    value: Option<&'a (String, String)>,
}

impl<'de> Deserializer<'de> for Pairs<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for Pairs<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((first, rest)) = self.rest.split_first() else { return Ok(None) };
        (self.rest, self.value) = (rest, Some(first));
        let key: StrDeserializer<'_, Error> = first.0.as_str().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let (name, value) =
            self.value.take().ok_or_else(|| serde::de::Error::custom("a value without its name"))?;
        let text = Text(value);
        seed.deserialize(text).map_err(|error| serde::de::Error::custom(format!("`{name}`: {error}")))
    }
}

#[derive(Clone, Copy)]
struct Text<'a>(&'a str);

/// Numbers and booleans are written in JSON's way; the target type says which is wanted.
macro_rules! parsed {
    ($($method:ident)*) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let mut json = serde_json::Deserializer::from_str(self.0.trim());
            let value = json.$method(visitor)?;
            // `1; drop table` is no number, although it begins like one.
            json.end()?;
            Ok(value)
        }
    )* };
}

impl<'de> Deserializer<'de> for Text<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.0)
    }

    parsed! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    enum Color {
        #[serde(rename = "red")]
        Red,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct All {
        text: String,
        count: u32,
        ratio: f64,
        flag: bool,
        color: Color,
        missing: Option<i64>,
        given: Option<i64>,
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn text_takes_the_type_the_handler_wants() {
        let given = pairs(&[
            ("text", "7"),
            ("count", "7"),
            ("ratio", "0.5"),
            ("flag", "true"),
            ("color", "red"),
            ("given", "-1"),
        ]);
        let all: All = decode(&given).unwrap();
        let expected = All {
            text: "7".into(),
            count: 7,
            ratio: 0.5,
            flag: true,
            color: Color::Red,
            missing: None,
            given: Some(-1),
        };
        assert_eq!(all, expected);
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_named() {
        for count in ["many", "1 and more", "1 2", "", "-1"] {
            let given = pairs(&[("text", "x"), ("count", count)]);
            let error = decode::<All>(&given).unwrap_err().to_string();
            assert!(error.starts_with("`count`: "), "{error}");
        }
    }
}
