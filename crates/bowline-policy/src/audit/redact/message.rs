//! Masks secrets in the text of a JSON message without changing anything else.

use super::{MASK, Redactor};
use bowline_text::MemberKind;

/// An object or list that is open.
struct Level {
    is_object: bool,
    /// Whether the next string of an object is a member name.
    expects_name: bool,
    /// Applies to all values of this level.
    outer: MemberKind,
    /// Applies to the value of the current member.
    inner: MemberKind,
}

/// Replaces secrets in a text.
pub(super) fn redact(redactor: &Redactor, text: &str) -> (String, usize) {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut levels: Vec<Level> = Vec::new();
    let (mut place, mut copied, mut masked) = (0, 0, 0);
    let mut replace = |out: &mut String, from: usize, to: usize, with: &str| {
        out.push_str(text.get(copied..from).unwrap_or_default());
        out.push_str(with);
        copied = to;
        masked += 1;
    };
    while let Some(byte) = bytes.get(place) {
        let kind = levels.last().map_or(MemberKind::Plain, |level| level.inner);
        match byte {
            b'"' => {
                let end = end_of_string(bytes, place);
                let raw = text.get(place..end).unwrap_or_default();
                let value = unescaped(raw);
                if let Some(level) = levels.last_mut().filter(|level| level.is_object && level.expects_name) {
                    level.expects_name = false;
                    level.inner = level.outer.member(&value);
                } else if kind == MemberKind::Secret {
                    replace(&mut out, place, end, "\"***\"");
                    place = end;
                    continue;
                }
                if redactor.has_secret(&value) || redactor.has_secret(raw) {
                    let safe = serde_json::to_string(&redactor.text(&value));
                    replace(&mut out, place, end, safe.as_deref().unwrap_or("\"***\""));
                }
                place = end;
            }
            b'{' | b'[' => {
                let is_object = *byte == b'{';
                levels.push(Level { is_object, expects_name: is_object, outer: kind, inner: kind });
                place += 1;
            }
            b'}' | b']' => {
                levels.pop();
                place += 1;
            }
            b',' => {
                if let Some(level) = levels.last_mut() {
                    level.expects_name = level.is_object;
                    level.inner = level.outer;
                }
                place += 1;
            }
            b'-' | b'0'..=b'9' => {
                let number = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
                let length = bytes.iter().skip(place).take_while(|byte| number(byte)).count();
                let end = place + length;
                let raw = text.get(place..end).unwrap_or_default();
                if kind == MemberKind::Secret || redactor.has_secret(raw) {
                    replace(&mut out, place, end, "\"***\"");
                }
                place = end;
            }
            _ => place += 1,
        }
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() && redactor.has_secret(&out) {
        // Outside of strings nothing was looked at.
        let count = masked + 1;
        return (redactor.text(&out), count);
    }
    debug_assert!(!MASK.is_empty());
    (out, masked)
}

/// Returns the position after a string that starts at `start`; the end of the text if it does not end.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut place = start + 1;
    while let Some(byte) = bytes.get(place) {
        match byte {
            b'\\' => place += 2,
            b'"' => return place + 1,
            _ => place += 1,
        }
    }
    bytes.len()
}

/// Returns the value of a string; the text without quotes if it is not valid.
fn unescaped(raw: &str) -> String {
    let inner = || raw.trim_matches('"').to_owned();
    if raw.contains('\\') { serde_json::from_str(raw).unwrap_or_else(|_| inner()) } else { inner() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let redactor = Redactor::new(vec!["hunter2".into(), "98765".into()]);
        assert_eq!(redact(&redactor, text).0, expected);
    }

    #[test]
    fn only_secrets_are_replaced() {
        for text in [
            r#"{"a": 1e400, "a":12345678901234567890,"b":"\u0041\/", "progressToken":7,"x":[true,null]}"#,
            r#"{"inputSchema":{"properties":{"token":{"type":"string"}}}}"#,
            "not json at all",
            r#"{"broken": "#,
            "",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn values_with_secret_names_and_known_secrets_are_replaced() {
        check(
            r#"{"apiKey":"x","n":{"password":{"a":[1,"b"]}},"z":1}"#,
            r#"{"apiKey":"***","n":{"password":{"a":["***","***"]}},"z":1}"#,
        );
        check(
            r#"{"text":"say hunter2 now","m":198765,"\u0061piKey":"y"}"#,
            r#"{"text":"say *** now","m":"***","\u0061piKey":"***"}"#,
        );
        check(r#"{"text":"\u0068unter2"}"#, r#"{"text":"***"}"#);
        check("line with hunter2", "line with ***");
        check(r#"{"api_key":"unfinished"#, r#"{"api_key":"***""#);
    }
}
