//! Scopes that include other scopes.

use crate::Scopes;
use std::{error::Error, fmt};

/// Which scopes imply which others.
///
/// ```
/// use bowline_auth::{Hierarchy, Scopes};
///
/// let hierarchy = Hierarchy::new([
///     ("admin", Scopes::parse("editor")),
///     ("editor", Scopes::parse("notes:read notes:write")),
/// ])?;
/// let implied = hierarchy.implied_by(&Scopes::parse("admin"));
/// assert_eq!(implied.to_string(), "editor notes:read notes:write");
/// # Ok::<(), bowline_auth::verify::ScopeCycle>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Hierarchy {
    /// Each scope with everything that it implies, directly or not.
    implied: Vec<(String, Scopes)>,
}

impl Hierarchy {
    /// Builds a hierarchy from rules. Rules for the same scope add up.
    ///
    /// Fails if a scope implies itself through others.
    pub fn new<S: Into<String>>(rules: impl IntoIterator<Item = (S, Scopes)>) -> Result<Self, ScopeCycle> {
        let mut direct: Vec<(String, Scopes)> = Vec::new();
        for (scope, implied) in rules {
            let scope = scope.into();
            match direct.iter_mut().find(|(known, _)| *known == scope) {
                Some((_, known)) => known.extend(&implied),
                None => direct.push((scope, implied)),
            }
        }
        let mut closed = Vec::new();
        for (scope, _) in &direct {
            let all = closure(&direct, scope);
            if all.contains(scope) {
                return Err(ScopeCycle { scope: scope.clone() });
            }
            closed.push((scope.clone(), all));
        }
        Ok(Self { implied: closed })
    }

    /// Returns the scopes that `granted` imply and do not contain.
    #[must_use]
    pub fn implied_by(&self, granted: &Scopes) -> Scopes {
        let mut all = Scopes::new();
        for (_, implied) in self.implied.iter().filter(|(scope, _)| granted.contains(scope)) {
            for scope in implied.iter().filter(|scope| !granted.contains(scope)) {
                all.insert(scope);
            }
        }
        all
    }
}

/// Returns everything that follows from `scope`, which contains `scope` itself if there is a cycle.
fn closure(direct: &[(String, Scopes)], scope: &str) -> Scopes {
    let mut all = Scopes::new();
    let mut open = vec![scope];
    while let Some(next) = open.pop() {
        let implied = direct.iter().find(|(known, _)| known == next).map(|(_, implied)| implied);
        for scope in implied.into_iter().flat_map(Scopes::iter) {
            if all.insert(scope) {
                open.push(scope);
            }
        }
    }
    all
}

/// A scope implies itself through others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeCycle {
    scope: String,
}

impl fmt::Display for ScopeCycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the scope `{}` implies itself; remove one of the rules", self.scope)
    }
}

impl Error for ScopeCycle {}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(rules: &[(&str, &str)]) -> Result<Hierarchy, ScopeCycle> {
        Hierarchy::new(rules.iter().map(|(scope, implied)| (*scope, Scopes::parse(implied))))
    }

    #[test]
    fn implication_is_transitive_and_one_way() {
        let hierarchy = build(&[("c", "d"), ("a", "b"), ("b", "c"), ("a", "x")]).unwrap();
        let implied = |granted: &str| hierarchy.implied_by(&Scopes::parse(granted));
        assert_eq!(implied("a"), Scopes::parse("b c d x"));
        assert_eq!(implied("b"), Scopes::parse("c d"));
        assert_eq!(implied("d x"), Scopes::new());
        // What was granted is not repeated.
        assert_eq!(implied("b c"), Scopes::parse("d"));
    }

    #[test]
    fn two_ways_to_the_same_scope_are_not_a_cycle() {
        let hierarchy = build(&[("a", "b c"), ("b", "d"), ("c", "d")]).unwrap();
        assert_eq!(hierarchy.implied_by(&Scopes::parse("a")), Scopes::parse("b c d"));
    }

    #[test]
    fn a_cycle_is_an_error() {
        for rules in [&[("a", "a")][..], &[("a", "b"), ("b", "c"), ("c", "a")]] {
            let error = build(rules).unwrap_err();
            assert_eq!(error.to_string(), "the scope `a` implies itself; remove one of the rules");
        }
    }
}
