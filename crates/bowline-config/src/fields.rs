//! Reads the members of an object with their expected types, and reports mismatches.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::node::{Member, Node, Value};
use super::quantity;
use super::report::{NoticeKind, Origin, Report};
use super::text::{names_a_secret, shown_words};
use bowline_text::nearest;

/// A value and its position.
#[derive(Debug, Clone)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// The members of an object. Keeps track of those that were read.
#[derive(Debug)]
pub(crate) struct Fields<'n> {
    pub(crate) path: String,
    pub(crate) origin: &'n Origin,
    pub(crate) report: &'n Report,
    members: &'n [Member],
    asked: RefCell<BTreeSet<String>>,
}

impl<'n> Fields<'n> {
    /// Returns the members of `node`. Reports an error and returns `None` if it is not an object.
    pub(crate) fn new(node: &'n Node, path: impl Into<String>, report: &'n Report) -> Option<Self> {
        let path = path.into();
        let Some(members) = node.as_object() else {
            if reject_duplicates(node, &path, report) {
                return None;
            }
            report.error_with(
                &node.origin,
                &path,
                format!("expected an object, got {}", node.kind()),
                "write its members in braces or as a section",
            );
            return None;
        };
        Some(Self { path, origin: &node.origin, report, members, asked: RefCell::default() })
    }

    /// Returns the path of a member.
    pub(crate) fn at(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Returns the member with this name. `null` counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&'n Node> {
        self.keep(&[name]);
        let member = self.members.iter().find(|member| member.name == name)?;
        (member.node.value != Value::Null).then_some(&member.node)
    }

    /// Returns the first of these members that is present, for members with several names.
    pub(crate) fn first<'a>(&self, names: &[&'a str]) -> Option<(&'a str, &'n Node)> {
        let found: Vec<_> = names.iter().filter_map(|name| Some((*name, self.get(name)?))).collect();
        found.first().copied()
    }

    /// Marks members as known without reading them.
    pub(crate) fn keep(&self, names: &[&str]) {
        #[cfg(test)]
        requested_keys::note(names.iter().map(|name| self.at(name)));
        self.asked.borrow_mut().extend(names.iter().map(|name| (*name).to_owned()));
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.iter().any(|member| member.name == name && member.node.value != Value::Null)
    }

    /// Returns a member without marking it as known.
    pub(crate) fn peek(&self, name: &str) -> Option<&'n Node> {
        self.members.iter().find(|member| member.name == name).map(|member| &member.node)
    }

    /// Returns the position of a member's name, or of the object if there is none.
    pub(crate) fn name_origin(&self, name: &str) -> &'n Origin {
        self.members.iter().find(|member| member.name == name).map_or(self.origin, |member| &member.origin)
    }

    /// Reports a member with an invalid value.
    pub(crate) fn report_invalid(&self, node: &Node, name: &str, expected: &str, example: &Json) {
        let help = format!("write {}", self.report.example(name, example));
        self.report_invalid_with(node, name, expected, help);
    }

    pub(crate) fn report_invalid_with(
        &self,
        node: &Node,
        name: &str,
        expected: &str,
        help: impl Into<String>,
    ) {
        if reject_duplicates(node, &self.at(name), self.report) {
            return;
        }
        // Errors are logged, and a misplaced value may be a secret.
        let private = ["env", "headers"].iter().any(|map| name.starts_with(map)) || names_a_secret(name);
        let came = match &node.value {
            _ if private => node.kind().to_owned(),
            Value::String(text) if text.chars().count() <= 60 => format!("`{text}`"),
            Value::Number(number) => format!("`{number}`"),
            Value::Bool(value) => format!("`{value}`"),
            _ => node.kind().to_owned(),
        };
        let message = format!("expected {expected}, got {came}");
        self.report.error_with(&node.origin, &self.at(name), message, help);
    }

    pub(crate) fn string(&self, name: &str, example: &str) -> Option<Located<String>> {
        let node = self.get(name)?;
        let Some(text) = node.as_str() else {
            self.report_invalid(node, name, "a string", &json!(example));
            return None;
        };
        Some(Located { value: text.to_owned(), origin: node.origin.clone() })
    }

    pub(crate) fn boolean(&self, name: &str) -> Option<Located<bool>> {
        let node = self.get(name)?;
        let Value::Bool(value) = node.value else {
            let meant = node.as_str() != Some("false");
            self.report_invalid(node, name, "`true` or `false` without quotes", &json!(meant));
            return None;
        };
        Some(Located { value, origin: node.origin.clone() })
    }

    pub(crate) fn count(&self, name: &str, example: u64) -> Option<Located<u64>> {
        let node = self.get(name)?;
        let value = match &node.value {
            Value::Number(number) => number.as_u64(),
            _ => None,
        };
        let Some(value) = value else {
            self.report_invalid(node, name, "a whole number", &json!(example));
            return None;
        };
        Some(Located { value, origin: node.origin.clone() })
    }

    /// Reads a number between 0 and 1.
    pub(crate) fn share(&self, name: &str) -> Option<f64> {
        let node = self.get(name)?;
        let value = match &node.value {
            Value::Number(number) => number.as_f64(),
            _ => None,
        };
        let value = value.filter(|value| (0.0..=1.0).contains(value));
        if value.is_none() {
            self.report_invalid(node, name, "a number between 0 and 1", &json!(0.5));
        }
        value
    }

    /// Reads a duration: text with a unit, or a number in `unit`.
    pub(crate) fn duration(&self, name: &str, unit: Unit) -> Option<Located<Duration>> {
        let node = self.get(name)?;
        let value = match &node.value {
            Value::Number(number) => number.as_f64().and_then(|number| {
                let seconds = match unit {
                    Unit::Seconds => number,
                    Unit::Milliseconds => number / 1000.0,
                };
                Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero())
            }),
            Value::String(text) => quantity::parse_duration(text),
            _ => None,
        };
        let Some(value) = value else {
            let (expected, example) = match unit {
                Unit::Seconds => ("a time such as `30s` or a number of seconds", json!("30s")),
                Unit::Milliseconds => ("a number of milliseconds", json!(30_000)),
            };
            self.report_invalid(node, name, expected, &example);
            return None;
        };
        Some(Located { value, origin: node.origin.clone() })
    }

    pub(crate) fn bytes(&self, name: &str) -> Option<Located<u64>> {
        let node = self.get(name)?;
        let value = match &node.value {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => quantity::bytes(text),
            _ => None,
        };
        let Some(value) = value else {
            self.report_invalid(node, name, "a size such as `512MiB` or a number of bytes", &json!("512MiB"));
            return None;
        };
        Some(Located { value, origin: node.origin.clone() })
    }

    /// Reads one of several words.
    pub(crate) fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Option<Located<T>> {
        self.choice_among(name, choices, choices.len())
    }

    /// Reads one of several words. Error messages suggest only the first `proposed` of them.
    pub(crate) fn choice_among<T: Copy>(
        &self,
        name: &str,
        choices: &[(&str, T)],
        proposed: usize,
    ) -> Option<Located<T>> {
        let node = self.get(name)?;
        let text = node.as_str();
        if let Some((_, value)) = choices.iter().find(|(word, _)| Some(*word) == text) {
            return Some(Located { value: *value, origin: node.origin.clone() });
        }
        let words: Vec<&str> = choices.iter().take(proposed).map(|(word, _)| *word).collect();
        let meant = text.and_then(|text| nearest(text, words.iter().copied()));
        let meant = meant.or_else(|| words.first().copied()).unwrap_or_default();
        self.report_invalid(node, name, &format!("one of `{}`", words.join("`, `")), &json!(meant));
        None
    }

    /// Reads a list of strings.
    pub(crate) fn strings(&self, name: &str, example: &Json) -> Option<Vec<Located<String>>> {
        let node = self.get(name)?;
        let Some(items) = node.as_array() else {
            // The most common mistake is a list written as one string; the message shows the corrected list.
            let example = match node.as_str() {
                Some(text) => json!(shown_words(text.split_whitespace())),
                None => example.clone(),
            };
            if !reject_duplicates(node, &self.at(name), self.report) {
                let message = format!("expected an array of strings, got {}", node.kind());
                let help = format!("write {}", self.report.example(name, &example));
                self.report.error_with(&node.origin, &self.at(name), message, help);
            }
            return None;
        };
        let mut strings = Vec::with_capacity(items.len());
        let mut whole = true;
        for (index, item) in items.iter().enumerate() {
            if let Some(text) = item.as_str() {
                strings.push(Located { value: text.to_owned(), origin: item.origin.clone() });
                continue;
            }
            whole = false;
            let help = match &item.value {
                Value::Number(_) | Value::Bool(_) => format!("write `\"{}\"`", item.to_json()),
                _ => "write each element in quotes".to_owned(),
            };
            self.report_invalid_with(item, &format!("{name}[{index}]"), "a string", help);
        }
        whole.then_some(strings)
    }

    /// Reads a map to strings. Numbers and booleans are converted, and `null` means absent where it is allowed.
    pub(crate) fn map(&self, name: &str, null: Null) -> Option<BTreeMap<String, Located<Option<String>>>> {
        let node = self.get(name)?;
        let Some(members) = node.as_object() else {
            self.report_invalid(
                node,
                name,
                "an object with a string for each name",
                &json!({ "NAME": "value" }),
            );
            return None;
        };
        let mut map = BTreeMap::new();
        let mut whole = true;
        for member in members {
            let value = match &member.node.value {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                Value::Bool(value) => Some(value.to_string()),
                Value::Null if null == Null::Unsets => None,
                Value::Null | Value::Array(_) | Value::Object(_) | Value::Twice(_) => {
                    whole = false;
                    let help = format!("write {}", self.report.example(&member.name, &json!("value")));
                    self.report_invalid_with(
                        &member.node,
                        &format!("{name}.{}", member.name),
                        "a string",
                        help,
                    );
                    continue;
                }
            };
            map.insert(member.name.clone(), Located { value, origin: member.node.origin.clone() });
        }
        whole.then_some(map)
    }

    /// Reports unknown members as errors, where ignoring them would change the meaning of the rest.
    pub(crate) fn reject_unknown(&self) {
        let asked = self.asked.borrow();
        for member in self.members.iter().filter(|member| !asked.contains(&member.name)) {
            let free = asked.iter().map(String::as_str).filter(|name| !self.has(name));
            let help = match nearest(&member.name, free) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "remove it".to_owned(),
            };
            let known: Vec<&str> = asked.iter().map(String::as_str).collect();
            let message = format!("expected one of `{}`, got `{}`", known.join("`, `"), member.name);
            self.report.error_with(&member.origin, &self.at(&member.name), message, help);
        }
    }

    /// Reports unknown members as errors if they are probably a typo of one of `names`: the intended setting protects
    /// the user.
    pub(crate) fn reject_typos(&self, names: &[&str]) {
        let mut asked = self.asked.borrow_mut();
        for member in self.members {
            if asked.contains(&member.name) {
                continue;
            }
            if let Some(near) = nearest(&member.name, names.iter().copied()) {
                let message = format!("expected `{near}`, got `{}`", member.name);
                let help = format!("write `{near}`, or remove it");
                self.report.error_with(&member.origin, &self.at(near), message, help);
                asked.insert(member.name.clone());
            }
        }
    }

    /// Returns the unknown members, and reports each unknown name once per file.
    pub(crate) fn finish(&self) -> Map<String, Json> {
        let asked = self.asked.borrow();
        let mut unknown = Map::new();
        for member in self.members.iter().filter(|member| !asked.contains(&member.name)) {
            unknown.insert(member.name.clone(), member.node.to_json());
            // Members with these prefixes are meant for tools: schemas, comments, extensions.
            if member.name.starts_with(['$', '_']) || member.name.starts_with("x-") {
                continue;
            }
            if !self.report.first(&format!("unknown {}", member.name)) {
                continue;
            }
            let free = asked.iter().map(String::as_str).filter(|name| !self.has(name));
            let message = match nearest(&member.name, free) {
                Some(near) => format!("unknown key, ignored; did you mean `{near}`?"),
                None => "unknown key, ignored".to_owned(),
            };
            self.report.notice(&member.origin, &self.at(&member.name), NoticeKind::Unknown, message);
        }
        unknown
    }

    /// Returns the raw JSON of members that are known but have no effect.
    pub(crate) fn raw(&self, names: &[&str]) -> Map<String, Json> {
        self.keep(names);
        names
            .iter()
            .filter_map(|name| {
                let member = self.members.iter().find(|member| member.name == *name)?;
                Some((member.name.clone(), member.node.to_json()))
            })
            .collect()
    }
}

/// Reports a duplicate name, if this value is one.
fn reject_duplicates(node: &Node, path: &str, report: &Report) -> bool {
    let Value::Twice(line) = node.value else { return false };
    let message = format!("duplicate key, first defined at line {line}");
    report.error_with(&node.origin, path, message, "keep one of them");
    true
}

/// The unit of a number without a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Milliseconds,
}

/// The meaning of `null` in a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Null {
    IsWrong,
    Unsets,
}

/// Records the members that were read, so that a test can compare them with the table of keys.
#[cfg(test)]
pub(crate) mod requested_keys {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    thread_local! {
        static REQUESTED: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
    }

    /// Records paths, without indexes of elements.
    pub(super) fn note(paths: impl Iterator<Item = String>) {
        let plain = paths.map(|path| path.split(['[', ']']).step_by(2).collect());
        REQUESTED.with_borrow_mut(|asked| asked.extend(plain));
    }

    pub(crate) fn forget() {
        REQUESTED.take();
    }

    pub(crate) fn all() -> BTreeSet<String> {
        REQUESTED.take()
    }
}
