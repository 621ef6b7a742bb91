//! Dispatches calls: finds the tool, resource or prompt that a call names, and runs it.

mod errors;
#[cfg(feature = "tasks")]
mod task_call;

pub(crate) use errors::rpc_error;
#[cfg(feature = "tasks")]
pub(crate) use task_call::RoundEnd;

#[cfg(feature = "tasks")]
use crate::tasks::{Admission, Table, is_task_method};
use crate::{
    Ctx, Error,
    complete::CompletionRequest,
    error::Kind,
    handler::Running,
    limits::Limits,
    lists::{self, allows},
    method::CustomHandlers,
    observe::OnMessage,
    registry::{Registry, Snapshot},
    resource::{Resource, ResourceSource},
    result_check,
    round::{Finished, Log, Round},
    scopes,
    tool::ReadyTool,
    transport::unix_time,
    url_elicitation,
};
use bowline_proto::{
    replay::{OpenQuestions, check_size},
    server::{CacheHint, Profile},
    service::{BoxFuture, Call, Chain, ClientView, MethodName, Notifier, Outcome, Reply, Service},
};
use bowline_types::{
    CallToolResult, CompleteParams, CompleteResult, Era, GetPromptParams, Method, RawJson, Reference,
    RpcError,
};
#[cfg(feature = "tasks")]
use errors::not_a_task;
use errors::{call_panicked, panicked, read_error, returned, tool_error};
use std::{
    fmt,
    future::{Future, poll_fn, ready},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
};

/// A running server.
pub(crate) struct Core {
    pub(crate) profile: Arc<Profile>,
    pub(crate) registry: Registry,
    pub(crate) custom: CustomHandlers,
    pub(crate) limits: Limits,
    pub(crate) list_cache: CacheHint,
    pub(crate) page_size: usize,
    /// Called for each message between the server and its clients.
    pub(crate) on_message: Option<OnMessage>,
    /// The tasks of a backend that clients can subscribe to.
    pub(crate) backend_tasks: Option<Arc<dyn crate::BackendTasks>>,
    #[cfg(feature = "tasks")]
    pub(crate) tasks: Option<Arc<Table>>,
}

impl Core {
    /// Creates the context of a call after all checks.
    fn begin(&self, call: &mut Call, notifier: Notifier) -> Result<Ctx, RpcError> {
        call.replay.redeem(&self.profile.consumed, unix_time)?;
        let log = Log::new(std::mem::take(&mut call.replay));
        let registry = self.registry.clone();
        let extensions = std::mem::take(&mut call.extensions);
        Ok(Ctx::new(Arc::clone(&call.client), call.params.clone(), notifier, registry, log, extensions))
    }

    /// Uses up the state of a call for all processes, where several share it. `None` if there is nothing to do.
    fn redeeming<'a>(&'a self, call: &'a Call) -> Option<BoxFuture<'a, Result<(), RpcError>>> {
        if !call.replay.has_unused_state() {
            return None;
        }
        let used = self.profile.used_states()?;
        Some(Box::pin(call.replay.redeem_with(&**used, unix_time)))
    }

    async fn dispatch(&self, mut call: Call, notifier: Notifier) -> Outcome {
        if let Some(redeeming) = self.redeeming(&call)
            && let Err(error) = redeeming.await
        {
            return Outcome::Failed(error);
        }
        #[cfg(feature = "tasks")]
        if let (Some(method), Some(table)) = (call.method.known(), &self.tasks)
            && is_task_method(method)
        {
            let answered = table.answer(method, &call, &notifier, &self.profile.keys).await;
            return answered.unwrap_or_else(Outcome::Failed);
        }
        let ctx = match self.begin(&mut call, notifier) {
            Ok(ctx) => ctx,
            Err(error) => return Outcome::Failed(error),
        };
        let snapshot = self.registry.snapshot();
        let method = match &call.method {
            MethodName::Known(method) => *method,
            MethodName::Custom(name) => {
                return self.call_custom(name, &call, &ctx).await.unwrap_or_else(Outcome::Failed);
            }
        };
        let outcome = match method {
            Method::ReadResource => self.read_resource(&snapshot, &call, &ctx).await,
            Method::GetPrompt => self.get_prompt(&snapshot, &call, &ctx).await,
            Method::Complete => self.complete(&snapshot, &call, &ctx).await.map(Outcome::Complete),
            // Only a list of resources from sources is not answered at once.
            Method::ListResources => self.list_resources(&snapshot, &call, &ctx).await.map(Outcome::Complete),
            method => Err(RpcError::method_not_found(method.as_str())),
        };
        outcome.unwrap_or_else(Outcome::Failed)
    }

    /// Answers a custom method, or takes a custom notification.
    async fn call_custom(&self, name: &str, call: &Call, ctx: &Ctx) -> Result<Outcome, RpcError> {
        if call.is_notification {
            if let Some(taken) = self.custom.notify(name, ctx.clone(), &call.params) {
                taken.await;
            }
            return Ok(Outcome::Complete(Reply::Raw(RawJson::empty_object())));
        }
        let answer = self.custom.call(name, ctx.clone(), &call.params);
        let Some(answer) = answer else { return Err(RpcError::method_not_found(name)) };
        match self.round(Running::Pending(answer), ctx, name).await? {
            Finished::Asks(asked) => Ok(needs_input(asked)),
            Finished::Done(Ok(result)) => Ok(Outcome::Complete(Reply::Raw(result))),
            Finished::Done(Err(error)) => Err(rpc_error(error, &call.client)),
            #[cfg(feature = "tasks")]
            Finished::Detaches(_) | Finished::Sleeps { .. } => Err(not_a_task(name)),
        }
    }

    /// Calls a tool. One that answers at once needs no future of its own.
    fn call_tool(self: &Arc<Self>, mut call: Call, notifier: Notifier) -> BoxFuture<'_, Outcome> {
        let tool = match self.find_tool(&call) {
            Ok(tool) => tool,
            Err(error) => return Box::pin(ready(Outcome::Failed(error))),
        };
        if !tool.layers.is_empty() {
            let inside = OneTool { core: Arc::clone(self), tool: Arc::clone(&tool) };
            let chain = Chain::new(Arc::clone(&tool.layers), Arc::new(inside));
            return Box::pin(caught(call_panicked, async move { chain.start().run(call, notifier).await }));
        }
        if self.redeeming(&call).is_some() {
            let inside = OneTool { core: Arc::clone(self), tool };
            return Box::pin(async move { inside.call(call, notifier).await });
        }
        #[cfg(feature = "tasks")]
        match Admission::decide(&tool, &call, self.tasks.is_some()) {
            Ok(Admission::Inline) => {}
            Ok(admission) => {
                let panicking = Arc::clone(&tool);
                let call = self.call_as_task(tool, call, notifier, admission);
                return Box::pin(caught(move || panicked(&panicking.name), call));
            }
            Err(error) => return Box::pin(ready(Outcome::Failed(error))),
        }
        // A handler that is not async panics where it is called.
        match catch_unwind(AssertUnwindSafe(|| self.begin_tool(&tool, &mut call, notifier))) {
            Ok(StartedCall::Done(outcome)) => Box::pin(ready(outcome)),
            Ok(StartedCall::Running(ctx, future)) => {
                let panicking = Arc::clone(&tool);
                Box::pin(caught(move || panicked(&panicking.name), self.finish_tool(tool, ctx, future)))
            }
            Err(_) => Box::pin(ready(Outcome::Failed(panicked(&tool.name)))),
        }
    }

    fn find_tool(&self, call: &Call) -> Result<Arc<ReadyTool>, RpcError> {
        let name = call.params.name()?;
        let snapshot = self.registry.snapshot();
        let unknown = || RpcError::invalid_params(format!("unknown tool `{name}`"));
        let tool = snapshot.tools.get(&name).ok_or_else(unknown)?;
        if let Some(guard) = &tool.guard {
            let is_allowed = catch_unwind(AssertUnwindSafe(|| guard(&call.client)));
            if !is_allowed.map_err(|_| panicked(&name))? {
                return Err(unknown());
            }
        }
        // The transport has checked the scopes of the request. A middleware may have changed which tool it names.
        scopes::check(&call.extensions, tool.scopes.as_ref())?;
        Ok(Arc::clone(tool))
    }

    fn begin_tool(&self, tool: &ReadyTool, call: &mut Call, notifier: Notifier) -> StartedCall {
        let started = self.begin(call, notifier).and_then(|ctx| {
            let arguments = call.params.arguments()?.unwrap_or_else(RawJson::empty_object);
            Ok((tool.call(ctx.clone(), arguments), ctx))
        });
        match started {
            Ok((Running::Ready(done), ctx)) => StartedCall::Done(self.end_tool(tool, done, &ctx)),
            Ok((Running::Pending(future), ctx)) => StartedCall::Running(ctx, future),
            Err(error) => StartedCall::Done(Outcome::Failed(error)),
        }
    }

    async fn finish_tool(
        &self,
        tool: Arc<ReadyTool>,
        ctx: Ctx,
        future: BoxFuture<'static, Result<CallToolResult, Error>>,
    ) -> Outcome {
        match self.await_handler(future, &ctx, &tool.name).await {
            Ok(Finished::Done(done)) => self.end_tool(&tool, done, &ctx),
            Ok(Finished::Asks(asked)) => needs_input(asked),
            #[cfg(feature = "tasks")]
            Ok(Finished::Detaches(_) | Finished::Sleeps { .. }) => Outcome::Failed(not_a_task(&tool.name)),
            Err(error) => Outcome::Failed(error),
        }
    }

    fn end_tool(&self, tool: &ReadyTool, done: Result<CallToolResult, Error>, ctx: &Ctx) -> Outcome {
        let (name, client) = (&tool.name, ctx.client());
        let result = match self.finish_or_ask(done, ctx, name) {
            Ok(Finished::Asks(asked)) => return needs_input(asked),
            #[cfg(feature = "tasks")]
            Ok(Finished::Detaches(_) | Finished::Sleeps { .. }) => Err(not_a_task(name)),
            Ok(Finished::Done(Ok(mut result))) => tool
                .check_output(&result)
                .map_err(|error| rpc_error(error, client))
                .and_then(|()| {
                    result_check::tool_result(&mut result).map_err(|reason| returned(name, &reason))
                })
                .map(|()| result),
            Ok(Finished::Done(Err(error))) => tool_error(error, client),
            Err(error) => Err(error),
        };
        match result {
            Ok(result) => Outcome::Complete(Reply::Tool(Box::new(result))),
            Err(error) => Outcome::Failed(error),
        }
    }

    async fn read_resource(&self, snapshot: &Snapshot, call: &Call, ctx: &Ctx) -> Result<Outcome, RpcError> {
        let uri = call.params.uri()?;
        bowline_proto::uri::validate_uri(&uri)
            .map_err(|error| RpcError::invalid_params(format!("`uri`: {error}")))?;
        // A resource that the caller may not see is skipped; another one may match the URI.
        let visible = |resource: &&Arc<Resource>| allows(resource.guard.as_ref(), &call.client);
        let fixed = snapshot.resources.get(&uri).filter(visible).map(|resource| (resource, Vec::new()));
        let found = fixed.or_else(|| {
            let mut templates = snapshot.templates.as_slice().iter();
            templates.find_map(|template| {
                let variables = template.matches(&uri)?;
                visible(&template).then_some((template, variables))
            })
        });
        let Some((resource, variables)) = found else {
            return self.read_source(snapshot, call, ctx, &uri).await;
        };
        ctx.check_scopes(resource.scopes.get())?;
        let running = resource.read(ctx.clone(), variables);
        match self.round(running, ctx, &uri).await? {
            Finished::Asks(asked) => Ok(needs_input(asked)),
            Finished::Done(Ok(mut result)) => {
                if result.contents.is_empty() {
                    // An empty list would reveal that the resource exists.
                    return Err(RpcError::resource_not_found(&uri));
                }
                resource.complete_result(&uri, &mut result);
                Ok(Outcome::Complete(Reply::Resource(Box::new(result))))
            }
            Finished::Done(Err(error)) => Err(read_error(error, &call.client, &uri)),
            #[cfg(feature = "tasks")]
            Finished::Detaches(_) | Finished::Sleeps { .. } => Err(not_a_task(&uri)),
        }
    }

    async fn read_source(
        &self,
        snapshot: &Snapshot,
        call: &Call,
        ctx: &Ctx,
        uri: &str,
    ) -> Result<Outcome, RpcError> {
        for source in &snapshot.sources {
            let source = Arc::clone(source);
            let (context, wanted) = (ctx.clone(), uri.to_owned());
            let running = Running::Pending(Box::pin(async move { source.read(context, wanted).await }));
            match self.round(running, ctx, uri).await? {
                Finished::Asks(asked) => return Ok(needs_input(asked)),
                Finished::Done(Ok(Some(result))) if !result.contents.is_empty() => {
                    return Ok(Outcome::Complete(Reply::Resource(Box::new(result))));
                }
                Finished::Done(Ok(_)) => {}
                Finished::Done(Err(error)) => return Err(read_error(error, &call.client, uri)),
                #[cfg(feature = "tasks")]
                Finished::Detaches(_) | Finished::Sleeps { .. } => return Err(not_a_task(uri)),
            }
        }
        Err(RpcError::resource_not_found(uri))
    }

    async fn get_prompt(&self, snapshot: &Snapshot, call: &Call, ctx: &Ctx) -> Result<Outcome, RpcError> {
        let params: GetPromptParams = call.params.decode()?;
        let prompt =
            snapshot.prompts.get(&params.name).filter(|prompt| allows(prompt.guard.as_ref(), &call.client));
        let Some(prompt) = prompt else {
            return Err(RpcError::invalid_params(format!("unknown prompt `{}`", params.name)));
        };
        ctx.check_scopes(prompt.scopes.get())?;
        let given = params.arguments.map(|arguments| arguments.into_iter().collect()).unwrap_or_default();
        let running = prompt.call(ctx.clone(), given);
        match self.round(running, ctx, &params.name).await? {
            Finished::Asks(asked) => Ok(needs_input(asked)),
            Finished::Done(Ok(mut result)) => {
                result_check::prompt_result(&mut result).map_err(|reason| returned(&params.name, &reason))?;
                if result.description.is_none() {
                    result.description.clone_from(&prompt.definition.description);
                }
                Ok(Outcome::Complete(Reply::Prompt(Box::new(result))))
            }
            Finished::Done(Err(error)) => Err(rpc_error(error, &call.client)),
            #[cfg(feature = "tasks")]
            Finished::Detaches(_) | Finished::Sleeps { .. } => Err(not_a_task(&params.name)),
        }
    }

    /// Answers a list request that needs no handler; `None` if a source has to be asked first.
    fn list_at_once(&self, call: &Call) -> Option<Outcome> {
        let snapshot = self.registry.snapshot();
        if call.method == Method::ListResources && !snapshot.sources.is_empty() {
            return None;
        }
        // A guard may panic.
        let listed = catch_unwind(AssertUnwindSafe(|| lists::list(self, &snapshot, call, &[])));
        Some(listed.map_or_else(|_| Outcome::Failed(panicked(call.method.as_str())), Outcome::from))
    }

    async fn list_resources(&self, snapshot: &Snapshot, call: &Call, ctx: &Ctx) -> Result<Reply, RpcError> {
        let mut found = Vec::new();
        for source in &snapshot.sources {
            found.extend(self.list_source(source, ctx, &call.client).await?);
        }
        lists::list(self, snapshot, call, &found)
    }

    /// Returns the resources of a source. A source cannot ask the user while it lists.
    async fn list_source(
        &self,
        source: &Arc<dyn ResourceSource>,
        ctx: &Ctx,
        client: &ClientView,
    ) -> Result<Vec<bowline_types::Resource>, RpcError> {
        let (source, context) = (Arc::clone(source), ctx.clone());
        let running = Running::Pending(Box::pin(async move { source.list(context).await }));
        let resources = match self.round(running, ctx, "the list of resources").await? {
            Finished::Asks(_) => return Err(RpcError::internal("list handlers cannot ask the user")),
            #[cfg(feature = "tasks")]
            Finished::Detaches(_) | Finished::Sleeps { .. } => {
                return Err(not_a_task("the list of resources"));
            }
            Finished::Done(listed) => listed.map_err(|error| rpc_error(error, client))?,
        };
        for resource in &resources {
            result_check::annotations(resource.annotations.as_ref())
                .map_err(|reason| returned(&resource.uri, &reason))?;
        }
        Ok(resources)
    }

    /// Runs a handler until it is done or asks.
    async fn round<T>(&self, running: Running<T>, ctx: &Ctx, name: &str) -> Result<Finished<T>, RpcError> {
        let done = match running {
            Running::Ready(done) => done,
            Running::Pending(future) => match self.await_handler(future, ctx, name).await? {
                Finished::Done(done) => done,
                asks @ Finished::Asks(_) => return Ok(asks),
                #[cfg(feature = "tasks")]
                Finished::Detaches(_) | Finished::Sleeps { .. } => return Err(not_a_task(name)),
            },
        };
        self.finish_or_ask(done, ctx, name)
    }

    async fn await_handler<T>(
        &self,
        future: BoxFuture<'static, Result<T, Error>>,
        ctx: &Ctx,
        name: &str,
    ) -> Result<Finished<T>, RpcError> {
        match Round::new(future, ctx.log_of_round()).await {
            Finished::Asks(asked) => self.asks(asked, name, ctx.client()),
            done @ Finished::Done(_) => Ok(done),
            #[cfg(feature = "tasks")]
            end @ (Finished::Detaches(_) | Finished::Sleeps { .. }) => Ok(end),
        }
    }

    /// Returns the result of a handler, or the questions that its error contains.
    fn finish_or_ask<T>(
        &self,
        done: Result<T, Error>,
        ctx: &Ctx,
        name: &str,
    ) -> Result<Finished<T>, RpcError> {
        let Err(error) = done else { return Ok(Finished::Done(done)) };
        match error.into_kind() {
            Kind::Visit(pages) => match url_elicitation::required(pages, ctx.client(), ctx.log_of_round()) {
                Ok(asked) => self.asks(asked, name, ctx.client()),
                Err(error) => Ok(Finished::Done(Err(error))),
            },
            kind => Ok(Finished::Done(Err(kind.into()))),
        }
    }

    fn asks<T>(
        &self,
        asked: OpenQuestions,
        name: &str,
        client: &ClientView,
    ) -> Result<Finished<T>, RpcError> {
        let limit = self.limits.rounds;
        if asked.replay.rounds() > limit {
            return Err(RpcError::internal(format!("`{name}` requested input in more than {limit} rounds")));
        }
        // Values that are not sealed have the same limit.
        if client.revision.era() == Era::Legacy {
            check_size(&asked)?;
        }
        Ok(Finished::Asks(asked))
    }

    async fn complete(&self, snapshot: &Snapshot, call: &Call, ctx: &Ctx) -> Result<Reply, RpcError> {
        let params: CompleteParams = call.params.decode()?;
        let request = CompletionRequest {
            value: params.argument.value,
            arguments: params.context.and_then(|context| context.arguments).into_iter().flatten().collect(),
        };
        let completers = match &params.reference {
            Reference::Prompt(reference) => {
                let prompt = snapshot.prompts.get(&reference.name);
                let prompt = prompt.filter(|prompt| allows(prompt.guard.as_ref(), &call.client));
                let unknown = || RpcError::invalid_params(format!("unknown prompt `{}`", reference.name));
                let prompt = prompt.ok_or_else(unknown)?;
                ctx.check_scopes(prompt.scopes.get())?;
                prompt.completers.clone()
            }
            Reference::Resource(reference) => {
                let template = snapshot.templates.get(&reference.uri);
                let template = template.filter(|template| allows(template.guard.as_ref(), &call.client));
                let unknown =
                    || RpcError::invalid_params(format!("unknown resource template `{}`", reference.uri));
                let template = template.ok_or_else(unknown)?;
                ctx.check_scopes(template.scopes.get())?;
                template.completers.clone()
            }
        };
        let (argument, context) = (params.argument.name, ctx.clone());
        let running =
            Running::Pending(Box::pin(async move { completers.complete(&argument, context, request).await }));
        match self.round(running, ctx, "the completion").await? {
            Finished::Done(Ok(completion)) => {
                Ok(Reply::Completion(Box::new(CompleteResult::new(completion))))
            }
            Finished::Done(Err(error)) => Err(rpc_error(error, &call.client)),
            Finished::Asks(_) => Err(RpcError::internal("completion handlers cannot ask the user")),
            #[cfg(feature = "tasks")]
            Finished::Detaches(_) | Finished::Sleeps { .. } => Err(not_a_task("the completion")),
        }
    }
}

/// The state of a tool call after its first poll.
enum StartedCall {
    Done(Outcome),
    Running(Ctx, BoxFuture<'static, Result<CallToolResult, Error>>),
}

/// The end of the chain of a tool that has middleware of its own.
struct OneTool {
    core: Arc<Core>,
    tool: Arc<ReadyTool>,
}

impl Service for OneTool {
    fn call(&self, mut call: Call, notifier: Notifier) -> BoxFuture<'_, Outcome> {
        let (core, tool) = (&self.core, &self.tool);
        Box::pin(caught(|| panicked(&tool.name), async move {
            if let Some(redeeming) = core.redeeming(&call)
                && let Err(error) = redeeming.await
            {
                return Outcome::Failed(error);
            }
            #[cfg(feature = "tasks")]
            match Admission::decide(tool, &call, core.tasks.is_some()) {
                Ok(Admission::Inline) => {}
                Ok(admission) => return core.call_as_task(Arc::clone(tool), call, notifier, admission).await,
                Err(error) => return Outcome::Failed(error),
            }
            match core.begin_tool(tool, &mut call, notifier) {
                StartedCall::Done(outcome) => outcome,
                StartedCall::Running(ctx, future) => core.finish_tool(Arc::clone(tool), ctx, future).await,
            }
        }))
    }
}

/// The end of the middleware chain.
#[derive(Debug)]
pub(crate) struct Dispatch(pub(crate) Arc<Core>);

impl Service for Dispatch {
    fn call(&self, call: Call, notifier: Notifier) -> BoxFuture<'_, Outcome> {
        match call.method.known() {
            Some(Method::CallTool) => return self.0.call_tool(call, notifier),
            Some(
                Method::ListTools
                | Method::ListPrompts
                | Method::ListResources
                | Method::ListResourceTemplates,
            ) => {
                if let Some(outcome) = self.0.list_at_once(&call) {
                    return Box::pin(ready(outcome));
                }
            }
            _ => {}
        }
        let (method, params) = (call.method.clone(), call.params.clone());
        let on_panic = move || {
            let subject = params.name().or_else(|_| params.uri());
            panicked(subject.as_deref().unwrap_or(method.as_str()))
        };
        Box::pin(caught(on_panic, self.0.dispatch(call, notifier)))
    }
}

/// The end of the chain where someone else answers.
pub(crate) struct Backend {
    pub(crate) core: Arc<Core>,
    pub(crate) service: Arc<dyn Service>,
}

impl Service for Backend {
    fn call(&self, call: Call, notifier: Notifier) -> BoxFuture<'_, Outcome> {
        if self.core.redeeming(&call).is_some() {
            return Box::pin(caught(call_panicked, async move {
                if let Some(redeeming) = self.core.redeeming(&call)
                    && let Err(error) = redeeming.await
                {
                    return Outcome::Failed(error);
                }
                self.service.call(call, notifier).await
            }));
        }
        if let Err(error) = call.replay.redeem(&self.core.profile.consumed, unix_time) {
            return Box::pin(ready(Outcome::Failed(error)));
        }
        Box::pin(caught(call_panicked, self.service.call(call, notifier)))
    }
}

/// A server with its middleware around it.
pub(crate) struct Layered(pub(crate) Chain);

impl Service for Layered {
    fn call(&self, call: Call, notifier: Notifier) -> BoxFuture<'_, Outcome> {
        Box::pin(caught(call_panicked, async move { self.0.start().run(call, notifier).await }))
    }
}

/// Turns a panic of a handler, guard or middleware into an error of this call.
async fn caught(on_panic: impl FnOnce() -> RpcError, call: impl Future<Output = Outcome>) -> Outcome {
    catch_panic(call).await.unwrap_or_else(|| Outcome::Failed(on_panic()))
}

/// Returns `None` if the future panics.
pub(crate) async fn catch_panic<T>(call: impl Future<Output = T>) -> Option<T> {
    let mut call = pin!(call);
    let finished = poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(outcome)) => Poll::Ready(Some(outcome)),
        Err(_) => Poll::Ready(None),
    });
    finished.await
}

fn needs_input(asked: OpenQuestions) -> Outcome {
    Outcome::NeedsInput(Box::new(asked))
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("registry", &self.registry).finish_non_exhaustive()
    }
}
