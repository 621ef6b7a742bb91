//! GET and DELETE on a session.

use super::{
    reader::{Form, Reader, parse_event_id, priming},
    session::Session,
};
use crate::server::{body::Body, reply, service::Shared};
use bowline_types::Revision;
use http::{HeaderMap, Response, StatusCode};
use std::{sync::Arc, time::Duration};

/// Opens the session stream, or goes on with a stream that was interrupted.
///
/// The stream ends after `time`; its client comes back with a new token.
pub(in crate::server) fn get(
    shared: &Shared,
    session: &Arc<Session>,
    headers: &HeaderMap,
    time: Option<Duration>,
) -> Response<Body> {
    let last = headers.get("last-event-id").map(|id| id.to_str().ok().and_then(parse_event_id));
    let (number, after) = match last {
        None => (0, None),
        Some(Some((stream, event))) => (stream, Some(event)),
        Some(None) => {
            return reply::refusal(StatusCode::BAD_REQUEST, "unknown `Last-Event-ID`");
        }
    };
    let keep_alive = shared.options.keep_alive;
    let reader = session.stream(number).and_then(|stream| {
        let after = after.unwrap_or_else(|| stream.delivered());
        Some((Reader::new(session, stream, after, Form::Resumable, keep_alive)?, after))
    });
    let Some((mut reader, after)) = reader else {
        return reply::refusal(
            StatusCode::NOT_FOUND,
            "the events after `Last-Event-ID` are no longer available",
        );
    };
    if let Some(time) = time {
        reader = reader.at_most(time);
    }
    if number == 0 {
        // No call waits for this stream, so shutdown does not wait for it.
        reader = reader.until(shared.ending());
    }
    if last.is_none() && session.conversation.revision() >= Some(Revision::V2025_11_25) {
        reader = reader.opening(priming(number, after, Some(shared.options.retry)));
    }
    reply::stream(Body::session(reader))
}

/// Ends a session at the request of its client.
pub(in crate::server) fn end(shared: &Shared, session: &Session) -> Response<Body> {
    shared.sessions.remove(session);
    reply::empty(StatusCode::NO_CONTENT)
}
