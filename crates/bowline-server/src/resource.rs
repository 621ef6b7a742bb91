//! Resources: data that a client can read; fixed, by template, or listed on request.

use crate::{
    BuildError, Ctx, Error, Result,
    complete::{Completer, Completers},
    handler::{Arguments, ResourceHandler, Running},
    result_check,
    scopes::DeclaredScopes,
    tool::Guard,
};
use bowline_proto::{
    server::CacheHint,
    service::{BoxFuture, ClientView},
    uri::{self, UriTemplate},
};
use bowline_types::{
    self as types, Annotations, CacheScope, Icon, Meta, ReadResourceResult, ResourceContents,
};
use std::{fmt, sync::Arc, time::Duration};

type Run = Arc<dyn Fn(Ctx, &Arguments) -> Running<ReadResourceResult> + Send + Sync>;

/// A resource, or a whole family of them when its URI is a template.
///
/// ```
/// use bowline_server::Resource;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct User {
///     id: u64,
/// }
///
/// let motd = Resource::new("demo://motd", "message of the day").text("hello");
/// let user = Resource::new("demo://users/{id}", "user").handler(|User { id }: User| format!("user {id}"));
/// ```
#[derive(Clone)]
#[must_use = "it does nothing until it is added to a server"]
pub struct Resource {
    definition: types::Resource,
    template: Option<Result<Arc<UriTemplate>, String>>,
    pub(crate) guard: Option<Guard>,
    pub(crate) completers: Completers,
    pub(crate) cache: Option<CacheHint>,
    pub(crate) scopes: DeclaredScopes,
    run: Option<Run>,
}

impl Resource {
    /// Creates a resource with this URI. If the URI has variables such as `{id}`, the resource is a template.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        let uri = uri.into();
        let template = uri
            .contains('{')
            .then(|| UriTemplate::parse(&uri).map(Arc::new).map_err(|error| error.to_string()));
        let definition = types::Resource::new(uri, name.into());
        Self {
            definition,
            template,
            guard: None,
            completers: Completers::default(),
            cache: None,
            scopes: DeclaredScopes::default(),
            run: None,
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

    /// Sets the MIME type of the contents.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.definition.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the size of the contents in bytes.
    pub fn size(mut self, size: u64) -> Self {
        self.definition.size = Some(size);
        self
    }

    /// Sets the intended audience and the priority.
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.definition.annotations = Some(annotations);
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

    /// Sets for how long, and by whom, the contents may be cached.
    pub fn cache(mut self, ttl: Duration, scope: CacheScope) -> Self {
        self.cache = Some(hint(ttl, scope));
        self
    }

    /// Suggests values for a variable of the template while the user types it. See [`Completer`].
    #[doc(alias = "completion/complete")]
    pub fn complete<M>(mut self, variable: impl Into<String>, completer: impl Completer<M>) -> Self {
        self.completers.insert(variable.into(), completer);
        self
    }

    /// Offers the resource only to clients for which `guard` returns true.
    pub fn guard(mut self, guard: impl Fn(&ClientView) -> bool + Send + Sync + 'static) -> Self {
        self.guard = Some(Arc::new(guard));
        self
    }

    /// Requires these scopes of the access token to read it, to subscribe to it and to complete its variables. See
    /// [`Tool::scopes`](crate::Tool::scopes).
    pub fn scopes<I: IntoIterator<Item: AsRef<str>>>(mut self, scopes: I) -> Self {
        self.scopes.add(scopes);
        self
    }

    /// Sets contents that never change.
    pub fn text(self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.handler(move || text.clone())
    }

    /// Sets the function that reads it: `fn(Ctx, Args) -> Contents`, with either parameter optional, async or not.
    ///
    /// The fields of `Args` are the variables of the template.
    pub fn handler<M, H: ResourceHandler<M>>(mut self, handler: H) -> Self {
        self.run = Some(Arc::new(move |ctx, arguments| handler.call(ctx, arguments)));
        self
    }

    /// Returns the URI or template.
    pub fn uri(&self) -> &str {
        &self.definition.uri
    }

    pub(crate) fn is_template(&self) -> bool {
        self.template.is_some()
    }

    /// Returns the definition of a fixed resource.
    pub(crate) fn definition(&self) -> &types::Resource {
        &self.definition
    }

    /// Returns the definition of a template.
    pub(crate) fn template_definition(&self) -> types::ResourceTemplate {
        let resource = &self.definition;
        let mut template = types::ResourceTemplate::new(resource.uri.clone(), resource.name.clone());
        template.title.clone_from(&resource.title);
        template.description.clone_from(&resource.description);
        template.mime_type.clone_from(&resource.mime_type);
        template.annotations.clone_from(&resource.annotations);
        template.icons.clone_from(&resource.icons);
        template.meta.clone_from(&resource.meta);
        template
    }

    /// Checks the resource before it is registered.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let uri = &self.definition.uri;
        let wrong = |reason: String| BuildError::new(format!("resource `{uri}`: {reason}"));
        if self.run.is_none() {
            return Err(wrong("has no handler".into()));
        }
        self.scopes.check().map_err(wrong)?;
        result_check::annotations(self.definition.annotations.as_ref()).map_err(wrong)?;
        match &self.template {
            None => uri::validate_uri(uri).map_err(|error| wrong(error.to_string())),
            Some(Err(reason)) => Err(wrong(reason.clone())),
            Some(Ok(template)) => {
                let known = |variable: &&String| template.variables().any(|known| known == variable.as_str());
                match self.completers.names().find(|variable| !known(variable)) {
                    Some(variable) => {
                        Err(wrong(format!("completes `{variable}`, which is not one of its variables")))
                    }
                    None => Ok(()),
                }
            }
        }
    }

    /// Returns the variables of `uri`, if this is a template that matches it.
    pub(crate) fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        match &self.template {
            Some(Ok(template)) => template.match_uri(uri),
            Some(Err(_)) | None => None,
        }
    }

    /// Runs the handler.
    pub(crate) fn read(&self, ctx: Ctx, variables: Vec<(String, String)>) -> Running<ReadResourceResult> {
        match &self.run {
            Some(run) => run(ctx, &Arguments::Strings(variables)),
            None => Running::Ready(Err(Error::internal("the resource has no handler"))),
        }
    }

    /// Adds the members that the handler omitted from the definition.
    pub(crate) fn complete_result(&self, uri: &str, result: &mut ReadResourceResult) {
        for contents in &mut result.contents {
            fill_in(contents, uri, self.definition.mime_type.as_deref());
        }
        if let Some(hint) = &self.cache {
            result.ttl_ms.get_or_insert(hint.ttl_ms);
            result.cache_scope.get_or_insert_with(|| hint.scope.clone());
        }
    }
}

fn fill_in(contents: &mut ResourceContents, uri: &str, mime_type: Option<&str>) {
    let (known_uri, known_type) = match contents {
        ResourceContents::Text(text) => (&mut text.uri, &mut text.mime_type),
        ResourceContents::Blob(blob) => (&mut blob.uri, &mut blob.mime_type),
    };
    if known_uri.is_empty() {
        uri.clone_into(known_uri);
    }
    if known_type.is_none() {
        *known_type = mime_type.map(str::to_owned);
    }
}

pub(crate) fn hint(ttl: Duration, scope: CacheScope) -> CacheHint {
    CacheHint { ttl_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX), scope }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource").field("definition", &self.definition).finish_non_exhaustive()
    }
}

/// Resources that are listed on request, such as the rows of a table or the files of a directory.
pub trait ResourceSource: Send + Sync + 'static {
    /// Lists the resources that this client can read.
    fn list(&self, ctx: Ctx) -> BoxFuture<'_, Result<Vec<types::Resource>>>;

    /// Reads a resource. `None` means that the URI does not belong to this source or does not exist.
    fn read(&self, ctx: Ctx, uri: String) -> BoxFuture<'_, Result<Option<ReadResourceResult>>>;
}

/// Something that can be registered as a resource.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resource",
    label = "expected `Resource`",
    note = "a function marked `#[resource(\"uri\")]` is registered as `name::resource()`, any other with `Resource::new(\"uri\", \"name\").handler(function)`"
)]
pub trait IntoResource {
    /// Returns the resource.
    fn into_resource(self) -> Resource;
}

impl IntoResource for Resource {
    fn into_resource(self) -> Resource {
        self
    }
}
