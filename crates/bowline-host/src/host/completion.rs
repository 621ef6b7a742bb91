//! The URI that a completion of a template variable leads to.

use bowline_proto::uri::{UriTemplate, Value};
use bowline_types::CompleteParams;

/// A template variable that is being completed.
pub(super) struct TemplateCompletion {
    template: UriTemplate,
    variable: String,
    /// The variables that already have values.
    known: Vec<(String, String)>,
}

impl TemplateCompletion {
    /// Returns `None` if the template is invalid. An invalid template matches no URI.
    pub(super) fn new(template: &str, params: &CompleteParams) -> Option<Self> {
        let template = UriTemplate::parse(template).ok()?;
        let arguments = params.context.as_ref().and_then(|context| context.arguments.as_ref());
        let known = arguments.into_iter().flat_map(|arguments| arguments.iter());
        let known = known.map(|(name, value)| (name.to_owned(), value.clone())).collect();
        Some(Self { template, variable: params.argument.name.clone(), known })
    }

    /// Returns the URI for a value. Variables without a value are left out.
    pub(super) fn uri(&self, value: &str) -> Option<String> {
        let value_of = |name: &str| {
            if name == self.variable {
                return Some(value.to_owned().into());
            }
            let known = self.known.iter().find(|(known, _)| known == name);
            known.map(|(_, value)| Value::from(value))
        };
        self.template.expand(value_of).ok()
    }
}
