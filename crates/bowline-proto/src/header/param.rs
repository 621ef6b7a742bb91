//! Encodes annotated tool arguments as headers and compares received headers with the arguments.

use std::fmt;

use serde_json::{Number, Value};

use super::schema::{ParamHeaderError, read_schema};
use super::{HeaderMismatch, Mismatch, decode_value, encode_value, single_value};

/// The largest integer that JavaScript represents exactly, 2^53 - 1.
const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;

/// The headers that a tool's input schema requires.
///
/// ```
/// use bowline_proto::header::ParamHeaders;
/// use serde_json::json;
///
/// let headers = ParamHeaders::from_schema(&json!({
///     "type": "object",
///     "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
/// }))?;
/// let rendered = headers.render(&json!({ "region": "us-west1" }))?;
/// assert_eq!(rendered, [("Mcp-Param-Region".to_owned(), "us-west1".to_owned())]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParamHeaders {
    headers: Vec<ParamHeader>,
}

/// One header that repeats one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamHeader {
    name: String,
    path: Vec<String>,
    kind: ParamType,
}

impl ParamHeader {
    pub(super) fn new(name: String, path: Vec<String>, kind: ParamType) -> Self {
        Self { name, path, kind }
    }

    /// Returns the full name of the header, such as `Mcp-Param-Region`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the path of property names from the arguments to the value.
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// Returns the type of the value in the schema.
    pub fn kind(&self) -> ParamType {
        self.kind
    }

    /// Returns the argument, unless it is absent or null.
    fn value<'a>(&self, arguments: &'a Value) -> Option<&'a Value> {
        let value = self.path.iter().try_fold(arguments, |value, name| value.get(name))?;
        (!value.is_null()).then_some(value)
    }
}

/// The types of arguments that headers can contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParamType {
    /// A string.
    String,
    /// An integer within ±(2^53 - 1).
    Integer,
    /// `true` or `false`.
    Boolean,
}

impl ParamHeaders {
    /// Reads the `x-mcp-header` annotations of an input schema.
    ///
    /// An annotation names a header by a token, unlike all others of the schema without regard to case. It
    /// stands on a string, integer or boolean property (that may also be null) which only `properties` lead to.
    /// One annotation that breaks these rules makes the whole schema invalid, and a client over HTTP then drops
    /// the tool.
    pub fn from_schema(schema: &Value) -> Result<Self, ParamHeaderError> {
        read_schema(schema).map(|headers| Self { headers })
    }

    /// Returns the headers, one for each annotation.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ParamHeader> {
        self.headers.iter()
    }

    /// Returns whether the schema has no annotation.
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    /// Returns the names and values of the headers for a call with these arguments. Absent and null arguments have none.
    ///
    /// The value decides how it is written, not the schema: that arguments fit their schema is checked
    /// elsewhere. Fails for objects, arrays, fractions and integers beyond ±(2^53 - 1).
    pub fn render(&self, arguments: &Value) -> Result<Vec<(String, String)>, ParamValueError> {
        let mut rendered = Vec::new();
        for header in &self.headers {
            let Some(value) = header.value(arguments) else { continue };
            let text = match Scalar::new(value, header)? {
                Scalar::Text(text) => encode_value(text).into_owned(),
                Scalar::Integer(integer) => integer.to_string(),
                Scalar::Boolean(boolean) => boolean.to_string(),
            };
            rendered.push((header.name.clone(), text));
        }
        Ok(rendered)
    }

    /// Checks the headers of a received call against its arguments.
    ///
    /// `values` gives, for the name of a header in any case, the values of all lines with that name. Each
    /// argument with a value needs its header exactly once, the others must have none. Integers are compared
    /// by value, so that `42.0` equals `42`. Headers that the schema does not ask for are not looked at.
    pub fn check<'h, V>(&self, arguments: &Value, values: impl Fn(&str) -> V) -> Result<(), HeaderMismatch>
    where
        V: IntoIterator<Item = &'h [u8]>,
    {
        self.headers.iter().try_for_each(|header| {
            let received = single_value(&header.name, values(&header.name))?;
            check_one(header, header.value(arguments), received)
        })
    }
}

fn check_one(
    header: &ParamHeader,
    argument: Option<&Value>,
    received: Option<&[u8]>,
) -> Result<(), HeaderMismatch> {
    let mismatch = |kind| HeaderMismatch::new(&header.name, kind);
    let (argument, received) = match (argument, received) {
        (None, None) => return Ok(()),
        (None, Some(_)) => return Err(mismatch(Mismatch::NothingInBody)),
        (Some(_), None) => return Err(mismatch(Mismatch::Missing)),
        (Some(argument), Some(received)) => (argument, received),
    };
    let scalar = Scalar::new(argument, header).map_err(|error| mismatch(Mismatch::Unfit(error)))?;
    let text = decode_value(received).map_err(|error| mismatch(Mismatch::Invalid(error)))?;
    let (same, body) = match scalar {
        Scalar::Text(expected) => (text == expected, expected.to_owned()),
        Scalar::Integer(expected) => (parse_integer(&text) == Some(expected), expected.to_string()),
        Scalar::Boolean(expected) => (text == expected.to_string(), expected.to_string()),
    };
    if same { Ok(()) } else { Err(HeaderMismatch::differs(&header.name, &text, &body)) }
}

/// An argument that fits into a header.
enum Scalar<'a> {
    Text(&'a str),
    Integer(i64),
    Boolean(bool),
}

impl<'a> Scalar<'a> {
    fn new(value: &'a Value, header: &ParamHeader) -> Result<Self, ParamValueError> {
        let scalar = match value {
            Value::String(text) => Some(Self::Text(text)),
            Value::Bool(boolean) => Some(Self::Boolean(*boolean)),
            Value::Number(number) => safe_integer(number).map(Self::Integer),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        scalar.ok_or_else(|| ParamValueError { argument: header.path.join(".") })
    }
}

/// Returns the integer value of a JSON number in any notation.
fn safe_integer(number: &Number) -> Option<i64> {
    let integer = match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => integer,
        // Formatting prints every digit of a float without fraction.
        (None, Some(float)) if float.fract() == 0.0 => format!("{float:.0}").parse().ok()?,
        _ => return None,
    };
    (-MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER).contains(&integer).then_some(integer)
}

/// Reads an integer in the notation of JSON, with a fraction of zeros or none.
fn parse_integer(text: &str) -> Option<i64> {
    let (integer, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = integer.strip_prefix('-').unwrap_or(integer);
    let canonical = digits == "0" || !digits.starts_with('0');
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let no_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte == b'0');
    if canonical && all_digits && no_fraction { integer.parse().ok() } else { None }
}

/// An argument cannot be represented in its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamValueError {
    argument: String,
}

impl fmt::Display for ParamValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let argument = &self.argument;
        write!(f, "expected argument `{argument}` to be a string, a boolean or an integer of at most 53 bits")
    }
}

impl std::error::Error for ParamValueError {}

#[cfg(test)]
mod tests {
    use super::super::PARAM_PREFIX;
    use super::*;
    use expect_test::expect;
    use proptest::prelude::*;
    use serde_json::json;

    fn sample() -> ParamHeaders {
        ParamHeaders::from_schema(&json!({ "properties": {
            "s": { "type": "string", "x-mcp-header": "S" },
            "i": { "type": "integer", "x-mcp-header": "I" },
            "o": { "properties": { "b": { "type": "boolean", "x-mcp-header": "B" } } },
        } }))
        .unwrap()
    }

    #[test]
    fn arguments_become_headers() {
        for (arguments, expected) in [
            (json!({ "s": "us west", "i": 42, "o": { "b": true }, "z": 1 }), "B=true I=42 S=us west"),
            (json!({ "s": "é", "i": -7.0, "o": { "b": false } }), "B=false I=-7 S==?base64?w6k=?="),
            (json!({ "s": "", "i": 9_007_199_254_740_991_i64 }), "I=9007199254740991 S="),
            (json!({ "i": -0.0 }), "I=0"),
            (json!({ "s": null, "o": null }), ""),
            (json!({ "o": [true] }), ""),
            (json!(null), ""),
        ] {
            let rendered = sample().render(&arguments).unwrap();
            let mut rendered: Vec<String> = rendered
                .iter()
                .map(|(name, value)| format!("{}={value}", name.strip_prefix(PARAM_PREFIX).unwrap()))
                .collect();
            rendered.sort();
            assert_eq!(rendered.join(" "), expected);
        }
    }

    #[test]
    fn arguments_that_fit_no_header_are_refused() {
        for value in [
            json!([]),
            json!({}),
            json!(1.5),
            json!(1e300),
            json!(9_007_199_254_740_992_i64),
            json!(-9_007_199_254_740_992_i64),
            json!(9_007_199_254_740_992.0),
            json!(u64::MAX),
        ] {
            let arguments = json!({ "i": value });
            assert!(sample().render(&arguments).is_err(), "{value}");
            assert!(check(&arguments, &[("I", "1")]).is_err(), "{value}");
        }
    }

    fn check(arguments: &Value, headers: &[(&str, &str)]) -> Result<(), String> {
        let values = |name: &str| -> Vec<&[u8]> {
            let is_named = |known: &str| format!("mcp-param-{known}").eq_ignore_ascii_case(name);
            headers.iter().filter(|(known, _)| is_named(known)).map(|(_, value)| value.as_bytes()).collect()
        };
        sample().check(arguments, values).map_err(|error| error.to_string())
    }

    #[test]
    fn headers_that_match_the_body_pass() {
        // proves: HDR-33
        for (arguments, headers) in [
            (json!({}), &[][..]),
            (json!({ "s": null }), &[]),
            (json!({ "s": "a" }), &[("s", "a"), ("Other", "\u{1}")]),
            (json!({ "s": "Hello" }), &[("S", "=?base64?SGVsbG8=?=")]),
            (json!({ "s": "" }), &[("S", "")]),
            (json!({ "i": 42 }), &[("I", "42.0")]),
            (json!({ "i": 42.0 }), &[("I", "42")]),
            (json!({ "i": 0 }), &[("I", "-0")]),
            (json!({ "i": "42" }), &[("I", "42")]),
            (json!({ "o": { "b": false } }), &[("B", "false")]),
        ] {
            assert_eq!(check(&arguments, headers), Ok(()), "{arguments}");
        }
    }

    #[test]
    fn headers_that_differ_from_the_body_are_refused() {
        for (arguments, headers) in [
            (json!({ "s": "a" }), &[][..]),
            (json!({ "s": "a" }), &[("S", "A")]),
            (json!({ "s": "a" }), &[("S", "a"), ("s", "a")]),
            (json!({ "s": "Hello" }), &[("S", "=?base64?SGVsbG8?=")]),
            (json!({ "s": "a\u{1}" }), &[("S", "a\u{1}")]),
            (json!({ "s": null }), &[("S", "null")]),
            (json!({}), &[("S", "")]),
            (json!({ "i": 42 }), &[("I", "43")]),
            (json!({ "i": 42 }), &[("I", "")]),
            (json!({ "i": 42 }), &[("I", "042")]),
            (json!({ "i": 42 }), &[("I", "+42")]),
            (json!({ "i": 42 }), &[("I", "42.")]),
            (json!({ "i": 42 }), &[("I", "42.01")]),
            (json!({ "i": 42 }), &[("I", "4.2e1")]),
            (json!({ "i": "42" }), &[("I", "42.0")]),
            (json!({ "o": { "b": true } }), &[("B", "True")]),
            (json!({ "o": { "b": true } }), &[("B", "1")]),
        ] {
            assert!(check(&arguments, headers).is_err(), "{arguments} {headers:?}");
        }
    }

    #[test]
    fn messages_name_the_header_and_both_values() {
        fn message(arguments: &Value, headers: &[(&str, &str)]) -> String {
            check(arguments, headers).unwrap_err()
        }
        expect![[r#"header mismatch: expected header `Mcp-Param-I` to be "42" as in the body, got "43""#]]
            .assert_eq(&message(&json!({ "i": 42 }), &[("I", "43")]));
        expect!["header mismatch: expected no header `Mcp-Param-S`, since the body has no value for it"]
            .assert_eq(&message(&json!({}), &[("S", "x")]));
        expect!["header mismatch: header `Mcp-Param-I`: expected argument `i` to be a string, a boolean or an integer of at most 53 bits"]
            .assert_eq(&message(&json!({ "i": 1.5 }), &[("I", "1.5")]));
    }

    proptest! {
        #[test]
        fn rendered_headers_pass_the_check(
            text in prop::option::of(any::<String>()),
            integer in prop::option::of(-MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER),
            boolean in prop::option::of(any::<bool>()),
        ) {
            let arguments = json!({ "s": text, "i": integer, "o": { "b": boolean } });
            let rendered = sample().render(&arguments).unwrap();
            let values = |name: &str| -> Vec<&[u8]> {
                rendered.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_bytes()).collect()
            };
            prop_assert_eq!(sample().check(&arguments, values), Ok(()));

            // Whatever else is said, at least one header differs.
            let other = json!({ "s": format!("{}x", text.unwrap_or_default()), "i": integer, "o": { "b": boolean } });
            prop_assert!(sample().check(&other, values).is_err());
        }
    }
}
