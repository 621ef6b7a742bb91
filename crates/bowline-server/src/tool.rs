//! Tools: functions a model may call.

use crate::{
    BuildError, Ctx, Error, Result,
    handler::{Arguments, Running, ToolHandler},
    model_schema::{self, Side},
    schema::{self, Validator},
    scopes::DeclaredScopes,
};
use bowline_proto::{
    header::ParamHeaders,
    scope::Scopes,
    service::{ClientView, Middleware},
};
use bowline_types::{self as types, CallToolResult, Icon, Meta, RawJson, ToolAnnotations};
use std::{
    fmt,
    sync::{Arc, OnceLock},
};

type Run = Arc<dyn Fn(Ctx, &Arguments) -> Running<CallToolResult> + Send + Sync>;
pub(crate) type Guard = Arc<dyn Fn(&ClientView) -> bool + Send + Sync>;

/// A tool: its definition, which the model reads, and the function that runs.
///
/// ```
/// use bowline_server::Tool;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add {
///     a: i64,
///     b: i64,
/// }
///
/// let add = Tool::new("add").description("Add two numbers").handler(|Add { a, b }: Add| a + b);
/// ```
#[derive(Clone)]
#[must_use = "it does nothing until it is added to a server"]
pub struct Tool {
    /// Without the schemas, which are in `input` and `output`.
    pub(crate) definition: types::Tool,
    pub(crate) guard: Option<Guard>,
    layers: Vec<Arc<dyn Middleware>>,
    run: Option<Run>,
    blocking: bool,
    input: Schema,
    output: Schema,
    scopes: DeclaredScopes,
    #[cfg(feature = "tasks")]
    task: Option<crate::Task>,
    #[cfg(feature = "tasks")]
    job: Option<Arc<dyn crate::tasks::CancelJob>>,
}

/// The source of a schema.
#[derive(Clone, Debug)]
enum Schema {
    /// From a type of the handler. It is derived when it is first needed, because deriving takes a while.
    Derived(fn() -> Option<RawJson>),
    /// From the author.
    Given(RawJson),
}

impl Schema {
    fn get(&self) -> Option<RawJson> {
        match self {
            Self::Derived(derive) => derive(),
            Self::Given(schema) => Some(schema.clone()),
        }
    }

    fn is_derived(&self) -> bool {
        matches!(self, Self::Derived(_))
    }
}

impl Tool {
    /// Creates a tool with this name. Names are unique in a server and have at most 128 characters: letters, digits,
    /// `_`, `-`, `.`.
    pub fn new(name: impl Into<String>) -> Self {
        let definition = types::Tool::new(name.into(), RawJson::empty_object());
        let (input, output) = (Schema::Derived(|| None), Schema::Derived(|| None));
        let scopes = DeclaredScopes::default();
        Self {
            definition,
            guard: None,
            layers: Vec::new(),
            run: None,
            blocking: false,
            input,
            output,
            scopes,
            #[cfg(feature = "tasks")]
            task: None,
            #[cfg(feature = "tasks")]
            job: None,
        }
    }

    /// Another system does the work.
    #[cfg(feature = "tasks")]
    pub(crate) fn with_job(mut self, job: Arc<dyn crate::tasks::CancelJob>) -> Self {
        self.job = Some(job);
        if self.task.is_none() { self.task(crate::Task::now()) } else { self }
    }

    /// Lets calls become tasks: the caller gets an id at once, and the result when it is there.
    ///
    /// Callers of revisions without tasks, and callers that do not support them, wait for the result as usual, unless the task
    /// is [required](crate::Task::required).
    #[cfg(feature = "tasks")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tasks")))]
    #[doc(alias = "taskSupport")]
    pub fn task(mut self, task: crate::Task) -> Self {
        let support = if task.required { types::TaskSupport::Required } else { types::TaskSupport::Optional };
        self.definition.execution = Some(types::ToolExecution::new().task_support(support));
        self.task = Some(task);
        self
    }

    /// Sets the name that people see.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.definition.title = Some(title.into());
        self
    }

    /// Sets the description, which the model reads.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// Sets the hints about what the tool does.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.definition.annotations = Some(annotations);
        self
    }

    /// Declares that the tool changes nothing.
    #[doc(alias = "readOnlyHint")]
    pub fn read_only(mut self) -> Self {
        self.definition.annotations.get_or_insert_default().read_only_hint = Some(true);
        self
    }

    /// Declares whether the tool may destroy something.
    #[doc(alias = "destructiveHint")]
    pub fn destructive(mut self, destructive: bool) -> Self {
        self.definition.annotations.get_or_insert_default().destructive_hint = Some(destructive);
        self
    }

    /// Declares that calling the tool twice has the same effect as calling it once.
    #[doc(alias = "idempotentHint")]
    pub fn idempotent(mut self) -> Self {
        self.definition.annotations.get_or_insert_default().idempotent_hint = Some(true);
        self
    }

    /// Declares whether the tool reaches beyond the server, for example to the web.
    #[doc(alias = "openWorldHint")]
    pub fn open_world(mut self, open_world: bool) -> Self {
        self.definition.annotations.get_or_insert_default().open_world_hint = Some(open_world);
        self
    }

    /// Adds an icon.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.definition.icons.push(icon);
        self
    }

    /// Sets the metadata of the definition.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.definition.meta = Some(meta);
        self
    }

    /// Replaces the schema of the arguments. Every call is validated against it.
    pub fn input_schema(mut self, schema: RawJson) -> Self {
        self.input = Schema::Given(schema);
        self
    }

    /// Replaces the schema of the structured content. Every result is validated against it.
    pub fn output_schema(mut self, schema: RawJson) -> Self {
        self.output = Schema::Given(schema);
        self
    }

    /// Offers the tool only to clients for which `guard` returns true.
    pub fn guard(mut self, guard: impl Fn(&ClientView) -> bool + Send + Sync + 'static) -> Self {
        self.guard = Some(Arc::new(guard));
        self
    }

    /// Requires these scopes of the access token, in addition to those of the endpoint.
    ///
    /// An HTTP endpoint refuses a call without them before the handler runs. An endpoint that verifies no tokens refuses
    /// every call. On stdio there are no tokens, and no scopes are checked.
    pub fn scopes<I: IntoIterator<Item: AsRef<str>>>(mut self, scopes: I) -> Self {
        self.scopes.add(scopes);
        self
    }

    /// Puts a middleware around the calls of this tool, inside of those of the server. The first one added is the outermost.
    pub fn layer(mut self, middleware: impl Middleware) -> Self {
        self.layers.push(Arc::new(middleware));
        self
    }

    /// Sets the function that runs: `fn(Ctx, Args) -> Output`, with either parameter optional, async or not.
    ///
    /// A function that is not async runs in the task of the connection and should return quickly. See [`Tool::blocking`].
    pub fn handler<M, H: ToolHandler<M>>(mut self, handler: H) -> Self {
        if self.input.is_derived() {
            self.input = Schema::Derived(H::input_schema);
        }
        if self.output.is_derived() {
            self.output = Schema::Derived(H::output_schema);
        }
        self.run = Some(Arc::new(move |ctx, arguments| handler.call(ctx, arguments)));
        self
    }

    /// Runs the function on a thread for blocking work. Use it for functions that block or compute for long.
    pub fn blocking(mut self) -> Self {
        self.blocking = true;
        self
    }

    /// Returns the definition, which the model reads.
    pub fn definition(&self) -> types::Tool {
        self.define(self.input.get().as_ref(), self.output.get().as_ref())
    }

    /// Returns the definition with these schemas. Derived schemas are simplified for models.
    fn define(&self, input: Option<&RawJson>, output: Option<&RawJson>) -> types::Tool {
        let shown = |schema: &RawJson, from: &Schema, side: Side| match from {
            Schema::Derived(_) => model_schema::shown(schema, side),
            Schema::Given(_) => schema.clone(),
        };
        let mut tool = self.definition.clone();
        tool.input_schema =
            input.map_or_else(schema::no_arguments, |schema| shown(schema, &self.input, Side::Arguments));
        tool.output_schema = output.map(|schema| shown(schema, &self.output, Side::Result));
        tool
    }

    /// Checks the tool and prepares it for calls.
    ///
    /// A schema that the author wrote is compiled now, so that its mistakes are reported at start-up. A derived schema waits
    /// until it is needed, except in debug builds.
    pub(crate) fn ready(mut self) -> Result<ReadyTool, BuildError> {
        let name = self.definition.name.clone();
        let wrong = |reason: String| BuildError::new(format!("tool `{name}`: {reason}"));
        check_name(&name).map_err(wrong)?;
        let scopes = self.scopes.check().map_err(wrong)?;
        let run = self.run.take().ok_or_else(|| wrong("has no handler".into()))?;
        let run = if self.blocking { on_a_thread(run) } else { run };
        let at_once = !(self.input.is_derived() && self.output.is_derived()) || cfg!(debug_assertions);
        #[cfg(feature = "tasks")]
        let job = self.job.take();
        #[cfg(feature = "tasks")]
        if let (Some(_), Some(task)) = (&job, &mut self.task) {
            // What has to be done once is a step, and looking changes nothing.
            task.resume.get_or_insert(true);
        }
        let tool = ReadyTool {
            name: name.clone(),
            guard: self.guard.take(),
            scopes,
            layers: std::mem::take(&mut self.layers).into(),
            run,
            #[cfg(feature = "tasks")]
            task: self.task.take(),
            #[cfg(feature = "tasks")]
            job,
            tool: self,
            prepared: OnceLock::new(),
        };
        if at_once {
            tool.prepared()?;
        }
        Ok(tool)
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("definition", &self.definition).finish_non_exhaustive()
    }
}

fn on_a_thread(run: Run) -> Run {
    Arc::new(move |ctx, arguments| {
        let (run, arguments) = (Arc::clone(&run), arguments.clone());
        Running::Pending(Box::pin(async move {
            let started = tokio::task::spawn_blocking(move || run(ctx, &arguments)).await;
            match started {
                Ok(Running::Ready(result)) => result,
                Ok(Running::Pending(future)) => future.await,
                // The panic continues here, where it is reported with the name of the tool.
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_) => Err(Error::internal("the runtime is shutting down")),
                },
            }
        }))
    })
}

fn check_name(name: &str) -> Result<(), String> {
    let allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.');
    if name.is_empty() || name.len() > 128 {
        return Err("the name must have between 1 and 128 characters".into());
    }
    match name.chars().find(|character| !allowed(*character)) {
        Some(character) => {
            Err(format!("the name contains `{character}`; letters, digits, `_`, `-` and `.` are allowed"))
        }
        None => Ok(()),
    }
}

/// A tool that passed its checks.
pub(crate) struct ReadyTool {
    pub(crate) name: String,
    /// The middleware around its calls.
    pub(crate) layers: Arc<[Arc<dyn Middleware>]>,
    pub(crate) guard: Option<Guard>,
    /// The scopes that its calls need; `None` for none.
    pub(crate) scopes: Option<Arc<Scopes>>,
    /// How its calls become tasks, if they do.
    #[cfg(feature = "tasks")]
    pub(crate) task: Option<crate::Task>,
    /// What cancels the work, if another system does it.
    #[cfg(feature = "tasks")]
    pub(crate) job: Option<Arc<dyn crate::tasks::CancelJob>>,
    run: Run,
    tool: Tool,
    /// Boxed, because it is large and most tools of a large server are never called.
    prepared: OnceLock<Result<Box<Prepared>, String>>,
}

/// Data derived from the schemas of a tool.
pub(crate) struct Prepared {
    pub(crate) definition: types::Tool,
    input: Validator,
    output: Option<Validator>,
    /// The parameters that clients repeat in HTTP headers, if any.
    pub(crate) param_headers: Option<Arc<ParamHeaders>>,
}

impl Prepared {
    fn of(tool: &Tool) -> Result<Self, String> {
        let (input, output) = (tool.input.get(), tool.output.get());
        let definition = tool.define(input.as_ref(), output.as_ref());
        let schema = &definition.input_schema;
        let is_object = schema
            .members()
            .is_ok_and(|members| members.get("type").is_some_and(|kind| kind.as_bytes() == b"\"object\""));
        if !is_object {
            return Err("the arguments must be an object: a struct with named fields".into());
        }
        // Calls are checked against the derived schema, which allows `null` for an optional member.
        let input = Validator::new(input.as_ref().unwrap_or(schema), tool.input.is_derived())
            .map_err(|reason| format!("input schema: {reason}"))?;
        let output =
            output.as_ref().map(|schema| Validator::new(schema, tool.output.is_derived())).transpose();
        let output = output.map_err(|reason| format!("output schema: {reason}"))?;
        let param_headers = param_headers(schema)?;
        Ok(Self { definition, input, output, param_headers })
    }
}

/// Most tools have none, so the keyword is searched before parsing.
fn param_headers(schema: &RawJson) -> Result<Option<Arc<ParamHeaders>>, String> {
    if memchr::memmem::find(schema.as_bytes(), b"x-mcp-header").is_none() {
        return Ok(None);
    }
    let schema = schema.to_value().map_err(|error| error.to_string())?;
    let headers = ParamHeaders::from_schema(&schema).map_err(|error| error.to_string())?;
    Ok((!headers.is_empty()).then(|| Arc::new(headers)))
}

impl ReadyTool {
    /// Returns the data derived from the schemas. It is computed on first use.
    pub(crate) fn prepared(&self) -> Result<&Prepared, BuildError> {
        let prepared = self.prepared.get_or_init(|| Prepared::of(&self.tool).map(Box::new));
        prepared
            .as_ref()
            .map(|prepared| &**prepared)
            .map_err(|reason| BuildError::new(format!("tool `{}`: {reason}", self.name)))
    }

    /// Whether a call may run twice: it changes nothing, or calling twice has the same effect as calling once.
    #[cfg(feature = "tasks")]
    pub(crate) fn is_repeatable(&self) -> bool {
        let hints = self.tool.definition.annotations.as_ref();
        hints.is_some_and(|hints| hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true))
    }

    /// Runs the handler. Invalid arguments give a failed result that names the place; the request itself succeeds.
    pub(crate) fn call(&self, ctx: Ctx, arguments: RawJson) -> Running<CallToolResult> {
        let input = match self.prepared() {
            Ok(prepared) => &prepared.input,
            Err(error) => return Running::Ready(Err(Error::internal(error.to_string()))),
        };
        if !input.decoding_suffices
            && let Err(reason) = input.check(&arguments)
        {
            return Running::Ready(Err(Error::arguments(reason)));
        }
        let arguments = Arguments::Json(arguments);
        let running = (self.run)(ctx, &arguments);
        if let (Running::Ready(Err(error)), Arguments::Json(raw)) = (&running, &arguments)
            && error.is_arguments()
            && let Err(reason) = input.check(raw)
        {
            // The schema names the place where decoding only knows the column.
            return Running::Ready(Err(Error::arguments(reason)));
        }
        running
    }

    /// Checks a result against the output schema.
    pub(crate) fn check_output(&self, result: &CallToolResult) -> Result<()> {
        let prepared = self.prepared().map_err(|error| Error::internal(error.to_string()))?;
        let Some(output) = &prepared.output else { return Ok(()) };
        if result.is_error == Some(true) || output.decoding_suffices {
            return Ok(());
        }
        let name = &self.name;
        let Some(structured) = &result.structured_content else {
            return Err(Error::internal(format!(
                "tool `{name}` declares an output schema but returned no structured content"
            )));
        };
        output.check(structured).map_err(|reason| {
            Error::internal(format!("tool `{name}` returned what its output schema does not allow: {reason}"))
        })
    }
}

impl fmt::Debug for ReadyTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadyTool").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Something that can be registered as a tool.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "expected `Tool`",
    note = "a function marked `#[tool]` is registered as `name::tool()`, any other with `Tool::new(\"name\").handler(function)`"
)]
pub trait IntoTool {
    /// Returns the tool.
    fn into_tool(self) -> Tool;
}

impl IntoTool for Tool {
    fn into_tool(self) -> Tool {
        self
    }
}
