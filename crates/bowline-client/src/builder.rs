//! How a client is set up before it connects.

use crate::{
    Answer, Client, Connect, Error, IntoConnect, ListLimits, Relay, Restart, Result,
    handlers::{Ask, AskUrl, Direction, Handlers, IntoAnswer, Notification, rpc_error},
    web,
};
use bowline_proto::{
    client::ClientProfile, custom::check_custom_name, pending::Timeouts, server::RevisionSet,
    service::BoxFuture,
};
use bowline_types::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitationCapability, Era, Implementation,
    LogMessageParams, LoggingLevel, ProgressParams, RawJson, RawMap, Revision, Root, RootsCapability,
    RpcError, SamplingCapability, meta,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{future::Future, sync::Arc, time::Duration};

/// What holds for a client whatever it is connected to.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) timeouts: Timeouts,
    pub(crate) probe: Duration,
    /// How long a connection may take to open.
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

/// Sets up a client.
///
/// What the client can be asked is declared to the server exactly as handlers are set here, and nothing else. A client with
/// a [`relay`](Self::relay) declares what it is told to.
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

    /// Is shown every message as it goes out and comes in, whatever the transport: for traces and recordings.
    ///
    /// It runs in the task that reads and writes, so it has to be quick.
    pub fn on_frame(mut self, handler: impl Fn(Direction, &[u8]) + Send + Sync + 'static) -> Self {
        self.handlers.frame = Some(Arc::new(handler));
        self
    }

    /// The name the client goes by.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.info.name = name.into();
        self
    }

    /// The client's own version.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.info.version = version.into();
        self
    }

    /// The name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// Restricts the revisions the client speaks. Default: all of them.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.revisions = revisions.into_iter().collect();
        self
    }

    /// Answers forms for the user.
    ///
    /// The defaults of the form fill in the fields that an accepted answer leaves out. An answer that does not fit the form
    /// is not sent: the server learns that the user declined, and a warning is logged.
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

    /// Asks the user to visit pages. The handler shows the URL and opens it only with the user's consent.
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

    /// Asks a model for the server. The handler may change or refuse the request.
    ///
    /// It returns the message, or a `Result` of it. See [`IntoAnswer`] for what becomes of an error.
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

    /// Declares that the handler of [`on_sample`](Self::on_sample) lets the model use tools.
    pub fn sample_with_tools(mut self) -> Self {
        self.sampling_tools = true;
        self
    }

    /// Declares folders the server may work in: `file://` URIs without `..`, checked when the client connects.
    ///
    /// A server that asks sees those that can be read at that moment.
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.roots = Some(roots.into_iter().collect());
        self
    }

    /// Hears of the progress of requests that have no callback of their own. Must not block.
    pub fn on_progress(mut self, handler: impl Fn(ProgressParams) + Send + Sync + 'static) -> Self {
        self.handlers.progress = Some(Arc::new(handler));
        self
    }

    /// Hears the log messages of the server. Must not block. See [`log_level`](Self::log_level).
    pub fn on_log(mut self, handler: impl Fn(LogMessageParams) + Send + Sync + 'static) -> Self {
        self.handlers.log = Some(Arc::new(handler));
        self
    }

    /// Hears what else the server tells. Must not block.
    ///
    /// With a modern server this opens a subscription to the lists whose changes the server announces.
    pub fn on_notification(mut self, handler: impl Fn(Notification) + Send + Sync + 'static) -> Self {
        self.handlers.notification = Some(Arc::new(handler));
        self
    }

    /// Answers a custom request of the server, such as `example.com/thing`. Only servers of legacy revisions send requests.
    ///
    /// The parameters are read into `P`. The result serializes to an object, or to `null` for an empty one. An [`RpcError`]
    /// reaches the server as it is, any other error as -32603 with its text.
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

    /// Hears a custom notification of the server, instead of [`on_notification`](Self::on_notification). Must not block. One
    /// whose parameters cannot be read is dropped.
    pub fn notification<P>(mut self, name: &str, handler: impl Fn(P) + Send + Sync + 'static) -> Self
    where
        P: DeserializeOwned + 'static,
    {
        let name: Box<str> = name.into();
        let heard = {
            let name = name.clone();
            move |params: RawJson| match params.decode() {
                Ok(params) => handler(params),
                Err(error) => {
                    tracing::debug!(%error, %name, "dropped a notification with invalid parameters");
                }
            }
        };
        self.handlers.notifications.insert(name, Arc::new(heard));
        self
    }

    /// Passes on what the server asks and tells, instead of handling it here. See [`Client::relay`] for the calls.
    ///
    /// Excludes `on_ask`, `on_url`, `on_sample`, `roots`, `on_log` and `on_notification`. What the server may ask is what
    /// [`capabilities`](Self::capabilities) declares. With a modern server this opens a subscription to the lists whose
    /// changes the server announces.
    pub fn relay(mut self, relay: Arc<dyn Relay>) -> Self {
        self.handlers.relay = Some(relay);
        self
    }

    /// Declares what a client with a [`relay`](Self::relay) can be asked; nothing by default.
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// The least level of log messages the client wants. A modern server sends none unless this is set.
    pub fn log_level(mut self, level: LoggingLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// How long a request may go without an answer or progress. Default: 60 s.
    pub fn timeout(mut self, silence: Duration) -> Self {
        self.settings.timeouts.silence = silence;
        self
    }

    /// How long a request may take altogether, whatever progress is reported. Default: 1 h.
    pub fn max_total(mut self, total: Duration) -> Self {
        self.settings.timeouts.total = total;
        self
    }

    /// How long it may take to start the server and open the connection. Without it, each step of the opening has the
    /// time of a request. The error of a program that takes longer ends with the last lines of its standard error.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect = Some(timeout);
        self
    }

    /// How long a server may take to answer the question which era it is of before it is offered the handshake.
    /// Default: 5 s. An answer that comes later still counts if the server refuses the handshake.
    ///
    /// There is no such question for a client that speaks no legacy revision: it waits as for any answer.
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.settings.probe = timeout;
        self
    }

    /// How many progress notifications per second are passed on, for all requests together. Default: 200; twice as many
    /// pass in a burst. The others are dropped; they still count as signs of life.
    pub fn max_progress_rate(mut self, per_second: u32) -> Self {
        self.settings.progress_rate = per_second;
        self
    }

    /// How many log messages of the server per second are passed on. Default: 200; twice as many pass in a burst.
    pub fn max_log_rate(mut self, per_second: u32) -> Self {
        self.settings.log_rate = per_second;
        self
    }

    /// Pings a legacy server whenever this much time has passed and it works on no request. A ping that is not answered
    /// within that time, or within the timeout of a request if that is shorter, is logged and ends the connection.
    pub fn keep_alive(mut self, interval: Duration) -> Self {
        self.settings.keep_alive = Some(interval);
        self
    }

    /// The era of the server, where an earlier connection has found it out: a legacy one is not probed then.
    pub fn known_era(mut self, era: Era) -> Self {
        self.settings.known_era = Some(era);
        self
    }

    /// Declares an extension of the protocol, with its settings.
    pub fn extension(mut self, identifier: impl Into<String>, settings: RawJson) -> Self {
        self.extensions.insert(identifier, settings);
        self
    }

    /// Declares something experimental, with its settings.
    pub fn experimental(mut self, name: impl Into<String>, settings: RawJson) -> Self {
        self.experimental.insert(name, settings);
        self
    }

    /// The longest message taken from the server, in bytes. Default: 16 MiB.
    pub fn max_frame(mut self, bytes: usize) -> Self {
        self.settings.max_frame = bytes;
        self
    }

    /// How large a list of the server may be, over all its pages. Default: 8 MiB and 10,000 entries.
    pub fn list_limits(mut self, limits: ListLimits) -> Self {
        self.settings.lists = limits;
        self
    }

    /// Whether structured results that break the schema of their tool are errors, as by default, or only traced.
    pub fn strict_output(mut self, strict: bool) -> Self {
        self.settings.strict_output = strict;
        self
    }

    /// Whether a lost connection is opened again, instead of what its target says.
    pub fn restart(mut self, restart: Restart) -> Self {
        self.settings.restart = Some(restart);
        self
    }

    /// Connects to a server: finds its era, agrees on a revision, and is ready for requests.
    ///
    /// Fails when something was set up wrong, the server cannot be reached, or there is no revision in common.
    pub fn connect(self, target: impl IntoConnect) -> BoxFuture<'static, Result<Client>> {
        let ready = self.profile().and_then(|profile| Ok((profile, target.into_connect()?)));
        // Concrete from here on, so that the future is the same type for every target.
        let ready = ready.map(|(profile, target)| (profile, Box::new(target) as Box<dyn Connect>));
        Box::pin(async move {
            let (profile, target) = ready?;
            Client::start(self, profile, target).await
        })
    }

    /// A relay handles everything or nothing, and only a relay can answer for what is declared without handlers.
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

    /// What the client says of itself: capabilities follow from the handlers, or are those of the relay.
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
            let elicitation =
                ElicitationCapability { form: when(form), url: when(url), ..Default::default() };
            capabilities.elicitation = Some(elicitation);
        }
        if self.handlers.sample.is_some() {
            let sampling = SamplingCapability { tools: when(self.sampling_tools), ..Default::default() };
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
