//! Decodes the escapes of a JSON string.

use crate::search::has_backslash_short;
use std::borrow::Cow;

/// Decodes what is between the quotes of a JSON string. `None` if an escape is invalid, such as half of a surrogate pair.
///
/// Without escapes nothing is copied; otherwise memory is allocated once.
pub(crate) fn unescape(quoted: &str) -> Option<Cow<'_, str>> {
    // Most strings are short and contain no escapes.
    if has_backslash_short(quoted.as_bytes()) == Some(false) {
        return Some(Cow::Borrowed(quoted));
    }
    let Some(mut position) = memchr::memchr(b'\\', quoted.as_bytes()) else {
        return Some(Cow::Borrowed(quoted));
    };
    let mut text = String::with_capacity(quoted.len());
    let mut rest = quoted;
    loop {
        let (plain, escape) = rest.split_at_checked(position)?;
        text.push_str(plain);
        let kind = escape.as_bytes().get(1)?;
        // What follows the backslash is ASCII if the escape is valid; otherwise the slice may fail.
        rest = escape.get(2..)?;
        text.push(match kind {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let (unit, behind) = code_unit(rest)?;
                rest = behind;
                match unit {
                    0xd800..=0xdbff => {
                        let (low, behind) = code_unit(rest.strip_prefix("\\u")?)?;
                        rest = behind;
                        char::decode_utf16([unit, low]).next()?.ok()?
                    }
                    _ => char::from_u32(u32::from(unit))?,
                }
            }
            _ => return None,
        });
        let Some(next) = memchr::memchr(b'\\', rest.as_bytes()) else { break };
        position = next;
    }
    text.push_str(rest);
    Some(Cow::Owned(text))
}

/// Splits four hexadecimal digits from the start of `text`.
fn code_unit(text: &str) -> Option<(u16, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    // `from_str_radix` accepts a sign.
    let digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(digits)?;
    Some((u16::from_str_radix(digits, 16).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_serde_json(quoted in r#"([a-z]{0,3}|é|\\["\\/bfnrtx]|\\u(d8|dc|00|\+1)[0-9a-f]{2}){0,8}"#) {
            let expected: Option<String> = serde_json::from_str(&format!("\"{quoted}\"")).ok();
            prop_assert_eq!(unescape(&quoted).map(Cow::into_owned), expected);
        }
    }
}
