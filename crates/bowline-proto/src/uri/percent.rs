//! Percent-encoding of URIs.

use std::borrow::Cow;

/// Characters that never need encoding.
pub(super) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Characters that delimit the parts of a URI.
pub(super) fn is_reserved(byte: u8) -> bool {
    is_general_delimiter(byte)
        || matches!(byte, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=')
}

fn is_general_delimiter(byte: u8) -> bool {
    matches!(byte, b':' | b'/' | b'?' | b'#' | b'[' | b']' | b'@')
}

/// Returns whether `bytes` starts with a percent sign and two hexadecimal digits.
pub(super) fn starts_with_triplet(bytes: &[u8]) -> bool {
    matches!(bytes, [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

/// Appends `text` and encodes all but unreserved characters.
pub(super) fn push_encoded(out: &mut String, text: &str) {
    for &byte in text.as_bytes() {
        push_byte(out, byte, is_unreserved(byte));
    }
}

/// Appends `text`; reserved characters and existing percent-encodings stay unchanged.
pub(super) fn push_reserved(out: &mut String, text: &str) {
    let mut rest = text.as_bytes();
    while let [byte, tail @ ..] = rest {
        let bare = is_unreserved(*byte) || is_reserved(*byte) || starts_with_triplet(rest);
        push_byte(out, *byte, bare);
        rest = tail;
    }
}

/// Encodes the characters that no URI may contain, such as blanks and non-ASCII characters.
pub(super) fn to_uri(text: &str) -> Cow<'_, str> {
    let bare = |byte: u8| is_unreserved(byte) || is_reserved(byte) || byte == b'%';
    if text.bytes().all(bare) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for byte in text.bytes() {
        push_byte(&mut out, byte, bare(byte));
    }
    Cow::Owned(out)
}

/// Appends `text` as a name or value of a form (`application/x-www-form-urlencoded`).
///
/// ```
/// use bowline_proto::uri::{form_decode, push_form_encoded};
///
/// let mut form = String::from("q=");
/// push_form_encoded(&mut form, "a b&c");
/// assert_eq!(form, "q=a+b%26c");
/// assert_eq!(form_decode("a+b%26c").as_deref(), Some("a b&c"));
/// ```
pub fn push_form_encoded(out: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('+'),
            _ => push_byte(out, byte, byte.is_ascii_alphanumeric() || b"*-._".contains(&byte)),
        }
    }
}

/// Decodes a name or value of a form; `None` if an encoding is incomplete or the result is not UTF-8.
pub fn form_decode(text: &str) -> Option<String> {
    decode(&text.replace('+', " "))
}

fn push_byte(out: &mut String, byte: u8, bare: bool) {
    if bare {
        out.push(char::from(byte));
        return;
    }
    out.push('%');
    for digit in [byte >> 4, byte & 0x0f] {
        let digit = char::from_digit(u32::from(digit), 16).expect("four bits are one hexadecimal digit");
        out.push(digit.to_ascii_uppercase());
    }
}

/// Decodes percent-encoding; `None` if an encoding is incomplete or the result is not UTF-8.
pub(super) fn decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let (bytes, is_valid) = decode_octets(text);
    is_valid.then(|| String::from_utf8(bytes).ok()).flatten()
}

/// Decodes percent-encoding. A percent sign without two hexadecimal digits stays as it is.
///
/// ```
/// use bowline_proto::uri::percent_decode;
///
/// assert_eq!(percent_decode("a%20b%"), b"a b%");
/// ```
pub fn percent_decode(text: &str) -> Vec<u8> {
    decode_octets(text).0
}

/// Returns the decoded octets, and whether every percent sign starts an encoding.
fn decode_octets(text: &str) -> (Vec<u8>, bool) {
    let mut out = Vec::with_capacity(text.len());
    let mut is_valid = true;
    let mut rest = text.as_bytes();
    while let [byte, tail @ ..] = rest {
        let (octet, after) = if let Some(octet) = encoded_octet(rest) {
            (octet, tail.get(2..).unwrap_or_default())
        } else {
            is_valid &= *byte != b'%';
            (*byte, tail)
        };
        out.push(octet);
        rest = after;
    }
    (out, is_valid)
}

/// Returns the octet that `bytes` starts with in encoded form.
fn encoded_octet(bytes: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = bytes else { return None };
    Some(hex(*high)? << 4 | hex(*low)?)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_complete_encodings_only() {
        for (text, octets, strict) in [
            ("", "", Some("")),
            ("a%2Fb", "a/b", Some("a/b")),
            ("%c3%A9", "é", Some("é")),
            ("100%", "100%", None),
            ("%+1%2", "%+1%2", None),
            ("%zz", "%zz", None),
        ] {
            assert_eq!(percent_decode(text), octets.as_bytes(), "{text}");
            assert_eq!(decode(text).as_deref(), strict, "{text}");
        }
        assert_eq!((percent_decode("%ff"), decode("%ff")), (vec![0xff], None));
    }
}
