//! The names under which callers see the tools and prompts of all servers.
//!
//! A name depends on its server and itself and on nothing else: adding a server renames nothing. `server__tool` where that
//! is a name every client takes; where it is not, what has to go is replaced and a digest of the original added.

use bowline_proto::seal::digest;

/// The default limit of the length of names. Some clients cut or reject longer ones.
pub const MAX_NAME: usize = 60;
/// Separates server and name. It never occurs in the part of the server.
const SEPARATOR: &str = "__";
/// How many characters of a digest are appended to a name that had to be changed.
const DIGEST: usize = 8;

/// Returns the name under which callers see `name` of `server`.
///
/// ```
/// use bowline_host::exposed_name;
///
/// assert_eq!(exposed_name("files", "read_file"), "files__read_file");
/// assert_eq!(exposed_name("my files", "read"), "my_files__read_976dccaf");
/// ```
pub fn exposed_name(server: &str, name: &str) -> String {
    name_within(MAX_NAME, server, name)
}

/// Does the same with another limit, which must be at least 16.
pub(crate) fn name_within(max: usize, server: &str, name: &str) -> String {
    let plain = format!("{server}{SEPARATOR}{name}");
    if plain.len() <= max && is_plain_server(server) && is_plain_name(name) {
        return plain;
    }
    marked(max, server, name, DIGEST)
}

/// Returns a longer name for one that collides with another.
pub(crate) fn longer_name(max: usize, server: &str, name: &str) -> String {
    marked(max, server, name, (2 * DIGEST).min(max / 2))
}

fn marked(max: usize, server: &str, name: &str, characters: usize) -> String {
    let full = digest(&[server.as_bytes(), name.as_bytes()]);
    let digits = full.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let mark: String =
        digits.filter_map(|digit| char::from_digit(digit.into(), 16)).take(characters).collect();
    let server = short(max, server);
    let room = max.saturating_sub(server.len() + SEPARATOR.len() + 1 + mark.len());
    let name = cut(&tame(name), room);
    format!("{server}{SEPARATOR}{name}_{mark}")
}

/// Returns whether something with this name may belong to this server.
pub(crate) fn may_be_of(max: usize, server: &str, shown: &str) -> bool {
    let is_before = |part: &str| shown.strip_prefix(part).is_some_and(|rest| rest.starts_with(SEPARATOR));
    is_before(server) || is_before(&short(max, server))
}

/// Returns the part of the server of a name that had to be changed.
fn short(max: usize, server: &str) -> String {
    let server = cut(&tame(server).replace(SEPARATOR, "_"), (max / 3).min(20));
    server.trim_end_matches('_').to_owned()
}

fn is_plain_server(server: &str) -> bool {
    is_plain_name(server) && !server.contains(SEPARATOR) && !server.ends_with('_')
}

fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_taken_everywhere) && !looks_marked(name)
}

/// Returns whether a character is a letter, digit, `_` or `-`, which all known clients accept.
fn is_taken_everywhere(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Returns whether a name looks like one that was changed. Such a name is changed as well, so that the two cannot be
/// confused.
fn looks_marked(name: &str) -> bool {
    name.rsplit_once('_').is_some_and(|(_, mark)| {
        (DIGEST..=2 * DIGEST).contains(&mark.len())
            && mark.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

fn tame(text: &str) -> String {
    let mut tamed = String::with_capacity(text.len());
    for character in text.chars() {
        let taken = u8::try_from(character).is_ok_and(is_taken_everywhere);
        let next = if taken { character } else { '_' };
        // A run of what is replaced is one `_`, so that nothing looks like the separator.
        if next != '_' || !tamed.ends_with('_') {
            tamed.push(next);
        }
    }
    tamed
}

fn cut(text: &str, length: usize) -> String {
    text.chars().take(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn plain_names_stay_readable() {
        assert_eq!(exposed_name("git", "commit-all"), "git__commit-all");
        assert_eq!(exposed_name("a_b", "c__d"), "a_b__c__d");
    }

    #[test]
    fn rejected_names_are_replaced_and_distinct() {
        // V-102
        let dotted = exposed_name("git", "repo.commit");
        assert!(dotted.starts_with("git__repo_commit_"), "{dotted}");
        assert_ne!(dotted, exposed_name("git", "repo/commit"));
        for name in [exposed_name("a__b", "c"), exposed_name("a", "b__c"), exposed_name("a_", "_b__c")] {
            assert!(name.len() <= MAX_NAME, "{name}");
        }
    }

    #[test]
    fn a_name_identifies_its_server() {
        // V-102
        for server in ["git", "a_b", "a__b", "my files", &"s".repeat(100)] {
            for tool in ["commit", "b__c", "repo.commit"] {
                for max in [16, 24, MAX_NAME] {
                    let name = name_within(max, server, tool);
                    assert!(may_be_of(max, server, &name), "{name} of {server}");
                    assert!(!may_be_of(max, "other", &name) && !may_be_of(max, "gi", &name), "{name}");
                }
            }
        }
    }

    #[test]
    fn no_two_originals_share_a_name() {
        // proves: TOOL-15
        // V-102
        let servers = ["a", "a_", "a__b", "A", "a b", "a-b", "ä", "", "files_0de2fb1f"];
        let tools = ["b", "b__c", "c", "_b", "é", "b c", "b_c", "x_0de2fb1f", "", "b.c"];
        let mut seen = HashSet::new();
        for server in servers {
            for tool in tools {
                let name = exposed_name(server, tool);
                assert!(name.len() <= MAX_NAME && name.bytes().all(is_taken_everywhere), "{name}");
                assert!(seen.insert(name.clone()), "{name} for {server} and {tool}");
            }
        }
    }

    #[test]
    fn names_fit_any_limit() {
        let (server, tool) = ("tickets".repeat(3), "create".repeat(5));
        for max in [16, 17, 24, 32, 60, 128] {
            let names = [name_within(max, &server, &tool), longer_name(max, &server, &tool)];
            assert!(names.iter().all(|name| name.len() <= max), "{max}: {names:?}");
            assert_ne!(names[0], name_within(max, &server, &format!("{tool}x")));
        }
        assert_eq!(name_within(128, &server, &tool), format!("{server}__{tool}"));
    }

    #[test]
    fn long_names_fit() {
        let (server, tool) = ("s".repeat(100), "t".repeat(200));
        let name = exposed_name(&server, &tool);
        assert_eq!(name.len(), MAX_NAME, "{name}");
        assert_ne!(name, exposed_name(&server, &format!("{tool}x")));
    }
}
