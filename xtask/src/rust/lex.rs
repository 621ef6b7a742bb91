//! What of a Rust file is code, and what is comment or text.

use super::is_identifier;

/// A file split into its code and its comments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    /// The file with every character of comments and of text literals replaced by a blank, line for line.
    pub(crate) code: String,
    pub(crate) comments: Vec<Comment>,
}

/// One line of a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) line: usize,
    /// Without the slashes, stars and blanks around it.
    pub(crate) text: String,
    pub(crate) audience: Audience,
}

/// Whom a comment speaks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Readers of the documentation: `///`, `//!`, `/**`, `/*!`.
    User,
    /// Readers of the source.
    Maintainer,
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let mut lexer = Lexer { rest: text, line: 1, source: Self::default() };
        lexer.run();
        lexer.source
    }

    /// Returns the lines of `code` with their numbers.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.code.lines())
    }
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    source: Source,
}

impl Lexer<'_> {
    fn run(&mut self) {
        while let Some(first) = self.rest.chars().next() {
            if self.rest.starts_with("//") {
                self.line_comment();
            } else if self.rest.starts_with("/*") {
                self.block_comment();
            } else if is_identifier(first) {
                self.word();
            } else if first == '"' {
                self.blank(quoted_length(self.rest, '"'));
            } else if first == '\'' {
                self.blank_or_keep_quote();
            } else {
                self.keep(first.len_utf8());
            }
        }
    }

    fn line_comment(&mut self) {
        let length = self.rest.find('\n').unwrap_or(self.rest.len());
        let comment = &self.rest[..length];
        let is_doc =
            comment.starts_with("//!") || (comment.starts_with("///") && !comment.starts_with("////"));
        self.push_comment(self.line, comment.trim_start_matches(['/', '!']), audience(is_doc));
        self.blank(length);
    }

    fn block_comment(&mut self) {
        let length = block_length(self.rest);
        let comment = &self.rest[..length];
        let is_doc = comment.starts_with("/*!")
            || (comment.starts_with("/**") && !comment.starts_with("/***") && comment.len() > "/**/".len());
        let inner = comment.trim_start_matches(['/', '*', '!']).trim_end_matches(['/', '*']);
        for (line, text) in (self.line..).zip(inner.lines()) {
            self.push_comment(line, text.trim().trim_start_matches('*'), audience(is_doc));
        }
        self.blank(length);
    }

    fn push_comment(&mut self, line: usize, text: &str, audience: Audience) {
        self.source.comments.push(Comment { line, text: text.trim().to_owned(), audience });
    }

    /// Reads an identifier, a number, or the prefix of a raw string literal.
    fn word(&mut self) {
        let length = self.rest.find(|next| !is_identifier(next)).unwrap_or(self.rest.len());
        let (word, after) = self.rest.split_at(length);
        let raw = if matches!(word, "r" | "br" | "cr") { raw_length(after) } else { None };
        self.keep(length);
        if let Some(raw) = raw {
            self.blank(raw);
        }
    }

    /// Blanks a character literal and keeps a lifetime; only the literal has a second quote.
    fn blank_or_keep_quote(&mut self) {
        let mut after = self.rest.chars().skip(1);
        match (after.next(), after.next()) {
            (Some('\\'), _) | (Some(_), Some('\'')) => self.blank(quoted_length(self.rest, '\'')),
            _ => self.keep(1),
        }
    }

    fn keep(&mut self, length: usize) {
        let (kept, rest) = self.rest.split_at(length);
        self.line += kept.matches('\n').count();
        self.source.code.push_str(kept);
        self.rest = rest;
    }

    fn blank(&mut self, length: usize) {
        let (blanked, rest) = self.rest.split_at(length);
        self.line += blanked.matches('\n').count();
        self.source.code.extend(blanked.chars().map(|next| if next == '\n' { '\n' } else { ' ' }));
        self.rest = rest;
    }
}

fn audience(is_doc: bool) -> Audience {
    if is_doc { Audience::User } else { Audience::Maintainer }
}

/// Returns the length of a literal with escapes that begins and ends with `quote`.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut characters = text.char_indices().skip(1);
    while let Some((offset, next)) = characters.next() {
        if next == '\\' {
            characters.next();
        } else if next == quote {
            return offset + quote.len_utf8();
        }
    }
    text.len()
}

/// Returns the length of `#"…"#` with any number of hashes, or nothing when `text` does not begin so.
fn raw_length(text: &str) -> Option<usize> {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let inner = text[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", &text[..hashes]);
    let length = inner.find(&end).map_or(inner.len(), |offset| offset + end.len());
    Some(hashes + 1 + length)
}

/// Returns the length of a block comment, which may hold others.
fn block_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut offset = 0;
    while let Some(next) = text[offset..].chars().next() {
        if text[offset..].starts_with("/*") {
            depth += 1;
            offset += 2;
        } else if text[offset..].starts_with("*/") {
            depth -= 1;
            offset += 2;
            if depth == 0 {
                return offset;
            }
        } else {
            offset += next.len_utf8();
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::{Audience, Source};

    /// Checks what remains as code, with runs of blanks as one.
    fn check(text: &str, expected: &str) {
        let code = Source::new(text).code;
        assert_eq!(code.lines().count(), text.lines().count(), "lines keep their numbers");
        assert_eq!(code.split_whitespace().collect::<Vec<_>>().join(" "), expected);
    }

    #[test]
    fn text_is_not_code() {
        check(r#"a("println!", b"x\"y", c"z") + 1"#, "a( , b , c ) + 1");
        check("a(r\"\\\", r#\"say \"hi\"\"#, br##\"\"#\"##, r#type)", "a(r , r , br , r#type)");
        check("let s = \"two\nlines\"; b", "let s = ; b");
        check("let unterminated = \"…", "let unterminated =");
    }

    #[test]
    fn quotes_of_lifetimes_are_code() {
        check("fn f<'a>(x: &'a str) -> char { '{' }", "fn f<'a>(x: &'a str) -> char { }");
        check(r"('\'', '\u{7b}', 'é', b'}', 'static)", "( , , , b , 'static)");
    }

    #[test]
    fn comments_are_not_code() {
        check("a // b\nc /* d /* e */ f\n */ g", "a c g");
        check("a / b /* open", "a / b");
    }

    #[test]
    fn comments_know_their_line_and_audience() {
        let source = Source::new(
            "//! Top.\n/// Doc.\n//// Not doc.\nfn f() {} // why: x\n/* one\n * two */\n/** doc */\n/**/",
        );
        let comments: Vec<_> =
            source.comments.iter().map(|found| (found.line, found.text.as_str(), found.audience)).collect();
        assert_eq!(
            comments,
            [
                (1, "Top.", Audience::User),
                (2, "Doc.", Audience::User),
                (3, "Not doc.", Audience::Maintainer),
                (4, "why: x", Audience::Maintainer),
                (5, "one", Audience::Maintainer),
                (6, "two", Audience::Maintainer),
                (7, "doc", Audience::User),
            ]
        );
    }
}
