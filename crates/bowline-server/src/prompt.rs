//! Prompts: messages that a user can start with.

use crate::{
    BuildError, Ctx, Error, Result,
    complete::{Completer, Completers},
    handler::{Arguments, PromptHandler, Running},
    scopes::DeclaredScopes,
    tool::Guard,
};
use bowline_proto::service::ClientView;
use bowline_types::{self as types, GetPromptResult, Icon, Meta, PromptArgument, RawJson};
use serde_json::Value;
use std::{fmt, sync::Arc};

type Run = Arc<dyn Fn(Ctx, &Arguments) -> Running<GetPromptResult> + Send + Sync>;

/// A prompt: its definition, which the user sees, and the function that writes its messages.
///
/// ```
/// use bowline_server::{Prompt, CompletionRequest};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Review {
///     /// Which language the code is in.
///     language: String,
/// }
///
/// let review = Prompt::new("review")
///     .description("Review code")
///     .complete("language", |typing: CompletionRequest| {
///         ["rust", "ruby"].into_iter().filter(|known| known.starts_with(&typing.value)).collect::<Vec<_>>()
///     })
///     .handler(|Review { language }: Review| format!("Review this {language} code."));
/// ```
#[derive(Clone)]
#[must_use = "it does nothing until it is added to a server"]
pub struct Prompt {
    pub(crate) definition: types::Prompt,
    pub(crate) guard: Option<Guard>,
    pub(crate) completers: Completers,
    pub(crate) scopes: DeclaredScopes,
    run: Option<Run>,
    /// An argument that no client can send, if there is one.
    unsendable: Option<String>,
}

impl Prompt {
    /// Creates a prompt with this name.
    pub fn new(name: impl Into<String>) -> Self {
        let definition = types::Prompt::new(name.into());
        Self {
            definition,
            guard: None,
            completers: Completers::default(),
            scopes: DeclaredScopes::default(),
            run: None,
            unsendable: None,
        }
    }

    /// Sets the name that people see.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.definition.title = Some(title.into());
        self
    }

    /// Sets the description.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// Adds an icon.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.definition.icons.push(icon);
        self
    }

    /// Sets the metadata of the definition.
    #[doc(alias = "_meta")]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.definition.meta = Some(meta);
        self
    }

    /// Adds an argument, for handlers whose arguments are not a struct.
    pub fn argument(mut self, argument: PromptArgument) -> Self {
        self.definition.arguments.push(argument);
        self
    }

    /// Suggests values for an argument while the user types it. See [`Completer`].
    #[doc(alias = "completion/complete")]
    pub fn complete<M>(mut self, argument: impl Into<String>, completer: impl Completer<M>) -> Self {
        self.completers.insert(argument.into(), completer);
        self
    }

    /// Offers the prompt only to clients for which `guard` returns true.
    pub fn guard(mut self, guard: impl Fn(&ClientView) -> bool + Send + Sync + 'static) -> Self {
        self.guard = Some(Arc::new(guard));
        self
    }

    /// Requires these scopes of the access token to get the prompt and to complete its arguments. See
    /// [`Tool::scopes`](crate::Tool::scopes).
    pub fn scopes<I: IntoIterator<Item: AsRef<str>>>(mut self, scopes: I) -> Self {
        self.scopes.add(scopes);
        self
    }

    /// Sets the function that writes the messages: `fn(Ctx, Args) -> Messages`, with either parameter optional, async or not.
    ///
    /// The fields of `Args` become the prompt's arguments.
    pub fn handler<M, H: PromptHandler<M>>(mut self, handler: H) -> Self {
        if let Some(schema) = H::input_schema() {
            self.definition.arguments = arguments_of(&schema);
            self.unsendable = unsendable(&schema);
        }
        self.run = Some(Arc::new(move |ctx, arguments| handler.call(ctx, arguments)));
        self
    }

    /// Returns the definition, which the user sees.
    pub fn definition(&self) -> &types::Prompt {
        &self.definition
    }

    /// Checks the prompt before it is registered.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let name = &self.definition.name;
        if self.run.is_none() {
            return Err(BuildError::new(format!("prompt `{name}`: has no handler")));
        }
        if let Err(reason) = self.scopes.check() {
            return Err(BuildError::new(format!("prompt `{name}`: {reason}")));
        }
        if let Some(argument) = &self.unsendable {
            return Err(BuildError::new(format!(
                "prompt `{name}`: argument `{argument}` is a list or an object, but clients send text; take `String`, a \
                 number, a bool or an enum"
            )));
        }
        let known =
            |argument: &&String| self.definition.arguments.iter().any(|known| known.name == **argument);
        match self.completers.names().find(|argument| !known(argument)) {
            Some(argument) => Err(BuildError::new(format!(
                "prompt `{name}`: completes `{argument}`, which is not one of its arguments"
            ))),
            None => Ok(()),
        }
    }

    /// Runs the handler.
    pub(crate) fn call(&self, ctx: Ctx, given: Vec<(String, String)>) -> Running<GetPromptResult> {
        let missing = self.definition.arguments.iter().find(|argument| {
            argument.required == Some(true) && !given.iter().any(|(name, _)| *name == argument.name)
        });
        if let Some(argument) = missing {
            let reason = format!("prompt `{}` needs the argument `{}`", self.definition.name, argument.name);
            return Running::Ready(Err(Error::invalid_params(reason)));
        }
        match &self.run {
            Some(run) => run(ctx, &Arguments::Strings(given)),
            None => Running::Ready(Err(Error::internal("the prompt has no handler"))),
        }
    }
}

/// Returns the arguments of a prompt: the properties of its handler's type.
fn arguments_of(schema: &RawJson) -> Vec<PromptArgument> {
    let Ok(schema) = schema.to_value() else { return Vec::new() };
    let required = |name: &str| {
        let required = schema.get("required").and_then(Value::as_array);
        required.is_some_and(|required| required.iter().any(|known| known == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let argument = |(name, property): (&String, &Value)| {
        let mut argument = PromptArgument::new(name.clone());
        argument.description = property.get("description").and_then(Value::as_str).map(str::to_owned);
        argument.required = Some(required(name));
        argument
    };
    properties.into_iter().flatten().map(argument).collect()
}

/// Returns the first property that cannot be sent as text.
fn unsendable(schema: &RawJson) -> Option<String> {
    let schema = schema.to_value().ok()?;
    let definitions = schema.get("$defs");
    let is_composite = |property: &Value| {
        let target = property
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| definitions?.get(reference.strip_prefix("#/$defs/")?));
        let kind = target.unwrap_or(property).get("type").and_then(Value::as_str);
        matches!(kind, Some("array" | "object"))
    };
    let properties = schema.get("properties").and_then(Value::as_object)?;
    properties.iter().find(|(_, property)| is_composite(property)).map(|(name, _)| name.clone())
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("definition", &self.definition).finish_non_exhaustive()
    }
}

/// Something that can be registered as a prompt.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a prompt",
    label = "expected `Prompt`",
    note = "a function marked `#[prompt]` is registered as `name::prompt()`, any other with `Prompt::new(\"name\").handler(function)`"
)]
pub trait IntoPromptEntry {
    /// Returns the prompt.
    fn into_prompt_entry(self) -> Prompt;
}

impl IntoPromptEntry for Prompt {
    fn into_prompt_entry(self) -> Prompt {
        self
    }
}
