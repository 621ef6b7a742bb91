//! Finds where the values of a JSON text begin and end, in one pass and without decoding them.
//!
//! Decoding nested raw values would read the innermost bytes once per level. A [`Scanner`] checks the whole text once and
//! reports the position of each value that the caller asks for. The reader and the canonical form use the same scanner.

use crate::{
    RawJson,
    search::{plain_len, plain_len_short},
    unescape::unescape,
};
use bytes::Bytes;
use std::{
    borrow::Cow,
    str::{Utf8Error, from_utf8},
};

/// Maximum nesting depth of a scanned text.
pub const MAX_DEPTH: usize = 128;

/// From this length on, a text is checked for ASCII before it is checked for UTF-8.
const ASCII_FIRST: usize = 1024;

/// Position of one value in a scanned text. The default value means that there is no value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Returns whether there is no value.
    #[inline]
    pub fn is_absent(self) -> bool {
        self.end == 0
    }

    /// Returns the value; it shares the bytes of `buffer`, which must be the scanned text.
    pub fn raw(self, buffer: &Bytes) -> Option<RawJson> {
        let range = self.start as usize..self.end as usize;
        (!self.is_absent() && range.end <= buffer.len()).then(|| RawJson::checked(buffer.slice(range)))
    }

    /// Returns the bytes of the value; empty if there is no value.
    #[inline]
    pub fn bytes(self, text: &[u8]) -> &[u8] {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Returns the text of the value; `None` if the span does not belong to `text`.
    pub(crate) fn str(self, text: &str) -> Option<&str> {
        text.get(self.start as usize..self.end as usize)
    }

    /// Returns whether the value is the string `expected`.
    #[inline]
    pub fn is_text(self, text: &[u8], expected: &str) -> bool {
        let quoted = self.bytes(text);
        let plain = quoted.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\""));
        plain == Some(expected.as_bytes()) || self.text(text).is_some_and(|found| found == expected)
    }

    /// Returns the value if it is a string.
    pub fn text(self, text: &[u8]) -> Option<Cow<'_, str>> {
        let quoted = self.bytes(text);
        unescape(from_utf8(quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?).ok()?)
    }

    /// Converts a position in the whole text into a position in the text of `outer`, which contains the value.
    #[must_use]
    pub fn within(self, outer: Self) -> Self {
        if self.is_absent() {
            return self;
        }
        Self { start: self.start - outer.start.min(self.start), end: self.end - outer.start.min(self.end) }
    }
}

/// Why a text cannot be scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScanError {
    /// The text is not JSON.
    Syntax,
    /// The text nests deeper than [`MAX_DEPTH`].
    Depth,
}

/// Passes over a JSON text from value to value.
#[derive(Debug)]
pub struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Scanner<'a> {
    /// Starts at the beginning of `text`. Only the first 4 GiB are scanned.
    pub fn new(text: &'a str) -> Self {
        Self::of_utf8(text.as_bytes())
    }

    /// Starts at the beginning of `bytes`, which must be UTF-8.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, Utf8Error> {
        // Most long texts are ASCII, which is faster to check; for short ones the two take the same time.
        if bytes.len() < ASCII_FIRST || !bytes.is_ascii() {
            from_utf8(bytes)?;
        }
        Ok(Self::of_utf8(bytes))
    }

    fn of_utf8(text: &'a [u8]) -> Self {
        let end = text.len().min(u32::MAX as usize);
        Self { text: text.get(..end).unwrap_or_default(), at: 0, depth: 0 }
    }

    /// Skips blanks and returns the next byte; 0 at the end.
    #[inline]
    pub fn peek(&mut self) -> u8 {
        match self.text.get(self.at) {
            Some(byte) if *byte > b' ' => *byte,
            _ => self.peek_after_blanks(),
        }
    }

    fn peek_after_blanks(&mut self) -> u8 {
        loop {
            match self.text.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                Some(byte) => return *byte,
                None => return 0,
            }
        }
    }

    /// Fails unless only blanks are left.
    pub fn end(&mut self) -> Result<(), ScanError> {
        self.peek();
        if self.at == self.text.len() { Ok(()) } else { Err(ScanError::Syntax) }
    }

    /// Passes over the next value.
    pub fn value(&mut self) -> Result<Span, ScanError> {
        let first = self.peek();
        let start = self.at;
        if first == b'"' {
            self.at += 1;
            self.string_tail()?;
        } else {
            self.skip()?;
        }
        Ok(self.span(start))
    }

    /// Passes over the next value, which must be an object. `visit` gets the name of each member and must pass over its
    /// value.
    pub fn members(
        &mut self,
        mut visit: impl FnMut(&[u8], &mut Self) -> Result<(), ScanError>,
    ) -> Result<Span, ScanError> {
        let text = self.text;
        self.raw_members(|quoted, escaped, scanner| {
            let name = text.get(quoted.start as usize + 1..quoted.end as usize - 1).unwrap_or_default();
            if !escaped {
                return visit(name, scanner);
            }
            let name = from_utf8(name).ok().and_then(unescape).ok_or(ScanError::Syntax)?;
            visit(name.as_bytes(), scanner)
        })
    }

    /// Like [`Self::members`], with the position of each name and whether it contains escapes.
    #[inline]
    pub(crate) fn raw_members(
        &mut self,
        mut visit: impl FnMut(Span, bool, &mut Self) -> Result<(), ScanError>,
    ) -> Result<Span, ScanError> {
        self.expect(b'{')?;
        let start = self.at - 1;
        self.descend()?;
        if self.peek() == b'}' {
            self.at += 1;
        } else {
            loop {
                self.expect(b'"')?;
                let name = self.at - 1;
                let escaped = self.string_tail()?;
                let name = self.span(name);
                self.expect(b':')?;
                visit(name, escaped, self)?;
                match self.peek() {
                    b',' => self.at += 1,
                    b'}' => {
                        self.at += 1;
                        break;
                    }
                    _ => return Err(ScanError::Syntax),
                }
            }
        }
        self.ascend();
        Ok(self.span(start))
    }

    /// Passes over the next value, which must be an array. `visit` must pass over each element.
    pub fn elements(
        &mut self,
        mut visit: impl FnMut(&mut Self) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        self.expect(b'[')?;
        self.descend()?;
        if self.peek() == b']' {
            self.at += 1;
        } else {
            loop {
                visit(self)?;
                match self.peek() {
                    b',' => self.at += 1,
                    b']' => {
                        self.at += 1;
                        break;
                    }
                    _ => return Err(ScanError::Syntax),
                }
            }
        }
        self.ascend();
        Ok(())
    }

    /// Enters an object or array, which [`Self::ascend`] leaves.
    #[inline]
    pub(crate) fn descend(&mut self) -> Result<(), ScanError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(ScanError::Depth) } else { Ok(()) }
    }

    /// Leaves an object or array.
    #[inline]
    pub(crate) fn ascend(&mut self) {
        self.depth -= 1;
    }

    #[expect(clippy::cast_possible_truncation, reason = "at most 4 GiB of text are scanned")]
    fn span(&self, start: usize) -> Span {
        Span { start: start as u32, end: self.at as u32 }
    }

    /// Passes over `sign`, which must come next.
    #[inline]
    pub(crate) fn expect(&mut self, sign: u8) -> Result<(), ScanError> {
        if self.peek() != sign {
            return Err(ScanError::Syntax);
        }
        self.at += 1;
        Ok(())
    }

    /// Passes over one value. Uses a loop instead of recursion: one bit per open bracket tells objects from arrays.
    fn skip(&mut self) -> Result<(), ScanError> {
        let (mut open, mut depth) = (0u128, self.depth);
        loop {
            let first = self.peek();
            self.at += 1;
            match first {
                b'"' => drop(self.string_tail()?),
                b'{' | b'[' => {
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return Err(ScanError::Depth);
                    }
                    let is_object = first == b'{';
                    open = open << 1 | u128::from(is_object);
                    if self.peek() == if is_object { b'}' } else { b']' } {
                        self.at += 1;
                        (open, depth) = (open >> 1, depth - 1);
                    } else {
                        if is_object {
                            self.name()?;
                        }
                        continue;
                    }
                }
                b't' => self.literal(b"rue")?,
                b'f' => self.literal(b"alse")?,
                b'n' => self.literal(b"ull")?,
                b'-' | b'0'..=b'9' => self.number_tail(first)?,
                _ => return Err(ScanError::Syntax),
            }
            // A value is complete; close the objects and arrays that end with it.
            loop {
                if depth == self.depth {
                    return Ok(());
                }
                let in_object = open & 1 == 1;
                match self.peek() {
                    b',' => {
                        self.at += 1;
                        if in_object {
                            self.name()?;
                        }
                        break;
                    }
                    b'}' if in_object => {}
                    b']' if !in_object => {}
                    _ => return Err(ScanError::Syntax),
                }
                self.at += 1;
                (open, depth) = (open >> 1, depth - 1);
            }
        }
    }

    fn name(&mut self) -> Result<(), ScanError> {
        self.expect(b'"')?;
        self.string_tail()?;
        self.expect(b':')
    }

    /// Passes over `word`, which must come next.
    pub(crate) fn literal(&mut self, word: &[u8]) -> Result<(), ScanError> {
        if self.text.get(self.at..).unwrap_or_default().starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        Err(ScanError::Syntax)
    }

    fn digits(&mut self) -> usize {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    /// Passes over the next value, which must be a number.
    pub(crate) fn number(&mut self) -> Result<Span, ScanError> {
        let first = self.peek();
        let start = self.at;
        self.at += 1;
        self.number_tail(first)?;
        Ok(self.span(start))
    }

    /// Passes over the rest of a number after its first byte.
    fn number_tail(&mut self, first: u8) -> Result<(), ScanError> {
        let leading = if first == b'-' {
            let digit = self.text.get(self.at).copied().unwrap_or_default();
            self.at += 1;
            digit
        } else {
            first
        };
        match leading {
            b'0' => {}
            b'1'..=b'9' => drop(self.digits()),
            _ => return Err(ScanError::Syntax),
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(ScanError::Syntax);
            }
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(ScanError::Syntax);
            }
        }
        Ok(())
    }

    /// Passes over the next value, which must be a string of a text that was scanned before. Returns what is between its
    /// quotes, and whether that may contain escapes. Only the closing quote has to be found, so this is several times
    /// faster than [`Self::value`].
    #[inline]
    pub(crate) fn checked_string(&mut self) -> Result<(Span, bool), ScanError> {
        self.expect(b'"')?;
        let start = self.at;
        // Most strings are short and contain no escapes.
        self.at += plain_len_short(self.text.get(start..).unwrap_or_default());
        if self.text.get(self.at) == Some(&b'"') {
            let inner = self.span(start);
            self.at += 1;
            return Ok((inner, false));
        }
        self.long_checked_string(start).map(|inner| (inner, true))
    }

    fn long_checked_string(&mut self, start: usize) -> Result<Span, ScanError> {
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let quote = memchr::memchr(b'"', rest).ok_or(ScanError::Syntax)?;
            self.at += quote + 1;
            // An even number of backslashes before the quote escape each other, not the quote.
            let inner = self.text.get(start..self.at - 1).unwrap_or_default();
            let backslashes = inner.iter().rev().take_while(|byte| **byte == b'\\').count();
            if backslashes.is_multiple_of(2) {
                let quoted = self.span(start);
                return Ok(Span { end: quoted.end - 1, ..quoted });
            }
        }
    }

    /// Passes over the rest of a string after its opening quote. Returns whether it contains escapes.
    #[inline]
    fn string_tail(&mut self) -> Result<bool, ScanError> {
        // Most strings are short and contain no escapes.
        self.at += plain_len_short(self.text.get(self.at..).unwrap_or_default());
        if self.text.get(self.at) == Some(&b'"') {
            self.at += 1;
            return Ok(false);
        }
        self.long_string_tail()
    }

    fn long_string_tail(&mut self) -> Result<bool, ScanError> {
        let mut escaped = false;
        loop {
            self.at += plain_len(self.text.get(self.at..).unwrap_or_default());
            let Some(stop) = self.text.get(self.at) else { return Err(ScanError::Syntax) };
            self.at += 1;
            match stop {
                b'"' => return Ok(escaped),
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(ScanError::Syntax),
            }
        }
    }

    fn escape(&mut self) -> Result<(), ScanError> {
        let kind = self.text.get(self.at).copied().unwrap_or_default();
        self.at += 1;
        match kind {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => {
                let digits = self.text.get(self.at..self.at + 4).unwrap_or_default();
                self.at += 4;
                let is_hex = digits.len() == 4 && digits.iter().all(u8::is_ascii_hexdigit);
                if is_hex { Ok(()) } else { Err(ScanError::Syntax) }
            }
            _ => Err(ScanError::Syntax),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    fn is_json(text: &str) -> bool {
        let mut scanner = Scanner::new(text);
        scanner.value().and_then(|_| scanner.end()).is_ok()
    }

    #[test]
    fn agrees_with_the_grammar() {
        let long = "x".repeat(5000);
        for text in [
            "1",
            "-1",
            "0",
            "-0",
            "01",
            "-",
            "1.",
            "1.5",
            ".5",
            "1e5",
            "1e",
            "1E+5",
            "1e-",
            "+1",
            "true",
            "tru",
            "null",
            "nul",
            "false",
            "falsey",
            "\"\"",
            "\"a",
            "\"\\n\"",
            "\"\\x\"",
            "\"\\u00e9\"",
            "\"\\u00g9\"",
            "\"\u{1}\"",
            "\"\\",
            "\"é\"",
            "{}",
            "{",
            "}",
            "[]",
            "[",
            "]",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1]]",
            "{\"a\":1}",
            "{\"a\":1,}",
            "{\"a\"}",
            "{a:1}",
            "{\"a\":1]",
            "[1}",
            "[[],{}]",
            " [ 1 , { \"a\" : [ ] } ] ",
            "",
            " ",
            "1 1",
            "\u{feff}1",
            "{\"a\":{\"b\":[1,{\"c\":null}]},\"d\":\"\\\\\"}",
            &format!("\"{long}\""),
            &format!("\"{long}"),
            &format!("\"{long}\u{1f}{long}\""),
            &format!("\"{long}\\\"{long}\""),
        ] {
            assert_eq!(is_json(text), serde_json::from_str::<IgnoredAny>(text).is_ok(), "{text:.60}");
        }
    }

    #[test]
    fn finds_members_between_spaces_and_escapes() {
        let text = r#" { "a" : [1, {"b": "}"}] , "\u0062" : "x\"y" , "c":null } "#;
        let (mut a, mut b) = (Span::default(), Span::default());
        let mut scanner = Scanner::new(text);
        let whole = scanner.members(|name, scanner| match name {
            b"a" => scanner.value().map(|value| a = value),
            b"b" => scanner.value().map(|value| b = value),
            _ => scanner.value().map(drop),
        });
        scanner.end().unwrap();
        assert_eq!(whole.unwrap().bytes(text.as_bytes()), text.trim().as_bytes());
        assert_eq!(a.bytes(text.as_bytes()), br#"[1, {"b": "}"}]"#);
        assert_eq!(b.text(text.as_bytes()).unwrap(), "x\"y");
        assert_eq!(a.text(text.as_bytes()), None);
    }

    #[test]
    fn limits_depth() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(is_json(&nested(MAX_DEPTH)));
        assert_eq!(Scanner::new(&nested(MAX_DEPTH + 1)).value(), Err(ScanError::Depth));
        assert_eq!(Scanner::new(&"{\"a\":".repeat(1_000_000)).value(), Err(ScanError::Depth));
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json(text in r#"[\[\]{}:,"a\\u01e\.\-n \x01é]{0,24}"#) {
            prop_assert_eq!(is_json(&text), serde_json::from_str::<IgnoredAny>(&text).is_ok());
        }

        #[test]
        fn finds_the_end_of_checked_strings(inner in "[a\"\\\\é]{0,40}", behind in "[,\"a]{0,8}") {
            let quoted = serde_json::to_string(&inner).unwrap();
            let text = format!("{quoted}{behind}");
            let mut scanner = Scanner::new(&text);
            let (found, escaped) = scanner.checked_string().unwrap();
            prop_assert!(escaped || quoted.len() == inner.len() + 2);
            prop_assert_eq!(found.bytes(text.as_bytes()), &quoted.as_bytes()[1..quoted.len() - 1]);
            prop_assert_eq!(&text[scanner.at..], behind);
        }

        #[test]
        fn bytes_must_be_utf8(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(Scanner::from_bytes(&bytes).is_ok(), from_utf8(&bytes).is_ok());
        }

        #[test]
        fn agrees_with_serde_json_on_strings(inner in ".{0,200}", cut in 0usize..220) {
            let mut text = serde_json::to_string(&inner).unwrap();
            text.truncate((0..=cut.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0));
            prop_assert_eq!(is_json(&text), serde_json::from_str::<IgnoredAny>(&text).is_ok());
        }
    }
}
