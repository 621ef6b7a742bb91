//! Requests of the modern revision: one POST, described by its headers, and one response.

use super::{
    connection::Connection,
    param_headers,
    reply::{Events, Media, Next, Reply, ended_early, error_in, message},
    transport::Answer,
};
use bowline_client::{Error, Result};
use bowline_proto::header as codec;
use bowline_types::{Id, Method, RawJson, Revision, error_code};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use std::borrow::Cow;

/// How many pages of tools are fetched when headers turn out to be wrong.
const MAX_PAGES: usize = 100;

/// A request to send.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: Id,
    pub(super) method: Box<str>,
    pub(super) name: Option<String>,
    pub(super) params: RawJson,
    pub(super) frame: Bytes,
}

/// Sends a request and takes in its reply.
pub(super) async fn request(connection: &Connection, request: &Request) -> Result<Answer> {
    let Request { id, method, name, params, frame } = request;
    let (method, name) = (&**method, name.as_deref());
    let tool = name.filter(|_| method == Method::CallTool.as_str());
    let mirrored = match tool {
        Some(tool) => connection.tool_headers.headers(tool, params)?,
        None => HeaderMap::new(),
    };
    let version = match connection.revision() {
        Some(revision) => Cow::Borrowed(revision.as_str()),
        None => Cow::Owned(param_headers::version_of(params).unwrap_or_default()),
    };
    let reply = post(connection, method, name, &version, frame, mirrored.clone()).await?;
    let (status, received) = (reply.status, reply.headers.clone());
    let show = || connection.show(id, status, &received);
    if status.is_success() {
        show();
        return deliver(connection, id, method, reply).await;
    }
    let refusal = reply.refusal().await;
    let mismatch = refusal.as_rpc().is_some_and(|error| error.code == error_code::HEADER_MISMATCH);
    let Some(tool) = tool.filter(|_| mismatch) else {
        show();
        return Err(refusal);
    };
    // The tool may want other headers by now than when it was listed.
    if let Err(error) = refresh(connection, request, &version).await {
        tracing::debug!(%error, "cannot refresh the list of tools");
        show();
        return Err(refusal);
    }
    let corrected = connection.tool_headers.headers(tool, params)?;
    if corrected == mirrored {
        show();
        return Err(refusal);
    }
    tracing::debug!(tool, "retrying a call with updated headers");
    let reply = post(connection, method, name, &version, frame, corrected).await?;
    connection.show(id, reply.status, &reply.headers);
    if !reply.status.is_success() {
        return Err(reply.refusal().await);
    }
    deliver(connection, id, method, reply).await
}

/// Sends a notification. 2026-07-28 itself has none over HTTP, but extensions may.
pub(super) async fn notify(connection: &Connection, method: &str, frame: &Bytes) {
    let version = connection.revision().map_or("", Revision::as_str);
    match post(connection, method, None, version, frame, HeaderMap::new()).await {
        Ok(reply) if reply.status.is_success() => reply.drain().await,
        Ok(reply) => {
            let error = reply.refusal().await;
            tracing::warn!(%error, method, "a notification was refused");
        }
        Err(error) => tracing::warn!(%error, method, "a notification could not be sent"),
    }
}

async fn post(
    connection: &Connection,
    method: &str,
    name: Option<&str>,
    version: &str,
    frame: &Bytes,
    mut headers: HeaderMap,
) -> Result<Reply> {
    let named = name.map(codec::encode_value);
    for (header, value) in [
        (codec::PROTOCOL_VERSION, Some(version)),
        (codec::METHOD, Some(method)),
        (codec::NAME, named.as_deref()),
    ] {
        let Some(value) = value else { continue };
        let value = HeaderValue::from_str(value)
            .map_err(|_| Error::misuse(format!("`{method}` is not a valid header value")))?;
        headers.insert(header, value);
    }
    connection.post(frame, headers).await
}

/// Takes in a reply, up to the answer.
async fn deliver(connection: &Connection, id: &Id, method: &str, reply: Reply) -> Result<Answer> {
    let accept = |frame: Bytes| {
        let lists = method == Method::ListTools.as_str();
        connection.inbox.accept_on(id, &if lists { connection.tool_headers.screen(frame) } else { frame });
    };
    match reply.media() {
        Media::Json => receive_message(connection, id, reply, accept).await,
        Media::Events => {
            let mut events = reply.events();
            loop {
                match events.next().await {
                    Next::Event(event) => {
                        let Some(frame) = message(event) else { continue };
                        accept(frame);
                        if !connection.inbox.awaits(id) {
                            events.drain().await;
                            return Ok(Answer::Here);
                        }
                    }
                    Next::TooLong => return Err(too_long()),
                    Next::End(reason) => return Err(ended_early(reason)),
                }
            }
        }
        Media::Other(kind) => Err(reply.unexpected_media_type(&kind).await),
    }
}

pub(super) fn too_long() -> Error {
    Error::malformed("the reply", "it contains an event that exceeds the size limit")
}

/// Takes in a reply that is one message.
pub(super) async fn receive_message(
    connection: &Connection,
    id: &Id,
    reply: Reply,
    accept: impl FnOnce(Bytes),
) -> Result<Answer> {
    let body = reply.whole().await?;
    let body = body.slice_ref(body.trim_ascii());
    accept(body.clone());
    // An error that names no request can only be about this one.
    match error_in(&body) {
        Some(error) if connection.inbox.awaits(id) => Err(error.into()),
        _ => Ok(Answer::Here),
    }
}

/// Lists the tools again, to learn their headers.
async fn refresh(connection: &Connection, call: &Request, version: &str) -> Result<()> {
    let method = Method::ListTools.as_str();
    let mut cursor: Option<String> = None;
    for page in 0..MAX_PAGES {
        let id = format!("tools-for-{}-{page}", call.id);
        let Some(frame) = param_headers::listing_request(&call.params, &id, cursor.as_deref()) else {
            return Ok(());
        };
        let reply = post(connection, method, None, version, &frame, HeaderMap::new()).await?;
        if !reply.status.is_success() {
            return Err(reply.refusal().await);
        }
        let answer = match reply.media() {
            Media::Json => reply.whole().await?,
            Media::Events => page_in(reply.events()).await?,
            Media::Other(kind) => return Err(reply.unexpected_media_type(&kind).await),
        };
        let next = param_headers::next_page(&answer)?;
        connection.tool_headers.screen(answer);
        match next {
            Some(next) if Some(&next) != cursor.as_ref() => cursor = Some(next),
            _ => return Ok(()),
        }
    }
    Ok(())
}

/// Returns the page of tools in the events of a response.
async fn page_in(mut events: Events) -> Result<Bytes> {
    loop {
        match events.next().await {
            Next::Event(event) => match message(event) {
                Some(frame) if param_headers::next_page(&frame).is_ok() || error_in(&frame).is_some() => {
                    return Ok(frame);
                }
                _ => {}
            },
            Next::TooLong => return Err(too_long()),
            Next::End(reason) => return Err(ended_early(reason)),
        }
    }
}
