//! `Server`: defines a server and serves it.

use crate::{
    BuildError, Result, ServeError, ServerHandle,
    dispatch::{Backend, Core, Dispatch, Layered},
    hub::Updates,
    limits::Limits,
    method::{CustomHandlers, MethodHandler, NotificationHandler},
    observe::{ObservedMessage, OnMessage},
    prompt::IntoPromptEntry,
    random,
    registry::Registry,
    resource::{IntoResource, ResourceSource, hint},
    tool::IntoTool,
    toolset::Toolset,
};
use bowline_proto::{
    custom::check_custom_name,
    seal::{Key, KeyRing},
    server::{CacheHint, Profile, RevisionSet},
    service::{Chain, ClientView, Middleware, Service},
    subscribe::SubscriptionGuard,
};
use bowline_types::{
    CacheScope, Icon, Implementation, PromptsCapability, RawJson, RawMap, ResourcesCapability, Revision,
    ServerCapabilities, ToolsCapability, meta,
};
use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};
use tokio::io::{AsyncRead, AsyncWrite};

/// A Model Context Protocol server: one source for every revision.
///
/// ```no_run
/// use bowline_server::{Server, Tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add {
///     a: i64,
///     b: i64,
/// }
///
/// # async fn run() -> Result<(), bowline_server::ServeError> {
/// Server::new("demo").tool(Tool::new("add").handler(|Add { a, b }: Add| a + b)).serve_stdio().await
/// # }
/// ```
///
/// With the crate `bowline`, `#[data]` replaces the derives and `#[tool]` the builder.
#[must_use = "a server does nothing until it is served"]
pub struct Server {
    info: Implementation,
    instructions: Option<String>,
    registry: Registry,
    middleware: Vec<Arc<dyn Middleware>>,
    limits: Limits,
    revisions: RevisionSet,
    list_cache: CacheHint,
    discovery_cache: CacheHint,
    page_size: usize,
    keys: Option<KeyRing>,
    experimental: RawMap,
    extensions: RawMap,
    custom: CustomHandlers,
    backend: Option<Arc<dyn Service>>,
    backend_tasks: Option<Arc<dyn crate::BackendTasks>>,
    subscription_guard: Option<SubscriptionGuard>,
    capabilities: Option<ServerCapabilities>,
    #[cfg(feature = "tasks")]
    tasks: Option<crate::Tasks>,
    problem: Option<BuildError>,
    on_message: Option<OnMessage>,
}

impl Server {
    /// Creates a server with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            info: Implementation::new(name.into(), "0.0.0"),
            instructions: None,
            registry: Registry::new(),
            middleware: Vec::new(),
            limits: Limits::default(),
            revisions: RevisionSet::ALL,
            list_cache: CacheHint::default(),
            discovery_cache: CacheHint::default(),
            page_size: usize::MAX,
            keys: None,
            experimental: RawMap::default(),
            extensions: RawMap::default(),
            custom: CustomHandlers::default(),
            backend: None,
            backend_tasks: None,
            subscription_guard: None,
            capabilities: None,
            #[cfg(feature = "tasks")]
            tasks: None,
            problem: None,
            on_message: None,
        }
    }

    /// Sets a function that is called with every message between the server and its clients, for traces and recordings.
    ///
    /// It runs in the task that has the message, so it must be fast and must not call the server.
    pub fn on_message(mut self, observer: impl Fn(&ObservedMessage<'_>) + Send + Sync + 'static) -> Self {
        self.on_message = Some(Arc::new(observer));
        self
    }

    /// Sets the version of the server, usually `env!("CARGO_PKG_VERSION")`. Default: `0.0.0`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.info.version = version.into();
        self
    }

    /// Sets the name that people see.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// Sets the description.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Sets the address of a page about the server.
    pub fn website(mut self, url: impl Into<String>) -> Self {
        self.info.website_url = Some(url.into());
        self
    }

    /// Adds an icon.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.info.icons.push(icon);
        self
    }

    /// Sets the instructions, which tell the model how to use the server.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Adds a tool. Two tools with one name are an error when the server is built.
    #[doc(alias = "tools/call")]
    pub fn tool(mut self, tool: impl IntoTool) -> Self {
        let tool = tool.into_tool();
        let taken = self.registry.snapshot().tools.get(&tool.definition.name).is_some();
        let added = free(taken, "tools", &tool.definition.name).and_then(|()| self.registry.add_tool(tool));
        self.note(added);
        self
    }

    /// Adds the tools, prompts and resources of a state. An `Arc` of a state works as well.
    pub fn with(mut self, state: impl Toolset) -> Self {
        let entries = Arc::new(state).into_entries();
        for tool in entries.tools {
            self = self.tool(tool);
        }
        for prompt in entries.prompts {
            self = self.prompt(prompt);
        }
        for resource in entries.resources {
            self = self.resource(resource);
        }
        self
    }

    /// Adds the tools, prompts and resources of another server.
    ///
    /// Its name, limits, middleware and other settings are not used. A [`Registry`] that was taken from it does not change
    /// this server.
    pub fn merge(mut self, other: Self) -> Self {
        let merged = self.registry.merge(&other.registry.snapshot());
        self.note(other.problem.map_or(Ok(()), Err));
        self.note(merged);
        self
    }

    /// Adds a prompt. Two prompts with one name are an error when the server is built.
    #[doc(alias = "prompts/get")]
    pub fn prompt(mut self, prompt: impl IntoPromptEntry) -> Self {
        let prompt = prompt.into_prompt_entry();
        let taken = self.registry.snapshot().prompts.get(&prompt.definition.name).is_some();
        let added =
            free(taken, "prompts", &prompt.definition.name).and_then(|()| self.registry.add_prompt(prompt));
        self.note(added);
        self
    }

    /// Adds a resource, or by a template a family of them. Two with one URI are an error when the server is built.
    #[doc(alias = "resources/read")]
    pub fn resource(mut self, resource: impl IntoResource) -> Self {
        let resource = resource.into_resource();
        let snapshot = self.registry.snapshot();
        let taken = snapshot
            .resources
            .get(resource.uri())
            .or_else(|| snapshot.templates.get(resource.uri()))
            .is_some();
        drop(snapshot);
        let added =
            free(taken, "resources", resource.uri()).and_then(|()| self.registry.add_resource(resource));
        self.note(added);
        self
    }

    /// Adds resources that are listed on request.
    pub fn resources(self, source: impl ResourceSource) -> Self {
        self.registry.add_source(source);
        self
    }

    /// Calls `follow` with all resources that some client subscribes to, each time the set changes: for a server that
    /// watches only those. It reports changes through [`Updates`].
    ///
    /// A connection waits while `follow` runs, so it should return quickly. It must not report changes itself.
    pub fn on_subscriptions(
        self,
        follow: impl Fn(&BTreeSet<String>, &Updates) + Send + Sync + 'static,
    ) -> Self {
        self.registry.hub().follow(Box::new(follow));
        self
    }

    /// Keeps the first error until the server is built, so that builder methods cannot fail.
    fn note(&mut self, added: Result<(), BuildError>) {
        if let Err(error) = added {
            self.problem.get_or_insert(error);
        }
    }

    /// Puts a middleware around every call. The first one added is the outermost.
    pub fn layer(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Restricts the revisions that the server supports.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.revisions = revisions.into_iter().collect();
        self
    }

    /// Sets for how long, and by whom, lists may be cached. Default: not at all.
    pub fn cache_lists(mut self, ttl: Duration, scope: CacheScope) -> Self {
        self.list_cache = hint(ttl, scope);
        self
    }

    /// Sets for how long, and by whom, the result of `server/discover` may be cached. Default: not at all.
    #[doc(alias = "server/discover")]
    pub fn cache_discovery(mut self, ttl: Duration, scope: CacheScope) -> Self {
        self.discovery_cache = hint(ttl, scope);
        self
    }

    /// Sets how many entries one page of a list has. Default: all of them.
    pub fn page_size(mut self, size: usize) -> Self {
        self.page_size = size.max(1);
        self
    }

    /// Sets the keys that seal the state that clients carry. Default: a random key, so only this process can open what it
    /// sealed. Instances behind one address need the same keys.
    #[doc(alias = "requestState")]
    pub fn keys(mut self, keys: KeyRing) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Declares an extension of the protocol, with its settings.
    pub fn extension(mut self, identifier: &str, settings: RawJson) -> Self {
        match meta::validate_extension(identifier) {
            Ok(()) => drop(self.extensions.insert(identifier, settings)),
            Err(error) => self.note(Err(BuildError::new(format!("extension `{identifier}`: {error}")))),
        }
        self
    }

    /// Answers a method of your own, such as `example.com/thing`: `async fn(Ctx, Params) -> Result<Reply, E>`, with either
    /// parameter optional.
    ///
    /// It is served in every revision, with middleware around it like any call. In 2026-07-28 it cannot ask the user. A name
    /// that the protocol reserves is an error when the server is built.
    ///
    /// ```
    /// use bowline_server::{Ctx, Result, Server};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Deserialize)]
    /// struct Lookup {
    ///     word: String,
    /// }
    ///
    /// #[derive(Serialize)]
    /// struct Entry {
    ///     length: usize,
    /// }
    ///
    /// let server = Server::new("dictionary").method("example.com/lookup", async |ctx: Ctx, params: Lookup| {
    ///     ctx.info(format!("looking up {}", params.word));
    ///     Ok::<_, bowline_server::Error>(Entry { length: params.word.len() })
    /// });
    /// ```
    pub fn method<M>(mut self, name: &str, handler: impl MethodHandler<M>) -> Self {
        self.add_method(name, None, handler);
        self
    }

    /// Answers a method of an extension, for clients that declare the extension. It declares the extension too, if
    /// [`extension`](Self::extension) has not.
    ///
    /// Other clients get -32021 in 2026-07-28 and -32601 before.
    pub fn extension_method<M>(
        mut self,
        extension: &str,
        name: &str,
        handler: impl MethodHandler<M>,
    ) -> Self {
        if !self.extensions.contains_key(extension) {
            self = self.extension(extension, RawJson::empty_object());
        }
        self.add_method(name, Some(extension), handler);
        self
    }

    fn add_method<M>(&mut self, name: &str, extension: Option<&str>, handler: impl MethodHandler<M>) {
        let is_new = self.custom.add_method(name, extension, handler);
        self.note(
            check_custom_name(name).map_err(|reason| BuildError::new(format!("method `{name}`: {reason}"))),
        );
        self.note(free(!is_new, "methods", name));
    }

    /// Takes a notification of your own: `async fn(Ctx, Params)`, with either parameter optional. One whose parameters
    /// cannot be read is dropped.
    ///
    /// At most 100 run at a time for each client; further ones are dropped. A name that the protocol reserves is an error
    /// when the server is built.
    pub fn notification<M>(mut self, name: &str, handler: impl NotificationHandler<M>) -> Self {
        let is_new = self.custom.add_notification(name, handler);
        self.note(
            check_custom_name(name)
                .map_err(|reason| BuildError::new(format!("notification `{name}`: {reason}"))),
        );
        self.note(free(!is_new, "notifications", name));
        self
    }

    /// Declares an experimental capability, with its settings.
    pub fn experimental(mut self, name: &str, settings: RawJson) -> Self {
        self.experimental.insert(name, settings);
        self
    }

    /// Lets `service` answer all calls, instead of the tools, resources and prompts that were added here: for gateways
    /// and other servers whose lists are only known at run time. See [`capabilities`](Self::capabilities).
    ///
    /// This server still handles the protocol itself, sealed states, middleware and subscriptions: the service reports
    /// changes, and learns which resources are subscribed to, through [`ServerHandle::announcer`].
    ///
    /// It gets every method that is not part of the protocol as well, and answers -32601 to those it does not have.
    pub fn backend(mut self, service: impl Service) -> Self {
        self.custom.names.accept_any();
        self.backend = Some(Arc::new(service));
        self
    }

    /// Lets clients subscribe to the tasks of a [backend](Self::backend) that declares them. Default: the backend sends no changes
    /// of tasks, and clients poll.
    pub fn backend_tasks(mut self, tasks: impl crate::BackendTasks) -> Self {
        self.backend_tasks = Some(Arc::new(tasks));
        self
    }

    /// Decides which resources each client may subscribe to: other subscriptions are refused, and changes of other
    /// resources are not sent. A connection waits while `guard` runs. Default: all clients may subscribe to everything.
    pub fn guard_subscriptions(
        mut self,
        guard: impl Fn(&Arc<ClientView>, &str) -> std::result::Result<(), bowline_types::RpcError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.subscription_guard = Some(Arc::new(guard));
        self
    }

    /// Sets the declared capabilities, instead of deriving them.
    pub fn capabilities(mut self, capabilities: ServerCapabilities) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// Declares that the lists of tools, prompts and resources may change while the server serves.
    ///
    /// Handlers change them with [`Ctx::registry`](crate::Ctx::registry). The server then declares all three lists and
    /// completion, even if they are empty.
    #[doc(alias = "listChanged")]
    pub fn dynamic(self) -> Self {
        self.registry.set_dynamic();
        self
    }

    /// Returns a handle to change the server while it runs. Declares the server [`dynamic`](Self::dynamic).
    pub fn registry(&self) -> Registry {
        self.registry.set_dynamic();
        self.registry.clone()
    }

    /// Sets where tasks are kept and how they run. Default: in memory, if a tool [says](crate::Tool::task) that its calls become
    /// tasks; then they end with the process.
    #[cfg(feature = "tasks")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tasks")))]
    pub fn tasks(mut self, tasks: crate::Tasks) -> Self {
        self.tasks = Some(tasks);
        self
    }

    /// Prepares the server for any number of connections.
    ///
    /// Fails with the first mistake in what the server offers.
    pub fn build(self) -> Result<ServerHandle, BuildError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let keys = self.keys.unwrap_or_else(|| KeyRing::new(Key::new(random::bytes())));
        let mut profile = Profile::new(self.info, keys);
        let declared = self.capabilities;
        profile.capabilities =
            declared.unwrap_or_else(|| capabilities(&self.registry, self.experimental, self.extensions));
        #[cfg(feature = "tasks")]
        let tasks = {
            let has_tasks = self.registry.snapshot().tools.as_slice().iter().any(|tool| tool.task.is_some());
            let in_memory = || has_tasks.then(|| crate::Tasks::new(bowline_store::Store::memory()));
            let tasks = self.tasks.or_else(in_memory);
            let table = tasks.map(|tasks| crate::tasks::Table::new(tasks, &profile.info.name));
            // A backend answers its own tasks and declares them itself.
            let table = table.filter(|_| self.backend.is_none());
            if table.is_some() {
                declare_tasks(&mut profile.capabilities);
            }
            table
        };
        profile.set_instructions(self.instructions);
        profile.revisions = self.revisions;
        profile.discovery = self.discovery_cache;
        profile.custom = self.custom.names.clone();
        if let Some(guard) = self.subscription_guard {
            profile.set_subscription_guard(guard);
        }
        let registry = self.registry.clone();
        profile.set_resource_scopes(Arc::new(move |uri| registry.resource_scopes(uri)));
        let core = Arc::new(Core {
            profile: Arc::new(profile),
            registry: self.registry,
            custom: self.custom,
            limits: self.limits,
            list_cache: self.list_cache,
            page_size: self.page_size,
            on_message: self.on_message,
            backend_tasks: self.backend_tasks,
            #[cfg(feature = "tasks")]
            tasks,
        });
        #[cfg(feature = "tasks")]
        if let Some(table) = &core.tasks {
            let _ = table.core.set(Arc::downgrade(&core));
            // Tasks of an earlier process continue without a request. Those in memory begin with a request.
            table.start_if_durable();
        }
        let dispatch: Arc<dyn Service> = match self.backend {
            Some(service) => Arc::new(Backend { core: Arc::clone(&core), service }),
            None => Arc::new(Dispatch(Arc::clone(&core))),
        };
        let service: Arc<dyn Service> = if self.middleware.is_empty() {
            dispatch
        } else {
            Arc::new(Layered(Chain::new(self.middleware, dispatch)))
        };
        Ok(ServerHandle { core, service })
    }

    /// Serves the client that started this process, over standard input and output, until it closes them.
    ///
    /// From now on, standard output belongs to the protocol: print to standard error, or send [`Ctx::log`](crate::Ctx::log).
    pub async fn serve_stdio(self) -> Result<(), ServeError> {
        self.build()?.serve_stdio().await
    }

    /// Serves one client over a pair of byte streams, one message per line, until it closes them.
    pub async fn serve(
        self,
        read: impl AsyncRead + Send + Unpin,
        write: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<(), ServeError> {
        self.build()?.serve(read, write).await
    }
}

/// Two entries with one name are a mistake while the server is built. At run time a later one replaces the earlier.
fn free(taken: bool, kind: &str, key: &str) -> Result<(), BuildError> {
    if taken { Err(BuildError::new(format!("two {kind} are named `{key}`"))) } else { Ok(()) }
}

fn capabilities(registry: &Registry, experimental: RawMap, extensions: RawMap) -> ServerCapabilities {
    let snapshot = registry.snapshot();
    let dynamic = registry.is_dynamic();
    let list_changed = dynamic.then_some(true);
    let mut capabilities =
        ServerCapabilities::new().experimental(experimental).extensions(extensions).logging(RawMap::new());
    capabilities.completions = (dynamic || snapshot.completes()).then(RawMap::new);
    if dynamic || !snapshot.tools.is_empty() {
        let mut tools = ToolsCapability::new();
        tools.list_changed = list_changed;
        capabilities.tools = Some(tools);
    }
    if dynamic || !snapshot.prompts.is_empty() {
        let mut prompts = PromptsCapability::new();
        prompts.list_changed = list_changed;
        capabilities.prompts = Some(prompts);
    }
    if dynamic || snapshot.has_resources() {
        let mut resources = ResourcesCapability::new().subscribe(true);
        resources.list_changed = list_changed;
        capabilities.resources = Some(resources);
    }
    capabilities
}

/// Declares tasks for both generations. What a revision does not have is left out when it is sent.
#[cfg(feature = "tasks")]
fn declare_tasks(capabilities: &mut ServerCapabilities) {
    use bowline_types::{ServerTaskRequests, ServerTasksCapability, TASKS_EXTENSION, ToolTaskRequests};
    let calls = ToolTaskRequests::new().call(RawMap::new());
    let requests = ServerTaskRequests::new().tools(calls);
    let tasks = ServerTasksCapability::new().list(RawMap::new()).cancel(RawMap::new()).requests(requests);
    capabilities.tasks = Some(tasks);
    capabilities.extensions.insert(TASKS_EXTENSION, RawJson::empty_object());
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("info", &self.info)
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}
