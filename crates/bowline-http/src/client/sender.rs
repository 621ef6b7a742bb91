//! Sending one request of HTTP: what every one carries, where it may be redirected to, and what is done when the server
//! wants other credentials.

use super::{
    authorize::{Attempts, Authorize, Reaction, Refusal},
    connector::Connector,
    reply::Reply,
    url,
};
use bowline_client::{Error, Inbox, Result};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use std::{
    convert::Infallible,
    error::Error as StdError,
    fmt,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

/// How often a request may be sent elsewhere.
const MAX_REDIRECTS: u32 = 3;
/// The most that the head of a reply may take.
const MAX_HEAD: usize = 64 * 1024;
/// How long a connection without requests is kept.
const IDLE: Duration = Duration::from_secs(30);

/// How often idle timeouts are restarted while credentials are awaited.
const TOUCH: Duration = Duration::from_secs(1);

/// Connections to servers, and the settings to open more.
pub(super) type Pool = Client<Connector, Payload>;

pub(super) fn pool(connector: Connector) -> Pool {
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .http1_max_buf_size(MAX_HEAD)
        .http2_keep_alive_interval(IDLE)
        .build(connector)
}

/// Sends requests to one origin. Clones share their connections.
#[derive(Clone)]
pub(super) struct RequestSender {
    client: Pool,
    /// The headers of every request.
    headers: HeaderMap,
    authorizer: Option<Arc<dyn Authorize>>,
    /// Is notified of new credentials and of logins that take long.
    inbox: Inbox,
    /// The longest message to be read.
    limit: usize,
}

impl RequestSender {
    pub(super) fn new(
        connector: Connector,
        headers: HeaderMap,
        authorizer: Option<Arc<dyn Authorize>>,
        inbox: Inbox,
        limit: usize,
    ) -> Self {
        Self { client: pool(connector), headers, authorizer, inbox, limit }
    }

    /// Sends a request and returns the head of the response.
    ///
    /// Fails only when there is no reply, or one that leads elsewhere.
    pub(super) async fn send(
        &self,
        method: Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Reply> {
        let mut uri = uri.clone();
        let mut redirects = 0;
        let mut attempts = Attempts::default();
        loop {
            let credentials = match &self.authorizer {
                Some(authorizer) => self.wait_for(authorizer.headers(&method, &uri)).await?,
                None => HeaderMap::new(),
            };
            let request = self.request(&method, &uri, headers, &credentials, body);
            let response = self.client.request(request).await.map_err(|error| lost(&error))?;
            if let Some(authorizer) = &self.authorizer {
                authorizer.responded(&uri, response.headers());
            }
            if let Some(to) = redirection(&method, &uri, &response)? {
                redirects += 1;
                if redirects > MAX_REDIRECTS {
                    let status = response.status().as_u16();
                    return Err(Error::http(
                        status,
                        format!("redirected more than {MAX_REDIRECTS} times, last to {to}"),
                    ));
                }
                uri = to;
                continue;
            }
            if let Some(authorizer) = &self.authorizer
                && let Some(refusal) = Refusal::of(response.status(), response.headers(), &credentials, body)
            {
                match self.wait_for(authorizer.challenged(&refusal, &mut attempts)).await? {
                    Reaction::Retry => {
                        self.inbox.credentials_changed();
                        continue;
                    }
                    Reaction::RetryUnchanged => continue,
                    Reaction::GiveUp => {}
                }
            }
            return Ok(Reply::new(response, uri, self.limit));
        }
    }

    /// Waits for credentials. A person may have to log in, so the requests of the connection do not time out meanwhile.
    async fn wait_for<T>(&self, credentials: impl Future<Output = Result<T>>) -> Result<T> {
        let mut credentials = pin!(credentials);
        loop {
            match tokio::time::timeout(TOUCH, &mut credentials).await {
                Ok(done) => return done,
                Err(_) => self.inbox.keep_waiting(),
            }
        }
    }

    fn request(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        credentials: &HeaderMap,
        body: &Bytes,
    ) -> Request<Payload> {
        let mut request = Request::new(Payload::from(body.clone()));
        *request.method_mut() = method.clone();
        *request.uri_mut() = uri.clone();
        let all = request.headers_mut();
        *all = self.headers.clone();
        for (name, value) in headers {
            all.insert(name, value.clone());
        }
        for (name, value) in credentials {
            all.insert(name, value.clone());
        }
        request
    }
}

impl fmt::Debug for RequestSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestSender").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// Returns the target of a redirect, if the response is one. It must have the same origin, because of the content of
/// the request.
fn redirection(method: &Method, uri: &Uri, response: &Response<Incoming>) -> Result<Option<Uri>> {
    let status = response.status();
    let followed = match status {
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => *method != Method::DELETE,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => *method == Method::GET,
        _ => false,
    };
    let location = response.headers().get(header::LOCATION).and_then(|location| location.to_str().ok());
    let Some(location) = location.filter(|_| followed) else { return Ok(None) };
    let to = url::resolve(uri, location).map_err(|reason| Error::http(status.as_u16(), reason))?;
    if !url::is_same_origin(uri, &to) {
        let elsewhere = format!("redirect to another origin not followed: {to}");
        return Err(Error::http(status.as_u16(), elsewhere));
    }
    Ok(Some(to))
}

/// Returns why there is no reply, or not all of it.
pub(super) fn lost(error: &(dyn StdError + 'static)) -> Error {
    match Loss::of(error) {
        Loss::Unreachable(reasons) => Error::unreachable(reasons),
        Loss::Unreadable(reasons) => Error::malformed("the reply", reasons),
        Loss::Closed(reasons) => Error::closed(reasons),
    }
}

/// How a reply was lost, with all reasons there are.
pub(super) enum Loss {
    /// There was no connection.
    Unreachable(String),
    /// The response is not valid HTTP.
    Unreadable(String),
    /// The connection ended.
    Closed(String),
}

impl Loss {
    pub(super) fn of(error: &(dyn StdError + 'static)) -> Self {
        let mut reasons = Vec::new();
        let mut next = Some(error);
        let mut unreadable = false;
        let mut unreachable = false;
        while let Some(error) = next {
            unreachable |= error
                .downcast_ref::<hyper_util::client::legacy::Error>()
                .is_some_and(hyper_util::client::legacy::Error::is_connect);
            unreadable |= error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse);
            let reason = error.to_string();
            if reasons.last() != Some(&reason) {
                reasons.push(reason);
            }
            next = error.source();
        }
        let reasons = reasons.join(": ");
        if unreachable {
            Self::Unreachable(reasons)
        } else if unreadable {
            Self::Unreadable(reasons)
        } else {
            Self::Closed(reasons)
        }
    }
}

/// The body of a request.
pub(super) struct Payload(Option<Bytes>);

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Self((!bytes.is_empty()).then_some(bytes))
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
