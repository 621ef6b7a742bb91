//! Configures a client before it connects.

use crate::{
    Answer, Client, Connect, Error, IntoConnect, ListLimits, Relay, Restart, Result,
    handlers::{Ask, AskUrl, Direction, Handlers, IntoAnswer, Notification, ResponseHead, rpc_error},
    web,
};
use bowline_proto::{
    client::ClientProfile, custom::check_custom_name, pending::Timeouts, server::RevisionSet,
    service::BoxFuture,
};
use bowline_types::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitationCapability, Era, Implementation,
    LogMessageParams, LoggingLevel, ProgressParams, RawJson, RawMap, Revision, Root, RootsCapability,
    RpcError, SamplingCapability, TASKS_EXTENSION, meta,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{future::Future, sync::Arc, time::Duration};

/// Settings that apply to all connections of a client.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) timeouts: Timeouts,
    pub(crate) probe: Duration,
    /// The time limit for opening a connection.
    pub(crate) connect: Option<Duration>,
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) known_era: Option<Era>,
    pub(crate) progress_rate: u32,
    pub(crate) log_rate: u32,
    pub(crate) max_frame: usize,
    pub(crate) lists: ListLimits,
    pub(crate) strict_output: bool,
    pub(crate) restart: Option<Restart>,
}

/// Configures a client.
///
/// The client declares exactly the capabilities for which handlers are set. A client with a [`relay`](Self::relay)
/// declares the given [`capabilities`](Self::capabilities).
#[derive(Clone, Debug)]
#[must_use = "it does nothing until it is used"]
pub struct ClientBuilder {
    pub(crate) info: Implementation,
    pub(crate) revisions: RevisionSet,
    pub(crate) handlers: Handlers,
    pub(crate) capabilities: Option<ClientCapabilities>,
    pub(crate) sampling_tools: bool,
    pub(crate) roots: Option<Vec<Root>>,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) extensions: RawMap,
    pub(crate) experimental: RawMap,
    pub(crate) settings: Settings,
}

impl ClientBuilder {
    pub(crate) fn new() -> Self {
        Self {
            info: Implementation::new("bowline", env!("CARGO_PKG_VERSION")),
            revisions: RevisionSet::ALL,
            handlers: Handlers::default(),
            capabilities: None,
            sampling_tools: false,
            roots: None,
            log_level: None,
            extensions: RawMap::new(),
            experimental: RawMap::new(),
            settings: Settings {
                timeouts: Timeouts::default(),
                probe: Duration::from_secs(5),
                connect: None,
                keep_alive: None,
                known_era: None,
                progress_rate: 200,
                log_rate: 200,
                max_frame: 16 * 1024 * 1024,
                lists: ListLimits::default(),
                strict_output: true,
                restart: None,
            },
        }
    }

    /// Sets a function that is called with every sent and received message, for traces and recordings.
    ///
    /// It runs in the task that reads and writes, so it must be fast.
    pub fn on_frame(mut self, handler: impl Fn(Direction, &[u8]) + Send + Sync + 'static) -> Self {
        self.handlers.frame = Some(Arc::new(handler));
        self
    }

    /// Sets a function that is called with the head of every HTTP response, for traces. Other transports have none.
    ///
    /// It runs in the task that reads, so it must be fast.
    pub fn on_response(mut self, handler: impl Fn(&ResponseHead<'_>) + Send + Sync + 'static) -> Self {
        self.handlers.response = Some(Arc::new(handler));
        self
    }

    /// Sets the name of the client.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.info.name = name.into();
        self
    }

    /// Sets the version of the client.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.info.version = version.into();
        self
    }

    /// Sets the display name of the client.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// Restricts the revisions that the client supports. Default: all.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.revisions = revisions.into_iter().collect();
        self
    }

    /// Sets the handler for forms.
    ///
    /// Missing fields of an accepted answer are filled with the defaults of the form. An invalid answer is not sent:
    /// the server receives a decline, and a warning is logged.
    #[doc(alias = "elicitation/create")]
    pub fn on_ask<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(Ask) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Answer>> + Send + 'static,
    {
        self.handlers.ask = Some(Arc::new(move |question| {
            let answer = handler(question);
            Box::pin(async move { answer.await.into_answer() })
        }));
        self
    }

    /// Sets the handler for URLs. It must show the URL, and open it only with the user's consent.
    ///
    /// A URL that is not an `http` or `https` URL with a host is declined without calling the handler.
    #[doc(alias = "elicitation/create")]
    pub fn on_url<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(AskUrl) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Answer<()>>> + Send + 'static,
    {
        self.handlers.url = Some(Arc::new(move |page| {
            let answer = handler(page);
            Box::pin(async move { answer.await.into_answer() })
        }));
        self
    }

    /// Sets the handler for sampling. It may change or refuse the request.
    ///
    /// It returns the message, or a `Result` of it. See [`IntoAnswer`] for how errors are sent.
    #[doc(alias = "sampling/createMessage")]
    pub fn on_sample<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(CreateMessageParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<CreateMessageResult>> + Send + 'static,
    {
        self.handlers.sample = Some(Arc::new(move |request| {
            let answer = handler(request);
            Box::pin(async move { answer.await.into_answer() })
        }));
        self
    }

    /// Declares that the handler of [`on_sample`](Self::on_sample) supports tools.
    pub fn sample_with_tools(mut self) -> Self {
        self.sampling_tools = true;
        self
    }

    /// Sets the roots: `file://` URIs without `..`, checked when the client connects.
    ///
    /// The server receives those that are readable at the time of its request.
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.roots = Some(roots.into_iter().collect());
        self
    }

    /// Sets the handler for progress of requests without their own callback. It must not block.
    pub fn on_progress(mut self, handler: impl Fn(ProgressParams) + Send + Sync + 'static) -> Self {
        self.handlers.progress = Some(Arc::new(handler));
        self
    }

    /// Sets the handler for log messages of the server. It must not block. See [`log_level`](Self::log_level).
    pub fn on_log(mut self, handler: impl Fn(LogMessageParams) + Send + Sync + 'static) -> Self {
        self.handlers.log = Some(Arc::new(handler));
        self
    }

    /// Sets the handler for other notifications of the server. It must not block.
    ///
    /// With a modern server this subscribes to the changes of lists that the server announces.
    pub fn on_notification(mut self, handler: impl Fn(Notification) + Send + Sync + 'static) -> Self {
        self.handlers.notification = Some(Arc::new(handler));
        self
    }

    /// Sets the handler for a custom request of the server, such as `example.com/thing`. Only servers of legacy
    /// revisions send requests.
    ///
    /// The parameters are deserialized as `P`. The result must serialize to an object, or to `null` for an empty one.
    /// An [`RpcError`] is sent unchanged, any other error as -32603 with its text.
    pub fn method<P, R, E, F, Fut>(mut self, name: &str, handler: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
        F: Fn(P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let answer = move |params: RawJson| -> BoxFuture<'static, Result<RawJson, RpcError>> {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let params = params.decode().map_err(|error| RpcError::invalid_params(error.to_string()))?;
                let reply = handler(params).await.map_err(|error| rpc_error(error.into()))?;
                let reply = RawJson::of(&reply).map_err(|error| RpcError::internal(error.to_string()))?;
                if reply.is_null() {
                    return Ok(RawJson::empty_object());
                }
                let wrong = || RpcError::internal("the handler's result is not an object");
                reply.is_object().then_some(reply).ok_or_else(wrong)
            })
        };
        self.handlers.methods.insert(name.into(), Arc::new(answer));
        self
    }

    /// Sets the handler for a custom notification of the server, instead of [`on_notification`](Self::on_notification).
    /// It must not block. A notification with invalid parameters is dropped.
    pub fn notification<P>(mut self, name: &str, handler: impl Fn(P) + Send + Sync + 'static) -> Self
    where
        P: DeserializeOwned + 'static,
    {
        let name: Box<str> = name.into();
        let handler = {
            let name = name.clone();
            move |params: RawJson| match params.decode() {
                Ok(params) => handler(params),
                Err(error) => {
                    tracing::debug!(%error, %name, "dropped a notification with invalid parameters");
                }
            }
        };
        self.handlers.notifications.insert(name, Arc::new(handler));
        self
    }

    /// Passes requests and notifications of the server to a relay, instead of handlers. See [`Client::relay`] for
    /// calls.
    ///
    /// Cannot be combined with `on_ask`, `on_url`, `on_sample`, `roots`, `on_log` and `on_notification`. The server may
    /// request what [`capabilities`](Self::capabilities) declares. With a modern server this subscribes to the changes
    /// of lists that the server announces.
    pub fn relay(mut self, relay: Arc<dyn Relay>) -> Self {
        self.handlers.relay = Some(relay);
        self
    }

    /// Sets the capabilities of a client with a [`relay`](Self::relay). Default: none.
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// Sets the minimum level of log messages. Without it, a modern server sends none.
    pub fn log_level(mut self, level: LoggingLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Sets the maximum time of a request without a response or progress. Default: 60 s.
    pub fn timeout(mut self, silence: Duration) -> Self {
        self.settings.timeouts.silence = silence;
        self
    }

    /// Sets the maximum total time of a request, regardless of progress. Default: 1 h.
    pub fn max_total(mut self, total: Duration) -> Self {
        self.settings.timeouts.total = total;
        self
    }

    /// Sets the time limit for starting the server and opening the connection. By default, each step has the time limit
    /// of a request. If a program times out, the error includes the last lines of its standard error.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect = Some(timeout);
        self
    }

    /// Sets how long a server may take to answer the probe of its era before the client starts the legacy handshake.
    /// Default: 5 s. A later answer is still used if the server refuses the handshake.
    ///
    /// A client without legacy revisions does not need this limit; it waits as for any response.
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.settings.probe = timeout;
        self
    }

    /// Sets the maximum number of progress notifications per second, over all requests. Default: 200, and twice as many
    /// in a burst. Further ones are dropped, but still reset timeouts.
    pub fn max_progress_rate(mut self, per_second: u32) -> Self {
        self.settings.progress_rate = per_second;
        self
    }

    /// Sets the maximum number of log messages per second. Default: 200, and twice as many in a burst.
    pub fn max_log_rate(mut self, per_second: u32) -> Self {
        self.settings.log_rate = per_second;
        self
    }

    /// Pings a legacy server at this interval while no request is running. If a ping is not answered within the
    /// interval, or within the timeout of a request if that is shorter, the connection is closed and this is logged.
    pub fn keep_alive(mut self, interval: Duration) -> Self {
        self.settings.keep_alive = Some(interval);
        self
    }

    /// Sets the era of the server, if it is known from an earlier connection. A legacy server is then not probed.
    pub fn known_era(mut self, era: Era) -> Self {
        self.settings.known_era = Some(era);
        self
    }

    /// Lets the server run tool calls as tasks: in 2026-07-28 by declaring the extension `io.modelcontextprotocol/tasks`,
    /// in 2025-11-25 by requesting tasks of tools that support or need them.
    ///
    /// [`Client::call`] then waits for a task like for any other call, and
    /// [`Request::start`](crate::Request::start) returns a handle to it. Off by default.
    #[doc(alias = "io.modelcontextprotocol/tasks")]
    pub fn tasks(self) -> Self {
        self.extension(TASKS_EXTENSION, RawJson::empty_object())
    }

    /// Declares an extension of the protocol, with its settings.
    pub fn extension(mut self, identifier: impl Into<String>, settings: RawJson) -> Self {
        self.extensions.insert(identifier, settings);
        self
    }

    /// Declares an experimental capability, with its settings.
    pub fn experimental(mut self, name: impl Into<String>, settings: RawJson) -> Self {
        self.experimental.insert(name, settings);
        self
    }

    /// Sets the maximum size of a received message, in bytes. Default: 16 MiB.
    pub fn max_frame(mut self, bytes: usize) -> Self {
        self.settings.max_frame = bytes;
        self
    }

    /// Sets the maximum size of a complete list, over all pages. Default: 8 MiB and 10,000 entries.
    pub fn list_limits(mut self, limits: ListLimits) -> Self {
        self.settings.lists = limits;
        self
    }

    /// Sets whether structured results that do not match the schema of their tool are errors (the default) or only
    /// logged.
    pub fn strict_output(mut self, strict: bool) -> Self {
        self.settings.strict_output = strict;
        self
    }

    /// Sets whether a lost connection is reopened, overriding the target.
    pub fn restart(mut self, restart: Restart) -> Self {
        self.settings.restart = Some(restart);
        self
    }

    /// Connects to a server: detects its era and negotiates a revision.
    ///
    /// Fails if the settings are invalid, the server cannot be reached, or there is no common revision.
    pub fn connect(self, target: impl IntoConnect) -> BoxFuture<'static, Result<Client>> {
        let ready = self.profile().and_then(|profile| Ok((profile, target.into_connect()?)));
        // Boxed, so that the future has the same type for every target.
        let ready = ready.map(|(mut profile, target)| {
            let declared = &mut profile.capabilities.extensions;
            for identifier in target.extensions() {
                if declared.get(identifier).is_none() {
                    declared.insert(identifier, RawJson::empty_object());
                }
            }
            (profile, Box::new(target) as Box<dyn Connect>)
        });
        Box::pin(async move {
            let (profile, target) = ready?;
            Client::start(self, profile, target).await
        })
    }

    /// Checks that a relay is not combined with handlers, and that capabilities without handlers have a relay.
    fn check_relay(&self) -> Result<()> {
        let Handlers {
            ask,
            url,
            sample,
            progress: _,
            log,
            notification,
            methods,
            notifications,
            frame: _,
            response: _,
            relay,
        } = &self.handlers;
        let handled = ask.is_some()
            || url.is_some()
            || sample.is_some()
            || log.is_some()
            || notification.is_some()
            || !methods.is_empty()
            || !notifications.is_empty()
            || self.roots.is_some()
            || self.sampling_tools;
        match relay {
            Some(_) if handled => {
                Err(Error::misuse("a relay cannot be combined with other handlers or roots"))
            }
            None if self.capabilities.is_some() => Err(Error::misuse(
                "capabilities can only be set with a relay; otherwise they are derived from the handlers",
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the description of the client. Capabilities follow from the handlers, or are those of the relay.
    fn profile(&self) -> Result<ClientProfile> {
        let mut profile =
            ClientProfile { revisions: self.revisions, ..ClientProfile::new(self.info.clone()) };
        if self.revisions == RevisionSet::NONE {
            return Err(Error::misuse("a client must support at least one revision"));
        }
        self.check_relay()?;
        for name in self.handlers.methods.keys().chain(self.handlers.notifications.keys()) {
            check_custom_name(name).map_err(|reason| Error::misuse(format!("`{name}`: {reason}")))?;
        }
        let when = |handled: bool| handled.then(RawMap::new);
        let capabilities = &mut profile.capabilities;
        if let Some(declared) = &self.capabilities {
            capabilities.clone_from(declared);
        }
        let (form, url) = (self.handlers.ask.is_some(), self.handlers.url.is_some());
        if form || url {
            let mut elicitation = ElicitationCapability::new();
            (elicitation.form, elicitation.url) = (when(form), when(url));
            capabilities.elicitation = Some(elicitation);
        }
        if self.handlers.sample.is_some() {
            let mut sampling = SamplingCapability::new();
            sampling.tools = when(self.sampling_tools);
            capabilities.sampling = Some(sampling);
        }
        if let Some(roots) = &self.roots {
            check_roots(roots)?;
            capabilities.roots = Some(RootsCapability::new().list_changed(true));
        }
        for (identifier, settings) in &self.extensions {
            meta::validate_extension(identifier)
                .map_err(|error| Error::misuse(format!("extension `{identifier}`: {error}")))?;
            if !settings.is_object() {
                return Err(Error::misuse(format!(
                    "expected the settings of `{identifier}` to be an object"
                )));
            }
            capabilities.extensions.insert(identifier, settings.clone());
        }
        for (name, settings) in &self.experimental {
            capabilities.experimental.insert(name, settings.clone());
        }
        Ok(profile)
    }
}

pub(crate) fn check_roots(roots: &[Root]) -> Result<()> {
    roots.iter().try_for_each(web::check_root).map_err(Error::misuse)
}
