//! The client transport of 2024-11-05: one stream for messages of the server, and another URL for messages of the
//! client.

use super::{
    connection::Connection,
    reply::{Events, Media, Next, Reply, message},
    transport::Answer,
    url,
};
use bowline_client::{Error, Result};
use bowline_types::Id;
use http::HeaderMap;
use std::sync::Arc;

/// Opens the stream and reads the URL for messages. Returns `false` if there is no stream.
pub(super) async fn open(connection: &Arc<Connection>) -> Result<bool> {
    let reply = match connection.get(HeaderMap::new()).await {
        Ok(reply) => reply,
        Err(error) => {
            tracing::debug!(%error, "the server has no 2024-11-05 SSE stream either");
            return Ok(false);
        }
    };
    if !reply.status.is_success() || reply.media() != Media::Events {
        tracing::debug!(status = reply.status.as_u16(), "the server has no 2024-11-05 SSE stream either");
        return Ok(false);
    }
    let base = reply.uri.clone();
    let mut events = reply.events();
    let Some(text) = endpoint(&mut events).await else { return Ok(false) };
    let address =
        url::resolve(&base, &text).map_err(|reason| Error::malformed("the `endpoint` event", reason))?;
    // Messages are sent only to the configured server.
    if !url::is_same_origin(&connection.url, &address) {
        let reason = format!("its URL has another origin: {address}");
        return Err(Error::malformed("the `endpoint` event", reason));
    }
    tracing::debug!("using the HTTP+SSE transport of 2024-11-05");
    connection.set_address(address);
    connection.spawn(read(Arc::clone(connection), events));
    Ok(true)
}

/// Returns the URL in the first event of the stream.
async fn endpoint(events: &mut Events) -> Option<String> {
    loop {
        match events.next().await {
            Next::Event(event) if event.event.as_deref() == Some("endpoint") => return Some(event.data),
            // An event with only a name or a retry time.
            Next::Event(event) if event.data.is_empty() => {}
            Next::Event(_) | Next::TooLong | Next::End(_) => return None,
        }
    }
}

async fn read(connection: Arc<Connection>, mut events: Events) {
    let reason = loop {
        match events.next().await {
            Next::Event(event) => {
                if let Some(frame) = message(event) {
                    connection.inbox.accept(&frame);
                }
            }
            Next::TooLong => connection.inbox.noise(b"an event longer than allowed"),
            Next::End(reason) => break reason,
        }
    };
    connection.inbox.close(match reason {
        Some(reason) => Error::closed(format!("the server's stream broke off: {reason}")),
        None => Error::closed("the server ended its stream"),
    });
}

/// Handles the response to a message. The answer arrives on the stream, or has already arrived.
pub(super) async fn posted(connection: &Connection, id: &Id, reply: Reply) -> Result<Answer> {
    if reply.media() != Media::Json {
        reply.drain().await;
        return Ok(Answer::Elsewhere);
    }
    let body = reply.whole().await?;
    if !body.trim_ascii().is_empty() {
        connection.inbox.accept_on(id, &body.slice_ref(body.trim_ascii()));
        tracing::debug!(%id, "the response arrived with the acknowledgment");
    }
    Ok(Answer::Elsewhere)
}
