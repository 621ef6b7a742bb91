//! The claims of a JSON Web Token (RFC 7519, 4).

use super::{
    error::{JoseError, Kind},
    json,
};
use serde_json::{Map, Value};
use std::time::Duration;

/// The claims of a token.
#[derive(Clone, Debug, PartialEq)]
pub struct Claims(Map<String, Value>);

impl Claims {
    /// Reads the payload of a token.
    pub fn parse(payload: &[u8]) -> Result<Self, JoseError> {
        json::object("payload", payload).map(Self)
    }

    /// Returns a claim of any type.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Returns a claim that is text. Another type is an error, also `null`.
    pub fn text(&self, name: &str) -> Result<Option<&str>, JoseError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Kind::WrongType(name.to_owned()).into()),
        }
    }

    /// Returns a claim that is a time, as the duration since 1970 (`NumericDate`, RFC 7519, 2). Fractions are allowed.
    pub fn time(&self, name: &str) -> Result<Option<Duration>, JoseError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let time = match value.as_u64() {
            Some(seconds) => Some(Duration::from_secs(seconds)),
            None => value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        };
        time.map(Some).ok_or_else(|| Kind::WrongType(name.to_owned()).into())
    }

    /// Returns whether `aud`, a string or an array of strings, contains a value for which `accepted` is true.
    pub fn has_audience(&self, accepted: impl Fn(&str) -> bool) -> Result<bool, JoseError> {
        match self.get("aud") {
            None => Ok(false),
            Some(Value::String(audience)) => Ok(accepted(audience)),
            Some(Value::Array(audiences)) if audiences.iter().all(Value::is_string) => {
                Ok(audiences.iter().filter_map(Value::as_str).any(accepted))
            }
            Some(_) => Err(Kind::WrongType("aud".to_owned()).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(value: &str) -> Claims {
        Claims::parse(format!(r#"{{"it":{value},"aud":{value}}}"#).as_bytes()).unwrap()
    }

    #[test]
    fn a_time_is_a_number_from_1970_on() {
        let seconds = |value| claims(value).time("it").map(|time| time.map(|time| time.as_secs_f64()));
        assert_eq!(seconds("1300819380"), Ok(Some(1_300_819_380.0)));
        assert_eq!(seconds("1300819380.5"), Ok(Some(1_300_819_380.5)));
        assert_eq!(seconds("1.3e9"), Ok(Some(1.3e9)));
        assert_eq!(seconds("0"), Ok(Some(0.0)));
        for value in ["-1", "1e300", "\"1300819380\"", "null", "true", "[1]", "{}"] {
            assert_eq!(seconds(value).unwrap_err().to_string(), "`it` has the wrong type", "{value}");
        }
        assert_eq!(claims("1").time("other"), Ok(None));
    }

    #[test]
    fn an_audience_is_compared_whole() {
        let has = |value| claims(value).has_audience(|audience| audience == "https://a.example/mcp");
        assert_eq!(has(r#""https://a.example/mcp""#), Ok(true));
        assert_eq!(has(r#"["x","https://a.example/mcp"]"#), Ok(true));
        for value in [r#""https://a.example/mcp/""#, r#""https://a.example""#, "[]", r#""""#] {
            assert_eq!(has(value), Ok(false), "{value}");
        }
        for value in ["1", "null", "{}", r#"["https://a.example/mcp",1]"#, r#"[["https://a.example/mcp"]]"#] {
            has(value).unwrap_err();
        }
        assert_eq!(Claims::parse(b"{}").unwrap().has_audience(|_| true), Ok(false));
    }

    #[test]
    fn text_is_text() {
        assert_eq!(claims(r#""x""#).text("it"), Ok(Some("x")));
        assert_eq!(claims("1").text("other"), Ok(None));
        for value in ["1", "null", "{}", "[]"] {
            claims(value).text("it").unwrap_err();
        }
    }
}
