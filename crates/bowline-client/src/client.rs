//! `Client`: one server, and everything it can be asked.

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

/// A client of one server. Clones share the connection; the last one dropped closes it in the background.
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
    /// whatever else implements [`Connect`]. With the feature `in-process` it can be a `Server` in the same process, as for
    /// tests.
    pub fn connect(target: impl IntoConnect) -> BoxFuture<'static, Result<Self>> {
        Self::builder().connect(target)
    }

    /// Sets up a client.
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
        // Owned by the handle: it ends when the handle says so or is gone, and closes what is open.
        tokio::spawn(driver::drive(Arc::clone(&core), target, ready, stopped, finished));
        let client = Self { inner: Arc::new(Inner { core, stop, done }) };
        opened.await.unwrap_or_else(|_| Err(Error::closed("the client was closed")))?;
        Ok(client)
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.inner.core
    }

    /// What was agreed on with the server, and what it said of itself.
    ///
    /// After a reconnection this may be something else than before.
    pub fn server(&self) -> Arc<Negotiated> {
        let known = lock(&self.core().server).clone();
        known.expect("a client is made only after its first connection is open")
    }

    /// The revision both sides speak.
    pub fn revision(&self) -> Revision {
        self.server().revision
    }

    /// Asks a modern server again what it is. The answer is kept for as long as the server says.
    pub fn discover(&self) -> Request<DiscoverResult> {
        self.typed(Method::Discover, Ok(RawJson::empty_object())).cached((Method::Discover, None))
    }

    /// Asks whether the server is alive: by `ping`, or by `server/discover` where there is no `ping`.
    pub fn ping(&self) -> Request<()> {
        let method = if self.revision().is_modern() { Method::Discover } else { Method::Ping };
        Request::new(self, method.as_str(), Ok(RawJson::empty_object()), |_| Ok(()))
    }

    /// Calls a tool. The arguments are anything that serializes to an object; `()` means none.
    ///
    /// A tool that failed is a result too: see [`ToolResult::is_error`]. With `strict_output`, structured content that
    /// breaks the schema under which the tool was listed is an error.
    pub fn call(&self, name: impl Into<String>, arguments: impl Serialize) -> Request<ToolResult> {
        let name = name.into();
        let params = tool_params(&name, &arguments);
        let shared = Arc::clone(&self.core().shared);
        Request::new(self, Method::CallTool.as_str(), params, move |result| {
            let result: CallToolResult = decode(Method::CallTool, &result)?;
            tracing::debug!(tool = name, failed = result.failed(), "called a tool");
            match shared.tools.check(&name, &result) {
                Err(error) if shared.settings.strict_output => return Err(error),
                Err(error) => tracing::warn!(%error, "the result does not match the output schema"),
                Ok(()) => {}
            }
            Ok(ToolResult::from(result))
        })
    }

    /// Calls a tool and reads its result as a type: see [`ToolResult::json`].
    ///
    /// A tool that failed is an error with the text of its result.
    pub fn call_as<T: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Request<T> {
        let name = name.into();
        let params = tool_params(&name, &arguments);
        let shared = Arc::clone(&self.core().shared);
        Request::new(self, Method::CallTool.as_str(), params, move |result| {
            let result: CallToolResult = decode(Method::CallTool, &result)?;
            tracing::debug!(tool = name, failed = result.failed(), "called a tool");
            match shared.tools.check(&name, &result) {
                Err(error) if shared.settings.strict_output => Err(error),
                _ => ToolResult::from(result).json(),
            }
        })
    }

    /// Reads a resource. The result is kept for as long as the server says.
    pub fn read(&self, uri: impl Into<String>) -> Request<ReadResourceResult> {
        let uri = uri.into();
        self.typed(Method::ReadResource, Ok(about(&uri))).cached((Method::ReadResource, Some(uri)))
    }

    /// Fills in a prompt. The arguments are anything that serializes to an object; values become strings, as the
    /// protocol wants them, and `null` is left out.
    pub fn prompt(&self, name: impl Into<String>, arguments: impl Serialize) -> Request<GetPromptResult> {
        let name = name.into();
        let params = strings(&arguments).map(|arguments| match arguments {
            Some(arguments) => json!({ "name": name, "arguments": arguments }).into(),
            None => json!({ "name": name }).into(),
        });
        self.typed(Method::GetPrompt, params)
    }

    /// Asks for suggestions for an argument of a prompt or resource template, of which the user has typed `value` so far.
    #[doc(alias = "completion/complete")]
    pub fn complete(
        &self,
        reference: Reference,
        argument: impl Into<String>,
        value: impl Into<String>,
    ) -> Request<Completion> {
        self.complete_with(reference, argument, value, [("", ""); 0])
    }

    /// Asks for suggestions like [`complete`](Self::complete), given the values of other arguments.
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

    /// Asks to be told when a resource changes. The news goes to the handler of
    /// [`on_notification`](ClientBuilder::on_notification), or to the relay.
    ///
    /// Fails without asking when the server does not declare that it can.
    pub async fn subscribe(&self, uri: &str) -> Result<()> {
        self.core().subscribe(uri).await
    }

    /// Takes that back.
    pub async fn unsubscribe(&self, uri: &str) -> Result<()> {
        self.core().unsubscribe(uri).await
    }

    /// A stream of the changes that `filter` names. Completes when the server has said which of them it will tell.
    pub async fn listen(&self, filter: SubscriptionFilter) -> Result<Listen> {
        subscriptions::start(self.core(), filter).await
    }

    /// Sets the least level of log messages: at once with a legacy server, for all further requests with a modern one.
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

    /// Tells a legacy server that the roots changed, for a client whose relay answers for them. Servers of 2026-07-28 ask
    /// whenever they need them.
    pub fn notify_roots_changed(&self) {
        if let State::Open(connection) = &*self.core().state.borrow()
            && !connection.is_modern()
        {
            connection.notify(Method::RootsListChanged.as_str(), None);
        }
    }

    /// Sends any request and reads its result: for custom methods and those of extensions.
    ///
    /// The parameters serialize to an object, or to `null` for none; `_meta` in them is kept. Read into [`RawJson`] to get the
    /// result as it came. Nothing is checked before it is sent.
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

    /// Sends any notification. The parameters serialize to an object, or to `null` for none.
    ///
    /// Fails when the negotiated revision has the method but does not let clients send it.
    pub async fn notify(&self, method: &str, params: impl Serialize) -> Result<()> {
        let params =
            RawJson::of(&params).map_err(|error| Error::misuse(format!("the parameters: {error}")))?;
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

    /// What came from the server and was no message, such as a banner printed to the wrong place.
    pub fn noise(&self) -> Noise {
        self.core().shared.noise()
    }

    /// Drops every cached result.
    pub fn clear_cache(&self) {
        self.core().shared.cache.forget(|_| true);
    }

    /// Completes when the connection is gone for good, with the reason.
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

    /// Closes the connection in good order, for all clones: requests under way fail, a child process ends.
    ///
    /// Takes a bounded time. Dropping the future does not stop it.
    pub async fn close(&self) {
        self.inner.stop.send_replace(true);
        // The driver is gone without a word only when its runtime is.
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

/// The parameters of a request of any method; `null` stands for none.
fn object_of(params: &impl Serialize) -> Result<RawJson> {
    let params = RawJson::of(params).map_err(|error| Error::misuse(format!("the parameters: {error}")))?;
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

/// The members of an object as strings.
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
