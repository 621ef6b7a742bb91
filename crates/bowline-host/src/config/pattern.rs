//! Patterns for names: plain text in which `*` stands for anything.

use std::fmt;

/// A name or, with `*` in it, all names of a form; letters are compared exactly.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern(String);

impl Pattern {
    /// Makes a pattern of the text; every text is one.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the whole of `name` has the form.
    pub fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            let Some(at) = rest.find(part) else { return false };
            let Some(after) = rest.get(at + part.len()..) else { return false };
            rest = after;
        }
        rest.ends_with(last)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn a_star_stands_for_anything_and_the_rest_for_itself() {
        for (pattern, name, expected) in [
            ("read", "read", true),
            ("read", "reads", false),
            ("read_*", "read_file", true),
            ("read_*", "read_", true),
            ("*_file", "read_file", true),
            ("*", "", true),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("**", "x", true),
            ("Read", "read", false),
            ("", "", true),
            ("", "x", false),
            ("ä*", "äö", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = Pattern::new("*a".repeat(200));
        assert!(!pattern.matches(&format!("{}b", "a".repeat(10_000))));
    }
}
