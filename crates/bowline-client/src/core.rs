//! The state of a client: its current connection, and which requests are possible.

use crate::{
    Error, Result,
    connection::Connection,
    request::Options,
    shared::{Shared, lock},
};
use bowline_proto::client::Negotiated;
use bowline_types::{Capability, Method, RawJson};
use serde_json::json;
use std::sync::{Arc, Mutex};
use tokio::{sync::watch, time::timeout};

/// The part of a client that the driver and the streams share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: watch::Sender<State>,
    /// The current connection, open or opening.
    current: Mutex<Option<Arc<Connection>>>,
    /// The result of the last negotiation.
    pub(crate) server: Mutex<Option<Arc<Negotiated>>>,
}

/// The state of a client.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// There is no connection, but one is being opened.
    Opening,
    Open(Arc<Connection>),
    Closed(Error),
}

impl Core {
    pub(crate) fn new(shared: Shared) -> Self {
        let state = watch::Sender::new(State::Opening);
        Self { shared: Arc::new(shared), state, current: Mutex::default(), server: Mutex::default() }
    }

    pub(crate) fn publish(&self, state: State) {
        if let State::Open(connection) = &state {
            *lock(&self.server) = connection.negotiated().cloned();
        }
        self.state.send_replace(state);
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(&*self.state.borrow(), State::Closed(_))
    }

    pub(crate) fn current(&self) -> Option<Arc<Connection>> {
        lock(&self.current).clone()
    }

    pub(crate) fn set_current(&self, connection: Option<Arc<Connection>>) {
        *lock(&self.current) = connection;
        self.shared.timer.wake();
    }

    /// Returns the open connection. During a reconnect, waits for at most the request timeout.
    pub(crate) async fn connection(&self) -> Result<Arc<Connection>> {
        let open = |state: &State| match state {
            State::Open(connection) if !connection.is_closed() => Some(Ok(Arc::clone(connection))),
            State::Closed(reason) => Some(Err(reason.clone())),
            State::Open(_) | State::Opening => None,
        };
        if let Some(found) = open(&self.state.borrow()) {
            return found;
        }
        let mut state = self.state.subscribe();
        let silence = self.shared.settings.timeouts.silence;
        let waited = timeout(silence, state.wait_for(|state| open(state).is_some())).await;
        match waited {
            Ok(Ok(state)) => open(&state).unwrap_or_else(|| Err(Error::closed("it was lost again"))),
            Ok(Err(_)) => Err(Error::closed("the client was dropped")),
            Err(_) => Err(Error::timeout("reconnecting", silence)),
        }
    }

    /// Returns the open connection, if the server has declared `capability`.
    pub(crate) async fn connection_with(
        &self,
        capability: Capability,
        what: &str,
    ) -> Result<Arc<Connection>> {
        let connection = self.connection().await?;
        match connection.negotiated() {
            Some(negotiated) if negotiated.capabilities.has(capability) => Ok(connection),
            _ => Err(Error::unsupported(what)),
        }
    }

    /// Fails if the negotiated revision does not have the method or the server has not declared it.
    pub(crate) async fn gate(&self, method: &str) -> Result<()> {
        if self.offers(method).await? { Ok(()) } else { Err(Error::unsupported(format!("`{method}`"))) }
    }

    /// Returns whether a method may be used with this server.
    pub(crate) async fn offers(&self, method: &str) -> Result<bool> {
        let connection = self.connection().await?;
        let (Some(negotiated), Some(method)) = (connection.negotiated(), Method::parse(method)) else {
            return Ok(true);
        };
        let needed = method.capability().filter(|capability| capability.exists_in(negotiated.revision));
        let extension = method.extension().filter(|_| negotiated.revision.is_modern());
        Ok(method.exists_in(negotiated.revision)
            && extension.is_none_or(|extension| negotiated.capabilities.has_extension(extension))
            && needed.is_none_or(|capability| negotiated.capabilities.has(capability)))
    }

    pub(crate) async fn subscribe_legacy(&self, uri: &str) -> Result<()> {
        self.ask(Method::Subscribe.as_str(), &about(uri), Options::new(&self.shared)).await.map(drop)
    }

    pub(crate) async fn unsubscribe_legacy(&self, uri: &str) -> Result<()> {
        self.ask(Method::Unsubscribe.as_str(), &about(uri), Options::new(&self.shared)).await.map(drop)
    }

    /// Unsubscribes without waiting.
    pub(crate) fn unsubscribe_in_passing(&self, uri: &str) {
        if let State::Open(connection) = &*self.state.borrow() {
            connection.send_and_forget(Method::Unsubscribe.as_str(), about(uri));
        }
    }
}

/// Returns the parameters of a request for a URI.
pub(crate) fn about(uri: &str) -> RawJson {
    json!({ "uri": uri }).into()
}
