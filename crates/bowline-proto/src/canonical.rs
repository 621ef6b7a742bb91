//! Whether two JSON texts say the same: a digest that no order of keys, blanks or escapes changes.
//!
//! Numbers count as they are written, so that two integers beyond 64 bits are never taken for each other. Every value is
//! looked at once and replaced by its digest, so the time is linear however deep the text nests.

use crate::seal;
use bowline_types::RawJson;

/// How deep objects and arrays are taken apart; what nests deeper counts as it is written.
const MAX_DEPTH: usize = 256;

/// The digest of a value.
pub(crate) fn digest(value: &RawJson) -> Vec<u8> {
    let mut reader = Reader { rest: value.as_bytes() };
    reader.value(0)
}

/// Reads text that is known to be JSON.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// The next value, as bytes that begin with its kind.
    fn value(&mut self, depth: usize) -> Vec<u8> {
        self.skip_blanks();
        match self.rest.first() {
            Some(b'{') if depth < MAX_DEPTH => self.object(depth + 1),
            Some(b'[') if depth < MAX_DEPTH => self.array(depth + 1),
            Some(b'{' | b'[') => self.take(group_length(self.rest)).to_vec(),
            Some(b'"') => self.string(),
            _ => self.take(scalar_length(self.rest)).to_vec(),
        }
    }

    fn object(&mut self, depth: usize) -> Vec<u8> {
        let mut members = Vec::new();
        while self.has_next() {
            let key = self.string();
            self.skip_blanks();
            // The colon.
            self.take(1);
            members.push((key, self.value(depth)));
        }
        // Those of one name stay in their order, because it decides which of them counts.
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        let parts = members.iter().flat_map(|(key, value)| [&**key, &**value]);
        tagged(b'{', &parts.collect::<Vec<_>>())
    }

    fn array(&mut self, depth: usize) -> Vec<u8> {
        let mut items = Vec::new();
        while self.has_next() {
            items.push(self.value(depth));
        }
        tagged(b'[', &items.iter().map(|item| &**item).collect::<Vec<_>>())
    }

    /// Steps over an opening bracket or a comma; false at the closing bracket, and behind it.
    fn has_next(&mut self) -> bool {
        self.skip_blanks();
        let bracket = self.take(1).first().copied();
        if matches!(bracket, None | Some(b']' | b'}')) {
            return false;
        }
        self.skip_blanks();
        if matches!(self.rest.first(), None | Some(b']' | b'}')) {
            self.take(1);
            return false;
        }
        true
    }

    /// The next string without its escapes. One that no text can hold, such as half of a surrogate pair, as written.
    fn string(&mut self) -> Vec<u8> {
        self.skip_blanks();
        let written = self.take(string_length(self.rest));
        let (kind, text) = match serde_json::from_slice::<String>(written) {
            Ok(text) => (b'"', text.into_bytes()),
            Err(_) => (b'\\', written.to_vec()),
        };
        [vec![kind], text].concat()
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        taken
    }
}

fn tagged(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut tagged = vec![kind];
    tagged.extend_from_slice(&seal::digest(parts));
    tagged
}

/// How long the string at the start of `text` is, with its quotes.
fn string_length(text: &[u8]) -> usize {
    let mut escaped = false;
    for (position, byte) in text.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return position + 1,
            _ => {}
        }
    }
    text.len()
}

/// How long the number or name at the start of `text` is.
fn scalar_length(text: &[u8]) -> usize {
    let is_end = |byte: &u8| matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace();
    text.iter().position(is_end).unwrap_or(text.len())
}

/// How long the object or array at the start of `text` is.
fn group_length(text: &[u8]) -> usize {
    let (mut position, mut depth) = (0, 0_usize);
    while let Some(byte) = text.get(position) {
        match byte {
            b'"' => position += string_length(text.get(position..).unwrap_or_default()) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        position += 1;
        if depth == 0 {
            break;
        }
    }
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(one: &str, other: &str) -> bool {
        let of = |text: &str| digest(&RawJson::parse(text.to_owned()).unwrap());
        of(one) == of(other)
    }

    #[test]
    fn only_order_blanks_and_escapes_do_not_count() {
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
    fn depth_has_an_end() {
        let nested = |inner: &str| format!("{}{inner}{}", "[".repeat(5000), "]".repeat(5000));
        assert!(same(&nested(r#""]""#), &nested(r#""]""#)));
        assert!(!same(&nested("1"), &nested("2")));
    }
}
