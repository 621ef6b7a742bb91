//! Decodes string arguments: prompts and URI templates carry only text, handlers want types.

use serde::{
    de::{
        DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor,
        value::StrDeserializer,
    },
    forward_to_deserialize_any,
};
use serde_json::Error;

/// How many characters of a wrong value an error shows.
const MAX_SHOWN: usize = 100;

/// Decodes names and values into `A`. A value becomes a number or a boolean where `A` wants one.
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
            self.value.take().ok_or_else(|| serde::de::Error::custom("a value comes before its name"))?;
        let text = Text(value);
        seed.deserialize(text).map_err(|error| serde::de::Error::custom(format!("`{name}`: {error}")))
    }
}

#[derive(Clone, Copy)]
struct Text<'a>(&'a str);

impl Text<'_> {
    fn is_not(self, expected: &str) -> Error {
        let shown: String = self.0.chars().take(MAX_SHOWN).collect();
        let more = if shown.len() < self.0.len() { "…" } else { "" };
        serde::de::Error::custom(format!("expected {expected}, got `{shown}{more}`"))
    }
}

/// Numbers and booleans are written as in JSON; the target type decides which one is expected.
macro_rules! parsed {
    ($($method:ident $expected:literal)*) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let mut json = serde_json::Deserializer::from_str(self.0.trim());
            let value = json.$method(visitor).map_err(|_| self.is_not($expected))?;
            // `1; drop table` is not a number, although it starts like one.
            json.end().map_err(|_| self.is_not($expected))?;
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
        deserialize_bool "`true` or `false`"
        deserialize_i8 "an integer (i8)"
        deserialize_i16 "an integer (i16)"
        deserialize_i32 "an integer (i32)"
        deserialize_i64 "an integer (i64)"
        deserialize_i128 "an integer (i128)"
        deserialize_u8 "an integer (u8)"
        deserialize_u16 "an integer (u16)"
        deserialize_u32 "an integer (u32)"
        deserialize_u64 "an integer (u64)"
        deserialize_u128 "an integer (u128)"
        deserialize_f32 "a number (f32)"
        deserialize_f64 "a number (f64)"
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
    fn text_is_parsed_into_the_type_of_the_handler() {
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
    fn a_value_of_the_wrong_type_is_reported_with_the_expected_type() {
        for count in ["many", "1 and more", "1 2", "", "-1"] {
            let given = pairs(&[("text", "x"), ("count", count)]);
            let error = decode::<All>(&given).unwrap_err().to_string();
            assert_eq!(error, format!("`count`: expected an integer (u32), got `{count}`"));
        }
    }
}
