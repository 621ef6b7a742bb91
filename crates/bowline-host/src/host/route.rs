//! Finds the server that a call belongs to.

use super::{
    completion::TemplateCompletion,
    router::{Router, Wait},
};
use crate::{
    aggregate::{Catalog, ToolTasks},
    tap::AtRevision,
    upstream::{CallerKey, Instance, OwnConnection},
};
use bowline_policy::Definition;
use bowline_proto::service::{Call, MethodName};
use bowline_types::{CompleteParams, Method, RawJson, RawMap, Reference, RpcError};
use std::sync::Arc;

/// Where a call goes.
pub(super) struct Route {
    pub(super) instance: Arc<Instance>,
    /// The parameters with the names that the server uses, without `_meta` and the members of a retry.
    pub(super) params: RawJson,
    pub(super) catalog: Arc<Catalog>,
    pub(super) subject: Subject,
    /// The template variable that is completed.
    pub(super) completion: Option<TemplateCompletion>,
    /// Whether the call may become a task.
    pub(super) tasks: ToolTasks,
    /// Stops the instance after the call, if it is used for this call only.
    pub(super) own_connection: Option<OwnConnection>,
}

/// What a call is about, for the policy.
pub(super) enum Subject {
    Tool(Definition),
    Resource(String),
    Prompt(String),
    /// A custom method, by the name that its server uses.
    Method(String),
}

impl Subject {
    /// Returns the name by which questions of the server are attributed: each tool and prompt separately, resources together.
    pub(super) fn attribution_name(&self) -> Box<str> {
        match self {
            Self::Tool(definition) => format!("tool {}", definition.name()).into(),
            Self::Resource(_) => "resource".into(),
            Self::Prompt(name) => format!("prompt {name}").into(),
            Self::Method(name) => format!("method {name}").into(),
        }
    }
}

impl Route {
    /// Returns a text that changes if a retry goes to another server, tool definition, resource or prompt.
    pub(super) fn target(&self) -> String {
        let subject = match &self.subject {
            Subject::Tool(definition) => definition.digest().as_str(),
            Subject::Resource(name) | Subject::Prompt(name) | Subject::Method(name) => name,
        };
        format!("{} {subject}", self.instance.name)
    }
}

impl Router {
    /// Finds the server of a call, and the connection that it wants.
    pub(super) async fn route(&self, call: &Call) -> Result<Route, RpcError> {
        let mut route = self.find_route(call).await?;
        if let Some(wanted) = call.extensions.get::<AtRevision>() {
            let revision = wanted.revision();
            // What the shared connection says about tasks holds for its own revision.
            if route.instance.running().is_none_or(|client| client.revision() != revision) {
                route.tasks = ToolTasks::None;
            }
            let (instance, own) = route.instance.at_revision(revision);
            (route.instance, route.own_connection) = (instance, Some(own));
        }
        Ok(route)
    }

    /// Finds the server of a call. If that server announced a change, its list is read again first; no other server is waited
    /// for. An unknown name is looked up once more in fresh lists.
    async fn find_route(&self, call: &Call) -> Result<Route, RpcError> {
        if let MethodName::Custom(name) = &call.method {
            return self.route_custom(name, call).await;
        }
        let tenant = CallerKey::tenant(call);
        let name = match call.method.known() {
            Some(Method::CallTool | Method::GetPrompt) => Some(call.params.name()?),
            _ => None,
        };
        // A name contains the name of its server, so other servers need not be running.
        let (first_wait, last_wait) = match &name {
            Some(name) => (Wait::Never, Wait::Owners(name)),
            None => (Wait::IfIncomplete, Wait::Everybody),
        };
        let catalog = self.catalog(&tenant, first_wait).await;
        if let Some(route) = find(&catalog, call)? {
            if !route.instance.lists.tools.has_changed() {
                return Ok(route);
            }
            let catalog = self.catalog(&tenant, Wait::Only(route.instance.id)).await;
            if let Some(route) = find(&catalog, call)? {
                return Ok(route);
            }
        }
        let catalog = self.catalog(&tenant, last_wait).await;
        if let Some(route) = find(&catalog, call)? {
            return Ok(route);
        }
        Err(match (call.method.known(), &name) {
            (Some(Method::ReadResource), _) => RpcError::resource_not_found(&call.params.uri()?),
            (Some(Method::GetPrompt), Some(name)) => self.unknown_name("prompt", name, &tenant),
            (_, Some(name)) => self.unknown_name("tool", name, &tenant),
            _ => RpcError::invalid_params("`ref` names neither a known prompt nor a known resource"),
        })
    }
}

fn find(catalog: &Arc<Catalog>, call: &Call) -> Result<Option<Route>, RpcError> {
    // Rules cannot inspect arguments that are not an object, yet a server may accept them.
    call.params.arguments()?;
    let mut tasks = ToolTasks::None;
    let (instance, params, subject) = match call.method.known() {
        Some(Method::CallTool) => {
            let Some(tool) = catalog.tool(&call.params.name()?) else { return Ok(None) };
            let (entry, definition) = (&tool.entry, tool.definition.clone());
            tasks = tool.tasks;
            let params = params_with(call, "name", &entry.original)?;
            (Arc::clone(&entry.instance), params, Subject::Tool(definition))
        }
        Some(Method::GetPrompt) => {
            let Some(entry) = catalog.prompt(&call.params.name()?) else { return Ok(None) };
            let params = params_with(call, "name", &entry.original)?;
            (Arc::clone(&entry.instance), params, Subject::Prompt(entry.original.clone()))
        }
        Some(Method::ReadResource) => {
            let Some((instance, original)) = catalog.owner(&call.params.uri()?) else { return Ok(None) };
            (instance, params_with(call, "uri", &original)?, Subject::Resource(original))
        }
        _ => return find_completion(catalog, call),
    };
    let catalog = Arc::clone(catalog);
    Ok(Some(Route { instance, params, catalog, subject, completion: None, tasks, own_connection: None }))
}

/// Finds the server of a completion request. The subject is the prompt or resource, so a caller that may not use it gets no
/// completions for it.
fn find_completion(catalog: &Arc<Catalog>, call: &Call) -> Result<Option<Route>, RpcError> {
    let mut params: CompleteParams = call.params.decode()?;
    let mut template = None;
    let found = match &mut params.reference {
        Reference::Prompt(reference) => catalog.prompt(&reference.name).map(|entry| {
            reference.name.clone_from(&entry.original);
            (Arc::clone(&entry.instance), Subject::Prompt(entry.original.clone()))
        }),
        Reference::Resource(reference) => match catalog.template(&reference.uri) {
            Some(entry) => {
                reference.uri.clone_from(&entry.original);
                template = Some(entry.original.clone());
                Some((Arc::clone(&entry.instance), Subject::Resource(entry.original.clone())))
            }
            None => catalog.owner(&reference.uri).map(|(instance, original)| {
                reference.uri.clone_from(&original);
                (instance, Subject::Resource(original))
            }),
        },
    };
    let Some((instance, subject)) = found else { return Ok(None) };
    let completion = template.and_then(|template| TemplateCompletion::new(&template, &params));
    params.meta = None;
    let params = RawJson::of(&params).map_err(|error| RpcError::internal(error.to_string()))?;
    let catalog = Arc::clone(catalog);
    Ok(Some(Route {
        instance,
        params,
        catalog,
        subject,
        completion,
        tasks: ToolTasks::None,
        own_connection: None,
    }))
}

/// Returns the parameters of a call with one member replaced, and without the members that are not for the server.
fn params_with(call: &Call, member: &str, value: &str) -> Result<RawJson, RpcError> {
    let mut members = server_members(call)?;
    members.insert(member, RawJson::of(value).map_err(invalid)?);
    RawJson::of(&members).map_err(invalid)
}

/// Returns the parameters of a call without the members that are not for the server.
pub(super) fn server_params(call: &Call) -> Result<RawJson, RpcError> {
    RawJson::of(&server_members(call)?).map_err(invalid)
}

fn server_members(call: &Call) -> Result<RawMap, RpcError> {
    let mut members = call.params.raw().members().map_err(invalid)?;
    // The host itself adds `task` for servers that have tasks.
    for own in ["_meta", "inputResponses", "requestState", "task"] {
        members.remove(own);
    }
    Ok(members)
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
fn invalid(error: serde_json::Error) -> RpcError {
    RpcError::invalid_params(error.to_string())
}
