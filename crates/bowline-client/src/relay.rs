//! A relaying client: passes requests and notifications of the server to a relay, and sends calls one round at a time.

use crate::{
    Error, Notification, Result, TaskState, client::Client, core::Core, request::Options, shared::Shared,
};
use bowline_proto::{
    client::{ClientProfile, Fulfilled},
    service::{BoxFuture, MethodName},
};
use bowline_types::{
    Adapt, ClientCapabilities, Implementation, InputRequest, InputRequests, InputRequiredResult,
    LogMessageParams, LoggingLevel, Meta, Method, ProgressParams, RawJson, Revision, RpcError, meta,
};
use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

/// Identifies a relayed call. The [`Relay`] receives it with messages of the server on the stream of that call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallKey(pub u64);

/// Receives requests and notifications of the server. Methods must not block, except in the returned future.
///
/// A message on the stream of a call belongs to that call. A message on a shared channel, or on the general stream of a
/// session, cannot be assigned to a call, even if only one is running, because the server may still process a cancelled
/// one. It has no key, and the relay decides who may be asked.
pub trait Relay: Send + Sync + 'static {
    /// Handles a request of a legacy server. `call` is the call on whose stream it arrived.
    ///
    /// The returned result is adapted to the server's revision and otherwise sent unchanged. The future is dropped if
    /// the server cancels the request or the connection is lost. Only declared methods are passed on; nothing else was
    /// checked.
    ///
    /// Input requests of a modern server arrive here, too, without a call, if they belong to a request that was not
    /// made with [`Client::relay`] makes.
    fn ask(
        &self,
        call: Option<CallKey>,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<RawJson, RpcError>>;

    /// Handles a log message. `call` is the call on whose stream it arrived.
    fn log(&self, call: Option<CallKey>, message: LogMessageParams);

    /// Handles any other notification: changes of lists, updates of resources, completed elicitations, unknown ones.
    fn notify(&self, notification: Notification);
}

/// The options of a relayed call.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RelayWith {
    /// Identifies the call for the [`Relay`].
    pub key: Option<CallKey>,
    /// Receives the progress of the call, instead of the handler of [`on_progress`](crate::ClientBuilder::on_progress).
    /// It must not block.
    pub progress: Option<Arc<dyn Fn(ProgressParams) + Send + Sync>>,
    /// The minimum level of log messages for a modern server, instead of the client's own.
    pub log_level: Option<LoggingLevel>,
    /// Metadata of the caller for the server. Keys of the protocol are replaced.
    pub meta: Meta,
    /// The capabilities of the caller for a modern server, instead of the client's own.
    pub capabilities: Option<ClientCapabilities>,
    /// The description of the caller for a modern server, instead of the client's own.
    pub client_info: Option<Implementation>,
    /// The maximum time without a response or progress, instead of the client's own.
    pub timeout: Option<Duration>,
    /// The maximum total time, instead of the client's own.
    pub max_total: Option<Duration>,
}

impl RelayWith {
    fn into_options(self, shared: &Shared, revision: Revision) -> Options {
        let mut options = Options::new(shared);
        options.meta = passed_on(self.meta);
        options.meta.adapt(revision);
        options.key = self.key;
        options.progress = self.progress.or(options.progress);
        options.log_level = self.log_level.or(options.log_level);
        options.timeouts.silence = self.timeout.unwrap_or(options.timeouts.silence);
        options.timeouts.total = self.max_total.unwrap_or(options.timeouts.total);
        if self.capabilities.is_some() || self.client_info.is_some() {
            let own = &shared.profile;
            options.profile = Some(Arc::new(ClientProfile {
                info: self.client_info.unwrap_or_else(|| own.info.clone()),
                capabilities: self.capabilities.unwrap_or_else(|| own.capabilities.clone()),
                revisions: own.revisions,
            }));
        }
        options
    }
}

impl fmt::Debug for RelayWith {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayWith")
            .field("key", &self.key)
            .field("progress", &self.progress.is_some())
            .field("log_level", &self.log_level)
            .field("meta", &self.meta)
            .field("capabilities", &self.capabilities)
            .field("client_info", &self.client_info)
            .field("timeout", &self.timeout)
            .field("max_total", &self.max_total)
            .finish()
    }
}

/// The outcome of a relayed call.
#[derive(Debug)]
pub enum Relayed {
    /// The result, unchanged.
    Complete(RawJson),
    /// A modern server needs input first.
    InputRequired {
        /// The input requests by key.
        requests: InputRequests,
        /// The opaque state for the retry.
        state: Option<String>,
    },
    /// A modern server made the call a task: the result, unchanged. [`Client::follow_task`] waits for it. Only if the
    /// call declared the extension.
    Task(RawJson),
}

impl Client {
    /// Sends a call of another client unchanged and returns its outcome: one round, without answering, cache or checks.
    ///
    /// `params` is an object without `_meta`, which is in `with`. A retry with answers for a modern server adds
    /// `inputResponses` and `requestState` to it. The call is sent once, except for lists, reads and pings, which are
    /// sent again if the server has ended the session.
    ///
    /// Nothing is sent before the future is polled. Dropping it later cancels the call on the server.
    pub fn relay(
        &self,
        method: impl Into<MethodName>,
        params: RawJson,
        with: RelayWith,
    ) -> BoxFuture<'static, Result<Relayed>> {
        // The client stays open while the call runs.
        let (client, method) = (self.clone(), method.into());
        Box::pin(async move {
            if !params.is_object() {
                return Err(Error::misuse("expected the parameters to be an object"));
            }
            let options = with.into_options(&client.core().shared, client.revision());
            client.core().relay(method.as_str(), &params, options).await
        })
    }

    /// Follows a task on behalf of another client, until the task ends or asks a question whose key is not in
    /// `answered`.
    ///
    /// `known` is the state that the server sent last; its polling interval counts from now. If the task has ended, the
    /// state has the outcome, in all revisions. Answers are sent with [`relay`](Self::relay). Requests of a 2025-11-25
    /// server during the task arrive at the [`Relay`], with the key of `with` where they belong to a stream.
    pub fn follow_task(
        &self,
        task_id: impl Into<String>,
        known: Option<TaskState>,
        answered: BTreeSet<String>,
        with: RelayWith,
    ) -> BoxFuture<'static, Result<TaskState>> {
        let (client, task_id) = (self.clone(), task_id.into());
        Box::pin(async move {
            let options = with.into_options(&client.core().shared, client.revision());
            client.core().follow_task(&task_id, known, &answered, &options).await
        })
    }
}

impl Core {
    async fn relay(&self, method: &str, params: &RawJson, options: Options) -> Result<Relayed> {
        let (fulfilled, _) = self.round(method, params, &options).await?;
        Ok(match fulfilled {
            Fulfilled::Extension(_, result) if method == Method::CallTool.as_str() => Relayed::Task(result),
            Fulfilled::Complete(result) | Fulfilled::Extension(_, result) => Relayed::Complete(result),
            Fulfilled::InputRequired(required) => {
                let InputRequiredResult { input_requests, request_state: state, .. } = *required;
                Relayed::InputRequired { requests: input_requests.unwrap_or_default(), state }
            }
        })
    }
}

/// Returns the caller's metadata for the server: everything except the description of the caller's own connection.
fn passed_on(meta: Meta) -> Meta {
    const OWN: [&str; 6] = [
        meta::key::PROGRESS_TOKEN,
        meta::key::PROTOCOL_VERSION,
        meta::key::CLIENT_INFO,
        meta::key::CLIENT_CAPABILITIES,
        meta::key::LOG_LEVEL,
        meta::key::SUBSCRIPTION_ID,
    ];
    let mut members = meta.into_map();
    members.retain(|key, _| !OWN.contains(&key));
    members.into()
}
