//! GET and DELETE on a session.

use super::{
    reader::{Form, Reader, parse_event_id, priming},
    session::Session,
};
use crate::server::{body::Body, reply, service::Shared};
use bowline_types::Revision;
use http::{HeaderMap, Response, StatusCode};
use std::{sync::Arc, time::Duration};

/// Opens the session stream, or continues a stream that was interrupted.
///
/// The stream ends after `time`; its client reconnects with a new token.
pub(in crate::server) async fn get(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    headers: &HeaderMap,
    time: Option<Duration>,
) -> Response<Body> {
    let last = headers.get("last-event-id").map(|id| id.to_str().ok().and_then(parse_event_id));
    let get_stream = Arc::clone(&session.get_stream.name);
    let (name, after) = match last {
        None => (&*get_stream, None),
        Some(Some((stream, event))) => (stream, Some(event)),
        Some(None) => {
            return reply::refusal(StatusCode::BAD_REQUEST, "unknown `Last-Event-ID`");
        }
    };
    let keep_alive = shared.options.keep_alive;
    #[cfg(feature = "store")]
    let mut guard = None;
    #[cfg(feature = "store")]
    if let Some(stored) = session.as_stored() {
        let is_get_stream = name.ends_with(".0");
        // Another process runs the call, or the store has events that it has not confirmed to this one.
        let last = after.unwrap_or_default();
        if !is_get_stream && session.stream(name).is_none_or(|stream| !stream.goes_on_after(last)) {
            return match stored.follow(shared, session, name, after.unwrap_or_default()).await {
                Ok(Some(reader)) => reply::stream(Body::session(within(reader, time))),
                Ok(None) => lost(),
                Err(response) => *response,
            };
        }
        if is_get_stream {
            match stored.take_get_stream(shared, session, name, after).await {
                Ok(get_stream) => guard = Some(get_stream),
                Err(response) => return *response,
            }
        }
    }
    #[cfg(feature = "store")]
    let (name, after) = match &guard {
        // Another process had the stream; what the client has not seen of it comes first.
        Some(get_stream) if *name != *session.get_stream.name => {
            (&*session.get_stream.name, Some(get_stream.starts_after))
        }
        Some(_) | None => (name, after),
    };
    let reader = session.stream(name).and_then(|stream| {
        let after = after.unwrap_or_else(|| stream.delivered());
        Some((Reader::new(session, stream, after, Form::Resumable, keep_alive)?, after))
    });
    let Some((mut reader, after)) = reader else {
        return lost();
    };
    reader = within(reader, time);
    if *name == *session.get_stream.name {
        // No call waits for this stream, so shutdown does not wait for it.
        reader = reader.until(shared.ending());
    }
    #[cfg(feature = "store")]
    if let Some(mut get_stream) = guard {
        let missed = std::mem::take(&mut get_stream.missed);
        reader = reader.guarded(get_stream);
        if !missed.is_empty() {
            return reply::stream(Body::session(reader.opening(missed.into())));
        }
    }
    if last.is_none() && session.conversation.revision() >= Some(Revision::V2025_11_25) {
        reader = reader.opening(priming(name, after, Some(shared.options.retry)));
    }
    reply::stream(Body::session(reader))
}

fn lost() -> Response<Body> {
    reply::refusal(StatusCode::NOT_FOUND, "the events after `Last-Event-ID` are no longer available")
}

fn within(reader: Reader, time: Option<Duration>) -> Reader {
    match time {
        Some(time) => reader.at_most(time),
        None => reader,
    }
}

/// Ends a session at the request of its client.
pub(in crate::server) async fn end(shared: &Shared, session: &Session) -> Response<Body> {
    #[cfg(feature = "store")]
    if let Some(stored) = session.as_stored()
        && let Err(response) = stored.remove().await
    {
        return *response;
    }
    shared.sessions.remove(session);
    reply::empty(StatusCode::NO_CONTENT)
}
