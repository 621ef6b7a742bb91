//! Messages of legacy revisions: a POST within a session, whose response may be a resumable stream.

use super::{
    backoff::Backoff,
    connection::{Connection, Place},
    modern::{receive_message, too_long},
    reply::{Events, Media, Next, Reply, ended_early, message},
    session_stream,
    transport::Answer,
    two_endpoints,
};
use bowline_client::{Error, Result};
use bowline_proto::encode;
use bowline_types::{CancelledParams, Id, Method, error_code};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use std::{sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};

/// The time in which the server must acknowledge a message without a response.
const ONE_WAY_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a message without a response is sent again if it may not have arrived.
const MAX_REPEATS: u32 = 3;
/// How often resuming a stream may fail, and the maximum delay in between.
const MAX_RETURNS: u32 = 5;
const LONGEST_RETURN: Duration = Duration::from_secs(2);

/// Sends a request and takes in its reply.
pub(super) async fn request(
    connection: &Arc<Connection>,
    id: &Id,
    method: &str,
    frame: &Bytes,
    place: Place,
) -> Result<Answer> {
    connection.order.before(&place).await;
    if method == Method::Initialize.as_str() {
        return initialize(connection, id, frame).await;
    }
    let session = connection.session().is_some();
    let reply = connection.post(frame, connection.session_headers()).await?;
    connection.show(id, reply.status, &reply.headers);
    if reply.status == StatusCode::NOT_FOUND && session {
        return Err(connection.expire());
    }
    receive(connection, id, reply).await
}

/// Opens a session. A server that does not take the request at all may be one of 2024-11-05.
async fn initialize(connection: &Arc<Connection>, id: &Id, frame: &Bytes) -> Result<Answer> {
    // Without the session of an earlier attempt, if there was one.
    let reply = connection.post(frame, HeaderMap::new()).await?;
    if reply.status.is_success() {
        connection.show(id, reply.status, &reply.headers);
        connection.join_session(&reply.headers);
        return receive(connection, id, reply).await;
    }
    let (status, headers) = (reply.status, reply.headers.clone());
    let refusal = reply.refusal().await;
    let elsewhere =
        matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
    // An error of the modern era does not come from a server of the first revision.
    let is_modern =
        refusal.as_rpc().is_some_and(|error| error.is_modern() || error.code == error_code::METHOD_NOT_FOUND);
    if !elsewhere || is_modern || connection.has_two_endpoints() || !two_endpoints::open(connection).await? {
        connection.show(id, status, &headers);
        return Err(refusal);
    }
    let reply = connection.post(frame, HeaderMap::new()).await?;
    connection.show(id, reply.status, &reply.headers);
    receive(connection, id, reply).await
}

async fn receive(connection: &Connection, id: &Id, reply: Reply) -> Result<Answer> {
    if !reply.status.is_success() {
        return Err(reply.refusal().await);
    }
    if connection.has_two_endpoints() {
        return two_endpoints::posted(connection, id, reply).await;
    }
    match reply.media() {
        Media::Json => {
            receive_message(connection, id, reply, |frame| connection.inbox.accept_on(id, &frame)).await
        }
        Media::Events => read(connection, id, reply.events()).await,
        Media::Other(kind) => Err(reply.unexpected_media_type(&kind).await),
    }
}

/// Reads a stream until the response, and resumes it if it breaks.
async fn read(connection: &Connection, id: &Id, mut events: Events) -> Result<Answer> {
    let mut last: Option<String> = None;
    let mut backoff = Backoff::new(LONGEST_RETURN);
    loop {
        let reason = loop {
            match events.next().await {
                Next::Event(event) => {
                    if let Some(id) = &event.id {
                        last = Some(id.clone()).filter(|id| !id.is_empty());
                    }
                    if let Some(delay) = event.retry {
                        backoff.ask(delay);
                    }
                    let Some(frame) = message(event) else { continue };
                    backoff.succeeded();
                    connection.inbox.accept_on(id, &frame);
                    if !connection.inbox.awaits(id) {
                        events.drain().await;
                        return Ok(Answer::Here);
                    }
                }
                Next::TooLong => return Err(too_long()),
                Next::End(reason) => break reason,
            }
        };
        let Some(last) = &last else { return Err(ended_early(reason)) };
        events = resume(connection, last, &mut backoff).await?;
    }
}

/// Resumes a stream after the last received event.
async fn resume(connection: &Connection, last: &str, backoff: &mut Backoff) -> Result<Events> {
    let mut failures = 0;
    loop {
        sleep(backoff.next()).await;
        let reply = connection.get(resuming(connection, last)?).await;
        let error = match reply {
            Ok(reply) if reply.status.is_success() && reply.media() == Media::Events => {
                return Ok(reply.events());
            }
            Ok(reply) if reply.status.is_server_error() || reply.status == StatusCode::TOO_MANY_REQUESTS => {
                if let Some(delay) = reply.retry_after() {
                    sleep(delay).await;
                }
                reply.refusal().await
            }
            Ok(reply) => {
                let refusal = reply.refusal().await;
                return Err(Error::closed(format!(
                    "the stream ended before its response, and the server refused to resume it: {refusal}"
                )));
            }
            Err(error) => error,
        };
        failures += 1;
        if failures >= MAX_RETURNS {
            return Err(Error::closed(format!(
                "the stream ended before its response and cannot be resumed: {error}"
            )));
        }
    }
}

/// Returns the headers that resume a stream after an event.
pub(super) fn resuming(connection: &Connection, last: &str) -> Result<HeaderMap> {
    let mut headers = connection.session_headers();
    let last = HeaderValue::from_str(last)
        .map_err(|_| Error::malformed("the id of an event", "it is not a valid header value"))?;
    headers.insert("last-event-id", last);
    Ok(headers)
}

/// Cancels a request whose response was lost. In these revisions a closed connection does not cancel: the server would
/// continue the call, or wait for an answer of the user.
pub(super) fn give_up(connection: &Arc<Connection>, id: &Id, method: &str, error: &Error) {
    let may_be_running = error.is_closed() && !error.is_unreachable() && !connection.is_expired();
    if !may_be_running || method == Method::Initialize.as_str() || connection.revision().is_none() {
        return;
    }
    let params = CancelledParams::new().request_id(id.clone()).reason("the reply was lost");
    let (sender, frame) = (Arc::clone(connection), encode::notify(Method::Cancelled, &params));
    // No request has to wait for this.
    connection.spawn(async move { post_one_way(&sender, Some(Method::Cancelled.as_str()), &frame).await });
}

/// Sends a message without a response: a notification, or the response to a request of the server.
pub(super) async fn post_one_way(connection: &Arc<Connection>, method: Option<&str>, frame: &Bytes) {
    let what = method.unwrap_or("a response");
    let session = connection.session().is_some();
    match timeout(ONE_WAY_TIMEOUT, post_until_acknowledged(connection, method, frame)).await {
        Ok(Ok(reply)) if reply.status.is_success() => {
            if method == Some(Method::Initialized.as_str()) && !connection.has_two_endpoints() {
                connection.spawn(session_stream::keep(Arc::clone(connection)));
            }
            reply.drain().await;
        }
        Ok(Ok(reply)) if reply.status == StatusCode::NOT_FOUND && session => drop(connection.expire()),
        Ok(Ok(reply)) => {
            let error = reply.refusal().await;
            tracing::warn!(%error, what, "a message was refused");
        }
        Ok(Err(error)) => tracing::warn!(%error, what, "a message could not be sent"),
        Err(_) => tracing::warn!(what, "a message was not acknowledged in time"),
    }
}

/// Posts what needs no answer, and again when the connection breaks before the server has acknowledged it: otherwise
/// a call at the server would wait for it forever, and nobody here would know.
async fn post_until_acknowledged(
    connection: &Connection,
    method: Option<&str>,
    frame: &Bytes,
) -> Result<Reply> {
    let mut backoff = Backoff::new(LONGEST_RETURN);
    let mut repeats = 0;
    loop {
        match connection.post(frame, connection.session_headers()).await {
            Err(error) if error.is_closed() && repeats < MAX_REPEATS && may_be_repeated(method) => {
                tracing::debug!(%error, "a message may not have arrived; sending it again");
                // The first time at once: most likely the server has just closed a connection that was idle.
                if repeats > 0 {
                    sleep(backoff.next()).await;
                }
                repeats += 1;
            }
            posted => return posted,
        }
    }
}

/// Returns whether the server may receive a message twice. A response completes its request the first time.
fn may_be_repeated(method: Option<&str>) -> bool {
    let harmless = [Method::Initialized, Method::Cancelled, Method::RootsListChanged];
    method.is_none_or(|method| harmless.iter().any(|known| known.as_str() == method))
}
