//! Parses YAML as JSON: one document, with anchors, by the core schema of YAML 1.2.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};
use std::collections::HashMap;

const MAX_DEPTH: usize = 128;
/// The maximum number of values after expanding aliases. A few short lines could expand to billions.
const MAX_VALUES: usize = 1_000_000;

/// An open collection.
enum Open {
    Sequence(Vec<Value>, usize),
    Mapping(Map<String, Value>, Option<String>, usize),
}

/// Parses one document. Errors contain the line.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut builder = Builder { stack: Vec::new(), anchors: HashMap::new(), left: MAX_VALUES, root: None };
    for event in Parser::new_from_str(text) {
        let (event, span) =
            event.map_err(|error| format!("line {}: {}", error.marker().line(), error.info()))?;
        builder.event(event).map_err(|reason| format!("line {}: {reason}", span.start.line()))?;
    }
    builder.root.ok_or_else(|| "the file is empty".into())
}

struct Builder {
    stack: Vec<Open>,
    /// The anchors, with the number of values in each.
    anchors: HashMap<usize, Value>,
    left: usize,
    root: Option<Value>,
}

impl Builder {
    fn event(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::DocumentStart(_) if self.root.is_some() => Err("expected a single document".into()),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
            Event::Scalar(text, style, anchor, _) => {
                let value =
                    if style == ScalarStyle::Plain { plain(&text) } else { Value::String(text.into_owned()) };
                self.place(value, anchor)
            }
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor).cloned();
                let value = known.ok_or("alias of an undefined or incomplete anchor")?;
                if self.stack.len() + self.spend(&value)? > MAX_DEPTH {
                    return Err(too_deep());
                }
                self.place(value, 0)
            }
            Event::SequenceStart(anchor, _) => self.open(Open::Sequence(Vec::new(), anchor)),
            Event::MappingStart(anchor, _) => self.open(Open::Mapping(Map::new(), None, anchor)),
            Event::SequenceEnd | Event::MappingEnd => match self.stack.pop() {
                Some(Open::Sequence(items, anchor)) => self.place(Value::Array(items), anchor),
                Some(Open::Mapping(members, _, anchor)) => self.place(Value::Object(members), anchor),
                None => Ok(()),
            },
        }
    }

    fn open(&mut self, open: Open) -> Result<(), String> {
        if self.stack.len() >= MAX_DEPTH {
            return Err(too_deep());
        }
        self.stack.push(open);
        Ok(())
    }

    /// Counts the values of an alias, and returns its depth.
    fn spend(&mut self, value: &Value) -> Result<usize, String> {
        self.left = self.left.checked_sub(1).ok_or_else(too_many)?;
        let mut below = 0;
        match value {
            Value::Array(items) => {
                for item in items {
                    below = below.max(self.spend(item)?);
                }
            }
            Value::Object(members) => {
                for member in members.values() {
                    below = below.max(self.spend(member)?);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(0),
        }
        Ok(below + 1)
    }

    /// Adds a finished value to the open collection.
    fn place(&mut self, value: Value, anchor: usize) -> Result<(), String> {
        self.left = self.left.checked_sub(1).ok_or_else(too_many)?;
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        match self.stack.last_mut() {
            None => self.root = Some(value),
            Some(Open::Sequence(items, _)) => items.push(value),
            Some(Open::Mapping(members, name, _)) => match name.take() {
                Some(name) => drop(members.insert(name, value)),
                None => {
                    *name = Some(match value {
                        Value::Null => String::new(),
                        Value::String(text) => text,
                        Value::Bool(_) | Value::Number(_) => value.to_string(),
                        Value::Array(_) | Value::Object(_) => {
                            return Err("expected a scalar key, got a collection".into());
                        }
                    });
                }
            },
        }
        Ok(())
    }
}

fn too_deep() -> String {
    format!("more than {MAX_DEPTH} levels of nesting")
}

fn too_many() -> String {
    format!("more than {MAX_VALUES} values with aliases expanded")
}

/// Converts a plain scalar.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let looks_like_a_number =
        text.trim_start_matches(['-', '+', '.']).starts_with(|first: char| first.is_ascii_digit());
    if looks_like_a_number {
        if let Ok(integer) = text.parse::<i64>() {
            return integer.into();
        }
        if let Some(number) = text.parse::<f64>().ok().and_then(Number::from_f64) {
            return Value::Number(number);
        }
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn yaml_is_converted_to_json() {
        let text = "openapi: 3.1.0\nn: [1, -2.50, 1e3, '5', true, ~]\n200: {a: &x {b: c}}\nd: *x\ne: |\n  two\n  lines\n";
        let expected = json!({
            "openapi": "3.1.0", "n": [1, -2.5, 1000.0, "5", true, null], "200": { "a": { "b": "c" } },
            "d": { "b": "c" }, "e": "two\nlines\n",
        });
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn hostile_documents_are_rejected() {
        let mut bomb = String::from("a0: &a0 [x, x]\n");
        for level in 1..60 {
            let below = level - 1;
            bomb = format!("{bomb}a{level}: &a{level} [*a{below}, *a{below}]\n");
        }
        assert!(parse(&bomb).unwrap_err().contains("aliases expanded"));
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert!(parse(&format!("{}x", "- ".repeat(MAX_DEPTH + 1))).unwrap_err().contains("nesting"));
        assert!(parse(&format!("{}x", "- ".repeat(MAX_DEPTH))).is_ok());
        for text in ["", "a: b: c", "- a\nb", "---\na\n---\nb", "? [a]\n: b", "*none"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
