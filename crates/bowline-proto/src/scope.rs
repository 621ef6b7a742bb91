//! Sets of OAuth scopes.

use std::fmt;

/// A set of scopes in the order in which they were added.
///
/// ```
/// use bowline_proto::scope::Scopes;
///
/// let granted = Scopes::parse("notes:read notes:write notes:read");
/// assert_eq!(granted.to_string(), "notes:read notes:write");
/// assert!(granted.covers(&Scopes::from_iter(["notes:read"])));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Scopes(Vec<String>);

impl Scopes {
    /// Creates an empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Reads a list that is separated by spaces. Text that is not a scope (RFC 6749, 3.3) is left out.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        text.split_ascii_whitespace().collect()
    }

    /// Adds a scope. Returns `false` if it is present already or is not a valid scope.
    pub fn insert(&mut self, scope: &str) -> bool {
        let add = is_scope(scope) && !self.contains(scope);
        if add {
            self.0.push(scope.to_owned());
        }
        add
    }

    /// Adds all scopes of `other`.
    pub fn extend(&mut self, other: &Self) {
        for scope in other.iter() {
            self.insert(scope);
        }
    }

    /// Returns the scopes of both sets, those of `self` first.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        union.extend(other);
        union
    }

    /// Returns whether `scope` is in the set.
    #[must_use]
    pub fn contains(&self, scope: &str) -> bool {
        self.0.iter().any(|known| known == scope)
    }

    /// Returns whether every scope of `needed` is in the set.
    #[must_use]
    pub fn covers(&self, needed: &Self) -> bool {
        needed.iter().all(|scope| self.contains(scope))
    }

    /// Returns the scopes in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns the number of scopes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl PartialEq for Scopes {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.covers(other)
    }
}

impl Eq for Scopes {}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

impl<S: AsRef<str>> FromIterator<S> for Scopes {
    fn from_iter<I: IntoIterator<Item = S>>(scopes: I) -> Self {
        let mut set = Self::new();
        for scope in scopes {
            set.insert(scope.as_ref());
        }
        set
    }
}

/// Returns whether `text` is a scope token: visible ASCII except `"` and `\`.
#[must_use]
pub fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_keeps_its_order_and_ignores_it_in_comparisons() {
        let first = Scopes::from_iter(["b", "a", "b"]);
        assert_eq!(first.to_string(), "b a");
        assert_eq!(first, Scopes::parse("a b"));
        assert_ne!(first, Scopes::parse("a b c"));
    }

    #[test]
    fn text_that_is_not_a_scope_is_left_out() {
        let scopes = Scopes::parse("ok \u{7}bell quo\"te back\\slash caf\u{e9} x:y/z.w");
        assert_eq!(scopes.to_string(), "ok x:y/z.w");
    }

    #[test]
    fn covers_asks_for_every_scope() {
        let granted = Scopes::parse("a b");
        assert!(granted.covers(&Scopes::new()));
        assert!(granted.covers(&Scopes::parse("b")));
        assert!(!granted.covers(&Scopes::parse("b c")));
        assert_eq!(granted.union(&Scopes::parse("c a")).to_string(), "a b c");
    }
}
