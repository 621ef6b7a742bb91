//! Reading a reply: one message, a stream of events, or a refusal.

use super::sender::lost;
use bowline_client::{Error, Result};
use bowline_proto::{
    envelope::{self, Message},
    sse::{Decoder, Event, Limits},
};
use bowline_types::RpcError;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Response, StatusCode, Uri, header};
use hyper::body::{Body, Incoming};
use std::{
    future::poll_fn,
    pin::{Pin, pin},
    time::Duration,
};
use tokio::time::timeout;

/// The most that is read of a refusal, and how long that may take.
const MAX_REFUSAL: usize = 256 * 1024;
const REFUSAL_TIME: Duration = Duration::from_secs(5);
/// How much of a refusal is shown.
const SHOWN: usize = 200;
/// How long the rest of a stream may take once its response is there. A stream read to its end leaves its connection
/// for the next request.
const REST: Duration = Duration::from_millis(100);

/// The head of a response, and its body to read.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// The final URL, after redirects.
    pub(super) uri: Uri,
    body: Incoming,
    limit: usize,
}

/// The media type of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Media {
    /// One message.
    Json,
    /// A stream of events.
    Events,
    /// Something else, as the server calls it.
    Other(String),
}

impl Reply {
    pub(super) fn new(response: Response<Incoming>, uri: Uri, limit: usize) -> Self {
        let (head, body) = response.into_parts();
        Self { status: head.status, headers: head.headers, uri, body, limit }
    }

    /// Returns the media type of the body.
    pub(super) fn media(&self) -> Media {
        let text = |name| self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let encoding = text(header::CONTENT_ENCODING);
        if !matches!(encoding, "" | "identity") {
            return Media::Other(format!("{encoding}-encoded"));
        }
        let kind = text(header::CONTENT_TYPE).to_ascii_lowercase();
        match kind.split(';').next().unwrap_or_default().trim() {
            "application/json" => Media::Json,
            "text/event-stream" => Media::Events,
            "" => Media::Other("nothing".into()),
            other => Media::Other(format!("`{other}`")),
        }
    }

    /// Returns the delay that the server requests before a retry.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let value = self.headers.get(header::RETRY_AFTER)?.to_str().ok()?;
        value.trim().parse().ok().map(Duration::from_secs)
    }

    /// Returns the whole body as one message.
    pub(super) async fn whole(self) -> Result<Bytes> {
        let limit = self.limit;
        let too_long = || Error::malformed("the reply", format!("it is longer than {limit} bytes"));
        let length = self.body.size_hint().lower();
        if length > limit as u64 {
            return Err(too_long());
        }
        let mut body = pin!(self.body);
        let mut bytes = BytesMut::new();
        while let Some(data) = next_data(body.as_mut()).await {
            let data = data?;
            if bytes.len() + data.len() > limit {
                return Err(too_long());
            }
            // Most responses arrive in one piece, which is passed on without copying.
            if length > 0 && data.len() as u64 == length {
                return Ok(data);
            }
            bytes.extend_from_slice(&data);
        }
        Ok(bytes.freeze())
    }

    /// Returns the body as a stream of events.
    pub(super) fn events(self) -> Events {
        // A line holds the name of its field besides the data.
        let limits = Limits::new(self.limit.saturating_add(64), self.limit.saturating_add(1024));
        Events { body: self.body, decoder: Decoder::new(limits) }
    }

    /// Returns the error of an unsuccessful response: its JSON-RPC error if it has one, otherwise the status and the
    /// start of the body.
    pub(super) async fn refusal(self) -> Error {
        let status = self.status;
        let body = self.beginning().await;
        match error_in(&body) {
            Some(error) => error.into(),
            None => Error::http(status.as_u16(), describe(status, &body)),
        }
    }

    /// Returns the error for an unexpected media type.
    pub(super) async fn unexpected_media_type(self, kind: &str) -> Error {
        let status = self.status;
        let body = self.beginning().await;
        let said = shown(&body);
        let said = if said.is_empty() { said } else { format!(": {said}") };
        Error::malformed(
            "the reply",
            format!("expected JSON or events, got {kind} with status {}{said}", status.as_u16()),
        )
    }

    /// Reads the start of the body.
    async fn beginning(self) -> Bytes {
        let mut bytes = BytesMut::new();
        let mut body = pin!(self.body);
        let reading = async {
            while let Some(Ok(data)) = next_data(body.as_mut()).await {
                bytes.extend_from_slice(&data);
                if bytes.len() >= MAX_REFUSAL {
                    break;
                }
            }
        };
        // The part that arrived in time is sufficient.
        let _ = timeout(REFUSAL_TIME, reading).await;
        bytes.freeze()
    }

    /// Reads the rest briefly, so that the connection can be reused.
    pub(super) async fn drain(self) {
        drain(self.body).await;
    }
}

async fn drain(body: Incoming) {
    let mut body = pin!(body);
    let _ = timeout(REST, async { while let Some(Ok(_)) = next_data(body.as_mut()).await {} }).await;
}

async fn next_data(mut body: Pin<&mut Incoming>) -> Option<Result<Bytes>> {
    loop {
        match poll_fn(|context| body.as_mut().poll_frame(context)).await? {
            Ok(frame) => {
                // Frames without data are trailers, which are ignored.
                if let Ok(data) = frame.into_data() {
                    return Some(Ok(data));
                }
            }
            Err(error) => return Some(Err(lost(&error))),
        }
    }
}

/// Returns the JSON-RPC error in a body.
pub(super) fn error_in(body: &Bytes) -> Option<RpcError> {
    match envelope::parse(&body.slice_ref(body.trim_ascii())) {
        envelope::Frame::Single(Ok(Message::Failure { error, .. })) => Some(error),
        envelope::Frame::Single(_) => error_under_any_id(body),
        envelope::Frame::Batch(_) => None,
    }
}

/// Returns the JSON-RPC error in a body with any id. The body belongs to one request, so even an invalid id does not
/// matter.
fn error_under_any_id(body: &Bytes) -> Option<RpcError> {
    #[derive(serde::Deserialize)]
    struct Failure {
        jsonrpc: String,
        error: RpcError,
    }
    let failure: Failure = serde_json::from_slice(body).ok()?;
    (failure.jsonrpc == "2.0").then_some(failure.error)
}

fn describe(status: StatusCode, body: &[u8]) -> String {
    let reason = status.canonical_reason().unwrap_or_default();
    let said = shown(body);
    match (reason.is_empty(), said.is_empty()) {
        (_, true) => reason.to_owned(),
        (true, false) => said,
        (false, false) => format!("{reason}: {said}"),
    }
}

/// Returns the start of a text on one line.
pub(super) fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..SHOWN * 4).unwrap_or(body));
    let mut out = String::new();
    for word in text.split(|character: char| character.is_whitespace() || character.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    match out.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", out.get(..end).unwrap_or_default()),
        None => out,
    }
}

/// The events of a reply.
#[derive(Debug)]
pub(super) struct Events {
    body: Incoming,
    decoder: Decoder,
}

/// The next item of a stream.
#[derive(Debug)]
pub(super) enum Next {
    /// An event.
    Event(Event),
    /// An event longer than allowed; later events can still be read.
    TooLong,
    /// Nothing more, because the stream ended or for this reason.
    End(Option<Error>),
}

impl Events {
    pub(super) async fn next(&mut self) -> Next {
        loop {
            match self.decoder.next() {
                Some(Ok(event)) => return Next::Event(event),
                Some(Err(_)) => return Next::TooLong,
                None => {}
            }
            match next_data(Pin::new(&mut self.body)).await {
                Some(Ok(data)) => self.decoder.feed(&data),
                Some(Err(error)) => return Next::End(Some(error)),
                None => return Next::End(None),
            }
        }
    }

    /// Reads the rest briefly.
    pub(super) async fn drain(self) {
        drain(self.body).await;
    }
}

/// Returns the message of an event, unless it is empty or of another type.
pub(super) fn message(event: Event) -> Option<Bytes> {
    let is_message = event.event.as_deref().is_none_or(|kind| kind == "message");
    (is_message && !event.data.is_empty()).then(|| event.data.into())
}

/// Returns the error for a stream that ended before the response.
pub(super) fn ended_early(reason: Option<Error>) -> Error {
    match reason {
        Some(reason) => Error::closed(format!("the stream failed before its response: {reason}")),
        None => Error::closed("the stream ended before its response"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_shown_in_one_short_line() {
        assert_eq!(shown(b"<h1>\r\n  Bad\tGateway</h1>\x07"), "<h1> Bad Gateway</h1>");
        assert_eq!(shown(b""), "");
        let long = shown("ü".repeat(1000).as_bytes());
        assert_eq!(long.chars().count(), SHOWN + 1);
    }

    #[test]
    fn errors_of_the_protocol_are_found() {
        let code =
            |text: &'static str| error_in(&Bytes::from_static(text.as_bytes())).map(|error| error.code);
        assert_eq!(code(r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}"#), Some(-1));
        assert_eq!(code(r#" {"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}} "#), Some(-1));
        assert_eq!(code(r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no"},"id":null}"#), Some(-1));
        assert_eq!(code(r#"{"error":{"code":-1,"message":"no"}}"#), None);
        assert_eq!(code(r#"{"error":"not found"}"#), None);
        assert_eq!(code("<html>"), None);
        assert_eq!(code(""), None);
    }
}
