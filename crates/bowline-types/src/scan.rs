//! Where the parts of a JSON text are: found in one pass, without decoding any of them.
//!
//! Decoding nested raw values would look at the innermost bytes once per level. A [`Scanner`] checks the whole text once
//! and remembers where the members of interest stand.

use crate::RawJson;
use bytes::Bytes;
use std::borrow::Cow;

/// How deep a text may nest.
pub const MAX_DEPTH: usize = 128;

/// Where one value stands in a text that was scanned. The default is nowhere: the value is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Whether there is no value.
    #[inline]
    pub fn is_absent(self) -> bool {
        self.end == 0
    }

    /// The value, which shares the bytes of `buffer`. That has to be what was scanned.
    pub fn raw(self, buffer: &Bytes) -> Option<RawJson> {
        let range = self.start as usize..self.end as usize;
        (!self.is_absent() && range.end <= buffer.len()).then(|| RawJson::checked(buffer.slice(range)))
    }

    /// The bytes of the value; none when it is absent.
    #[inline]
    pub fn bytes(self, text: &[u8]) -> &[u8] {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Whether the value is the string `expected`.
    #[inline]
    pub fn is_text(self, text: &[u8], expected: &str) -> bool {
        let quoted = self.bytes(text);
        let plain = quoted.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\""));
        plain == Some(expected.as_bytes()) || self.text(text).is_some_and(|found| found == expected)
    }

    /// The string the value is; `None` when it is absent or something else.
    pub fn text(self, text: &[u8]) -> Option<Cow<'_, str>> {
        let quoted = self.bytes(text);
        let inner = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        if inner.contains(&b'\\') {
            return serde_json::from_slice(quoted).ok().map(Cow::Owned);
        }
        std::str::from_utf8(inner).ok().map(Cow::Borrowed)
    }

    /// The same value in the text of `outer`, of which it is a part.
    pub fn within(self, outer: Self) -> Self {
        if self.is_absent() {
            return self;
        }
        Self { start: self.start - outer.start.min(self.start), end: self.end - outer.start.min(self.end) }
    }
}

/// Why a text cannot be scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not JSON.
    Syntax,
    /// It nests deeper than [`MAX_DEPTH`].
    Depth,
}

/// Passes over a JSON text.
#[derive(Debug)]
pub struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Scanner<'a> {
    /// Begins at the start of `text`, of which at most 4 GiB are looked at.
    pub fn new(text: &'a str) -> Self {
        let end = text.len().min(u32::MAX as usize);
        Self { text: text.as_bytes().get(..end).unwrap_or_default(), at: 0, depth: 0 }
    }

    /// The first byte of the next value or sign; 0 at the end.
    #[inline]
    pub fn peek(&mut self) -> u8 {
        match self.text.get(self.at) {
            Some(byte) if *byte > b' ' => *byte,
            _ => self.peek_behind_blanks(),
        }
    }

    fn peek_behind_blanks(&mut self) -> u8 {
        loop {
            match self.text.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                Some(byte) => return *byte,
                None => return 0,
            }
        }
    }

    /// There has to be nothing left but blanks.
    pub fn end(&mut self) -> Result<(), Fault> {
        self.peek();
        if self.at == self.text.len() { Ok(()) } else { Err(Fault::Syntax) }
    }

    /// Passes over the next value.
    pub fn value(&mut self) -> Result<Span, Fault> {
        let first = self.peek();
        let start = self.at;
        if first == b'"' {
            self.at += 1;
            self.string()?;
        } else {
            self.skip()?;
        }
        Ok(self.span(start))
    }

    /// Passes over the next value, which has to be an object. `visit` is told the name of each member and has to pass over
    /// its value.
    pub fn members(
        &mut self,
        mut visit: impl FnMut(&[u8], &mut Self) -> Result<(), Fault>,
    ) -> Result<Span, Fault> {
        self.expect(b'{')?;
        let start = self.at - 1;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fault::Depth);
        }
        if self.peek() == b'}' {
            self.at += 1;
        } else {
            loop {
                self.expect(b'"')?;
                let name = self.at;
                let text = self.text;
                let escaped = self.string()?;
                let name = text.get(name..self.at - 1).unwrap_or_default();
                self.expect(b':')?;
                if escaped {
                    let plain = unescaped(name).ok_or(Fault::Syntax)?;
                    visit(plain.as_bytes(), self)?;
                } else {
                    visit(name, self)?;
                }
                match self.peek() {
                    b',' => self.at += 1,
                    b'}' => {
                        self.at += 1;
                        break;
                    }
                    _ => return Err(Fault::Syntax),
                }
            }
        }
        self.depth -= 1;
        Ok(self.span(start))
    }

    /// Passes over the next value, which has to be a list, and gives each of its values to `visit`, which has to pass
    /// over it.
    pub fn elements(&mut self, mut visit: impl FnMut(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        self.expect(b'[')?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fault::Depth);
        }
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
                    _ => return Err(Fault::Syntax),
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    #[expect(clippy::cast_possible_truncation, reason = "no more than 4 GiB of text are looked at")]
    fn span(&self, start: usize) -> Span {
        Span { start: start as u32, end: self.at as u32 }
    }

    #[inline]
    fn expect(&mut self, sign: u8) -> Result<(), Fault> {
        if self.peek() != sign {
            return Err(Fault::Syntax);
        }
        self.at += 1;
        Ok(())
    }

    /// Loops instead of recursing: one bit per open bracket tells objects from lists.
    fn skip(&mut self) -> Result<(), Fault> {
        let (mut open, mut depth) = (0u128, self.depth);
        loop {
            let first = self.peek();
            self.at += 1;
            match first {
                b'"' => drop(self.string()?),
                b'{' | b'[' => {
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return Err(Fault::Depth);
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
                b'-' | b'0'..=b'9' => self.number(first)?,
                _ => return Err(Fault::Syntax),
            }
            // A value is complete, and with it perhaps what it is the last of.
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
                    _ => return Err(Fault::Syntax),
                }
                self.at += 1;
                (open, depth) = (open >> 1, depth - 1);
            }
        }
    }

    fn name(&mut self) -> Result<(), Fault> {
        self.expect(b'"')?;
        self.string()?;
        self.expect(b':')
    }

    fn literal(&mut self, rest: &[u8]) -> Result<(), Fault> {
        if self.text.get(self.at..).unwrap_or_default().starts_with(rest) {
            self.at += rest.len();
            return Ok(());
        }
        Err(Fault::Syntax)
    }

    fn digits(&mut self) -> usize {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    /// The rest of a number whose first sign was passed.
    fn number(&mut self, first: u8) -> Result<(), Fault> {
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
            _ => return Err(Fault::Syntax),
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(Fault::Syntax);
            }
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(Fault::Syntax);
            }
        }
        Ok(())
    }

    /// The rest of a string whose opening quote was passed. True when it holds escapes.
    #[inline]
    fn string(&mut self) -> Result<bool, Fault> {
        // Most end soon, and without anything to look at.
        for _ in 0..2 {
            match eight(self.text.get(self.at..).unwrap_or_default()) {
                Ok(_) => self.at += 8,
                Err(plain) => {
                    self.at += plain;
                    if self.text.get(self.at) == Some(&b'"') {
                        self.at += 1;
                        return Ok(false);
                    }
                    break;
                }
            }
        }
        self.long_string()
    }

    fn long_string(&mut self) -> Result<bool, Fault> {
        let mut escaped = false;
        loop {
            self.plain();
            let Some(stop) = self.text.get(self.at) else { return Err(Fault::Syntax) };
            self.at += 1;
            match stop {
                b'"' => return Ok(escaped),
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(Fault::Syntax),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        let kind = self.text.get(self.at).copied().unwrap_or_default();
        self.at += 1;
        match kind {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => {
                let digits = self.text.get(self.at..self.at + 4).unwrap_or_default();
                self.at += 4;
                let is_hex = digits.len() == 4 && digits.iter().all(u8::is_ascii_hexdigit);
                if is_hex { Ok(()) } else { Err(Fault::Syntax) }
            }
            _ => Err(Fault::Syntax),
        }
    }

    fn plain(&mut self) {
        self.at += plain_run(self.text.get(self.at..).unwrap_or_default());
    }
}

/// How many bytes come before the next quote, backslash or control character, which strings hold only as escapes.
pub(crate) fn plain_run(text: &[u8]) -> usize {
    // Most strings are short: eight bytes at a time, and only what is longer is worth setting up wide registers for.
    let mut rest = text;
    for _ in 0..6 {
        match eight(rest) {
            Ok(next) => rest = next,
            Err(found) => return text.len() - rest.len() + found,
        }
    }
    while let Some((block, next)) = rest.split_first_chunk::<32>() {
        // Without an early exit, so that it is done many bytes at a time.
        if block.iter().fold(false, |found, byte| found | is_special(*byte)) {
            break;
        }
        rest = next;
    }
    loop {
        match eight(rest) {
            Ok(next) => rest = next,
            Err(found) => return text.len() - rest.len() + found,
        }
    }
}

/// What is behind the next eight bytes, or how many of them come before one that ends the run.
#[inline]
fn eight(text: &[u8]) -> Result<&[u8], usize> {
    let Some((chunk, rest)) = text.split_first_chunk::<8>() else { return Err(few(text)) };
    match specials(u64::from_le_bytes(*chunk)) {
        0 => Ok(rest),
        found => Err(found.trailing_zeros() as usize / 8),
    }
}

/// How many of less than eight bytes come before one that ends the run. Mostly all of them, which two halves that overlap
/// show at once.
#[inline]
fn few(text: &[u8]) -> usize {
    if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        let halves = u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32;
        if specials(halves) == 0 {
            return text.len();
        }
    }
    text.iter().take_while(|byte| !is_special(**byte)).count()
}

fn unescaped(name: &[u8]) -> Option<String> {
    let mut quoted = Vec::with_capacity(name.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(name);
    quoted.push(b'"');
    serde_json::from_slice(&quoted).ok()
}

#[inline]
fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// The high bit of the first byte that ends a plain run is set; bits above it mean nothing.
#[inline]
fn specials(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word;
    let quotes = zeros(word ^ (ONES * u64::from(b'"')));
    let slashes = zeros(word ^ (ONES * u64::from(b'\\')));
    let controls = word.wrapping_sub(ONES * u64::from(b' ')) & !word;
    (quotes | slashes | controls) & (ONES * 0x80)
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
    fn it_agrees_with_the_grammar() {
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
    fn members_are_found_whatever_is_around_them() {
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
    fn depth_is_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(is_json(&nested(MAX_DEPTH)));
        assert_eq!(Scanner::new(&nested(MAX_DEPTH + 1)).value(), Err(Fault::Depth));
        assert_eq!(Scanner::new(&"{\"a\":".repeat(1_000_000)).value(), Err(Fault::Depth));
    }

    proptest! {
        #[test]
        fn it_agrees_with_serde_json(text in r#"[\[\]{}:,"a\\u01e\.\-n \x01é]{0,24}"#) {
            prop_assert_eq!(is_json(&text), serde_json::from_str::<IgnoredAny>(&text).is_ok());
        }

        #[test]
        fn it_agrees_on_strings(inner in ".{0,200}", cut in 0usize..220) {
            let mut text = serde_json::to_string(&inner).unwrap();
            text.truncate((0..=cut.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0));
            prop_assert_eq!(is_json(&text), serde_json::from_str::<IgnoredAny>(&text).is_ok());
        }
    }
}
