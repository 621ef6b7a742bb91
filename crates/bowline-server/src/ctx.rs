//! The context of a handler: questions, progress, logs, and the caller.

use crate::{
    Error, FromJson, HandlerError, ProgressTotal, ProgressValue, Registry, Result, elicit, round::Log,
    schema, scopes, url_elicitation,
};
use bowline_proto::{
    caller::Caller,
    custom::check_custom_name,
    params::Params,
    replay::Question,
    sampling,
    scope::Scopes,
    server::missing_capability,
    service::{BoxFuture, CallNotification, ClientView, Extensions, Notifier},
    subscribe::Change,
};
use bowline_types::{
    Answer, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams, ElicitParams,
    ElicitResult, ElicitUrlParams, Era, InputRequest, ListRootsResult, LoggingLevel, Meta, RawJson, Revision,
    Root, RpcError,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{fmt, future::Future, sync::Arc};

/// The context of a call.
///
/// Asking (`ask`, `ask_url`, `sample`, `roots`) works the same in every revision: the handler's future is dropped at the
/// first unanswered question and the handler runs again once the answer is there, up to that question and beyond. So
/// everything before a question runs more than once; wrap what must not in [`Ctx::once`]. Questions awaited together,
/// with `join!`, go out together.
///
/// ```
/// use bowline_server::{Ctx, Result};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Order {
///     /// How many?
///     count: u32,
/// }
///
/// async fn order(ctx: Ctx) -> Result<String> {
///     // Runs once, however often the handler does.
///     let number: u32 = ctx.once("number", async { Ok(42) }).await?;
///     let Order { count } = ctx.ask("What would you like?").await?.accepted()?;
///     ctx.progress(1.0, 1.0);
///     Ok(format!("order {number}: {count}"))
/// }
/// ```
#[derive(Clone)]
pub struct Ctx {
    inner: Arc<Inner>,
}

struct Inner {
    client: Arc<ClientView>,
    params: Params,
    notifier: Notifier,
    registry: Registry,
    log: Log,
    extensions: Extensions,
}

/// A page the user was sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    id: Option<String>,
}

impl Ctx {
    pub(crate) fn new(
        client: Arc<ClientView>,
        params: Params,
        notifier: Notifier,
        registry: Registry,
        log: Log,
        extensions: Extensions,
    ) -> Self {
        Self { inner: Arc::new(Inner { client, params, notifier, registry, log, extensions }) }
    }

    pub(crate) fn log_of_round(&self) -> &Log {
        &self.inner.log
    }

    /// Asks the user to fill in `T`, a flat struct of text, numbers, booleans and enums.
    ///
    /// Consent is bound to the text: an answer counts only for exactly the message and form that the user was shown. A
    /// message that differs each time the handler runs, such as one with the time in it, is asked twice and then fails; keep
    /// what differs with [`Ctx::once`].
    ///
    /// Fails when the client cannot ask its user, or answers with something else than `T`.
    pub fn ask<T: FromJson>(
        &self,
        message: impl Into<String>,
    ) -> BoxFuture<'_, Result<Answer<T>, HandlerError>> {
        let message = message.into();
        Box::pin(async move {
            let key = self.inner.log.next_key();
            Ok(self.form(message, |request| Question::new(key, request)).await?)
        })
    }

    /// Asks like [`Ctx::ask`], under a key of the author's choice.
    ///
    /// Questions are otherwise identified by their position, which is only stable while a handler asks in the same
    /// order each time it runs. A client of 2026-07-28 that knows the key can answer ahead, with its first request, so
    /// the key should say what is asked.
    pub fn ask_as<T: FromJson>(
        &self,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> BoxFuture<'_, Result<Answer<T>, HandlerError>> {
        let (key, message) = (key.into(), message.into());
        Box::pin(async move { Ok(self.form(message, |request| Question::named(key, request)).await?) })
    }

    async fn form<T: FromJson>(
        &self,
        message: String,
        question: impl FnOnce(InputRequest) -> Question,
    ) -> Result<Answer<T>> {
        let requested_schema = elicit::schema_of::<T>()?;
        let form = ElicitFormParams::new(message, requested_schema.clone());
        let request = InputRequest::Elicit(ElicitParams::Form(form));
        let result: ElicitResult = self.put(question(request), "elicitation").await?;
        Ok(match result.action {
            ElicitAction::Accept => {
                let mut content = result.content.unwrap_or_default();
                // 2025-06-18 has no lists in forms; its clients were asked for a text instead.
                if self.inner.client.revision < Revision::V2025_11_25 {
                    requested_schema.restore_lists(&mut content);
                }
                let content = RawJson::of(&content).unwrap_or_else(|_| RawJson::empty_object());
                let wrong = |reason: String| {
                    Error::invalid_params(format!("the answer does not match the form: {reason}"))
                };
                requested_schema.validate(&content).map_err(wrong)?;
                schema::check_patterns(&requested_schema, &content).map_err(wrong)?;
                Answer::Accept(content.decode().map_err(|error| wrong(error.to_string()))?)
            }
            ElicitAction::Decline => Answer::Decline,
            ElicitAction::Cancel => Answer::Cancel,
        })
    }

    /// Sends the user to a page, for what must not pass through the client: sign-in, keys, payment.
    ///
    /// An accepted answer says that the user agreed to open the page, not that anything was done there. Whether it was
    /// is for the server to know; a handler that finds it was not can ask again.
    pub async fn ask_url(
        &self,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<Answer<Visit>, HandlerError> {
        let url = url.into();
        url_elicitation::check_url(&url)?;
        let key = self.inner.log.next_key();
        let id = self.visit_id(&key)?;
        let mut page = ElicitUrlParams::new(message.into(), url);
        page.elicitation_id.clone_from(&id);
        let request = InputRequest::Elicit(ElicitParams::Url(page));
        let result: ElicitResult = self.put(Question::new(key, request), "elicitation with a URL").await?;
        Ok(match result.action {
            ElicitAction::Accept => Answer::Accept(Visit { id }),
            ElicitAction::Decline => Answer::Decline,
            ElicitAction::Cancel => Answer::Cancel,
        })
    }

    /// Only 2025-11-25 names a visit, and the name has to be the same each time the handler runs.
    fn visit_id(&self, key: &str) -> Result<Option<String>> {
        if self.inner.client.revision.era() == Era::Modern {
            return Ok(None);
        }
        let slot = format!("bowline/visit/{key}");
        if let Some(known) = self.inner.log.kept(&slot) {
            return Ok(known.decode().ok());
        }
        let id = crate::random::id();
        self.inner.log.keep(&slot, RawJson::of(&id)?);
        Ok(Some(id))
    }

    /// Notifies the client that a URL elicitation is complete, in revisions that support it.
    pub fn visit_done(&self, visit: &Visit) {
        if let Some(elicitation_id) = visit.id.clone() {
            self.inner.notifier.emit(CallNotification::ElicitationComplete { elicitation_id });
        }
    }

    /// Has the client's model write a message.
    ///
    /// Fails when the client cannot, or when the messages break the rules of tool use. The context of servers is not
    /// asked of clients that do not have it to give.
    pub async fn sample(
        &self,
        request: impl Into<CreateMessageParams>,
    ) -> Result<CreateMessageResult, HandlerError> {
        let mut request: CreateMessageParams = request.into();
        sampling::check(&request).map_err(|reason| Error::internal(format!("cannot sample: {reason}")))?;
        let client = &self.inner.client;
        if client.revision >= Revision::V2025_11_25 && !client.capabilities().has_sampling_context() {
            request.include_context = None;
        }
        let with_tools = request.tools.is_some() || request.tool_choice.is_some();
        let what = if with_tools { "sampling with tools" } else { "sampling" };
        let key = self.inner.log.next_key();
        Ok(self.put(Question::new(key, InputRequest::CreateMessage(Box::new(request))), what).await?)
    }

    /// Requests the roots of the client.
    pub async fn roots(&self) -> Result<Vec<Root>, HandlerError> {
        let key = self.inner.log.next_key();
        let question = Question::new(key, InputRequest::ListRoots);
        let result: ListRootsResult = self.put(question, "roots").await?;
        Ok(result.roots)
    }

    async fn put<T: DeserializeOwned>(&self, question: Question, what: &'static str) -> Result<T> {
        if let Some(needed) = missing_capability(&self.inner.client, &question.request) {
            return Err(Error::missing(needed, what));
        }
        match self.inner.log.answer(question).await? {
            Ok(answer) => answer.decode().map_err(|error| {
                Error::invalid_params(format!("the client sent an invalid answer: {error}"))
            }),
            // Not an answer: this side could not ask, such as without its store.
            Err(error) if error.retry_after().is_some() => Err(Error::rpc(error)),
            Err(error) => Err(Error::tool(format!("the client answered with an error: {}", error.message))),
        }
    }

    /// Runs `work` once per call, however often the handler runs again: its value is kept across questions.
    ///
    /// An error is not kept. The value travels through the client, sealed, so it should be small: all values and answers of
    /// a call together take at most 16 KiB, in every revision.
    ///
    /// In a task this is a *step*: the value is recorded in the store before this returns, and has at most 1 MiB. After a
    /// crash steps with a value do not run again. The effect of a step happens at least once: a process may die between the
    /// effect and the record.
    pub async fn once<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T, HandlerError> {
        if let Some(kept) = self.inner.log.kept(key) {
            return Ok(kept.decode().map_err(Error::from)?);
        }
        #[cfg(feature = "tasks")]
        if let Some(attempt) = self.inner.log.attempt() {
            return Ok(attempt.step(key, work).await?);
        }
        let value = work.await?;
        let kept = RawJson::of(&value).map_err(Error::from)?;
        // The call became a task while the work ran: its record was written without this value.
        #[cfg(feature = "tasks")]
        if let Some(attempt) = self.inner.log.attempt() {
            return Ok(attempt.record_step(key, kept).await?.decode().map_err(Error::from)?);
        }
        self.inner.log.keep(key, kept);
        Ok(value)
    }

    /// Returns the caller: revision, capabilities, name, principal.
    pub fn client(&self) -> &ClientView {
        &self.inner.client
    }

    /// Returns the caller that the access token of the request names: subject, issuer, scopes, claims.
    ///
    /// Fails if the call came without a verified token, as on stdio.
    ///
    /// ```
    /// use bowline_server::{Ctx, Result};
    ///
    /// async fn write(ctx: Ctx, text: String) -> Result<String> {
    ///     Ok(format!("noted for {}: {text}", ctx.caller()?.subject()))
    /// }
    /// ```
    pub fn caller(&self) -> Result<&Caller, HandlerError> {
        let caller = self.inner.extensions.caller().map(|caller| &**caller);
        caller.ok_or_else(|| {
            Error::tool("this call is not authenticated: it came without a verified access token").into()
        })
    }

    /// Requires a scope of the access token, or several with spaces between them, for what depends on the arguments. What
    /// every call needs is declared with [`Tool::scopes`](crate::Tool::scopes).
    ///
    /// Without the scope the request fails. Over HTTP the client gets the status 403 and learns which scopes to ask for,
    /// unless the call has sent something before. On stdio there are no tokens, and this succeeds.
    pub fn require(&self, scopes: &str) -> Result<(), HandlerError> {
        let needed = scopes::required(scopes)
            .map_err(|reason| Error::internal(format!("cannot require `{scopes}`: {reason}")))?;
        Ok(self.check_scopes(Some(&needed)).map_err(Error::from)?)
    }

    pub(crate) fn check_scopes(&self, needed: Option<&Arc<Scopes>>) -> Result<(), RpcError> {
        scopes::check(&self.inner.extensions, needed)
    }

    /// Returns the negotiated revision. Handlers rarely need it.
    pub fn revision(&self) -> Revision {
        self.inner.client.revision
    }

    /// Returns the `_meta` of the request.
    pub fn meta(&self) -> Meta {
        let raw = self.inner.params.meta().ok().flatten();
        raw.and_then(|raw| raw.decode().ok()).unwrap_or_default()
    }

    /// Returns a value that middleware put into [`Call::extensions`](crate::Call::extensions), or that a layer in front of
    /// an HTTP endpoint put into the extensions of the request.
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.inner.extensions.get()
    }

    /// Returns the headers of the HTTP request that made this call; none over other transports.
    ///
    /// Over HTTP in a legacy revision these are the headers of the POST with the call, not those of the handshake.
    #[cfg(feature = "http")]
    pub fn headers(&self) -> &http::HeaderMap {
        self.inner.extensions.headers()
    }

    /// Returns the id of the session that the call belongs to. Only HTTP in a legacy revision has one.
    pub fn session_id(&self) -> Option<&str> {
        self.inner.extensions.session_id()
    }

    /// Sends a custom notification to the client, as part of this call. The parameters serialize to an object, or to
    /// `null` for none.
    ///
    /// Fails for a name that the protocol reserves, and for parameters that are not an object.
    pub fn notify(&self, method: &str, params: impl Serialize) -> Result<(), HandlerError> {
        let params = custom_params(method, &params)?;
        if self.inner.log.is_new_notice() {
            self.inner.notifier.emit(CallNotification::Custom { method: method.into(), params });
        }
        Ok(())
    }

    /// Sends a custom request to the client, and reads its result.
    ///
    /// Only clients of legacy revisions take requests: for one of 2026-07-28 this fails. Unlike a question it does not end
    /// the round, so the handler continues when the result arrives.
    pub async fn request<R: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<R, HandlerError> {
        let params = custom_params(method, &params)?;
        let result = self.inner.notifier.request(method, params).await.map_err(Error::from)?;
        result.decode().map_err(|error| {
            Error::internal(format!("the client's result of `{method}` is invalid: {error}")).into()
        })
    }

    /// Reports how far the work has come. Dropped when the caller did not ask, and when it does not grow.
    ///
    /// Both are numbers of any type; `None` stands for an unknown total.
    #[doc(alias = "notifications/progress")]
    pub fn progress(&self, done: impl ProgressValue, total: impl ProgressTotal) {
        let (progress, total) = (done.into_f64(), total.into_total());
        self.emit(CallNotification::Progress { progress, total, message: None });
    }

    /// Reports progress with a message.
    pub fn progress_with(
        &self,
        done: impl ProgressValue,
        total: impl ProgressTotal,
        message: impl Into<String>,
    ) {
        let (progress, total, message) = (done.into_f64(), total.into_total(), Some(message.into()));
        self.emit(CallNotification::Progress { progress, total, message });
    }

    fn emit(&self, notice: CallNotification) {
        // The caller of a call that became a task has its response already.
        #[cfg(feature = "tasks")]
        if let Some(attempt) = self.inner.log.attempt() {
            return bowline_proto::service::NotificationSink::emit(&**attempt, notice);
        }
        self.inner.notifier.emit(notice);
    }

    /// Sends a log message to the client, if it wants this level. Never put secrets in one.
    ///
    /// What a handler logs before a question is sent once, although the handler runs again.
    pub fn log(&self, level: LoggingLevel, data: impl Serialize) {
        self.log_as(level, None, data);
    }

    /// Sends a log message of level `debug`.
    pub fn debug(&self, data: impl Serialize) {
        self.log(LoggingLevel::Debug, data);
    }

    /// Sends a log message of level `info`.
    pub fn info(&self, data: impl Serialize) {
        self.log(LoggingLevel::Info, data);
    }

    /// Sends a log message of level `notice`.
    pub fn notice(&self, data: impl Serialize) {
        self.log(LoggingLevel::Notice, data);
    }

    /// Sends a log message of level `warning`.
    pub fn warning(&self, data: impl Serialize) {
        self.log(LoggingLevel::Warning, data);
    }

    /// Sends a log message of level `error`.
    pub fn error(&self, data: impl Serialize) {
        self.log(LoggingLevel::Error, data);
    }

    /// Sends a log message in the name of a part of the server.
    pub fn log_as(&self, level: LoggingLevel, logger: impl Into<Option<String>>, data: impl Serialize) {
        if let Ok(data) = RawJson::of(&data)
            && self.inner.log.is_new_notice()
        {
            self.inner.notifier.emit(CallNotification::Log { level, logger: logger.into(), data });
        }
    }

    /// Closes the stream to the client, which reconnects for the rest: for calls so long that an open connection would be
    /// a waste.
    ///
    /// Only HTTP in 2025-11-25 has this; elsewhere nothing happens.
    pub fn close_stream(&self) {
        self.inner.notifier.emit(CallNotification::CloseStream);
    }

    /// Notifies subscribers that a resource has changed.
    pub fn resource_updated(&self, uri: impl Into<String>) {
        self.inner.registry.hub().publish(&Change::Resource(uri.into()));
    }

    /// Returns the handle to change what the server offers while it serves.
    ///
    /// Clients learn of changed lists if the server declares that they change: see [`Server::dynamic`](crate::Server::dynamic).
    #[doc(alias = "list_changed")]
    pub fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// Returns whether the caller has cancelled the call. The handler's future is dropped then; this is for tasks that
    /// it spawned.
    pub fn is_cancelled(&self) -> bool {
        #[cfg(feature = "tasks")]
        if let Some(attempt) = self.inner.log.attempt() {
            return attempt.is_stopped();
        }
        self.inner.notifier.is_cancelled()
    }

    /// Completes when the caller gives up.
    pub async fn cancelled(&self) {
        #[cfg(feature = "tasks")]
        if let Some(attempt) = self.inner.log.attempt() {
            return bowline_proto::service::NotificationSink::cancelled(&**attempt).await;
        }
        self.inner.notifier.cancelled().await;
    }
}

/// How long a handler waits in the process at most. Longer waits end the round, so that nothing runs meanwhile.
#[cfg(feature = "tasks")]
const SHORT_SLEEP: std::time::Duration = std::time::Duration::from_secs(5);

/// What handlers do with tasks.
#[cfg(feature = "tasks")]
#[cfg_attr(docsrs, doc(cfg(feature = "tasks")))]
impl Ctx {
    /// Goes on as a task, for a tool with [`Task::later`](crate::Task::later): the caller gets the id of the task, and the
    /// handler runs again from its start in the background, where this returns at once.
    ///
    /// If the caller does not support tasks, or the call is a task already, nothing happens.
    pub async fn task(&self) -> Result<(), HandlerError> {
        Ok(self.inner.log.detach().await?)
    }

    /// Returns the id of the task, if the call is one.
    pub fn task_id(&self) -> Option<&str> {
        self.inner.log.attempt().map(|attempt| attempt.id())
    }

    /// Waits. In a task the time is recorded: if the process ends, another one waits for what is left of it. A wait of more
    /// than 5 s ends the round, like a question, so that nothing runs meanwhile.
    pub async fn sleep(&self, time: std::time::Duration) -> Result<(), HandlerError> {
        let Some(attempt) = self.inner.log.attempt() else {
            tokio::time::sleep(time).await;
            return Ok(());
        };
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let wake = attempt.wake_time(self.inner.log.next_sleep(), millis).await?;
        let left = std::time::Duration::from_millis(wake.saturating_sub(attempt.table().clock.now()));
        if left <= SHORT_SLEEP {
            tokio::time::sleep(left).await;
            return Ok(());
        }
        Err(self.inner.log.sleep(left).await.into())
    }

    /// Waits. In a task, this always ends the round. The time is not recorded: an interrupted wait starts over.
    pub(crate) async fn pause(&self, time: std::time::Duration) -> Result<()> {
        if self.inner.log.attempt().is_none() {
            tokio::time::sleep(time).await;
            return Ok(());
        }
        Err(self.inner.log.sleep(time).await)
    }

    /// Returns a name for a step of this call that no other call has: an idempotency key for another system. It is the same
    /// each time the handler runs, also after a crash.
    pub fn step_id(&self, step: &str) -> String {
        let slot = "bowline/call";
        let known = self.inner.log.kept(slot).and_then(|kept| kept.decode::<String>().ok());
        // A name that was given out before the call became a task stays.
        let call = match (known, self.inner.log.attempt()) {
            (Some(known), _) => known,
            (None, Some(attempt)) => return attempt.step_id(step),
            (None, None) => {
                let id = crate::random::id();
                if let Ok(kept) = RawJson::of(&id) {
                    self.inner.log.keep(slot, kept);
                }
                id
            }
        };
        format!("{call}.{step}")
    }

    /// Sets the status message of the task. Nothing happens if the call is not a task.
    #[doc(alias = "statusMessage")]
    pub fn status(&self, message: impl Into<String>) {
        if let Some(attempt) = self.inner.log.attempt() {
            attempt.report(Some(message.into()), None);
        }
    }
}

/// Checks a custom method name and its parameters before sending.
fn custom_params(method: &str, params: &impl Serialize) -> Result<Option<RawJson>> {
    let wrong = |reason: String| Error::internal(format!("cannot send `{method}`: {reason}"));
    check_custom_name(method).map_err(wrong)?;
    let params = RawJson::of(params).map_err(|error| wrong(error.to_string()))?;
    if params.is_null() {
        return Ok(None);
    }
    if params.is_object() {
        Ok(Some(params))
    } else {
        Err(wrong("expected the parameters to be an object".into()))
    }
}

impl fmt::Debug for Ctx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ctx").field("client", &self.inner.client).finish_non_exhaustive()
    }
}
