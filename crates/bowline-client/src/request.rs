//! One request: its options, sending, input rounds, and response.

use crate::{
    CallKey, Error, Result, answering,
    cache::Key,
    client::Client,
    connection::{Connection, Ticket},
    core::Core,
    error::Kind,
    handlers::{OnProgress, OnTask},
    shared::Shared,
    tasks,
};
use bowline_proto::{
    client::{ClientProfile, Fulfilled, Negotiated, RequestOptions, classify},
    pending::Timeouts,
    service::BoxFuture,
};
use bowline_types::{Id, LoggingLevel, Meta, Method, ProgressParams, RawJson, RawMap, TASKS_EXTENSION, meta};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

/// The maximum number of input rounds of a request.
const MAX_ROUNDS: u32 = 10;

/// The options of a request.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) timeouts: Timeouts,
    pub(crate) progress: Option<OnProgress>,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) meta: Meta,
    /// The description of the client, if it differs from the client's own.
    pub(crate) profile: Option<Arc<ClientProfile>>,
    /// The relay's key of the request.
    pub(crate) key: Option<CallKey>,
    /// How long the server should keep a task, in 2025-11-25.
    pub(crate) task_ttl: Option<Duration>,
    /// Is called with the task that the call became.
    pub(crate) on_task: Option<OnTask>,
    /// Keeps the progress handler of a task in 2025-11-25.
    pub(crate) task_progress: Option<Arc<tasks::TaskProgress>>,
}

impl Options {
    /// Returns the default options.
    pub(crate) fn new(shared: &Shared) -> Self {
        Self {
            timeouts: shared.settings.timeouts,
            progress: shared.handlers.progress.clone(),
            log_level: shared.log_level(),
            meta: Meta::new(),
            profile: None,
            key: None,
            task_ttl: None,
            on_task: None,
            task_progress: None,
        }
    }

    /// Returns the description of the client.
    pub(crate) fn profile<'a>(&'a self, shared: &'a Shared) -> &'a ClientProfile {
        self.profile.as_ref().unwrap_or(&shared.profile)
    }

    /// Converts to protocol options. Progress is requested only if there is a handler.
    pub(crate) fn for_proto(&self, id: Option<&Id>) -> RequestOptions {
        RequestOptions {
            progress_token: id.filter(|_| self.progress.is_some()).cloned(),
            log_level: self.log_level,
            meta: self.meta.clone(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("timeouts", &self.timeouts)
            .field("meta", &self.meta)
            .finish_non_exhaustive()
    }
}

/// A request that is sent when it is awaited. Its methods set options.
///
/// Nothing is sent before it is first polled. Dropping it later cancels the request on the server.
#[must_use = "a request does nothing until it is awaited"]
pub struct Request<T> {
    plan: Option<Plan<T>>,
    running: Option<BoxFuture<'static, Result<T>>>,
}

pub(crate) struct Plan<T> {
    pub(crate) client: Client,
    method: Box<str>,
    /// The parameters without `_meta`.
    pub(crate) params: Result<RawJson>,
    pub(crate) options: Options,
    /// The cache key, unless the request has its own metadata.
    cached: Option<Key>,
    /// Whether the request fails if the server has not declared the capability.
    gated: bool,
    pub(crate) finish: Finish<T>,
}

pub(crate) type Finish<T> = Box<dyn FnOnce(RawJson) -> Result<T> + Send>;

impl<T: 'static> Request<T> {
    pub(crate) fn new(
        client: &Client,
        method: &str,
        params: Result<RawJson>,
        finish: impl FnOnce(RawJson) -> Result<T> + Send + 'static,
    ) -> Self {
        let options = Options::new(&client.core().shared);
        let (client, method, finish) = (client.clone(), method.into(), Box::new(finish));
        Self {
            plan: Some(Plan { client, method, params, options, cached: None, gated: true, finish }),
            running: None,
        }
    }

    pub(crate) fn cached(mut self, key: Key) -> Self {
        if let Some(plan) = &mut self.plan {
            plan.cached = Some(key);
        }
        self
    }

    pub(crate) fn ungated(mut self) -> Self {
        if let Some(plan) = &mut self.plan {
            plan.gated = false;
        }
        self
    }

    /// Returns what the request would do, unless it was already polled.
    pub(crate) fn into_plan(mut self) -> Option<Plan<T>> {
        self.plan.take()
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        if let Some(plan) = &mut self.plan {
            change(&mut plan.options);
        }
        self
    }

    /// Sets the maximum time without a response or progress.
    pub fn timeout(self, silence: Duration) -> Self {
        self.with(|options| options.timeouts.silence = silence)
    }

    /// Sets the maximum total time, regardless of progress.
    pub fn max_total(self, total: Duration) -> Self {
        self.with(|options| options.timeouts.total = total)
    }

    /// Sets the handler for progress of this request. It must not block.
    pub fn progress(self, handler: impl Fn(ProgressParams) + Send + Sync + 'static) -> Self {
        self.with(|options| options.progress = Some(Arc::new(handler)))
    }

    /// Sets the minimum level of log messages during this request, in revisions that support it.
    pub fn log_level(self, level: LoggingLevel) -> Self {
        self.with(|options| options.log_level = Some(level))
    }

    /// Adds metadata. Keys that the client sets for the protocol take precedence.
    ///
    /// The request fails without being sent if a key is invalid.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<RawJson>) -> Self {
        let key = key.into();
        if let Some(plan) = &mut self.plan {
            if let Err(error) = meta::validate_key(&key) {
                plan.params = Err(Error::misuse(error.to_string()));
            }
            plan.options.meta.insert(key, value.into());
            plan.cached = None;
        }
        self
    }

    /// Adds all members of `meta`, like [`meta`](Self::meta).
    pub fn metas(self, meta: &Meta) -> Self {
        meta.iter().fold(self, |request, (key, value)| request.meta(key, value.clone()))
    }
}

impl<T: 'static> Future for Request<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        if let Some(plan) = self.plan.take() {
            self.running = Some(Box::pin(plan.run()));
        }
        match &mut self.running {
            Some(running) => running.as_mut().poll(context),
            None => Poll::Ready(Err(Kind::Cancelled.into())),
        }
    }
}

impl<T> Plan<T> {
    async fn run(self) -> Result<T> {
        let core = self.client.core();
        let params = self.params?;
        if self.gated {
            core.gate(&self.method).await?;
        }
        if core.uses_tasks() && *self.method == *Method::CallTool.as_str() {
            let result = tasks::call_and_wait(&self.client, &params, self.options).await?;
            return (self.finish)(result);
        }
        let Some(key) = self.cached else {
            let (result, _) = core.ask(&self.method, &params, self.options).await?;
            return (self.finish)(result);
        };
        if let Some(result) = core.shared.cache.get(&key) {
            return (self.finish)(result);
        }
        let slot = core.shared.cache.slot();
        let (result, rounds) = core.ask(&self.method, &params, self.options).await?;
        // A result that depends on answers is not cached.
        if rounds == 0 {
            core.shared.cache.put(slot, key, &result);
        }
        (self.finish)(result)
    }
}

impl<T> fmt::Debug for Request<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan.as_ref();
        let method = plan.map(|plan| &plan.method);
        f.debug_struct("Request")
            .field("method", &method)
            .field("options", &plan.map(|plan| &plan.options))
            .finish_non_exhaustive()
    }
}

impl Core {
    /// Sends a request, answers the input requests of the server, and returns the result with the number of rounds.
    ///
    /// `object` is the text of the parameters without `_meta`.
    pub(crate) async fn ask(
        &self,
        method: &str,
        object: &RawJson,
        options: Options,
    ) -> Result<(RawJson, u32)> {
        match self.ask_until(method, object, &options).await? {
            (Fulfilled::Complete(result) | Fulfilled::Extension(_, result), rounds) => Ok((result, rounds)),
            (Fulfilled::InputRequired(_), _) => Err(Error::malformed(method, "it requests input")),
        }
    }

    /// Sends a request like [`ask`](Self::ask). The outcome is never a request for input.
    pub(crate) async fn ask_until(
        &self,
        method: &str,
        object: &RawJson,
        options: &Options,
    ) -> Result<(Fulfilled, u32)> {
        let mut params = object.clone();
        for round in 0..=MAX_ROUNDS {
            let (fulfilled, negotiated) = self.round(method, &params, options).await?;
            let required = match fulfilled {
                Fulfilled::InputRequired(required) => *required,
                fulfilled @ (Fulfilled::Complete(_) | Fulfilled::Extension(..)) => {
                    return Ok((fulfilled, round));
                }
            };
            if round == MAX_ROUNDS {
                break;
            }
            tracing::debug!(method, round, "the server requested input");
            let responses = match required.input_requests {
                Some(requests) => Some(answering::answer_all(&self.shared, &negotiated, requests).await?),
                None => None,
            };
            params = with_answers(object, responses.as_ref(), required.request_state.as_deref())?;
        }
        Err(Error::malformed(method, format!("the server requested input in more than {MAX_ROUNDS} rounds")))
    }

    /// Sends a request once, and returns its outcome with the negotiated revision. Requests without side effects are
    /// sent again if the session ends.
    pub(crate) async fn round(
        &self,
        method: &str,
        params: &RawJson,
        options: &Options,
    ) -> Result<(Fulfilled, Arc<Negotiated>)> {
        let mut connection = self.connection().await?;
        let mut result = self.send_on(&connection, method, params, options.clone()).await;
        if result.as_ref().is_err_and(|error| error.is_expired() && changes_nothing(method)) {
            connection = self.connection().await?;
            result = self.send_on(&connection, method, params, options.clone()).await;
        }
        let result = result?;
        let Some(negotiated) = connection.negotiated() else {
            return Err(Error::closed("the handshake is not complete"));
        };
        let tasks = options.profile(&self.shared).capabilities.has_extension(TASKS_EXTENSION)
            && negotiated.capabilities.has_extension(TASKS_EXTENSION);
        // Only tool calls become tasks. The examples of the extension have the same type in results of `tasks/get`.
        let may_be_task = [Method::CallTool, Method::GetTask].iter().any(|known| known.as_str() == method);
        let extensions: &[&str] = if tasks && may_be_task { &["task"] } else { &[] };
        let fulfilled = classify(negotiated.revision, result.clone(), extensions)
            .map_err(|error| tasks::unexpected(error, &result))?;
        if matches!(fulfilled, Fulfilled::InputRequired(_)) && !asks_back(method) {
            return Err(Error::malformed(
                "the result",
                format!("the result of `{method}` must not request input"),
            ));
        }
        Ok((fulfilled, Arc::clone(negotiated)))
    }

    /// Sends one request on one connection.
    pub(crate) async fn send_on(
        &self,
        connection: &Arc<Connection>,
        method: &str,
        object: &RawJson,
        options: Options,
    ) -> Result<RawJson> {
        let Some(revision) = connection.revision() else {
            return Err(Error::closed("the handshake is not complete"));
        };
        let profile = options.profile(&self.shared);
        let fill = |id: &Id| profile.params(revision, object.as_bytes(), options.for_proto(Some(id)));
        tracing::debug!(method, %revision, "sending a request");
        let ticket = Ticket {
            timeouts: options.timeouts,
            progress: options.progress.clone(),
            key: options.key,
            is_opening: false,
        };
        connection.request(method, fill, ticket).await
    }
}

/// Returns whether a modern server may respond with input requests.
fn asks_back(method: &str) -> bool {
    let asking = [Method::CallTool, Method::ReadResource, Method::GetPrompt];
    asking.iter().any(|known| known.as_str() == method)
}

/// Returns whether a request may be sent again although the first may have been processed.
fn changes_nothing(method: &str) -> bool {
    let known = Method::parse(method);
    known.is_some_and(|method| {
        matches!(
            method,
            Method::Ping
                | Method::ListTools
                | Method::ListPrompts
                | Method::ListResources
                | Method::ListResourceTemplates
                | Method::ReadResource
                | Method::GetTask
        )
    })
}

/// Returns the original parameters with the answers and the unchanged state.
fn with_answers(object: &RawJson, responses: Option<&RawMap>, state: Option<&str>) -> Result<RawJson> {
    let mut params: RawMap = object
        .decode()
        .map_err(|error| Error::misuse(format!("the parameters are not an object: {error}")))?;
    let write = |error: serde_json::Error| Error::misuse(format!("cannot serialize an answer: {error}"));
    if let Some(responses) = responses {
        params.insert("inputResponses", RawJson::of(responses).map_err(write)?);
    }
    if let Some(state) = state {
        params.insert("requestState", RawJson::of(state).map_err(write)?);
    }
    RawJson::of(&params).map_err(write)
}

/// Removes `_meta` from parameters of a caller.
pub(crate) fn split_meta(params: &RawJson) -> Result<(RawJson, Meta)> {
    let invalid =
        |error: serde_json::Error| Error::misuse(format!("the parameters are not an object: {error}"));
    let mut members: RawMap = params.decode().map_err(invalid)?;
    let Some(meta) = members.remove("_meta") else { return Ok((params.clone(), Meta::new())) };
    Ok((RawJson::of(&members).map_err(invalid)?, meta.decode().map_err(invalid)?))
}
