//! Removes secrets from audit entries and from messages that are shown.

use crate::tree::Tree;
use bowline_proto::uri::UrlParts;
use bowline_text::is_secret_name;
use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

mod message;

const MASK: &str = "***";

/// Parameters of a login page. Whoever knows them before the login ends can log the user in to another account.
const LOGIN_PARAMETERS: [&str; 6] = ["state", "code", "code_challenge", "nonce", "login_hint", "user_code"];

/// Shorter values would match unrelated text.
const SHORTEST: usize = 4;

/// Replaces secrets: known values everywhere, and all values whose name indicates a secret. Clones share their state.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, because a secret may contain a shorter one.
    secrets: Arc<RwLock<Vec<String>>>,
}

impl Redactor {
    /// Creates a redactor that knows these secrets.
    pub fn new(secrets: Vec<String>) -> Self {
        let redactor = Self::default();
        redactor.learn(secrets);
        redactor
    }

    /// Adds secrets to replace.
    pub fn learn(&self, secrets: impl IntoIterator<Item = String>) {
        let mut known = self.secrets.write().unwrap_or_else(PoisonError::into_inner);
        known.extend(secrets.into_iter().filter(|secret| secret.chars().count() >= SHORTEST));
        known.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        known.dedup();
    }

    fn known(&self) -> RwLockReadGuard<'_, Vec<String>> {
        self.secrets.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces known secrets in a text.
    pub fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in self.known().iter() {
            if text.contains(secret) {
                text = text.replace(secret, MASK);
            }
        }
        text
    }

    /// Redacts a name that may be a URI: also its user, password, and parameters with names of secrets.
    pub fn uri(&self, text: &str) -> String {
        let text = self.text(text);
        let Some(parts) = UrlParts::split(&text) else { return text };
        let (scheme, authority) = (parts.scheme, parts.masked_authority(MASK));
        let (path, query) = parts.tail.split_at(parts.tail.find(['?', '#']).unwrap_or(parts.tail.len()));
        let parameter = |parameter: &str| match parameter.split_once('=') {
            Some((name, _)) if is_secret_name(name) || LOGIN_PARAMETERS.contains(&name) => {
                format!("{name}={MASK}")
            }
            _ => parameter.to_owned(),
        };
        let query = query.split_inclusive(['?', '#', '&']).map(|part| {
            let end = part.strip_suffix(['?', '#', '&']).unwrap_or(part);
            parameter(end) + part.strip_prefix(end).unwrap_or_default()
        });
        format!("{scheme}://{authority}{path}{}", query.collect::<String>())
    }

    /// Redacts the text of a message and leaves everything else as it is, byte for byte: long numbers, repeated members, escapes.
    /// Returns the text and the number of replaced values. A text that is not JSON loses known secrets only.
    pub fn message(&self, text: &str) -> (String, usize) {
        message::redact(self, text)
    }

    /// Returns whether a text contains a known secret.
    fn has_secret(&self, text: &str) -> bool {
        self.known().iter().any(|secret| text.contains(secret))
    }

    pub(super) fn tree(&self, tree: Tree) -> Tree {
        let mask = || Tree::String(MASK.to_owned());
        match tree {
            Tree::Number(text) if self.known().iter().any(|secret| text.contains(secret)) => mask(),
            Tree::Null | Tree::Bool(_) | Tree::Number(_) => tree,
            Tree::String(text) => Tree::String(self.text(&text)),
            // An unparsed value could contain a secret in an unrecognized form.
            Tree::Unread(_) => mask(),
            Tree::List(items) => Tree::List(items.into_iter().map(|item| self.tree(item)).collect()),
            Tree::Object(members) => {
                let member = |(name, value): (String, Tree)| {
                    let value = if is_secret_name(&name) { mask() } else { self.tree(value) };
                    (self.text(&name), value)
                };
                Tree::Object(members.into_iter().map(member).collect())
            }
        }
    }
}

/// Secrets are not printed.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Layout;
    use bowline_types::RawJson;

    #[test]
    fn secrets_are_replaced_wherever_they_are() {
        let redactor = Redactor::new(vec!["hunter2-long".into(), "hunter2".into(), "12345".into()]);
        let redacted = |text: &str| {
            redactor.tree(Tree::of(&RawJson::parse(text.to_owned()).unwrap())).to_text(Layout::Line)
        };
        for (text, expected) in [
            (r#"{"a":"x hunter2 y","b":["\u0068unter2-long"]}"#, r#"{"a":"x *** y","b":["***"]}"#),
            (r#"{"hunter2":1,"n":9123456,"m":1234}"#, r#"{"***":1,"m":1234,"n":"***"}"#),
            (
                r#"{"apiKey":{"deep":1},"Authorization":"Bearer x","path":"p"}"#,
                r#"{"Authorization":"***","apiKey":"***","path":"p"}"#,
            ),
            (r#"{"a":"\ud800hunter2"}"#, r#"{"a":"***"}"#),
        ] {
            assert_eq!(redacted(text), expected);
        }
        assert_eq!(redactor.text("hunter2-long hunter2"), "*** ***");
        for (uri, expected) in [
            (
                "https://a.example/p?x=1&access_token=abc&y=2#key=z",
                "https://a.example/p?x=1&access_token=***&y=2#key=***",
            ),
            ("https://u:p@a.example", "https://***@a.example"),
            (
                "https://a.example/authorize?client_id=c&state=s&code_challenge=x&scope=a",
                "https://a.example/authorize?client_id=c&state=***&code_challenge=***&scope=a",
            ),
            ("file:///srv/a?b", "file:///srv/a?b"),
            ("plain?token=x", "plain?token=x"),
        ] {
            assert_eq!(redactor.uri(uri), expected);
        }
    }
}
