//! A connection as the client sees it.

use super::{legacy, line::Line, modern};
use bowline_client::{BoxFuture, CancelWay, Error, Negotiated, Outgoing, OutgoingKind, Result, Transport};
use bowline_types::Id;
use bytes::Bytes;
use http::Method;
use std::{future::Future, sync::Arc, time::Duration};
use tokio::time::timeout;

/// How long what is still to be told may take when the connection is closed.
const FLUSH: Duration = Duration::from_secs(1);
/// How long the server may take to end the session.
const FAREWELL: Duration = Duration::from_secs(2);

/// One connection over HTTP.
#[derive(Debug)]
pub(super) struct HttpTransport {
    line: Arc<Line>,
}

/// Where the answer to a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It was in the reply.
    Here,
    /// It will come on another stream.
    Elsewhere,
}

impl HttpTransport {
    pub(super) fn new(line: Line) -> Self {
        Self { line: Arc::new(line) }
    }

    fn request(&self, id: Id, running: impl Future<Output = Result<Answer>> + Send + 'static) {
        let (inbox, key) = (self.line.inbox.clone(), id.clone());
        self.line.spawn_request(id, async move {
            match running.await {
                Err(error) => inbox.fail(&key, error),
                // Whatever came, it was not the answer, and there will be no other.
                Ok(Answer::Here) if inbox.awaits(&key) => {
                    inbox.fail(&key, Error::malformed("the reply", "it holds no answer to the request"));
                }
                Ok(_) => {}
            }
        });
    }
}

impl Transport for HttpTransport {
    fn send(&self, outgoing: Outgoing) {
        let line = Arc::clone(&self.line);
        let is_modern = match &outgoing.kind {
            OutgoingKind::Request { method, .. } | OutgoingKind::Notification { method } => {
                line.is_modern(method)
            }
            OutgoingKind::Response { .. } => false,
        };
        let name = if is_modern { outgoing.name() } else { None };
        let frame = outgoing.frame;
        match outgoing.kind {
            OutgoingKind::Request { id, method, params } if is_modern => {
                let request = modern::Request { id: id.clone(), method, name, params, frame };
                self.request(id, async move { modern::request(&line, &request).await });
            }
            OutgoingKind::Request { id, method, .. } => {
                let (key, place) = (id.clone(), line.order.last());
                self.request(id, async move {
                    let answered = legacy::request(&line, &key, &method, &frame, place).await;
                    if let Err(error) = &answered {
                        legacy::give_up(&line, &key, &method, error);
                    }
                    answered
                });
            }
            OutgoingKind::Notification { method } if is_modern => {
                self.line.spawn(async move { modern::notify(&line, &method, &frame).await });
            }
            OutgoingKind::Notification { method } => {
                let place = line.order.next();
                self.line.spawn(async move {
                    line.order.before(&place).await;
                    legacy::tell(&line, Some(&method), &frame).await;
                    line.order.done(&place);
                });
            }
            OutgoingKind::Response { .. } => {
                self.line.spawn(async move { legacy::tell(&line, None, &frame).await });
            }
        }
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.line.room())
    }

    fn cancel(&self, id: &Id) -> CancelWay {
        self.line.cancel(id);
        // In the modern era a closed reply is the cancellation; in the others it means nothing.
        match self.line.revision() {
            Some(revision) if revision.is_modern() => CancelWay::Closed,
            _ => CancelWay::Notify,
        }
    }

    fn opened(&self, negotiated: &Negotiated) {
        self.line.opened(negotiated.revision);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let line = &self.line;
            let place = line.order.last();
            let _ = timeout(FLUSH, line.order.before(&place)).await;
            if line.session().is_some() && !line.is_expired() {
                let headers = line.session_headers();
                let nothing = Bytes::new();
                let deleted = line.courier.send(Method::DELETE, &line.url, &headers, &nothing);
                match timeout(FAREWELL, deleted).await {
                    Ok(Ok(reply)) => {
                        tracing::debug!(status = reply.status.as_u16(), "ended the session");
                        reply.drain().await;
                    }
                    Ok(Err(error)) => tracing::debug!(%error, "the session could not be ended"),
                    Err(_) => tracing::debug!("the server takes too long to end the session"),
                }
            }
            line.abort();
        })
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        self.line.abort();
    }
}
