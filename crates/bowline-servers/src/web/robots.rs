//! `robots.txt` by RFC 9309.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The user agent that rules can name, besides `*`.
const AGENT: &str = "bowline";
/// The maximum size of a file.
const MAX_FILE: usize = 512 * 1024;
/// The maximum number of rules per file.
const MAX_RULES: usize = 10_000;
/// How long a file is cached.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
/// The maximum number of cached sites.
const MAX_SITES: usize = 256;

/// A cache of rules per site.
#[derive(Clone, Debug, Default)]
pub(super) struct Robots(Arc<Mutex<Sites>>);

/// The time and the rules of each site.
type Sites = HashMap<String, (Instant, Arc<Rules>)>;

impl Robots {
    /// Returns the cached rules of a site.
    pub(super) fn known(&self, origin: &str) -> Option<Arc<Rules>> {
        let sites = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (read, rules) = sites.get(origin)?;
        (read.elapsed() < LIFETIME).then(|| Arc::clone(rules))
    }

    /// Caches the rules of a site. The oldest entry is evicted.
    pub(super) fn remember(&self, origin: String, rules: Rules) -> Arc<Rules> {
        let rules = Arc::new(rules);
        let mut sites = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sites.len() >= MAX_SITES
            && let Some(oldest) =
                sites.iter().min_by_key(|(_, (read, _))| *read).map(|(origin, _)| origin.clone())
        {
            sites.remove(&oldest);
        }
        sites.insert(origin, (Instant::now(), Arc::clone(&rules)));
        rules
    }
}

/// The rules of a file for our user agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// Allow and disallow rules by path pattern.
    rules: Vec<(String, bool)>,
}

impl Rules {
    /// Disallows everything, for sites that return a server error.
    pub(super) fn nothing() -> Self {
        Self { rules: vec![("/".into(), false)] }
    }

    /// Parses the rules for our user agent, or else for `*`.
    pub(super) fn parse(file: &[u8]) -> Self {
        let file = String::from_utf8_lossy(file.get(..MAX_FILE).unwrap_or(file));
        let (mut ours, mut everybody) = (None::<Vec<_>>, Vec::new());
        // Consecutive user agents share the rules that follow.
        let (mut is_ours, mut is_everybody, mut in_agents) = (false, false, false);
        for line in file.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((name, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match name.trim().to_ascii_lowercase().as_str() {
                "user-agent" => {
                    if !in_agents {
                        (is_ours, is_everybody) = (false, false);
                    }
                    in_agents = true;
                    is_ours |= value.eq_ignore_ascii_case(AGENT);
                    is_everybody |= value == "*";
                    if is_ours {
                        ours.get_or_insert_default();
                    }
                }
                kind @ ("allow" | "disallow") => {
                    in_agents = false;
                    // An empty rule has no effect.
                    if value.is_empty() {
                        continue;
                    }
                    let rule = (normalized(value), kind == "allow");
                    match &mut ours {
                        Some(ours) if is_ours && ours.len() < MAX_RULES => ours.push(rule),
                        _ if is_everybody && everybody.len() < MAX_RULES => everybody.push(rule),
                        _ => {}
                    }
                }
                _ => in_agents = false,
            }
        }
        Self { rules: ours.unwrap_or(everybody) }
    }

    /// Returns whether a path with its query is allowed. The longest matching rule wins; `allow` wins ties.
    pub(super) fn allows(&self, path: &str) -> bool {
        let path = normalized(path);
        if path == "/robots.txt" {
            return true;
        }
        let fitting = self.rules.iter().filter(|(pattern, _)| fits(pattern.as_bytes(), path.as_bytes()));
        fitting.max_by_key(|(pattern, allow)| (pattern.len(), *allow)).is_none_or(|(_, allow)| *allow)
    }
}

/// Normalizes percent-encoding, so that `%7e` and `~` are equal.
fn normalized(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut text = String::with_capacity(path.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escaped = (*byte == b'%')
            .then(|| bytes.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        let (byte, length) = escaped.map_or((*byte, 1), |escaped| (escaped, 3));
        // `%2F` stays encoded, and so do pattern characters.
        let plain = byte.is_ascii_graphic()
            && (length == 1 || !matches!(byte, b'/' | b'%' | b'*' | b'$' | b'?' | b'#'));
        if plain {
            text.push(char::from(byte));
        } else {
            text.push_str(&crate::percent::escape(byte));
        }
        at += length;
    }
    text
}

/// Matches a path against a pattern: `*` matches any text, `$` at the end anchors it. Takes at most quadratic time.
fn fits(pattern: &[u8], path: &[u8]) -> bool {
    let (pattern, to_end) = match pattern.strip_suffix(b"$") {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let (mut at, mut in_path) = (0, 0);
    // Where to continue if the last star has to match more.
    let mut star = None;
    loop {
        match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                star = Some((at, in_path));
                continue;
            }
            Some(byte) if path.get(in_path) == Some(byte) => {
                at += 1;
                in_path += 1;
                continue;
            }
            None if !to_end || in_path == path.len() => return true,
            Some(_) | None => {}
        }
        let Some((after, from)) = star.filter(|(_, from)| *from < path.len()) else { return false };
        (at, in_path) = (after, from + 1);
        star = Some((after, from + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &str, path: &str, expected: bool) {
        assert_eq!(Rules::parse(file.as_bytes()).allows(path), expected, "{path} by {file}");
    }

    #[test]
    fn the_longest_rule_wins() {
        let file = "User-agent: *\nDisallow: /private/ # all of it\nAllow: /private/open\nDisallow:\n";
        check(file, "/", true);
        check(file, "/private/x", false);
        check(file, "/private/open/x", true);
        check(file, "/privately", true);
        check("user-agent: *\ndisallow: /a\nallow: /a", "/a", true);
        check("", "/", true);
        check("Disallow: /", "/", true);
        check("User-agent: *\nDisallow: /", "/robots.txt", true);
    }

    #[test]
    fn specific_robots_rules_have_precedence() {
        let file = "User-agent: other\nUser-agent: BowLine\nDisallow: /ours\n\nUser-agent: *\nDisallow: /\n";
        check(file, "/ours", false);
        check(file, "/else", true);
        check("User-agent: *\nDisallow: /\nUser-agent: bowline\n", "/", true);
        check("User-agent: other\nDisallow: /", "/", true);
    }

    #[test]
    fn patterns_have_stars_and_ends() {
        let check = |pattern: &str, path: &str, expected| {
            assert_eq!(fits(pattern.as_bytes(), path.as_bytes()), expected, "{pattern} {path}");
        };
        check("/*.pdf$", "/a/b.pdf", true);
        check("/*.pdf$", "/a/b.pdf?x", false);
        check("/*.pdf", "/a/b.pdf?x", true);
        check("/a*b*c", "/axxbxxbxc", true);
        check("/a*b*c", "/axxbxx", false);
        check("/$", "/", true);
        check("/$", "/a", false);
        check("*", "", true);
        // In time, whatever the pattern.
        check(&format!("/{}x", "*a".repeat(200)), &format!("/{}", "a".repeat(5000)), false);
        super::tests::check("User-agent: *\nDisallow: /~ann", "/%7eann/", false);
        super::tests::check("User-agent: *\nDisallow: /%7Eann", "/~ann/", false);
        super::tests::check("User-agent: *\nDisallow: /a%2Fb", "/a/b", true);
        super::tests::check("User-agent: *\nDisallow: /ä", "/%C3%A4", false);
    }
}
