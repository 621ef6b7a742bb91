//! What tools and calls are named towards a provider whose rules for names are stricter than the protocol's.

/// Names, each with what is sent for it. No two share what is sent.
#[derive(Debug)]
pub(super) struct Aliases {
    longest: usize,
    pairs: Vec<(String, String)>,
}

impl Aliases {
    /// For names of letters, digits, `_` and `-`, up to a length.
    pub(super) fn new(longest: usize) -> Self {
        Self { longest, pairs: Vec::new() }
    }

    /// What is sent for a name: itself, if the rules allow.
    pub(super) fn sent(&mut self, name: &str) -> String {
        if let Some((_, sent)) = self.pairs.iter().find(|(known, _)| known == name) {
            return sent.clone();
        }
        let base: String = name.chars().map(|letter| if is_allowed(letter) { letter } else { '_' }).collect();
        let mut sent = base.clone();
        let mut number = 1;
        while sent != name && number == 1 || !self.is_free(&sent) {
            let suffix = format!("_{number}");
            // All of `base` is ASCII, so it can be cut anywhere.
            let room = self.longest.saturating_sub(suffix.len()).min(base.len());
            sent = format!("{}{suffix}", base.get(..room).unwrap_or_default());
            number += 1;
        }
        self.pairs.push((name.to_owned(), sent.clone()));
        sent
    }

    fn is_free(&self, sent: &str) -> bool {
        !sent.is_empty() && sent.len() <= self.longest && !self.pairs.iter().any(|(_, taken)| taken == sent)
    }

    /// The name that something was sent for; what was never sent stands for itself.
    pub(super) fn name<'a>(&'a self, sent: &'a str) -> &'a str {
        self.pairs.iter().find(|(_, known)| known == sent).map_or(sent, |(name, _)| name)
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
    fn other_names_are_told_apart_and_found_again() {
        let mut names = Aliases::new(8);
        for (name, sent) in [
            ("a.b", "a_b_1"),
            ("a/b", "a_b_2"),
            ("a_b_2", "a_b_2_1"),
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
