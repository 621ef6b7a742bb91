//! Digests JSON values so that the order of members, blanks and the spelling of escapes do not matter.
//!
//! Numbers count as they are written, so two integers beyond 64 bits are never taken for each other. Every value is read
//! once and replaced by its digest, so the time is linear however deep the text nests.

use crate::{
    RawJson,
    scan::{ScanError, Scanner, Span},
};

/// Hashes a list of parts. Two different lists must not be hashed alike, so each part has to count with its length.
pub type HashParts = fn(&[&[u8]]) -> [u8; 32];

/// Returns the digest of a value in canonical form.
///
/// Values that differ only in the order of members, in blanks or in the spelling of escapes have the same digest; all
/// others have different ones. A value that nests deeper than [`MAX_DEPTH`](crate::scan::MAX_DEPTH) counts as it is
/// written.
pub fn digest(value: &RawJson, hash: HashParts) -> Vec<u8> {
    let text = value.as_str();
    let canonical = Canonical { text: text.as_bytes(), hash };
    canonical.value(&mut Scanner::new(text)).unwrap_or_else(|_| text.into())
}

struct Canonical<'a> {
    text: &'a [u8],
    hash: HashParts,
}

impl Canonical<'_> {
    /// Returns the digest of the next value. Its first byte is the kind of the value.
    fn value(&self, scanner: &mut Scanner<'_>) -> Result<Vec<u8>, ScanError> {
        match scanner.peek() {
            b'{' => self.object(scanner),
            b'[' => self.array(scanner),
            b'"' => scanner.value().map(|string| self.string(string)),
            _ => scanner.value().map(|scalar| scalar.bytes(self.text).to_vec()),
        }
    }

    /// Returns the digest of a string: its text, or what is written if no text can contain it (half of a surrogate pair).
    fn string(&self, string: Span) -> Vec<u8> {
        match string.text(self.text) {
            Some(text) => tagged(b'"', text.as_bytes()),
            None => tagged(b'\\', string.bytes(self.text)),
        }
    }

    fn object(&self, scanner: &mut Scanner<'_>) -> Result<Vec<u8>, ScanError> {
        let mut members = Vec::new();
        scanner.raw_members(|name, _, scanner| {
            members.push((self.string(name), self.value(scanner)?));
            Ok(())
        })?;
        // Members of the same name stay in their order, because it decides which of them counts.
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        let parts: Vec<&[u8]> = members.iter().flat_map(|(name, value)| [&**name, &**value]).collect();
        Ok(tagged(b'{', &(self.hash)(&parts)))
    }

    fn array(&self, scanner: &mut Scanner<'_>) -> Result<Vec<u8>, ScanError> {
        let mut items = Vec::new();
        scanner.elements(|scanner| {
            items.push(self.value(scanner)?);
            Ok(())
        })?;
        let parts: Vec<&[u8]> = items.iter().map(|item| &**item).collect();
        Ok(tagged(b'[', &(self.hash)(&parts)))
    }
}

fn tagged(kind: u8, content: &[u8]) -> Vec<u8> {
    let mut tagged = Vec::with_capacity(1 + content.len());
    tagged.push(kind);
    tagged.extend_from_slice(content);
    tagged
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a simple hash that has no collisions in these tests.
    fn hash(parts: &[&[u8]]) -> [u8; 32] {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, parts).hash(&mut hasher);
            hasher.finish().to_be_bytes()
        };
        [half(0), half(1), half(2), half(3)].concat().try_into().unwrap()
    }

    fn same(one: &str, other: &str) -> bool {
        let of = |text: &str| digest(&RawJson::parse(text.to_owned()).unwrap(), hash);
        of(one) == of(other)
    }

    #[test]
    fn order_spaces_and_escapes_are_ignored() {
        for (one, other) in [
            (r#"{"a":1,"b":[{"y":1,"x":2}]}"#, " { \"b\" : [ {\"x\":2 , \"y\":1} ],\r\n\t\"a\":1 } "),
            (r#"{"\u0061":"\u00e9\n\""}"#, "{\"a\":\"\u{e9}\\u000a\\\"\"}"),
            ("[]", "[ ]"),
            ("{}", "{\n}"),
            (r#""\ud800""#, r#""\ud800""#),
            ("1e999", "1e999"),
        ] {
            assert!(same(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("{}", "[]"),
            ("[]", "null"),
            ("[[]]", "[]"),
            ("[1,2]", "[2,1]"),
            ("[1,2]", "[12]"),
            (r#"["a,b"]"#, r#"["a","b"]"#),
            (r#"{"a":"b"}"#, r#"{"a":{"b":null}}"#),
            (r#"{"a":[],"b":1}"#, r#"{"a":[1],"b":1}"#),
            (r#"{"a]":1}"#, r#"{"a}":1}"#),
            (r#""1""#, "1"),
            (r#""null""#, "null"),
            ("18446744073709551616", "18446744073709551617"),
            ("0.1", "0.10000000000000000001"),
            (r#""\ud800""#, r#""\ud801""#),
            (r#""\ud800""#, r#""\"\\ud800\"""#),
            ("true", "false"),
            // Of two members of one name, most readers take the last.
            (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        ] {
            assert!(!same(one, other), "{one} {other}");
        }
    }

    #[test]
    fn deep_values_count_as_written() {
        let nested = |inner: &str| format!("{}{inner}{}", "[".repeat(5000), "]".repeat(5000));
        assert!(same(&nested(r#""]""#), &nested(r#""]""#)));
        assert!(!same(&nested("1"), &nested("2")));
    }
}
