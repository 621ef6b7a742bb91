//! How names and arguments are matched: by globs with one wildcard.

use std::fmt;

/// A glob: `*` stands for any run of characters, also none and also slashes; every other character for itself.
///
/// `\*` is a star and `\\` a backslash. Case counts. The whole text has to match, in time linear in it for every
/// piece of the pattern, so no pattern can be made to run long.
///
/// ```
/// use bowline_host::policy::Pattern;
///
/// assert!(Pattern::new("read_*").matches("read_file"));
/// assert!(!Pattern::new("read_*").matches("unread_file"));
/// assert!(Pattern::new("exact").matches("exact"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    /// What stands between the stars; one piece means no star.
    pieces: Vec<String>,
}

impl Pattern {
    /// Reads a pattern; every text is one.
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
        Self { text, pieces }
    }

    /// The pattern that this text matches, and no other.
    pub fn exact(text: &str) -> Self {
        Self::new(text.replace('\\', r"\\").replace('*', r"\*"))
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a text matches as a whole.
    pub fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.pieces.split_first() else { return text.is_empty() };
        let Some((last, middle)) = rest.split_last() else { return text == first };
        let Some(mut text) = text.strip_prefix(first.as_str()) else { return false };
        for piece in middle {
            let Some((_, behind)) = text.split_once(piece.as_str()) else { return false };
            text = behind;
        }
        text.ends_with(last.as_str())
    }
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
    fn stars_stand_for_any_run_of_characters() {
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
    fn no_pattern_runs_long() {
        let pattern = Pattern::new("a*".repeat(1000) + "b");
        assert!(!pattern.matches(&"a".repeat(100_000)));
        let pattern = Pattern::new("*a".repeat(200));
        assert!(!pattern.matches(&format!("{}b", "a".repeat(10_000))));
    }
}
