//! Suggests names that are similar to one that does not exist.

use std::cmp::Ordering;

/// The number of characters that are compared.
const LONGEST: usize = 128;

/// Returns the names most similar to `wanted`, best first: names that differ only in case and separators, names that
/// equal `wanted` after a server prefix, and names with a few typos.
///
/// ```
/// use bowline_text::nearest_few;
///
/// let names = ["github__create_issue", "github__list_issues", "slack__send"];
/// assert_eq!(nearest_few("create_isue", names, 3), ["github__create_issue"]);
/// ```
pub fn nearest_few<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>, limit: usize) -> Vec<&'a str> {
    let spelled = Spelled::of(wanted);
    let others = names.into_iter().filter(|name| *name != wanted);
    let mut near: Vec<(u32, &str)> =
        others.filter_map(|name| Some((spelled.distance(name)?, name))).collect();
    near.sort_unstable_by(|(left, one), (right, other)| match left.cmp(right) {
        Ordering::Equal => one.cmp(other),
        order => order,
    });
    near.truncate(limit);
    near.into_iter().map(|(_, name)| name).collect()
}

/// Returns the most similar name, if one is similar enough to suggest.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_few(wanted, names, 1).into_iter().next()
}

/// A name without case and separators.
struct Spelled(Vec<char>);

impl Spelled {
    fn of(name: &str) -> Self {
        let letters = name.chars().take(LONGEST).filter(|char| char.is_alphanumeric());
        Self(letters.flat_map(char::to_lowercase).collect())
    }

    /// Returns the distance to a name, or `None` if it is not similar.
    fn distance(&self, name: &str) -> Option<u32> {
        let Self(wanted) = self;
        if wanted.is_empty() {
            return None;
        }
        let whole = slips(wanted, &Self::of(name).0);
        // A server prefix is often missing or wrong.
        let behind_server = name.split_once("__").and_then(|(_, own)| slips(wanted, &Self::of(own).0));
        match (whole, behind_server) {
            (Some(whole), Some(behind)) => Some(whole.min(behind + 1)),
            (whole, behind) => whole.or_else(|| behind.map(|slips| slips + 1)),
        }
    }
}

/// Returns the number of omitted, added, replaced or swapped letters, or `None` for more than a third of them.
fn slips(left: &[char], right: &[char]) -> Option<u32> {
    let most = left.len().max(right.len()) / 3;
    if left.len().abs_diff(right.len()) > most {
        return None;
    }
    // Three rows of the edit distance table: the one before the previous, the previous, and the current one.
    let mut earlier: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, char) in left.iter().enumerate() {
        let mut next = Vec::with_capacity(last.len());
        next.push(row + 1);
        for (column, other) in right.iter().enumerate() {
            let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX / 2);
            let replaced = at(&last, column) + usize::from(char != other);
            let mut best = replaced.min(at(&last, column + 1) + 1).min(at(&next, column) + 1);
            let is_swap = row > 0
                && column > 0
                && left.get(row - 1) == Some(other)
                && right.get(column - 1) == Some(char);
            if is_swap {
                best = best.min(at(&earlier, column - 1) + 1);
            }
            next.push(best);
        }
        if next.iter().all(|distance| *distance > most) {
            return None;
        }
        earlier = std::mem::replace(&mut last, next);
    }
    let distance = last.last().copied().filter(|distance| *distance <= most)?;
    u32::try_from(distance).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = [
        "github__create_issue",
        "gitlab__create-issue",
        "jira__createIssue",
        "github__list_issues",
        "atlas__get_tide",
    ];

    #[test]
    fn names_are_found_without_server_separators_and_case() {
        assert_eq!(
            nearest_few("createIssue", NAMES, 3),
            ["github__create_issue", "gitlab__create-issue", "jira__createIssue"],
        );
        assert_eq!(nearest_few("GITHUB.create.issue", NAMES, 1), ["github__create_issue"]);
        assert_eq!(nearest_few("get_tied", NAMES, 3), ["atlas__get_tide"]);
    }

    #[test]
    fn dissimilar_names_are_not_suggested() {
        assert_eq!(nearest_few("weather", NAMES, 3), [""; 0]);
        assert_eq!(nearest_few("", NAMES, 3), [""; 0]);
        assert_eq!(nearest_few("___", NAMES, 3), [""; 0]);
    }

    #[test]
    fn a_typo_is_similar_and_another_word_is_not() {
        assert_eq!(nearest("env_file", ["envFile", "env"]), Some("envFile"));
        assert_eq!(nearest("Command", ["command"]), Some("command"));
        assert_eq!(nearest("comand", ["args", "command"]), Some("command"));
        assert_eq!(nearest("agrs", ["args", "env"]), Some("args"));
        assert_eq!(nearest("colour", ["command", "args", "env"]), None);
        assert_eq!(nearest("url", ["env", "cwd"]), None);
        assert_eq!(nearest("NONE", ["HOME"]), None);
        assert_eq!(nearest("home", ["home"]), None);
    }

    #[test]
    fn typos_are_counted() {
        let count = |left: &str, right: &str| {
            slips(&left.chars().collect::<Vec<_>>(), &right.chars().collect::<Vec<_>>())
        };
        assert_eq!(count("abcdef", "abcdef"), Some(0));
        assert_eq!(count("abcdef", "abcfde"), Some(2));
        assert_eq!(count("abcdef", "bacdef"), Some(1));
        assert_eq!(count("abcdef", "abxdef"), Some(1));
        assert_eq!(count("abcdef", "abdef"), Some(1));
        assert_eq!(count("abcdef", "uvwxyz"), None);
        assert_eq!(count("", ""), Some(0));
    }
}
