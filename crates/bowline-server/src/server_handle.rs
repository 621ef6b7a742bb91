//! `ServerHandle`: a built server, which transports serve.

use crate::{
    Result, ServeError, backend_tasks, connection,
    dispatch::Core,
    limits::Limits,
    observe::Observer,
    random, stdio,
    transport::{Listener, Sink, unix_time},
};
use bowline_proto::{
    header::ParamHeaders,
    params::Params,
    scope::Scopes,
    server::{Profile, Sealing},
    service::{ClientView, Service},
    subscribe::{Change, Listen},
};
use bowline_types::{Id, Method, RpcError};
use std::{
    collections::BTreeSet,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};

/// A server ready for connections. Clones share everything.
#[derive(Clone)]
pub struct ServerHandle {
    pub(crate) core: Arc<Core>,
    pub(crate) service: Arc<dyn Service>,
}

impl ServerHandle {
    /// Returns what the server declares about itself.
    pub fn profile(&self) -> &Arc<Profile> {
        &self.core.profile
    }

    /// Returns the limits.
    pub fn limits(&self) -> &Limits {
        &self.core.limits
    }

    /// Returns the service that answers calls, with its middleware.
    pub fn service(&self) -> &Arc<dyn Service> {
        &self.service
    }

    /// Returns the observer of a new connection, if messages are observed. Transports that pass a [`RawFrame`](crate::transport::RawFrame)
    /// need none.
    pub fn observer(&self) -> Option<Observer> {
        self.core.on_message.as_ref().map(Observer::new)
    }

    /// Returns whether messages are observed. Then transports put a [`RawFrame`](crate::transport::RawFrame) into the extensions.
    pub fn is_observed(&self) -> bool {
        self.core.on_message.is_some()
    }

    /// Returns the parameters of a tool that clients repeat in HTTP headers, or `None` if there are none or the tool is
    /// unknown.
    ///
    /// `client` is called for a guarded tool only.
    pub fn param_headers(
        &self,
        tool: &str,
        client: impl FnOnce() -> ClientView,
    ) -> Option<Arc<ParamHeaders>> {
        let snapshot = self.core.registry.snapshot();
        let tool = snapshot.tools.get(tool)?;
        let headers = tool.prepared().ok()?.param_headers.as_ref()?;
        // A guard that panics does so again when the tool is called, where it is answered.
        let seen = || tool.guard.as_ref().is_none_or(|guard| guard(&client()));
        catch_unwind(AssertUnwindSafe(seen)).unwrap_or(false).then(|| Arc::clone(headers))
    }

    /// Returns the scopes that the tool, resources or prompt named by a request declare; `None` if they declare none, or
    /// nothing has that name. In addition to these, the endpoint has scopes for every request.
    pub fn declared_scopes(&self, method: Method, params: &Params) -> Option<Arc<Scopes>> {
        self.core.registry.declared_scopes(method, params)
    }

    /// Returns the keys that currently seal the state of calls that need input.
    pub fn sealing(&self) -> Sealing {
        let expires = unix_time().saturating_add(self.core.limits.question.as_secs());
        Sealing { random: random::bytes(), expires }
    }

    /// Returns the announcer, with which a [`Server::backend`](crate::Server::backend) sends notifications to clients. It does not keep the
    /// backend alive.
    pub fn announcer(&self) -> Announcer {
        Announcer { core: Arc::clone(&self.core) }
    }

    /// Returns the tasks named by a subscription that its client may see: [`Listen::tasks`].
    ///
    /// # Errors
    ///
    /// If the token of the client lacks the scopes of the tool of one of these tasks, or their store is not available.
    pub async fn visible_tasks(&self, listen: &Listen) -> Result<Vec<String>, RpcError> {
        if let Some(tasks) = &self.core.backend_tasks {
            return Ok(tasks.visible(listen).await);
        }
        #[cfg(feature = "tasks")]
        if let (Some(table), Some(client)) = (&self.core.tasks, &listen.client) {
            let follower =
                crate::tasks::Follower::new(table, client.principal.clone(), listen.subscriber.clone());
            return follower.visible(listen.task_ids()).await;
        }
        Ok(Vec::new())
    }

    /// Sends the changes of the tasks of a subscription to `sink`, until the returned value is dropped. `None` if there are
    /// none.
    pub fn follow_tasks(&self, listen: &Listen, id: &Id, sink: Arc<dyn Sink>) -> Option<TaskFollowing> {
        if let Some(tasks) = self.core.backend_tasks.as_deref().filter(|_| !listen.tasks.is_empty()) {
            return Some(backend_tasks::follow(tasks, listen, id, sink));
        }
        #[cfg(feature = "tasks")]
        if let (Some(table), Some(client), false) =
            (&self.core.tasks, &listen.client, listen.tasks.is_empty())
        {
            let follower =
                crate::tasks::Follower::new(table, client.principal.clone(), listen.subscriber.clone());
            let send = move |frame: bytes::Bytes| sink.offer(&frame);
            return Some(TaskFollowing::spawn(follower.follow_2026(listen.tasks.clone(), id.clone(), send)));
        }
        None
    }

    /// Replaces the resources that one connection is subscribed to.
    pub fn want(&self, before: &BTreeSet<String>, now: &BTreeSet<String>) {
        self.core.registry.hub().replace_subscriptions(before, now);
    }

    /// Notifies a listener of changes until it is dropped.
    pub fn join(&self, listener: &Arc<dyn Listener>) {
        self.core.registry.hub().join(listener);
    }

    /// Removes dropped listeners. Call it when one is dropped; otherwise its memory is kept until others join.
    pub fn leave(&self) {
        self.core.registry.hub().leave();
    }

    /// Stops to run tasks in this process: those that run get `grace` to end. Then those that may run again are given back to the
    /// store, for another process, and the others fail. To be called before the process ends.
    ///
    /// Without the feature `tasks` there are none, and this does nothing.
    pub async fn stop_tasks(&self, grace: std::time::Duration) {
        #[cfg(feature = "tasks")]
        if let Some(table) = &self.core.tasks {
            table.stop(grace).await;
        }
        #[cfg(not(feature = "tasks"))]
        std::future::ready(grace).await;
    }

    /// Returns the store that keeps the tasks of this server, if it has tasks: for its [metrics](bowline_store::Store::metrics).
    #[cfg(feature = "tasks")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tasks")))]
    pub fn task_store(&self) -> Option<&bowline_store::Store> {
        self.core.tasks.as_ref().map(|table| &table.settings.store)
    }

    /// Serves the client that started this process.
    pub async fn serve_stdio(&self) -> Result<(), ServeError> {
        stdio::serve(self).await
    }

    /// Serves one client over a pair of byte streams.
    pub async fn serve(
        &self,
        read: impl AsyncRead + Send + Unpin,
        write: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<(), ServeError> {
        self.serve_as(None, read, write).await
    }

    /// Serves one client whose principal is known.
    pub async fn serve_as(
        &self,
        principal: Option<Arc<str>>,
        read: impl AsyncRead + Send + Unpin,
        write: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<(), ServeError> {
        connection::serve(self, principal, read, write).await.map_err(Into::into)
    }
}

/// Sends the changes of tasks to a client until it is dropped.
#[derive(Debug)]
#[must_use = "nothing is sent once it is dropped"]
pub struct TaskFollowing(tokio::task::AbortHandle);

impl TaskFollowing {
    pub(crate) fn spawn(following: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(following).abort_handle())
    }

    /// Whether the tasks have ended.
    #[cfg(any(feature = "tasks", feature = "backend-tasks"))]
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_finished()
    }
}

impl Drop for TaskFollowing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Notifies the clients of a server of changes in its backend.
#[derive(Clone)]
pub struct Announcer {
    core: Arc<Core>,
}

impl Announcer {
    /// Notifies every client that listens for this change.
    pub fn publish(&self, change: &Change) {
        self.core.registry.hub().publish(change);
    }

    /// Returns the resources that some client subscribes to. The value is always current.
    pub fn wanted(&self) -> watch::Receiver<Arc<BTreeSet<String>>> {
        self.core.registry.hub().wanted()
    }

    /// Changes the instructions for clients that connect from now on.
    pub fn set_instructions(&self, instructions: Option<String>) {
        self.core.profile.set_instructions(instructions);
    }
}

impl fmt::Debug for Announcer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Announcer").finish_non_exhaustive()
    }
}

impl fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerHandle").field("core", &self.core).finish_non_exhaustive()
    }
}
