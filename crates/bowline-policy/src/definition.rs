//! The definition of a tool, and the digest that detects changes.

use bowline_types::{RawJson, Tool, ToolAnnotations};
use ring::digest::{SHA256, digest};
use std::fmt;
use std::sync::Arc;

use super::tree::{Layout, Tree};

/// The SHA-256 digest of a JSON value in canonical form, written as `sha256:` and hexadecimal digits.
///
/// The canonical form follows RFC 8785 (sorted members, no spaces, shortest escapes), except that numbers stay as
/// written. So numbers that only a parser with arbitrary precision distinguishes have different digests.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(Arc<str>);

impl Digest {
    /// Computes the digest of a value.
    pub fn of(json: &RawJson) -> Self {
        Self::of_tree(&Tree::of(json))
    }

    pub(crate) fn of_tree(tree: &Tree) -> Self {
        let text = tree.to_text(Layout::Canonical);
        let digest = digest(&SHA256, text.as_bytes());
        let digits = digest.as_ref().iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let digits = digits.filter_map(|digit| char::from_digit(digit.into(), 16));
        Self("sha256:".chars().chain(digits).collect::<String>().into())
    }

    /// Returns the digest as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The complete definition of a tool, because every member can carry an attack.
///
/// Create it when the tool is listed, and keep it. Clones share the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition(Arc<Inner>);

#[derive(Debug, PartialEq)]
struct Inner {
    name: String,
    title: Option<String>,
    annotations: Option<ToolAnnotations>,
    digest: Digest,
    pretty: String,
    json: RawJson,
}

impl Definition {
    /// Creates the definition of a tool as its server listed it, before any renaming.
    pub fn of(tool: &Tool) -> Self {
        let json = RawJson::of(tool).expect("a tool always has a JSON form");
        let tree = Tree::of(&json);
        let annotated = tool.annotations.as_ref().and_then(|annotations| annotations.title.clone());
        Self(Arc::new(Inner {
            name: tool.name.clone(),
            title: tool.title.clone().or(annotated),
            annotations: tool.annotations.clone(),
            digest: Digest::of_tree(&tree),
            pretty: tree.to_text(Layout::Pretty),
            json,
        }))
    }

    /// Returns the tool's name on its server.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the display name of the tool.
    pub fn title(&self) -> Option<&str> {
        self.0.title.as_deref()
    }

    /// Returns the annotations of the tool.
    pub fn annotations(&self) -> Option<&ToolAnnotations> {
        self.0.annotations.as_ref()
    }

    /// Returns whether the server marks the tool as read-only.
    pub(crate) fn claims_read_only(&self) -> bool {
        self.annotations()
            .is_some_and(|hints| hints.read_only_hint == Some(true) && hints.destructive_hint != Some(true))
    }

    /// Returns the digest of the definition.
    pub fn digest(&self) -> &Digest {
        &self.0.digest
    }

    /// Returns the definition with one member per line and invisible characters escaped.
    pub fn pretty(&self) -> &str {
        &self.0.pretty
    }

    pub(crate) fn json(&self) -> &RawJson {
        &self.0.json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Definition {
        Definition::of(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn the_digest_is_the_plain_sha_256_of_the_canonical_text() {
        assert_eq!(
            Digest::of(&RawJson::parse(" { } ").unwrap()).as_str(),
            "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
    }

    #[test]
    fn only_order_spaces_and_escapes_are_ignored() {
        // V-101
        let base = r#"{"name":"a","description":"d","inputSchema":{"type":"object","properties":{}},"x":1}"#;
        let same =
            r#"{"x":1, "inputSchema":{"properties":{},"type":"object"},"description":"\u0064","name":"a"}"#;
        assert_eq!(of(base).digest(), of(same).digest());
        for (from, to) in [
            (r#""name":"a""#, r#""name":"b""#),
            (r#""description":"d""#, r#""description":"d\u200b""#),
            (r#""description":"d""#, r#""description":"d","title":"t""#),
            (r#""properties":{}"#, r#""properties":{"p":{}}"#),
            (r#""properties":{}"#, r#""properties":{},"properties":{}"#),
            (r#""x":1"#, r#""x":2"#),
            (r#""x":1"#, r#""x":1,"outputSchema":{"type":"object"}"#),
            (r#""x":1"#, r#""x":1,"annotations":{"readOnlyHint":true}"#),
            (r#""x":1"#, r#""x":1,"icons":[{"src":"https://a.example/i.png"}]"#),
            (r#""x":1"#, r#""x":1,"_meta":{"a/b":1}"#),
        ] {
            assert!(base.contains(from));
            assert_ne!(of(base).digest(), of(&base.replace(from, to)).digest(), "{to}");
        }
    }
}
