//! A connection as the client sees it.

use super::{connection::Connection, legacy, modern};
use bowline_client::{BoxFuture, CancelWay, Error, Negotiated, Outgoing, OutgoingKind, Result, Transport};
use bowline_types::Id;
use bytes::Bytes;
use http::Method;
use std::{future::Future, sync::Arc, time::Duration};
use tokio::time::timeout;

/// The time to send pending messages when the connection is closed.
const FLUSH: Duration = Duration::from_secs(1);
/// How long the server may take to end the session.
const FAREWELL: Duration = Duration::from_secs(2);

/// One connection over HTTP.
#[derive(Debug)]
pub(super) struct HttpTransport {
    connection: Arc<Connection>,
}

/// Where the answer to a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It was in the reply.
    Here,
    /// The response arrives on another stream.
    Elsewhere,
}

impl HttpTransport {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection: Arc::new(connection) }
    }

    fn request(&self, id: Id, running: impl Future<Output = Result<Answer>> + Send + 'static) {
        let (inbox, key) = (self.connection.inbox.clone(), id.clone());
        self.connection.spawn_request(id, async move {
            match running.await {
                Err(error) => inbox.fail(&key, error),
                // This was not the response, and there will be no other.
                Ok(Answer::Here) if inbox.awaits(&key) => {
                    inbox.fail(&key, Error::malformed("the reply", "it contains no response to the request"));
                }
                Ok(_) => {}
            }
        });
    }
}

impl Transport for HttpTransport {
    fn send(&self, outgoing: Outgoing) {
        let connection = Arc::clone(&self.connection);
        let is_modern = match &outgoing.kind {
            OutgoingKind::Request { method, .. } | OutgoingKind::Notification { method } => {
                connection.is_modern(method)
            }
            OutgoingKind::Response { .. } => false,
        };
        let name = if is_modern { outgoing.name() } else { None };
        let frame = outgoing.frame;
        match outgoing.kind {
            OutgoingKind::Request { id, method, params } if is_modern => {
                let request = modern::Request { id: id.clone(), method, name, params, frame };
                self.request(id, async move { modern::request(&connection, &request).await });
            }
            OutgoingKind::Request { id, method, .. } => {
                let (key, place) = (id.clone(), connection.order.last());
                self.request(id, async move {
                    let answered = legacy::request(&connection, &key, &method, &frame, place).await;
                    if let Err(error) = &answered {
                        legacy::give_up(&connection, &key, &method, error);
                    }
                    answered
                });
            }
            OutgoingKind::Notification { method } if is_modern => {
                self.connection.spawn(async move { modern::notify(&connection, &method, &frame).await });
            }
            OutgoingKind::Notification { method } => {
                let place = connection.order.next();
                self.connection.spawn(async move {
                    connection.order.before(&place).await;
                    legacy::post_one_way(&connection, Some(&method), &frame).await;
                    connection.order.done(&place);
                });
            }
            OutgoingKind::Response { .. } => {
                self.connection.spawn(async move { legacy::post_one_way(&connection, None, &frame).await });
            }
        }
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.connection.wait_for_space())
    }

    fn cancel(&self, id: &Id) -> CancelWay {
        self.connection.cancel(id);
        // In the modern era a closed reply is the cancellation; in the others it means nothing.
        match self.connection.revision() {
            Some(revision) if revision.is_modern() => CancelWay::Closed,
            _ => CancelWay::Notify,
        }
    }

    fn opened(&self, negotiated: &Negotiated) {
        self.connection.opened(negotiated.revision);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let connection = &self.connection;
            let place = connection.order.last();
            let _ = timeout(FLUSH, connection.order.before(&place)).await;
            if connection.session().is_some() && !connection.is_expired() {
                let headers = connection.session_headers();
                let nothing = Bytes::new();
                let deleted = connection.sender.send(Method::DELETE, &connection.url, &headers, &nothing);
                match timeout(FAREWELL, deleted).await {
                    Ok(Ok(reply)) => {
                        tracing::debug!(status = reply.status.as_u16(), "ended the session");
                        reply.drain().await;
                    }
                    Ok(Err(error)) => tracing::debug!(%error, "cannot end the session"),
                    Err(_) => tracing::debug!("ending the session timed out"),
                }
            }
            connection.abort();
        })
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        self.connection.abort();
    }
}
