//! Decides in one place whether a message belongs to a legacy session or describes itself.
//!
//! Both eras may share a connection or an endpoint, so each message is classified on its own. What a transport knows besides
//! the message is an argument; nothing else in the workspace chooses the era of a message.

use super::RevisionSet;
use crate::{envelope::MethodName, params::RequestMeta};
use bowline_types::{Era, Method, Revision, RpcError};

/// What a message is, as far as its era depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageKind {
    /// A request.
    Request {
        /// Whether its `_meta` has a key that only self-describing requests have.
        describes_itself: bool,
        /// Whether it is `initialize`.
        is_initialize: bool,
    },
    /// A notification, a response or a batch.
    Other,
}

impl MessageKind {
    /// Describes a request. One whose `_meta` cannot be read does not describe itself.
    pub fn request(method: &MethodName, meta: Result<&RequestMeta, &RpcError>) -> Self {
        Self::Request {
            describes_itself: meta.is_ok_and(|meta| meta.is_modern),
            is_initialize: *method == MethodName::Known(Method::Initialize),
        }
    }
}

/// What the transport of a message knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A byte stream, which has at most one legacy session.
    Stream {
        /// Whether `initialize` was answered.
        has_session: bool,
    },
    /// A POST request to an endpoint of both eras.
    Post {
        /// Whether it carries `Mcp-Session-Id`.
        has_session: bool,
        /// What its `MCP-Protocol-Version` names.
        version: HeaderVersion,
    },
}

/// What the header `MCP-Protocol-Version` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderVersion {
    /// There is no such header.
    Absent,
    /// A revision with sessions.
    Legacy,
    /// A revision without sessions, or no known revision.
    Other,
}

impl HeaderVersion {
    /// Classifies the value of the header.
    pub fn of(value: Option<&[u8]>) -> Self {
        let Some(value) = value else { return Self::Absent };
        let revision = std::str::from_utf8(value).ok().and_then(Revision::parse);
        if revision.is_some_and(|revision| revision.era() == Era::Legacy) {
            Self::Legacy
        } else {
            Self::Other
        }
    }
}

/// By which rules a message is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// It describes itself (2026-07-28), or has to.
    Modern,
    /// It belongs to a legacy session.
    Session,
    /// It precedes a legacy session: `initialize`, or on a stream anything else before it.
    Opening,
}

/// Decides by which rules a server that supports `revisions` handles a message.
pub fn classify(revisions: RevisionSet, transport: Transport, message: MessageKind) -> Handling {
    let (describes_itself, is_initialize) = match message {
        MessageKind::Request { describes_itself, is_initialize } => (describes_itself, is_initialize),
        MessageKind::Other => (false, false),
    };
    match transport {
        // A server without modern revisions ignores the keys of self-describing requests, as servers of its time do. A
        // client that probes it learns from the answer what it is.
        Transport::Stream { .. } if describes_itself && revisions.has_modern() => Handling::Modern,
        Transport::Stream { has_session: true } => Handling::Session,
        Transport::Stream { has_session: false } => Handling::Opening,
        // Over HTTP such a server answers with the revisions that it supports.
        Transport::Post { .. } if describes_itself => Handling::Modern,
        Transport::Post { has_session, version } => {
            let has_sessions = revisions.newest_legacy().is_some();
            if is_initialize && !(has_session && has_sessions) {
                return Handling::Opening;
            }
            // The session refuses a second `initialize`.
            if has_sessions && version != HeaderVersion::Other { Handling::Session } else { Handling::Modern }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use HeaderVersion::{Absent, Legacy, Other};

    const BOTH: RevisionSet = RevisionSet::ALL;
    const LEGACY: RevisionSet = RevisionSet::NONE.with(Revision::V2025_11_25);
    const MODERN: RevisionSet = RevisionSet::NONE.with(Revision::V2026_07_28);

    const MODERN_REQUEST: MessageKind = MessageKind::Request { describes_itself: true, is_initialize: false };
    const PLAIN_REQUEST: MessageKind = MessageKind::Request { describes_itself: false, is_initialize: false };
    const INITIALIZE: MessageKind = MessageKind::Request { describes_itself: false, is_initialize: true };
    const MODERN_INITIALIZE: MessageKind =
        MessageKind::Request { describes_itself: true, is_initialize: true };

    #[test]
    fn streams() {
        for (revisions, has_session, message, expected) in [
            (BOTH, false, MODERN_REQUEST, Handling::Modern),
            (BOTH, true, MODERN_REQUEST, Handling::Modern),
            (BOTH, false, MODERN_INITIALIZE, Handling::Modern),
            (BOTH, false, INITIALIZE, Handling::Opening),
            (BOTH, true, INITIALIZE, Handling::Session),
            (BOTH, false, PLAIN_REQUEST, Handling::Opening),
            (BOTH, true, PLAIN_REQUEST, Handling::Session),
            (LEGACY, false, MODERN_REQUEST, Handling::Opening),
            (LEGACY, true, MODERN_REQUEST, Handling::Session),
            (MODERN, false, MODERN_REQUEST, Handling::Modern),
            (MODERN, false, INITIALIZE, Handling::Opening),
            (MODERN, false, PLAIN_REQUEST, Handling::Opening),
            (BOTH, true, MessageKind::Other, Handling::Session),
            (BOTH, false, MessageKind::Other, Handling::Opening),
        ] {
            let found = classify(revisions, Transport::Stream { has_session }, message);
            assert_eq!(found, expected, "{revisions:?} {has_session} {message:?}");
        }
    }

    #[test]
    fn posts() {
        for (revisions, has_session, version, message, expected) in [
            (BOTH, false, Other, MODERN_REQUEST, Handling::Modern),
            (BOTH, false, Absent, MODERN_REQUEST, Handling::Modern),
            (BOTH, true, Legacy, MODERN_REQUEST, Handling::Modern),
            (BOTH, false, Absent, INITIALIZE, Handling::Opening),
            (BOTH, false, Other, INITIALIZE, Handling::Opening),
            (BOTH, true, Legacy, INITIALIZE, Handling::Session),
            (BOTH, true, Other, INITIALIZE, Handling::Modern),
            (BOTH, false, Other, MODERN_INITIALIZE, Handling::Modern),
            (BOTH, true, Legacy, PLAIN_REQUEST, Handling::Session),
            (BOTH, true, Absent, PLAIN_REQUEST, Handling::Session),
            (BOTH, false, Absent, PLAIN_REQUEST, Handling::Session),
            (BOTH, false, Other, PLAIN_REQUEST, Handling::Modern),
            (LEGACY, false, Other, MODERN_REQUEST, Handling::Modern),
            (LEGACY, true, Legacy, PLAIN_REQUEST, Handling::Session),
            (MODERN, false, Absent, INITIALIZE, Handling::Opening),
            (MODERN, true, Absent, INITIALIZE, Handling::Opening),
            (MODERN, false, Absent, PLAIN_REQUEST, Handling::Modern),
            (MODERN, true, Legacy, PLAIN_REQUEST, Handling::Modern),
            (BOTH, true, Legacy, MessageKind::Other, Handling::Session),
            (BOTH, false, Absent, MessageKind::Other, Handling::Session),
            (BOTH, false, Other, MessageKind::Other, Handling::Modern),
            (MODERN, false, Absent, MessageKind::Other, Handling::Modern),
        ] {
            let found = classify(revisions, Transport::Post { has_session, version }, message);
            assert_eq!(found, expected, "{revisions:?} {has_session} {version:?} {message:?}");
        }
    }

    #[test]
    fn version_headers() {
        for (value, expected) in [
            (None, Absent),
            (Some("2024-11-05"), Legacy),
            (Some("2025-11-25"), Legacy),
            (Some("2026-07-28"), Other),
            (Some("1999-01-01"), Other),
            (Some(""), Other),
        ] {
            assert_eq!(HeaderVersion::of(value.map(str::as_bytes)), expected, "{value:?}");
        }
        assert_eq!(HeaderVersion::of(Some(b"\xff")), Other);
    }
}
