//! Requests to an endpoint without a socket.

use bowline_http::{Body, HttpService, Principal};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::sync::oneshot;

/// A request under construction.
pub(crate) struct Ask {
    method: Method,
    path: String,
    headers: Vec<(String, String)>,
    body: Bytes,
    principal: Option<Principal>,
    extensions: http::Extensions,
}

impl Ask {
    pub(crate) fn new(method: Method) -> Self {
        let headers = vec![("host".to_owned(), "localhost:8080".to_owned())];
        Self {
            method,
            path: "/mcp".into(),
            headers,
            body: Bytes::new(),
            principal: None,
            extensions: http::Extensions::new(),
        }
    }

    /// A POST of JSON.
    pub(crate) fn post(body: &Value) -> Self {
        Self::new(Method::POST)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body.to_string())
    }

    /// A self-describing request with all its headers.
    pub(crate) fn modern(method: &str, mut params: Value) -> Self {
        let name =
            params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str).map(str::to_owned);
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        });
        match params.get_mut("_meta") {
            Some(Value::Object(given)) => given.extend(meta.as_object().cloned().unwrap_or_default()),
            _ => params["_meta"] = meta,
        }
        let ask = Self::post(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        match name {
            Some(name) => ask.header("mcp-name", &name),
            None => ask,
        }
    }

    pub(crate) fn path(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds one more header of a name that may be there already.
    pub(crate) fn also(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Adds what a layer in front of the endpoint would.
    pub(crate) fn extension<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.extensions.insert(value);
        self
    }

    /// Sends it as this user.
    pub(crate) fn by(mut self, principal: &str) -> Self {
        self.principal = Some(Principal(principal.into()));
        self
    }

    pub(crate) async fn send(self, service: &HttpService) -> HttpReply {
        let body = Full::new(self.body.clone());
        self.send_with(body, service).await
    }

    /// Sends it with a body that arrives in its own time.
    pub(crate) async fn send_with<B>(self, body: B, service: &HttpService) -> HttpReply
    where
        B: http_body::Body<Error: std::error::Error>,
    {
        let mut request = Request::builder().method(self.method).uri(self.path);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        if let Some(principal) = self.principal {
            request = request.extension(principal);
        }
        let mut request = request.body(body).unwrap();
        request.extensions_mut().extend(self.extensions);
        HttpReply::of(service.respond(request).await)
    }
}

/// A body that arrives when the test sends it.
pub(crate) fn late() -> (oneshot::Sender<Bytes>, impl http_body::Body<Error = Infallible>) {
    struct Late(Option<oneshot::Receiver<Bytes>>);
    impl http_body::Body for Late {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let Some(arrives) = &mut self.0 else { return Poll::Ready(None) };
            let bytes = ready!(Pin::new(arrives).poll(context));
            self.0 = None;
            Poll::Ready(bytes.ok().map(|bytes| Ok(Frame::data(bytes))))
        }
    }
    let (arrives, waits) = oneshot::channel();
    (arrives, Late(Some(waits)))
}

/// A response, read event by event.
pub(crate) struct HttpReply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Body,
    rest: String,
}

impl HttpReply {
    fn of(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        Self { status: parts.status, headers: parts.headers, body, rest: String::new() }
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream")
    }

    /// The whole body as JSON.
    pub(crate) async fn json(self) -> Value {
        let bytes = self.body.collect().await.unwrap().to_bytes();
        serde_json::from_slice(&bytes).unwrap_or(Value::Null)
    }

    /// The next event as written, without its blank line.
    pub(crate) async fn event(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.rest.find("\n\n") {
                let event = self.rest[..end].to_owned();
                self.rest.drain(..end + 2);
                return Some(event);
            }
            let frame = self.body.frame().await?.unwrap();
            self.rest.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
        }
    }

    /// The message of the next event that has one, with its id.
    pub(crate) async fn message(&mut self) -> Option<(Option<String>, Value)> {
        loop {
            let event = self.event().await?;
            let field = |name: &str| {
                event
                    .lines()
                    .find_map(|line| line.strip_prefix(name))
                    .map(|value| value.trim_start().to_owned())
            };
            if let Some(data) = field("data:").filter(|data| !data.is_empty()) {
                return Some((field("id:"), serde_json::from_str(&data).unwrap_or(Value::String(data))));
            }
        }
    }
}
