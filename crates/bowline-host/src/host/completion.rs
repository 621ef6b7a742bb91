//! Proposals for the variables of a resource template: none that leads to a resource that a rule denies.

use super::{Inner, journey::Route};
use bowline_proto::{
    service::ClientView,
    uri::{UriTemplate, Value},
};
use bowline_types::{CompleteParams, CompleteResult};

/// A variable of a template that is being completed.
pub(super) struct TemplateCompletion {
    template: UriTemplate,
    variable: String,
    /// The variables that have their values.
    known: Vec<(String, String)>,
}

impl TemplateCompletion {
    /// What `params` complete in a template; `None` if it is not a valid template, which covers no URI.
    pub(super) fn new(template: &str, params: &CompleteParams) -> Option<Self> {
        let template = UriTemplate::parse(template).ok()?;
        let arguments = params.context.as_ref().and_then(|context| context.arguments.as_ref());
        let known = arguments.into_iter().flat_map(|arguments| arguments.iter());
        let known = known.map(|(name, value)| (name.to_owned(), value.clone())).collect();
        Some(Self { template, variable: params.argument.name.clone(), known })
    }

    /// The URI that a value leads to. Variables without a value are left out.
    fn uri(&self, value: &str) -> Option<String> {
        let of = |name: &str| {
            if name == self.variable {
                return Some(value.to_owned().into());
            }
            let known = self.known.iter().find(|(known, _)| known == name);
            known.map(|(_, value)| Value::from(value))
        };
        self.template.expand(of).ok()
    }
}

impl Inner {
    /// Removes proposals that lead to resources that the caller may not read.
    pub(super) fn remove_denied(&self, route: &Route, client: &ClientView, result: &mut CompleteResult) {
        let Some(completion) = &route.completion else { return };
        let facts = self.facts(&route.instance, client);
        let spec = &route.instance.spec;
        let is_denied = |value: &String| {
            completion
                .uri(value)
                .is_none_or(|uri| !spec.hides_no(&uri) || self.guard.denied_reading(&facts, &uri).is_some())
        };
        let before = result.completion.values.len();
        result.completion.values.retain(|value| !is_denied(value));
        if result.completion.values.len() < before {
            // The number of all would tell how many are hidden.
            result.completion.total = None;
        }
    }
}
