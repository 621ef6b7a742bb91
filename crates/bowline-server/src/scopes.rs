//! The scopes that tools, resources and prompts declare, and the check of a call against them.

use crate::registry::Snapshot;
use bowline_proto::{
    params::Params,
    scope::{Scopes, is_scope},
    service::Extensions,
    subscribe::MAX_URIS,
};
use bowline_types::{CompleteParams, Method, Reference, RpcError, SubscriptionsListenParams};
use std::{borrow::Cow, sync::Arc};

/// The scopes of one tool, resource or prompt.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeclaredScopes {
    scopes: Option<Arc<Scopes>>,
    /// A text that is not a scope. It fails the build, because leaving it out would allow more than the author wrote.
    invalid: Option<String>,
}

impl DeclaredScopes {
    pub(crate) fn add<I: IntoIterator<Item: AsRef<str>>>(&mut self, scopes: I) {
        let known = Arc::make_mut(self.scopes.get_or_insert_default());
        for scope in scopes {
            let scope = scope.as_ref();
            if !is_scope(scope) {
                self.invalid.get_or_insert_with(|| scope.to_owned());
            }
            known.insert(scope);
        }
    }

    /// Returns the scopes, if there are any. Fails if one is invalid.
    pub(crate) fn check(&self) -> Result<Option<Arc<Scopes>>, String> {
        match &self.invalid {
            Some(text) => Err(format!(
                "`{text}` is not a scope; a scope is one word of visible ASCII characters without `\"` and `\\`"
            )),
            None => Ok(self.get().cloned()),
        }
    }

    pub(crate) fn get(&self) -> Option<&Arc<Scopes>> {
        self.scopes.as_ref().filter(|scopes| !scopes.is_empty())
    }
}

/// Refuses a call whose caller lacks one of the scopes.
///
/// On stdio there are no tokens. A call over HTTP without a verified token is refused: nobody granted it anything.
pub(crate) fn check(extensions: &Extensions, needed: Option<&Arc<Scopes>>) -> Result<(), RpcError> {
    let Some(needed) = needed else { return Ok(()) };
    let is_allowed = match extensions.caller() {
        Some(caller) => caller.allows_all(needed),
        None => !extensions.is_http(),
    };
    if is_allowed { Ok(()) } else { Err(RpcError::insufficient_scope(needed.iter())) }
}

impl Snapshot {
    /// Returns the scopes that the items named by a request declare.
    ///
    /// A request for something unknown needs nothing, and so do params that cannot be read: both get their usual error.
    pub(crate) fn declared_scopes(&self, method: Method, params: &Params) -> Option<Arc<Scopes>> {
        match method {
            Method::CallTool => self.tools.get(&params.name().ok()?)?.scopes.clone(),
            Method::GetPrompt => self.prompts.get(&params.name().ok()?)?.scopes.get().cloned(),
            Method::ReadResource | Method::Subscribe => self.resource_scopes(&params.uri().ok()?),
            Method::Complete => match params.decode::<CompleteParams>().ok()?.reference {
                Reference::Prompt(prompt) => self.prompts.get(&prompt.name)?.scopes.get().cloned(),
                Reference::Resource(template) => self.templates.get(&template.uri)?.scopes.get().cloned(),
            },
            Method::Listen => {
                let listen = params.decode::<SubscriptionsListenParams>().ok()?;
                let uris = listen.notifications.resource_subscriptions.into_iter().flatten();
                // A subscription ignores the rest.
                uris.take(MAX_URIS)
                    .filter_map(|uri| self.resource_scopes(&uri))
                    .fold(None, |all, more| Some(union(all, more)))
            }
            _ => None,
        }
    }

    /// Returns the scopes of the resource with this URI: a fixed one, or else the first matching template.
    ///
    /// A guard may hide an item from the caller, so that the next one answers. Until one has no guard, all count.
    pub(crate) fn resource_scopes(&self, uri: &str) -> Option<Arc<Scopes>> {
        let fixed = self.resources.get(uri);
        let matching = self.templates.as_slice().iter().filter(|template| template.matches(uri).is_some());
        let mut all = None;
        for resource in fixed.into_iter().chain(matching) {
            if let Some(scopes) = resource.scopes.get() {
                all = Some(union(all, Arc::clone(scopes)));
            }
            if resource.guard.is_none() {
                break;
            }
        }
        all
    }
}

#[cfg(feature = "tasks")]
impl crate::tasks::Table {
    /// Returns the scopes that a request about this task needs: those that its tool declares.
    ///
    /// A tool that this server does not have may have declared any of the scopes with which it was called, so all count.
    pub(crate) fn task_scopes(&self, record: &bowline_proto::task::TaskRecord) -> Option<Arc<Scopes>> {
        let tool = self.core().and_then(|core| core.registry.snapshot().tools.get(&record.tool).cloned());
        match tool {
            Some(tool) => tool.scopes.clone(),
            None => record.caller.token.as_ref().map(|token| Arc::new(token.to_caller().scopes().clone())),
        }
    }
}

pub(crate) fn union(all: Option<Arc<Scopes>>, more: Arc<Scopes>) -> Arc<Scopes> {
    match all {
        Some(all) => Arc::new(all.union(&more)),
        None => more,
    }
}

/// Parses the scopes in a text, separated by spaces.
pub(crate) fn required(text: &str) -> Result<Arc<Scopes>, Cow<'static, str>> {
    let mut declared = DeclaredScopes::default();
    declared.add(text.split_ascii_whitespace());
    match declared.check()? {
        Some(scopes) => Ok(scopes),
        None => Err("expected a scope, as in `notes:write`".into()),
    }
}
