//! Resolves the inputs of a `server.json`: fixed values, `{curly}` variables, and user input.

use super::environment::Input;
use super::expand::{Expander, Strictness};
use super::fields::{Fields, Located};
use super::node::{Node, Value};
use super::report::Origin;
use super::text::{Text, mask_url};

/// Returns the current or the older name of a member, whichever is present.
pub(crate) fn either<'a>(fields: &Fields<'_>, present: &'a str, older: &'a str) -> &'a str {
    fields.keep(&[present, older]);
    if fields.has(older) && !fields.has(present) { older } else { present }
}

/// Returns whether an input is a boolean.
pub(crate) fn is_boolean(item: &Fields<'_>) -> bool {
    item.get("format").and_then(Node::as_str) == Some("boolean")
}

/// The value of an input.
#[derive(Debug)]
pub(crate) enum Answer {
    Given(Text),
    /// It is optional and has no value.
    Absent,
    /// It is required and has no value; this was reported.
    Failed,
}

/// The source of a value if the user stored none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fallback {
    /// The environment variable with the same name. Only for inputs that are environment variables themselves.
    Variable,
    Nothing,
}

/// Resolves the inputs of one file.
#[derive(Debug)]
pub(crate) struct Inputs<'a> {
    pub(crate) expander: &'a Expander<'a>,
    pub(crate) server: Option<&'a str>,
    pub(crate) fallback: Fallback,
}

impl Inputs<'_> {
    /// Returns the value of an argument, a header or an environment variable.
    pub(crate) fn answer(&self, item: &Fields<'_>, id: &str, origin: &Origin) -> Answer {
        item.keep(&["placeholder", "format", "variables"]);
        let input = self.describe(item, id);
        let required =
            item.boolean(either(item, "isRequired", "is_required")).is_some_and(|value| value.value);
        if let Some(value) = item.string("value", "…") {
            return match self.fill(item, "value", &value) {
                Some(text) => Answer::Given(text),
                None => Answer::Failed,
            };
        }
        if item.has("value") {
            return Answer::Failed;
        }
        self.resolve(&input, required, origin, &item.path)
    }

    /// Replaces the `{curly}` variables that `variables` declares. Others stay unchanged.
    pub(crate) fn fill(&self, item: &Fields<'_>, name: &str, text: &Located<String>) -> Option<Text> {
        let variables = item.get("variables");
        let (mut value, mut shown, mut secret, mut whole) = (String::new(), String::new(), false, true);
        let mut rest = text.value.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            value.push_str(before);
            shown.push_str(before);
            let found = after.split_once('}').and_then(|(id, tail)| Some((id, tail, variables?.get(id)?)));
            let Some((id, tail, node)) = found else {
                value.push('{');
                shown.push('{');
                rest = after;
                continue;
            };
            rest = tail;
            let path = item.at(&format!("variables.{id}"));
            let Some(variable) = Fields::new(node, path, item.report) else {
                whole = false;
                continue;
            };
            match self.answer(&variable, id, &node.origin) {
                Answer::Given(text) => {
                    secret |= text.is_secret();
                    value.push_str(text.expose());
                    shown.push_str(text.shown());
                }
                Answer::Absent => {}
                Answer::Failed => whole = false,
            }
            variable.keep(&["name", "type"]);
            variable.finish();
        }
        value.push_str(rest);
        shown.push_str(rest);
        if value.contains('\0') {
            item.report.error(&text.origin, &item.at(name), "expected text, got a NUL character");
            return None;
        }
        let masked = mask_url(&shown);
        secret |= masked.is_some();
        let shown = masked.unwrap_or(shown);
        whole.then(|| {
            if secret {
                Text::secret(value, shown, text.origin.clone())
            } else {
                Text::open(value, text.origin.clone())
            }
        })
    }

    fn describe(&self, item: &Fields<'_>, id: &str) -> Input {
        let choices = item.get("choices").and_then(Node::as_array).unwrap_or_default();
        Input {
            id: id.to_owned(),
            file: Some(item.origin.file.to_path_buf()),
            server: self.server.map(str::to_owned),
            description: item.string("description", "What to enter").map(|text| text.value),
            password: item.boolean(either(item, "isSecret", "is_secret")).is_some_and(|value| value.value),
            default: item.get("default").and_then(|node| match &node.value {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                Value::Bool(value) => Some(value.to_string()),
                Value::Null | Value::Array(_) | Value::Object(_) | Value::Twice(_) => None,
            }),
            choices: choices.iter().filter_map(Node::as_str).map(str::to_owned).collect(),
        }
    }

    /// Returns the stored value, or else the variable with this name, or else the default.
    fn resolve(&self, input: &Input, required: bool, origin: &Origin, path: &str) -> Answer {
        let environment = self.expander.environment;
        let report = self.expander.report;
        let named = || {
            if self.fallback == Fallback::Nothing {
                return None;
            }
            let value = environment.variable(&input.id)?;
            self.expander.used.borrow_mut().insert(input.id.clone());
            Some(value.to_owned())
        };
        if let Some(value) = environment.input(input).or_else(named) {
            if !input.choices.is_empty() && !input.choices.contains(&value) {
                report.error_with(
                    origin,
                    path,
                    format!("the value of `{}` is not one of its choices", input.id),
                    format!("choose one of `{}`", input.choices.join("`, `")),
                );
                return Answer::Failed;
            }
            return Answer::Given(Text::secret(value, format!("{{{}}}", input.id), origin.clone()));
        }
        if let Some(default) = &input.default {
            return Answer::Given(if input.password {
                Text::secret(default, "***", origin.clone())
            } else {
                Text::open(default, origin.clone())
            });
        }
        if !required || self.expander.strictness == Strictness::Lenient {
            return Answer::Absent;
        }
        let what = input.description.as_deref().map(|text| format!(" ({text})")).unwrap_or_default();
        report.error_with(
            origin,
            path,
            format!("`{}`{what} is required and has no value", input.id),
            match self.fallback {
                Fallback::Variable => format!("set the variable `{}`, or store the value", input.id),
                Fallback::Nothing => format!("store a value for `{}`", input.id),
            },
        );
        Answer::Failed
    }
}
