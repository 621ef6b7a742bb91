//! Parses the JSON-like part of YAML, with anchors, into nodes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::Number;

use super::node::{MAX_DEPTH, Member, Members, Node, Value, at};
use super::report::{Origin, Report};

/// The maximum number of values after aliases are expanded. A few short lines could otherwise produce billions.
const MAX_VALUES: usize = 100_000;

/// An unfinished collection.
#[derive(Debug)]
enum Open {
    Sequence(Vec<Node>, Origin, usize),
    Mapping(Members, Option<(String, Origin)>, Origin, usize),
}

pub(crate) fn parse(file: &Arc<Path>, text: &str, report: &Report) -> Option<Node> {
    let mut builder =
        Builder { file, report, stack: Vec::new(), anchors: HashMap::new(), values: 0, root: None };
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => builder.event(event, span)?,
            Err(error) => {
                let marker = error.marker();
                let origin = at(file, marker.line(), marker.col() + 1);
                report.error_with(
                    &origin,
                    "",
                    format!("expected YAML: {}", error.info()),
                    "check the indentation and quote text that contains `: ` or `#`",
                );
                return None;
            }
        }
    }
    builder.root.or_else(|| {
        report.error_with(
            &at(file, 1, 1),
            "",
            "expected a YAML mapping, got an empty file",
            "write `extensions: {}`",
        );
        None
    })
}

#[derive(Debug)]
struct Builder<'a> {
    file: &'a Arc<Path>,
    report: &'a Report,
    stack: Vec<Open>,
    anchors: HashMap<usize, Node>,
    values: usize,
    root: Option<Node>,
}

impl Builder<'_> {
    fn event(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        let origin = at(self.file, span.start.line(), span.start.col() + 1);
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                self.report.error_with(
                    &origin,
                    "",
                    "the file contains more than one document",
                    "remove the second `---` and everything after it",
                );
                None
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Some(()),
            Event::Scalar(text, style, anchor, _) => {
                let value = match style {
                    ScalarStyle::Plain => plain(&text),
                    _ => Value::String(text.into_owned()),
                };
                self.place(Node { value, origin }, anchor)
            }
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor).cloned() else {
                    self.report.error(&origin, "", "alias of an undefined or incomplete anchor");
                    return None;
                };
                self.values += count(&node);
                if self.stack.len() + depth(&node) > MAX_DEPTH {
                    self.report.error(&origin, "", format!("expected at most {MAX_DEPTH} levels of nesting"));
                    return None;
                }
                self.place(Node { origin, ..node }, 0)
            }
            Event::SequenceStart(anchor, _) => self.open(Open::Sequence(Vec::new(), origin, anchor)),
            Event::MappingStart(anchor, _) => {
                self.open(Open::Mapping(Members::default(), None, origin, anchor))
            }
            Event::SequenceEnd | Event::MappingEnd => match self.stack.pop() {
                Some(Open::Sequence(items, origin, anchor)) => {
                    self.place(Node { value: Value::Array(items), origin }, anchor)
                }
                Some(Open::Mapping(members, _, origin, anchor)) => {
                    self.place(Node { value: members.into_value(), origin }, anchor)
                }
                None => Some(()),
            },
        }
    }

    fn open(&mut self, open: Open) -> Option<()> {
        if self.stack.len() >= MAX_DEPTH {
            let (Open::Sequence(_, origin, _) | Open::Mapping(_, _, origin, _)) = &open;
            self.report.error(origin, "", format!("expected at most {MAX_DEPTH} levels of nesting"));
            return None;
        }
        self.stack.push(open);
        Some(())
    }

    /// Adds a finished value to its collection.
    fn place(&mut self, node: Node, anchor: usize) -> Option<()> {
        self.values += 1;
        if self.values > MAX_VALUES {
            self.report.error(
                &node.origin,
                "",
                format!("more than {MAX_VALUES} values with aliases expanded"),
            );
            return None;
        }
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.stack.last_mut() {
            None => self.root = Some(node),
            Some(Open::Sequence(items, ..)) => items.push(node),
            Some(Open::Mapping(members, name, ..)) => {
                if let Some((name, origin)) = name.take() {
                    members.push(Member { name, origin, node });
                } else if let Some(text) = scalar_text(&node) {
                    *name = Some((text, node.origin));
                } else {
                    self.report.error(&node.origin, "", format!("expected a name, got {}", node.kind()));
                    return None;
                }
            }
        }
        Some(())
    }
}

fn count(node: &Node) -> usize {
    match &node.value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(members) => 1 + members.iter().map(|member| count(&member.node)).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Twice(_) => 1,
    }
}

fn depth(node: &Node) -> usize {
    let below = match &node.value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(members) => members.iter().map(|member| depth(&member.node)).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Twice(_) => return 0,
    };
    1 + below.unwrap_or(0)
}

fn scalar_text(node: &Node) -> Option<String> {
    match &node.value {
        Value::Null => Some(String::new()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) | Value::Twice(_) => None,
    }
}

/// Parses an unquoted scalar with the core schema of YAML 1.2.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let starts_like_a_number =
        text.trim_start_matches(['-', '+', '.']).starts_with(|c: char| c.is_ascii_digit());
    // A leading zero indicates an identifier or a file mode, not a number.
    let digits = text.trim_start_matches(['-', '+']);
    let padded = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    if starts_like_a_number && !padded {
        if let Ok(integer) = text.parse::<i64>() {
            return Value::Number(integer.into());
        }
        // `3.10` is more often a version than a number, so a number must be in its canonical form.
        let number = text.parse::<f64>().ok().and_then(Number::from_f64);
        if let Some(number) = number.filter(|number| number.to_string() == text) {
            return Value::Number(number);
        }
    }
    Value::String(text.to_owned())
}
