//! Hints between processes. A hint that gets lost costs time, never correctness.

use bowline_proto::subscribe::Change;
use bowline_types::Id;

/// A hint.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Hint {
    /// The record of a session changed or is gone; its digest.
    Session(String),
    /// A record that somebody waits for changed; its key.
    Key(String),
    /// A client cancelled a request; the digest of its session.
    Cancel(String, Id),
    /// Something changed at the server.
    Change(Change),
}

impl Hint {
    /// Writes the hint of a process.
    pub(super) fn write(&self, node: &str) -> String {
        match self {
            Self::Session(digest) => format!("{node} session {digest}"),
            Self::Key(key) => format!("{node} key {key}"),
            Self::Cancel(digest, id) => {
                format!("{node} cancel {digest} {}", serde_json::to_string(id).unwrap_or_default())
            }
            Self::Change(Change::Tools) => format!("{node} tools "),
            Self::Change(Change::Prompts) => format!("{node} prompts "),
            Self::Change(Change::Resources) => format!("{node} resources "),
            Self::Change(Change::Resource(uri)) => format!("{node} resource {uri}"),
        }
    }

    /// Reads the hint of another process; `None` for those of this one.
    pub(super) fn read(text: &[u8], node: &str) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (from, rest) = text.split_once(' ')?;
        let (kind, rest) = rest.split_once(' ')?;
        if from == node {
            return None;
        }
        Some(match kind {
            "session" => Self::Session(rest.to_owned()),
            "key" => Self::Key(rest.to_owned()),
            "cancel" => {
                let (digest, id) = rest.split_once(' ')?;
                Self::Cancel(digest.to_owned(), serde_json::from_str(id).ok()?)
            }
            "tools" => Self::Change(Change::Tools),
            "prompts" => Self::Change(Change::Prompts),
            "resources" => Self::Change(Change::Resources),
            "resource" => Self::Change(Change::Resource(rest.to_owned())),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_of_others_are_read_as_written() {
        let hints = [
            Hint::Session("ab".into()),
            Hint::Key("stream/ab/1.2.3".into()),
            Hint::Cancel("ab".into(), Id::String("a b".into())),
            Hint::Cancel("ab".into(), Id::Number(-1)),
            Hint::Change(Change::Tools),
            Hint::Change(Change::Resource("file:///a%20b c".into())),
        ];
        for hint in hints {
            let text = hint.write("01");
            assert_eq!(Hint::read(text.as_bytes(), "02"), Some(hint));
            assert_eq!(Hint::read(text.as_bytes(), "01"), None);
        }
        for invalid in [&b""[..], b"01", b"01 session", b"01 other x", b"01 cancel ab", b"\xff session x"] {
            assert_eq!(Hint::read(invalid, "02"), None);
        }
    }
}
