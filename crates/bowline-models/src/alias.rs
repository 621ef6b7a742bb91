//! Shortens and replaces tool names and ids for providers that are stricter than the protocol.

use std::collections::HashMap;

/// Maps names to unique aliases.
#[derive(Debug)]
pub(super) struct Aliases {
    longest: usize,
    /// The aliases by name.
    sent: HashMap<String, String>,
    /// The names by alias.
    names: HashMap<String, String>,
    /// The next number for aliases with the same prefix.
    next: HashMap<String, u32>,
}

/// The number of characters reserved for a number at the end of an alias.
const ROOM: usize = 6;

impl Aliases {
    /// Creates aliases of letters, digits, `_` and `-`, with a maximum length.
    pub(super) fn new(longest: usize) -> Self {
        Self { longest, sent: HashMap::new(), names: HashMap::new(), next: HashMap::new() }
    }

    /// Returns the alias of a name: the name itself if it is valid.
    pub(super) fn sent(&mut self, name: &str) -> String {
        if let Some(sent) = self.sent.get(name) {
            return sent.clone();
        }
        let base: String = name.chars().map(|letter| if is_allowed(letter) { letter } else { '_' }).collect();
        let sent = if base == name && self.is_free(name) { base } else { self.numbered(&base) };
        self.sent.insert(name.to_owned(), sent.clone());
        self.names.insert(sent.clone(), name.to_owned());
        sent
    }

    /// Returns an unused alias that ends in a number.
    fn numbered(&mut self, base: &str) -> String {
        // `base` is ASCII, so it can be cut anywhere.
        let cut = |room: usize| base.get(..room.min(base.len())).unwrap_or_default();
        let start = cut(self.longest.saturating_sub(ROOM)).to_owned();
        let mut number = self.next.get(&start).copied().unwrap_or(1);
        loop {
            let suffix = format!("_{number}");
            let sent = format!("{}{suffix}", cut(self.longest.saturating_sub(suffix.len())));
            number += 1;
            if self.is_free(&sent) {
                self.next.insert(start, number);
                return sent;
            }
        }
    }

    fn is_free(&self, sent: &str) -> bool {
        !sent.is_empty() && sent.len() <= self.longest && !self.names.contains_key(sent)
    }

    /// Returns the name of an alias. An unknown alias is returned unchanged.
    pub(super) fn name<'a>(&'a self, sent: &'a str) -> &'a str {
        self.names.get(sent).map_or(sent, String::as_str)
    }
}

fn is_allowed(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_within_the_rules_stay() {
        let mut names = Aliases::new(8);
        assert_eq!(names.sent("get_it-8"), "get_it-8");
        assert_eq!(names.sent("get_it-8"), "get_it-8");
        assert_eq!(names.name("get_it-8"), "get_it-8");
        assert_eq!(names.name("never"), "never");
    }

    #[test]
    fn identical_names_are_made_distinct() {
        // A search through all numbers for every name would take too long.
        for tail in ["", "x".repeat(80).as_str()] {
            let mut names = Aliases::new(64);
            let name = |number: u32| char::from_u32(0x4E00 + number).unwrap().to_string() + tail;
            let sent: std::collections::HashSet<_> =
                (0..10_000).map(|number| names.sent(&name(number))).collect();
            assert_eq!(sent.len(), 10_000);
            assert!(sent.iter().all(|sent| sent.len() <= 64));
        }
    }

    #[test]
    fn replaced_names_are_distinct_and_reversible() {
        let mut names = Aliases::new(8);
        for (name, sent) in [
            ("a.b", "a_b_1"),
            ("a/b", "a_b_2"),
            ("a_b_2", "a_b_2_3"),
            ("a_b", "a_b"),
            ("straße", "stra_e_1"),
            ("", "_1"),
            ("123456789", "123456_1"),
            ("12345678", "12345678"),
            ("123456789x", "123456_2"),
        ] {
            assert_eq!(names.sent(name), sent);
            assert_eq!(names.name(sent), name);
        }
    }
}
