//! Matches names and arguments by globs with one wildcard.

use super::{spelling, tree::Readings};
use std::fmt;

/// A glob pattern. `*` matches any number of characters, including none and including slashes. Every other character
/// matches itself.
///
/// `\*` is a literal star and `\\` a backslash. Matching is case-sensitive and applies to the whole text. Its time is
/// linear in the text for each part of the pattern, so no pattern is slow.
///
/// ```
/// use bowline_policy::Pattern;
///
/// assert!(Pattern::new("read_*").matches("read_file"));
/// assert!(!Pattern::new("read_*").matches("unread_file"));
/// assert!(Pattern::new("exact").matches("exact"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    /// The literal parts between the stars; a single part means that there is no star.
    pieces: Vec<String>,
    /// The parts in the normal form of URIs and paths, if that differs.
    plain: Option<Vec<String>>,
}

impl Pattern {
    /// Parses a pattern. Every text is a valid one.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let mut pieces = vec![String::new()];
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            let literal = match character {
                '*' => {
                    pieces.push(String::new());
                    continue;
                }
                '\\' => match characters.clone().next() {
                    Some(escaped @ ('*' | '\\')) => {
                        characters.next();
                        escaped
                    }
                    _ => '\\',
                },
                other => other,
            };
            if let Some(last) = pieces.last_mut() {
                last.push(literal);
            }
        }
        let plain = Some(spelling::plain_pieces(&pieces)).filter(|plain| *plain != pieces);
        Self { text, pieces, plain }
    }

    /// Returns a pattern that matches only this text.
    pub fn exact(text: &str) -> Self {
        Self::new(text.replace('\\', r"\\").replace('*', r"\*"))
    }

    /// Returns a pattern that matches texts with this prefix.
    pub fn starting_with(text: &str) -> Self {
        Self::new(format!("{}*", text.replace('\\', r"\\").replace('*', r"\*")))
    }

    /// Returns the pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        fits(&self.pieces, text)
    }

    /// Returns whether a URI, a path or another text matches in any of its spellings, or in all of them.
    pub fn matches_spellings(&self, text: &str, readings: Readings) -> bool {
        let fits =
            |form: &str| self.matches(form) || self.plain.as_ref().is_some_and(|plain| fits(plain, form));
        match readings {
            Readings::Any => {
                spelling::forms(text).iter().any(|form| fits(form) || self.matches_ignoring_case(form))
            }
            Readings::Every => {
                self.is_anything()
                    || (!spelling::may_have_parent_step(text)
                        && spelling::same_notation(text).iter().all(|form| fits(form)))
            }
        }
    }

    /// Returns whether the pattern matches every text.
    pub fn is_anything(&self) -> bool {
        self.pieces.len() > 1 && self.pieces.iter().all(String::is_empty)
    }

    /// Matches where file names are case-insensitive.
    fn matches_ignoring_case(&self, form: &str) -> bool {
        let plain = self.plain.as_ref().unwrap_or(&self.pieces);
        spelling::FILES_IGNORE_CASE
            && fits(&plain.iter().map(|piece| piece.to_lowercase()).collect::<Vec<_>>(), &form.to_lowercase())
    }
}

/// Returns whether a text consists of these parts with anything between them.
fn fits(pieces: &[String], text: &str) -> bool {
    let Some((first, rest)) = pieces.split_first() else { return text.is_empty() };
    let Some((last, middle)) = rest.split_last() else { return text == first };
    let Some(mut text) = text.strip_prefix(first.as_str()) else { return false };
    for piece in middle {
        let Some((_, behind)) = text.split_once(piece.as_str()) else { return false };
        text = behind;
    }
    text.ends_with(last.as_str())
}

impl From<&str> for Pattern {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Pattern({})", self.text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_any_characters() {
        for (pattern, text, matches) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "a/b", true),
            ("a", "a", true),
            ("a", "A", false),
            ("a*", "a", true),
            ("a*", "ba", false),
            ("*a", "ba", true),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("**", "x", true),
            (r"\*", "*", true),
            (r"\*", "x", false),
            (r"a\\*", r"a\b", true),
            (r"a\b", r"a\b", true),
            ("é*", "éa", true),
            ("read", "reads", false),
            ("read_*", "read_", true),
            ("*_file", "read_file", true),
            ("a*b*c", "a1b2b3c", true),
            ("Read", "read", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(text), matches, "{pattern} {text}");
        }
    }

    #[test]
    fn an_exact_pattern_matches_one_text() {
        for text in ["", "a", "*", r"a\*b", r"\\", "files*"] {
            let pattern = Pattern::exact(text);
            assert!(pattern.matches(text), "{text}");
            assert!(!pattern.matches(&format!("{text}x")), "{text}");
        }
    }

    #[test]
    fn no_pattern_takes_long() {
        let pattern = Pattern::new("a*".repeat(1000) + "b");
        assert!(!pattern.matches(&"a".repeat(100_000)));
        let pattern = Pattern::new("*a".repeat(200));
        assert!(!pattern.matches(&format!("{}b", "a".repeat(10_000))));
    }
}
