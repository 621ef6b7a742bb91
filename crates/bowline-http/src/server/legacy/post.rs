//! POST to a session.

use super::{
    reader::{Form, Reader, priming},
    sealed,
    session::{SESSION_ID, Session, Sessions},
    stream::{Progress, Stream},
};
use crate::server::{body::Body, modern::extensions, reply, service::Shared};
#[cfg(feature = "store")]
use bowline_proto::envelope::Message;
use bowline_proto::{envelope::Frame, server::Ids};
use bowline_server::transport::{Sink, Started};
#[cfg(feature = "store")]
use bowline_types::Id;
use bowline_types::Revision;
use http::{HeaderValue, Response, StatusCode, request::Parts};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
};
use tokio::time::sleep;

/// `initialize`: opens a session when the answer is a success.
pub(in crate::server) async fn open(
    shared: &Arc<Shared>,
    parts: &mut Parts,
    principal: Option<Arc<str>>,
    frame: Frame,
) -> Response<Body> {
    if shared.options.sealed_sessions {
        return open_sealed(shared, parts, principal, frame).await;
    }
    if !Sessions::has_space(shared, principal.as_ref()) {
        return reply::later("too many sessions are open");
    }
    #[cfg(feature = "store")]
    let session = match &shared.node {
        Some(node) => match node.prepare(shared, principal.as_ref()).await {
            Ok(session) => session,
            Err(response) => return *response,
        },
        None => Sessions::create(shared, principal, Ids::PerExchange),
    };
    #[cfg(not(feature = "store"))]
    let session = Sessions::create(shared, principal, Ids::PerExchange);
    let mut response = post(shared, &session, parts, frame).await;
    if session.conversation.revision().is_none() || !response.status().is_success() {
        return response;
    }
    if !Sessions::add(shared, &session) {
        return reply::later("too many sessions are open");
    }
    if let Ok(id) = HeaderValue::from_str(&session.id) {
        response.headers_mut().insert(SESSION_ID, id);
    }
    response
}

/// `initialize` where the id of a session has its state.
async fn open_sealed(
    shared: &Arc<Shared>,
    parts: &mut Parts,
    principal: Option<Arc<str>>,
    frame: Frame,
) -> Response<Body> {
    let session = match sealed::session(shared, "".into(), principal, None) {
        Ok(session) => session,
        Err(response) => return *response,
    };
    let mut response = post(shared, &session, parts, frame).await;
    if session.conversation.revision().is_none() {
        return response;
    }
    let Some(id) = sealed::seal(shared, &session).and_then(|id| HeaderValue::try_from(id).ok()) else {
        return sealed::too_long();
    };
    response.headers_mut().insert(SESSION_ID, id);
    response
}

/// Any message of a session.
pub(in crate::server) async fn post(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    parts: &mut Parts,
    frame: Frame,
) -> Response<Body> {
    let in_use = session.mark_in_use();
    let stream = session.new_stream();
    let sink: Arc<dyn Sink> = Arc::clone(&stream) as _;
    let extensions = extensions(parts, Some(Arc::clone(&session.id)));
    #[cfg(feature = "store")]
    let pending: Vec<Id> = if session.as_stored().is_some() { requests(&frame) } else { Vec::new() };
    #[cfg(feature = "store")]
    if let Some(stored) = session.as_stored()
        && let Err(response) = stored.forward(&frame).await
    {
        return *response;
    }
    let started = session.conversation.accept(frame, &sink, &extensions);
    #[cfg(feature = "store")]
    if let Some(stored) = session.as_stored()
        && let Err(response) = stored.save(shared, session).await
    {
        return *response;
    }
    let calls = match started {
        Started::Nothing => {
            stream.finish();
            return match stream.take_only() {
                Some(message) => reply::json(StatusCode::OK, message),
                None => reply::empty(StatusCode::ACCEPTED),
            };
        }
        Started::Call(call) => vec![call],
        Started::Batch(calls) => calls,
        Started::Notification(handling) => {
            stream.finish();
            session.run(handling, ()).await;
            return reply::empty(StatusCode::ACCEPTED);
        }
    };
    let finish = Arc::new(Finish(Arc::clone(&stream)));
    for call in calls {
        session.run(call, Arc::clone(&finish)).await;
    }
    drop(finish);
    let mut stream_after = pin!(sleep(shared.options.stream_after));
    let whole = poll_fn(|context| match stream.progress(context.waker()) {
        Progress::Whole => Poll::Ready(true),
        Progress::Events => Poll::Ready(false),
        Progress::Nothing => stream_after.as_mut().poll(context).map(|()| false),
    });
    if whole.await {
        return match stream.take_only() {
            Some(message) => reply::json(StatusCode::OK, message),
            None if session.is_over() => reply::no_session(),
            // The request was cancelled: there is no response.
            None => reply::empty(StatusCode::ACCEPTED),
        };
    }
    drop(in_use);
    #[cfg(feature = "store")]
    if let Some(stored) = session.as_stored() {
        stored.log(shared, &stream, pending).await;
    }
    events(shared, session, stream)
}

/// The ids of the requests in a frame.
#[cfg(feature = "store")]
fn requests(frame: &Frame) -> Vec<Id> {
    let id = |message: &Result<Message, _>| match message {
        Ok(Message::Request { id, .. }) => Some(id.clone()),
        _ => None,
    };
    match frame {
        Frame::Single(message) => id(message).into_iter().collect(),
        Frame::Batch(items) => items.iter().filter_map(id).collect(),
    }
}

/// Finishes a stream once no call is left that could add to it, however the calls ended.
struct Finish(Arc<Stream>);

impl Drop for Finish {
    fn drop(&mut self) {
        self.0.finish();
    }
}

fn events(shared: &Shared, session: &Arc<Session>, stream: Arc<Stream>) -> Response<Body> {
    let form = if session.is_sealed() { Form::Plain } else { Form::Resumable };
    if form == Form::Resumable {
        session.keep(&stream);
    }
    let (name, is_primed) = (Arc::clone(&stream.name), form == Form::Resumable && stream.has_id(1));
    let Some(mut reader) = Reader::new(session, stream, 0, form, shared.options.keep_alive) else {
        return reply::refusal(StatusCode::INTERNAL_SERVER_ERROR, "the stream is closed");
    };
    if is_primed && session.conversation.revision() >= Some(Revision::V2025_11_25) {
        reader = reader.opening(priming(&name, 0, Some(shared.options.retry)));
    }
    reply::stream(Body::session(reader))
}
