//! A provider key that is sent to its provider and never printed.

use std::{fmt, sync::Arc};

/// The replacement of a secret.
const HIDDEN: &str = "***";
/// The number of consecutive characters of a secret that must not appear in a text.
const TELLING: usize = 8;
/// Shorter values are placeholders for local providers, not secrets.
const SHORTEST: usize = 4;

/// An API key. `Debug` and errors do not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Creates a secret. Whitespace around it, such as a final line break, is removed.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().trim().into())
    }

    /// Returns the secret. Send it only to its provider.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns whether the secret is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes this secret from a text.
    ///
    /// Also removes parts of it, and words in which it is partly masked: providers often repeat the start and the end
    /// of a rejected key.
    pub fn scrub(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for piece in text.split_inclusive(char::is_whitespace) {
            let word = piece.trim_end();
            if word.contains("***") {
                out.push_str(HIDDEN);
                out.push_str(piece.get(word.len()..).unwrap_or_default());
            } else {
                out.push_str(piece);
            }
        }
        self.without_parts(&out)
    }

    /// Replaces every sequence of characters that is a significant part of the secret.
    fn without_parts(&self, text: &str) -> String {
        let secret: Vec<char> = self.0.chars().collect();
        if secret.len() < SHORTEST {
            return text.to_owned();
        }
        let least = TELLING.min(secret.len());
        let text: Vec<char> = text.chars().collect();
        let mut out = String::with_capacity(text.len());
        let mut position = 0;
        while let Some(rest) = text.get(position..).filter(|rest| !rest.is_empty()) {
            let longest =
                (0..secret.len()).map(|start| common(rest, secret.get(start..).unwrap_or_default()));
            let longest = longest.max().unwrap_or_default();
            if longest >= least {
                out.push_str(HIDDEN);
                position += longest;
            } else {
                out.extend(rest.first());
                position += 1;
            }
        }
        out
    }
}

/// Returns the length of the common prefix.
fn common(one: &[char], other: &[char]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::new("sk-proj-abcdefghij\n");
        assert_eq!(secret.expose(), "sk-proj-abcdefghij");
        assert_eq!(format!("{secret:?}"), "***");
    }

    #[test]
    fn a_text_contains_no_part_of_a_secret() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Secret::new("sk-proj-abcdefghijklmnop").scrub(text), expected);
        };
        check("key sk-proj-abcdefghijklmnop is bad", "key *** is bad");
        check("Bearer:sk-proj-abcdefghijklmnop;", "Bearer:***;");
        check("it ends in ijklmnop.", "it ends in ***.");
        check("Incorrect key: sk-pr***********mnop. See", "Incorrect key: *** See");
        check("sk-proj-abcdefghijklmnopsk-proj-abcdefghijklmnop", "******");
        check("an ordinary text,\nwith sk- in it", "an ordinary text,\nwith sk- in it");
        check("", "");
    }

    #[test]
    fn a_placeholder_does_not_change_text() {
        assert_eq!(Secret::new("x").scrub("xylophone"), "xylophone");
        assert_eq!(Secret::new("ollama").scrub("key `ollama`"), "key `***`");
        assert_eq!(Secret::new("").scrub("text"), "text");
    }
}
