//! `Client`: a connection to one server, and its requests.

use crate::{
    Connect, Error, IntoConnect, Listen, Noise, Request, Result,
    builder::{self, ClientBuilder},
    core::{Core, State, about},
    driver,
    request::{Options, split_meta},
    shared::{Shared, lock},
    subscriptions,
    tool_result::ToolResult,
};
use bowline_proto::{
    client::{ClientProfile, Negotiated},
    service::BoxFuture,
};
use bowline_types::{
    Adapt, CallToolResult, Capability, CompleteArgument, CompleteContext, CompleteParams, CompleteResult,
    Completion, DiscoverResult, GetPromptResult, LoggingLevel, Method, OrderedMap, RawJson, RawMap,
    ReadResourceResult, Reference, Revision, Root, SubscriptionFilter,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{fmt, sync::Arc};
use tokio::sync::{oneshot, watch};

/// A client of one server. Clones share the connection. Dropping the last clone closes it in the background.
///
/// ```no_run
/// # async fn example() -> bowline_client::Result {
/// use bowline_client::{Client, command};
/// use serde_json::json;
///
/// let client = Client::connect(command("npx", ["-y", "@modelcontextprotocol/server-everything"])).await?;
/// println!("{}", client.call("echo", json!({ "message": "hi" })).await?.text());
/// client.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    core: Arc<Core>,
    stop: watch::Sender<bool>,
    done: watch::Receiver<bool>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

impl Client {
    /// Connects to a server with the default settings: a [`Command`](crate::Command), a [`Stream`](crate::Stream), or
    /// anything else that implements [`Connect`]. With the feature `in-process` it can be a `Server` in the same
    /// process, for tests.
    pub fn connect(target: impl IntoConnect) -> BoxFuture<'static, Result<Self>> {
        Self::builder().connect(target)
    }

    /// Configures a client.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    pub(crate) async fn start(
        builder: ClientBuilder,
        profile: ClientProfile,
        target: Box<dyn Connect>,
    ) -> Result<Self> {
        let core = Arc::new(Core::new(Shared::new(builder, profile)));
        let (stop, stopped) = watch::channel(false);
        let (finished, done) = watch::channel(false);
        let (ready, opened) = oneshot::channel();
        // The handle owns this task. It stops when the handle is closed or dropped, and closes the connection.
        tokio::spawn(driver::drive(Arc::clone(&core), target, ready, stopped, finished));
        let client = Self { inner: Arc::new(Inner { core, stop, done }) };
        opened.await.unwrap_or_else(|_| Err(Error::closed("the client was closed")))?;
        Ok(client)
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.inner.core
    }

    /// Returns the negotiated revision and the description of the server.
    ///
    /// This may change after a reconnect.
    pub fn server(&self) -> Arc<Negotiated> {
        let known = lock(&self.core().server).clone();
        known.expect("a client is made only after its first connection is open")
    }

    /// Returns the negotiated revision.
    pub fn revision(&self) -> Revision {
        self.server().revision
    }

    /// Requests the description of a modern server again. The result is cached for as long as the server allows.
    pub fn discover(&self) -> Request<DiscoverResult> {
        self.typed(Method::Discover, Ok(RawJson::empty_object())).cached((Method::Discover, None))
    }

    /// Checks that the server responds: with `ping`, or with `server/discover` in revisions without `ping`.
    pub fn ping(&self) -> Request<()> {
        let method = if self.revision().is_modern() { Method::Discover } else { Method::Ping };
        Request::new(self, method.as_str(), Ok(RawJson::empty_object()), |_| Ok(()))
    }

    /// Calls a tool. The arguments must serialize to an object; `()` means none.
    ///
    /// A failed tool is a result, too: see [`ToolResult::is_error`]. With `strict_output`, structured content that does
    /// not match the listed schema of the tool is an error.
    pub fn call(&self, name: impl Into<String>, arguments: impl Serialize) -> Request<ToolResult> {
        self.call_with(name.into(), &arguments, Ok)
    }

    /// Calls a tool, checks its result and converts it.
    fn call_with<T: 'static>(
        &self,
        name: String,
        arguments: &impl Serialize,
        convert: impl Fn(ToolResult) -> Result<T> + Send + Sync + 'static,
    ) -> Request<T> {
        let params = tool_params(&name, arguments);
        let shared = Arc::clone(&self.core().shared);
        Request::new(self, Method::CallTool.as_str(), params, move |result| {
            let result: CallToolResult = decode(Method::CallTool, &result)?;
            tracing::debug!(tool = name, failed = result.failed(), "called a tool");
            match shared.tools.check(&name, &result) {
                Err(error) if shared.settings.strict_output => return Err(error),
                Err(error) => tracing::warn!(%error, "the result does not match the output schema"),
                Ok(()) => {}
            }
            convert(ToolResult::from(result))
        })
    }

    /// Calls a tool and deserializes its result: see [`ToolResult::json`].
    ///
    /// A failed tool is an error with the text of its result.
    pub fn call_as<T: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Request<T> {
        self.call_with(name.into(), &arguments, |result| result.json())
    }

    /// Reads a resource. The result is cached for as long as the server allows.
    pub fn read(&self, uri: impl Into<String>) -> Request<ReadResourceResult> {
        let uri = uri.into();
        self.typed(Method::ReadResource, Ok(about(&uri))).cached((Method::ReadResource, Some(uri)))
    }

    /// Requests a prompt. The arguments must serialize to an object. Values are converted to strings, as the protocol
    /// requires, and `null` is omitted.
    pub fn prompt(&self, name: impl Into<String>, arguments: impl Serialize) -> Request<GetPromptResult> {
        let name = name.into();
        let params = strings(&arguments).map(|arguments| match arguments {
            Some(arguments) => json!({ "name": name, "arguments": arguments }).into(),
            None => json!({ "name": name }).into(),
        });
        self.typed(Method::GetPrompt, params)
    }

    /// Requests completions for an argument of a prompt or resource template. `value` is the current input.
    #[doc(alias = "completion/complete")]
    pub fn complete(
        &self,
        reference: Reference,
        argument: impl Into<String>,
        value: impl Into<String>,
    ) -> Request<Completion> {
        self.complete_with(reference, argument, value, [("", ""); 0])
    }

    /// Requests completions like [`complete`](Self::complete), with the values of other arguments.
    ///
    /// Revisions before 2025-06-18 cannot send these values.
    pub fn complete_with<K: Into<String>, V: Into<String>>(
        &self,
        reference: Reference,
        argument: impl Into<String>,
        value: impl Into<String>,
        context: impl IntoIterator<Item = (K, V)>,
    ) -> Request<Completion> {
        let mut params = CompleteParams::new(reference, CompleteArgument::new(argument, value));
        let known: OrderedMap<String> =
            context.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        if !known.is_empty() {
            params.context = Some(CompleteContext::new().arguments(known));
        }
        params.adapt(self.revision());
        let params = RawJson::of(&params).map_err(|error| Error::misuse(error.to_string()));
        Request::new(self, Method::Complete.as_str(), params, |result| {
            decode::<CompleteResult>(Method::Complete, &result).map(|result| result.completion)
        })
    }

    /// Subscribes to changes of a resource. They are passed to the handler of
    /// [`on_notification`](ClientBuilder::on_notification), or to the relay.
    ///
    /// Fails without a request if the server does not declare the capability.
    pub async fn subscribe(&self, uri: &str) -> Result<()> {
        self.core().subscribe(uri).await
    }

    /// Ends the subscription to a resource.
    pub async fn unsubscribe(&self, uri: &str) -> Result<()> {
        self.core().unsubscribe(uri).await
    }

    /// Opens a stream of the changes that `filter` names. Completes when the server has confirmed which of them it
    /// sends.
    pub async fn listen(&self, filter: SubscriptionFilter) -> Result<Listen> {
        subscriptions::start(self.core(), filter).await
    }

    /// Sets the minimum level of log messages: immediately with a legacy server, for all further requests with a modern
    /// one.
    pub async fn set_level(&self, level: LoggingLevel) -> Result<()> {
        let core = self.core();
        let connection = core.connection_with(Capability::Logging, "logging").await?;
        core.shared.set_log_level(level);
        if connection.is_modern() {
            return Ok(());
        }
        let params = json!({ "level": level }).into();
        core.ask(Method::SetLevel.as_str(), &params, Options::new(&core.shared)).await.map(drop)
    }

    /// Replaces the roots, and notifies a legacy server.
    ///
    /// Fails if a root is not a `file://` URI or contains `..`, or if the client was built without roots.
    pub fn set_roots(&self, roots: impl IntoIterator<Item = Root>) -> Result<()> {
        let core = self.core();
        let roots: Vec<Root> = roots.into_iter().collect();
        builder::check_roots(&roots)?;
        if core.shared.profile.capabilities.roots.is_none() || core.shared.handlers.relay.is_some() {
            return Err(Error::misuse("roots are not enabled; pass them to the builder with `roots`"));
        }
        core.shared.set_roots(roots);
        if let State::Open(connection) = &*core.state.borrow()
            && !connection.is_modern()
        {
            connection.notify(Method::RootsListChanged.as_str(), None);
        }
        Ok(())
    }

    /// Notifies a legacy server that the roots changed, for a client whose relay provides them. Servers of 2026-07-28
    /// request them whenever they need them.
    pub fn notify_roots_changed(&self) {
        if let State::Open(connection) = &*self.core().state.borrow()
            && !connection.is_modern()
        {
            connection.notify(Method::RootsListChanged.as_str(), None);
        }
    }

    /// Sends any request and deserializes its result, for custom methods and those of extensions.
    ///
    /// The parameters must serialize to an object, or to `null` for none; `_meta` in them is kept. Use [`RawJson`] as
    /// the result type to get it unchanged. Nothing is checked before sending.
    ///
    /// ```no_run
    /// # async fn example(client: bowline_client::Client) -> bowline_client::Result {
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize)]
    /// struct Lookup {
    ///     word: String,
    /// }
    ///
    /// #[derive(Deserialize)]
    /// struct Entry {
    ///     length: usize,
    /// }
    ///
    /// let entry: Entry = client.request("example.com/lookup", Lookup { word: "bowline".into() }).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn request<R>(&self, method: &str, params: impl Serialize) -> Request<R>
    where
        R: DeserializeOwned + Send + 'static,
    {
        let (params, meta) = match object_of(&params).and_then(|params| split_meta(&params)) {
            Ok((params, meta)) => (Ok(params), meta),
            Err(error) => (Err(error), bowline_types::Meta::new()),
        };
        let name = method.to_owned();
        let read = move |result: RawJson| {
            result.decode().map_err(|error| Error::malformed(format!("the result of `{name}`"), error))
        };
        Request::new(self, method, params, read).ungated().with(|options| options.meta = meta)
    }

    /// Sends any notification. The parameters must serialize to an object, or to `null` for none.
    ///
    /// Fails if the negotiated revision has the method but clients must not send it.
    pub async fn notify(&self, method: &str, params: impl Serialize) -> Result<()> {
        let params = RawJson::of(&params)
            .map_err(|error| Error::misuse(format!("cannot serialize the parameters: {error}")))?;
        if !params.is_null() && !params.is_object() {
            return Err(Error::misuse(format!("expected the parameters to be an object, got `{params}`")));
        }
        let connection = self.core().connection().await?;
        if let (Some(known), Some(revision)) = (Method::parse(method), connection.revision())
            && !known.direction_in(revision).is_some_and(bowline_types::Direction::from_client)
        {
            return Err(Error::misuse(format!("clients cannot send `{method}` in {revision}")));
        }
        connection.notify(method, Some(&params).filter(|params| !params.is_null()));
        Ok(())
    }

    /// Returns received data that was not a message, such as a banner on standard output.
    pub fn noise(&self) -> Noise {
        self.core().shared.noise()
    }

    /// Drops every cached result.
    pub fn clear_cache(&self) {
        self.core().shared.cache.forget(|_| true);
    }

    /// Waits until the connection is closed permanently, and returns the reason.
    pub async fn closed(&self) -> Error {
        let mut state = self.core().state.subscribe();
        let reason = |state: &State| match state {
            State::Closed(reason) => Some(reason.clone()),
            State::Open(_) | State::Opening => None,
        };
        match state.wait_for(|state| reason(state).is_some()).await {
            Ok(state) => reason(&state).unwrap_or_else(|| Error::closed("the client was dropped")),
            Err(_) => Error::closed("the client was dropped"),
        }
    }

    /// Closes the connection gracefully, for all clones. Running requests fail, and a child process is stopped.
    ///
    /// The time is bounded. Dropping the future does not stop it.
    pub async fn close(&self) {
        self.inner.stop.send_replace(true);
        // The driver disappears without a signal only if its runtime does.
        let _ = self.inner.done.clone().wait_for(|done| *done).await;
    }

    fn typed<T: DeserializeOwned + 'static>(&self, method: Method, params: Result<RawJson>) -> Request<T> {
        Request::new(self, method.as_str(), params, move |result| decode(method, &result))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("server", &self.core().server).finish_non_exhaustive()
    }
}

pub(crate) fn decode<T: DeserializeOwned>(method: Method, result: &RawJson) -> Result<T> {
    result.decode().map_err(|error| Error::malformed(format!("the result of `{method}`"), error))
}

/// Serializes the parameters of a request. `null` means none.
fn object_of(params: &impl Serialize) -> Result<RawJson> {
    let params = RawJson::of(params)
        .map_err(|error| Error::misuse(format!("cannot serialize the parameters: {error}")))?;
    Ok(if params.is_null() { RawJson::empty_object() } else { params })
}

fn tool_params(name: &str, arguments: &impl Serialize) -> Result<RawJson> {
    let arguments =
        RawJson::of(arguments).map_err(|error| Error::misuse(format!("the arguments: {error}")))?;
    let mut params = RawMap::new();
    params.insert("name", Value::from(name).into());
    if arguments.is_object() {
        params.insert("arguments", arguments);
    } else if !arguments.is_null() {
        return Err(Error::misuse(format!("expected the arguments to be an object, got `{arguments}`")));
    }
    RawJson::of(&params).map_err(|error| Error::misuse(error.to_string()))
}

/// Converts the members of an object to strings.
fn strings(arguments: &impl Serialize) -> Result<Option<OrderedMap<String>>> {
    let arguments =
        RawJson::of(arguments).map_err(|error| Error::misuse(format!("the arguments: {error}")))?;
    if arguments.is_null() {
        return Ok(None);
    }
    let members: RawMap = arguments
        .decode()
        .map_err(|_| Error::misuse(format!("expected the arguments to be an object, got `{arguments}`")))?;
    let text = |value: &RawJson| value.decode::<String>().unwrap_or_else(|_| value.as_str().to_owned());
    let given = members.iter().filter(|(_, value)| !value.is_null());
    Ok(Some(given.map(|(key, value)| (key.to_owned(), text(value))).collect()))
}
