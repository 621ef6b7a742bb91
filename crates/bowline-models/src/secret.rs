//! A provider key that is sent to its provider and never printed.

use std::{fmt, sync::Arc};

/// What stands where a secret was.
const HIDDEN: &str = "***";
/// A text must not hold this many characters of a secret in a row.
const TELLING: usize = 8;
/// What is shorter is a placeholder, as servers on the own machine ask for, and no secret.
const SHORTEST: usize = 4;

/// A key, which neither `Debug` nor any error shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Keeps a secret. Blanks around it, such as the line break at the end of a file, do not belong to it.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().trim().into())
    }

    /// The secret itself, to be sent where it belongs and nowhere else.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A text without this secret.
    ///
    /// Parts of it go as well, and whole words in which somebody else has put stars for it: a provider that repeats a key
    /// it refuses leaves its beginning and its end.
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

    /// Replaces every run of characters that is a telling part of the secret.
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

/// How many characters two texts begin with in common.
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
