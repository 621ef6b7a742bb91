//! The server transport of 2024-11-05: one stream for messages of the server, and one URL for messages of the client.

use super::{
    reader::{Form, Reader},
    session::{Session, Sessions},
};
use crate::server::{body::Body, modern::extensions, reply, service::Shared};
use bowline_proto::{
    envelope::Frame,
    server::Ids,
    sse::{EventRef, encode_event},
};
use bowline_server::transport::{Sink, Started};
use http::{Response, StatusCode, request::Parts};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// Opens a session and its stream, whose first event names the URL for messages.
///
/// After `time` it sends no more notifications, and ends when the calls that run then are done.
pub(in crate::server) fn stream_2024(
    shared: &Arc<Shared>,
    principal: Option<Arc<str>>,
    time: Option<Duration>,
) -> Response<Body> {
    // All messages of the server use one stream.
    let session = Sessions::create(shared, principal, Ids::Unique);
    if !Sessions::add(shared, &session) {
        return reply::later("too many sessions are open");
    }
    // Relative to the URL of the stream, which only the client knows: a router may have cut its path.
    let address = format!("?sessionId={}", session.id);
    let mut opening = Vec::new();
    let event = EventRef { event: Some("endpoint"), data: address.as_bytes(), ..EventRef::default() };
    drop(encode_event(&mut opening, &event));
    let get_stream = Arc::clone(&session.get_stream);
    let reader = Reader::new(&session, get_stream, 0, Form::Plain, shared.options.keep_alive);
    match reader {
        Some(reader) => {
            // Responses of its calls arrive here, so during shutdown it ends after them.
            let (ending, idle) = (shared.ending(), session.wait_until_idle());
            let reader = reader.only_one(shared).opening(opening.into()).until(async move {
                match time {
                    Some(time) => drop(timeout(time, ending).await),
                    None => ending.await,
                }
                idle.await;
            });
            reply::stream(Body::session(reader))
        }
        None => reply::refusal(StatusCode::INTERNAL_SERVER_ERROR, "the stream is closed"),
    }
}

/// Handles a message. Responses go to the stream.
pub(in crate::server) async fn message_2024(
    session: &Arc<Session>,
    parts: &mut Parts,
    frame: Frame,
) -> Response<Body> {
    let sink: Arc<dyn Sink> = Arc::clone(&session.get_stream) as _;
    let extensions = extensions(parts, Some(Arc::clone(&session.id)));
    let calls = match session.conversation.accept(frame, &sink, &extensions) {
        Started::Nothing => Vec::new(),
        Started::Call(call) | Started::Notification(call) => vec![call],
        Started::Batch(calls) => calls,
    };
    for call in calls {
        session.run(call, ()).await;
    }
    reply::empty(StatusCode::ACCEPTED)
}
