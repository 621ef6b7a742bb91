//! A client that passes on: what the server asks and tells goes to a relay, and calls go out one round at a time.

use crate::{Error, Notification, Result, client::Client, core::Core, request::Options, shared::Shared};
use bowline_proto::{
    client::{ClientProfile, Fulfilled},
    service::{BoxFuture, MethodName},
};
use bowline_types::{
    Adapt, ClientCapabilities, Implementation, InputRequest, InputRequests, InputRequiredResult,
    LogMessageParams, LoggingLevel, Meta, ProgressParams, RawJson, Revision, RpcError, meta,
};
use std::{fmt, sync::Arc, time::Duration};

/// Names a relayed call, in whatever way its caller counts. The [`Relay`] is given it with what the server sends on the
/// stream of that call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallKey(pub u64);

/// What a relaying client is told and asked. Must not block, except by the future it returns.
///
/// What the server sends on the stream of a call's request belongs to that call. Of what comes otherwise, on a channel for
/// everything or on the standing stream of a session, nothing says to which call it belongs, even if only one is under way:
/// a server may still be busy with one that was given up. Then no key is given, and whoever relays decides who may be asked.
pub trait Relay: Send + Sync + 'static {
    /// A legacy server asks something of its client. `call` is the call on whose stream it came.
    ///
    /// The answer is the result of the question's method. It is adapted to the server's revision and otherwise passed on
    /// with all its members. The future is dropped when the server takes its question back, or the connection is lost.
    /// Only what was declared is asked; nothing else about the question was checked.
    ///
    /// A modern server asks so too, without a call, when it asks back about a request other than
    /// [`Client::relay`] makes.
    fn ask(
        &self,
        call: Option<CallKey>,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<RawJson, RpcError>>;

    /// A log message, with the call on whose stream it came.
    fn log(&self, call: Option<CallKey>, message: LogMessageParams);

    /// Any other notification: changes of lists, updates of resources, the end of an elicitation, unknown ones.
    fn notify(&self, notification: Notification);
}

/// What goes along with a relayed call.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RelayWith {
    /// Names the call to the [`Relay`].
    pub key: Option<CallKey>,
    /// Hears of the progress of the call, instead of the handler of
    /// [`on_progress`](crate::ClientBuilder::on_progress). Must not block.
    pub progress: Option<Arc<dyn Fn(ProgressParams) + Send + Sync>>,
    /// The least level of log messages, told to a modern server instead of the client's own.
    pub log_level: Option<LoggingLevel>,
    /// Metadata of the caller that is for the server; keys of the protocol in it are replaced.
    pub meta: Meta,
    /// What the caller can be asked, told to a modern server instead of the client's own.
    pub capabilities: Option<ClientCapabilities>,
    /// Who calls, told to a modern server instead of the client's own.
    pub client_info: Option<Implementation>,
    /// How long the call may go without an answer or progress, instead of what holds for the client.
    pub timeout: Option<Duration>,
    /// How long the call may take altogether, instead of what holds for the client.
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

/// What came of a relayed call.
#[derive(Debug)]
pub enum Relayed {
    /// The result as it came.
    Complete(RawJson),
    /// A modern server needs input first.
    InputRequired {
        /// Its questions, under the keys that their answers go by.
        requests: InputRequests,
        /// What to come back with, unseen.
        state: Option<String>,
    },
}

impl Client {
    /// Sends a call of someone else as it is, and gives what comes of it: one round, without answering, cache or checks.
    ///
    /// `params` is an object without `_meta`, which `with` is for. Whoever comes back with answers to a modern server puts
    /// `inputResponses` and `requestState` into it. The call is sent once, except for lists, reads and pings, which are
    /// sent again when the server has ended the session.
    ///
    /// Nothing is sent before the future is polled. Dropping it later cancels the call at the server.
    pub fn relay(
        &self,
        method: impl Into<MethodName>,
        params: RawJson,
        with: RelayWith,
    ) -> BoxFuture<'static, Result<Relayed>> {
        // As long as the call is under way, so is the client.
        let (client, method) = (self.clone(), method.into());
        Box::pin(async move {
            if !params.is_object() {
                return Err(Error::misuse("expected the parameters to be an object"));
            }
            let options = with.into_options(&client.core().shared, client.revision());
            client.core().relay(method.as_str(), &params, options).await
        })
    }
}

impl Core {
    async fn relay(&self, method: &str, params: &RawJson, options: Options) -> Result<Relayed> {
        let (fulfilled, _) = self.round(method, params, &options).await?;
        Ok(match fulfilled {
            Fulfilled::Complete(result) | Fulfilled::Extension(_, result) => Relayed::Complete(result),
            Fulfilled::InputRequired(required) => {
                let InputRequiredResult { input_requests, request_state: state, .. } = *required;
                Relayed::InputRequired { requests: input_requests.unwrap_or_default(), state }
            }
        })
    }
}

/// What of the caller's metadata is for the server: all but what describes the caller's own connection.
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
