//! Encodes the `Mcp-*` headers of 2026-07-28 and compares them with the body.
//!
//! Revision 2026-07-28 repeats the method, the name and annotated tool arguments in HTTP headers, so that proxies
//! can route requests without reading bodies. A client encodes values with
//! [`encode_value`]; a server rejects a request whose headers differ from its body with [`check_plain`],
//! [`check_encoded`] and [`ParamHeaders::check`]. Each failure is the `HeaderMismatch` error, -32020.

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

mod param;
mod schema;

pub use param::{ParamHeader, ParamHeaders, ParamType, ParamValueError};
pub use schema::ParamHeaderError;

/// The header that repeats the protocol version of the request.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The header that repeats the method of the request.
pub const METHOD: &str = "mcp-method";
/// The header that repeats the name, URI or task id that the request is about.
pub const NAME: &str = "mcp-name";
/// Prefix of the headers that repeat tool arguments.
pub const PARAM_PREFIX: &str = "Mcp-Param-";

const SENTINEL_START: &str = "=?base64?";
const SENTINEL_END: &str = "?=";

/// Encodes a text as a header value: unchanged if possible, otherwise as `=?base64?…?=`.
///
/// Base64 is needed for anything but printable ASCII, for blanks at either end, and for a text that looks
/// encoded already.
///
/// ```
/// use bowline_proto::header::encode_value;
///
/// assert_eq!(encode_value("us west 1"), "us west 1");
/// assert_eq!(encode_value(" padded "), "=?base64?IHBhZGRlZCA=?=");
/// ```
pub fn encode_value(text: &str) -> Cow<'_, str> {
    let printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let padded = text.starts_with(' ') || text.ends_with(' ');
    let looks_encoded = text.starts_with(SENTINEL_START) && text.ends_with(SENTINEL_END);
    if printable && !padded && !looks_encoded {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{SENTINEL_START}{}{SENTINEL_END}", STANDARD.encode(text)))
}

/// Decodes a header value. Blanks around it are ignored.
///
/// Fails for octets that are invalid in headers, for Base64 that is not in canonical padded form, and for
/// encoded octets that are not UTF-8. The markers are matched exactly; `=?BASE64?…?=` is a plain text.
pub fn decode_value(value: &[u8]) -> Result<Cow<'_, str>, HeaderValueError> {
    let text = plain_value(value)?;
    let encoded = text.strip_prefix(SENTINEL_START).and_then(|rest| rest.strip_suffix(SENTINEL_END));
    let Some(encoded) = encoded else {
        return Ok(Cow::Borrowed(text));
    };
    let bytes = STANDARD.decode(encoded).map_err(|_| HeaderValueError(ValueProblem::Base64))?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| HeaderValueError(ValueProblem::Utf8))
}

fn plain_value(value: &[u8]) -> Result<&str, HeaderValueError> {
    let allowed = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
    // Only ASCII whitespace may be at the ends.
    match str::from_utf8(value.trim_ascii()) {
        Ok(text) if value.iter().all(allowed) => Ok(text),
        _ => Err(HeaderValueError(ValueProblem::Character)),
    }
}

/// Why a header value cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderValueError(ValueProblem);

#[derive(Debug, Clone, PartialEq, Eq)]
enum ValueProblem {
    Character,
    Base64,
    Utf8,
}

impl fmt::Display for HeaderValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            ValueProblem::Character => "expected printable ASCII characters",
            ValueProblem::Base64 => "expected padded Base64 between the markers",
            ValueProblem::Utf8 => "the Base64 value is not valid UTF-8",
        })
    }
}

impl std::error::Error for HeaderValueError {}

/// A header does not match the body. The request fails with -32020.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderMismatch {
    header: String,
    kind: Mismatch,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Mismatch {
    Missing,
    Repeated,
    Invalid(HeaderValueError),
    Differs { header: String, body: String },
    NothingInBody,
    Unfit(ParamValueError),
}

impl HeaderMismatch {
    fn new(header: &str, kind: Mismatch) -> Self {
        Self { header: header.to_owned(), kind }
    }

    fn differs(name: &str, header: &str, body: &str) -> Self {
        Self::new(name, Mismatch::Differs { header: clip(header), body: clip(body) })
    }

    /// Returns the name of the header.
    pub fn header(&self) -> &str {
        &self.header
    }

    /// Returns whether the header is missing.
    pub fn is_missing(&self) -> bool {
        self.kind == Mismatch::Missing
    }
}

impl fmt::Display for HeaderMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "header mismatch: ")?;
        let name = &self.header;
        match &self.kind {
            Mismatch::Missing => write!(f, "missing header `{name}`"),
            Mismatch::Repeated => write!(f, "duplicate header `{name}`"),
            Mismatch::Invalid(error) => write!(f, "header `{name}`: {error}"),
            Mismatch::Differs { header, body } => {
                write!(f, "expected header `{name}` to be {body:?} as in the body, got {header:?}")
            }
            Mismatch::NothingInBody => {
                write!(f, "expected no header `{name}`, since the body has no value for it")
            }
            Mismatch::Unfit(error) => write!(f, "header `{name}`: {error}"),
        }
    }
}

impl std::error::Error for HeaderMismatch {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            Mismatch::Invalid(error) => Some(error),
            Mismatch::Unfit(error) => Some(error),
            Mismatch::Missing | Mismatch::Repeated | Mismatch::Differs { .. } | Mismatch::NothingInBody => {
                None
            }
        }
    }
}

/// Returns the start of a text, for messages.
fn clip(text: &str) -> String {
    const SHOWN: usize = 64;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Checks a header that is never encoded (method, protocol version) against the body.
///
/// `values` are the values of all lines with this name; exactly one is right.
pub fn check_plain<'h>(
    header: &str,
    values: impl IntoIterator<Item = &'h [u8]>,
    body: &str,
) -> Result<(), HeaderMismatch> {
    check_value(header, values, body, |value| plain_value(value).map(Cow::Borrowed))
}

/// Checks a header that may be encoded (the name) against the body.
///
/// `values` are the values of all lines with this name; exactly one is right.
pub fn check_encoded<'h>(
    header: &str,
    values: impl IntoIterator<Item = &'h [u8]>,
    body: &str,
) -> Result<(), HeaderMismatch> {
    check_value(header, values, body, decode_value)
}

fn check_value<'h>(
    header: &str,
    values: impl IntoIterator<Item = &'h [u8]>,
    body: &str,
    decode: impl FnOnce(&'h [u8]) -> Result<Cow<'h, str>, HeaderValueError>,
) -> Result<(), HeaderMismatch> {
    let value =
        single_value(header, values)?.ok_or_else(|| HeaderMismatch::new(header, Mismatch::Missing))?;
    let text = decode(value).map_err(|error| HeaderMismatch::new(header, Mismatch::Invalid(error)))?;
    if text == body { Ok(()) } else { Err(HeaderMismatch::differs(header, &text, body)) }
}

/// Returns the value of a header that must not be repeated.
fn single_value<'h>(
    header: &str,
    values: impl IntoIterator<Item = &'h [u8]>,
) -> Result<Option<&'h [u8]>, HeaderMismatch> {
    let mut values = values.into_iter();
    let value = values.next();
    match values.next() {
        Some(_) => Err(HeaderMismatch::new(header, Mismatch::Repeated)),
        None => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    #[test]
    fn values_are_encoded_only_where_needed() {
        for (text, expected) in [
            ("us-west1", "us-west1"),
            ("", ""),
            ("us west  1", "us west  1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("a\tb", "=?base64?YQli?="),
            ("a\u{7f}", "=?base64?YX8=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
            ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
            ("=?BASE64?x?=", "=?BASE64?x?="),
            ("SGVsbG8=", "SGVsbG8="),
        ] {
            assert_eq!(encode_value(text), expected, "{text:?}");
            assert_eq!(decode_value(expected.as_bytes()).unwrap(), text, "{text:?}");
        }
    }

    #[test]
    fn spaces_around_a_value_are_ignored() {
        // proves: HDR-36
        assert_eq!(decode_value(b" \ta b \t").unwrap(), "a b");
        assert_eq!(decode_value(b" =?base64?SGVsbG8=?= ").unwrap(), "Hello");
        assert_eq!(decode_value(b"=?base64??=").unwrap(), "");
        assert_eq!(decode_value(b"a\tb").unwrap(), "a\tb");
    }

    #[test]
    fn unreadable_values_are_refused() {
        for (value, problem) in [
            (&b"a\x01b"[..], ValueProblem::Character),
            (b"a\rb", ValueProblem::Character),
            (b"a\x7f", ValueProblem::Character),
            (b"caf\xC3\xA9", ValueProblem::Character),
            (b"\xFF", ValueProblem::Character),
            (b"=?base64?SGVsbG8?=", ValueProblem::Base64),
            (b"=?base64?SGVs!!!bG8=?=", ValueProblem::Base64),
            (b"=?base64?SGVsbG9=?=", ValueProblem::Base64),
            (b"=?base64?-_-_?=", ValueProblem::Base64),
            (b"=?base64? SGVsbG8=?=", ValueProblem::Base64),
            (b"=?base64?/w==?=", ValueProblem::Utf8),
        ] {
            assert_eq!(decode_value(value), Err(HeaderValueError(problem)), "{value:?}");
        }
    }

    fn check(outcome: Result<(), HeaderMismatch>, expected: &Expect) {
        let text = outcome.map_or_else(|error| error.to_string(), |()| "ok".to_owned());
        expected.assert_eq(&text);
    }

    #[test]
    fn plain_headers_equal_the_body_letter_by_letter() {
        let plain = |values: &[&'static str], body| {
            check_plain(METHOD, values.iter().map(|value| value.as_bytes()), body)
        };
        check(plain(&["tools/call"], "tools/call"), &expect!["ok"]);
        check(plain(&[" tools/call "], "tools/call"), &expect!["ok"]);
        check(plain(&[], "tools/call"), &expect!["header mismatch: missing header `mcp-method`"]);
        check(
            plain(&["tools/call", "tools/call"], "tools/call"),
            &expect!["header mismatch: duplicate header `mcp-method`"],
        );
        check(
            plain(&["TOOLS/CALL"], "tools/call"),
            &expect![[
                r#"header mismatch: expected header `mcp-method` to be "tools/call" as in the body, got "TOOLS/CALL""#
            ]],
        );
        check(
            plain(&["=?base64?cGluZw==?="], "ping"),
            &expect![[
                r#"header mismatch: expected header `mcp-method` to be "ping" as in the body, got "=?base64?cGluZw==?=""#
            ]],
        );
        check(
            plain(&["p\u{1}"], "p\u{1}"),
            &expect!["header mismatch: header `mcp-method`: expected printable ASCII characters"],
        );
    }

    #[test]
    fn encoded_headers_equal_the_body_after_decoding() {
        let encoded = |value: &'static str, body| check_encoded(NAME, [value.as_bytes()], body);
        check(encoded("=?base64?SGVsbG8=?=", "Hello"), &expect!["ok"]);
        check(encoded("Hello", "Hello"), &expect!["ok"]);
        check(encoded("SGVsbG8=", "SGVsbG8="), &expect!["ok"]);
        check(
            encoded("=?base64?SGVsbG8=?=", "hello"),
            &expect![[
                r#"header mismatch: expected header `mcp-name` to be "hello" as in the body, got "Hello""#
            ]],
        );
        check(
            encoded("=?base64?SGVsbG8?=", "Hello"),
            &expect!["header mismatch: header `mcp-name`: expected padded Base64 between the markers"],
        );
    }

    #[test]
    fn messages_show_the_beginning_of_long_values() {
        let long = "é".repeat(100);
        let error = check_encoded(NAME, [&b"a"[..]], &long).unwrap_err();
        assert!(error.to_string().contains(&format!("{}…\"", "é".repeat(64))));
        assert_eq!(error.header(), "mcp-name");
        assert!(!error.is_missing());
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(text in prop_oneof![any::<String>(), "[ -~]{0,12}", r"=\?base64\?[a-z=?]{0,8}"]) {
            let encoded = encode_value(&text);
            prop_assert!(encoded.bytes().all(|byte| matches!(byte, b' '..=b'~')));
            prop_assert_eq!(encoded.trim(), encoded.as_ref());
            prop_assert_eq!(decode_value(encoded.as_bytes()).unwrap(), text.as_str());
            prop_assert!(check_encoded(NAME, [encoded.as_bytes()], &text).is_ok());
        }

        #[test]
        fn any_octets_decode_or_fail_without_panic(value in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = decode_value(&value);
            let sentinel = [b"=?base64?", value.as_slice(), b"?="].concat();
            if let Ok(text) = decode_value(&sentinel) {
                prop_assert!(check_encoded(NAME, [sentinel.as_slice()], &text).is_ok());
            }
        }
    }
}
