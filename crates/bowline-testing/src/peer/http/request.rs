//! Sends one HTTP request on its own connection.

use super::events::{Event, Events};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::{io, net::SocketAddr};
use tokio::{net::TcpStream, task::JoinSet};

/// A request without its body.
pub(super) struct Outgoing {
    method: Method,
    path: String,
    headers: HeaderMap,
}

impl Outgoing {
    /// Creates a request that carries a frame.
    pub(super) fn post(path: &str) -> Self {
        Self::new(Method::POST, path)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
    }

    /// Creates a request for a stream.
    pub(super) fn get(path: &str) -> Self {
        Self::new(Method::GET, path).header("accept", "text/event-stream")
    }

    /// Creates a request to end a session.
    pub(super) fn delete(path: &str) -> Self {
        Self::new(Method::DELETE, path)
    }

    fn new(method: Method, path: &str) -> Self {
        Self { method, path: path.to_owned(), headers: HeaderMap::new() }
    }

    /// Adds a header. A value that is not valid in a header is omitted; the server reports the missing header.
    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    /// Sends the request and waits for the head of the reply.
    pub(super) async fn send(mut self, to: SocketAddr, body: &[u8]) -> io::Result<Reply> {
        self = self.header("host", &to.to_string());
        let mut request = Request::new(Full::new(Bytes::copy_from_slice(body)));
        *request.method_mut() = self.method;
        *request.uri_mut() = self.path.parse().map_err(io::Error::other)?;
        *request.headers_mut() = self.headers;
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // The reply reports errors of the connection.
            let _ = connection.await;
        });
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let (head, body) = response.into_parts();
        Ok(Reply {
            status: head.status,
            headers: head.headers,
            body,
            events: Events::default(),
            _driver: driver,
        })
    }
}

/// A reply. Dropping it closes the connection.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    body: Incoming,
    events: Events,
    _driver: JoinSet<()>,
}

impl Reply {
    pub(super) fn is_stream(&self) -> bool {
        let kind = self.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// Returns the whole body.
    pub(super) async fn whole(self) -> io::Result<Bytes> {
        Ok(self.body.collect().await.map_err(io::Error::other)?.to_bytes())
    }

    /// Returns the next event, or `None` at the end of the stream.
    pub(super) async fn event(&mut self) -> io::Result<Option<Event>> {
        loop {
            if let Some(event) = self.events.next() {
                return Ok(Some(event));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(chunk) = frame.map_err(io::Error::other)?.into_data() {
                        self.events.feed(&chunk);
                    }
                }
            }
        }
    }
}
