//! The state that a handshake opened, and the headers that assign requests to it.

use super::{STREAM_2024, request::Outgoing};
use bowline_types::Revision;

/// The state that a handshake opened.
#[derive(Clone, Debug)]
pub(super) enum Session {
    None,
    /// A session of 2025-03-26 or later.
    Named {
        id: String,
        revision: Option<Revision>,
    },
    /// A connection of 2024-11-05, with the path for messages.
    TwoEndpoints {
        path: String,
    },
}

impl Session {
    /// Adds the session headers to a request.
    pub(super) fn own(&self, request: Outgoing) -> Outgoing {
        let Self::Named { id, revision } = self else { return request };
        let request = request.header("mcp-session-id", id);
        match revision {
            // 2025-03-26 does not have this header.
            Some(revision) if *revision >= Revision::V2025_06_18 => {
                request.header("mcp-protocol-version", revision.as_str())
            }
            _ => request,
        }
    }
}

/// Returns the path of a reference from the event stream of 2024-11-05.
pub(super) fn resolve(reference: &str) -> String {
    let path = reference
        .split_once("://")
        .map_or(reference, |(_, rest)| rest.find('/').and_then(|start| rest.get(start..)).unwrap_or("/"));
    match path.chars().next() {
        Some('/') => path.to_owned(),
        Some('?') => format!("{STREAM_2024}{path}"),
        // The path of the stream has only one segment.
        _ => format!("/{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::resolve;

    #[test]
    fn a_reference_is_resolved_against_the_stream() {
        for (reference, path) in [
            ("?sessionId=1", "/sse?sessionId=1"),
            ("/messages?sessionId=1", "/messages?sessionId=1"),
            ("messages?sessionId=1", "/messages?sessionId=1"),
            ("http://127.0.0.1:1/messages?to=a://b", "/messages?to=a://b"),
            ("http://127.0.0.1:1", "/"),
        ] {
            assert_eq!(resolve(reference), path);
        }
    }
}
