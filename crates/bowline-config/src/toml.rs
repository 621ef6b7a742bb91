//! Parses TOML into nodes.

use std::path::Path;
use std::sync::Arc;

use serde_json::Number;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::node::{Lines, Member, Node, Value};
use super::report::Report;

pub(crate) fn parse(file: &Arc<Path>, text: &str, report: &Report) -> Option<Node> {
    let lines = Lines::new(file, text);
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let offset = error.span().map_or(0, |span| span.start);
        report.error(&lines.origin(offset), "", error.message().trim().replace('\n', ", "));
    }
    if !errors.is_empty() {
        return None;
    }
    Some(Node { origin: lines.origin(0), value: object(table.into_inner(), &lines, report)? })
}

fn convert(value: Spanned<DeValue<'_>>, lines: &Lines<'_>, report: &Report) -> Option<Node> {
    let origin = lines.origin(value.span().start);
    let value = match value.into_inner() {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Boolean(value) => Value::Bool(value),
        DeValue::Datetime(date) => Value::String(date.to_string()),
        DeValue::Integer(integer) => {
            let Ok(number) = i64::from_str_radix(integer.as_str(), integer.radix()) else {
                report.error(&origin, "", format!("expected a 64-bit integer, got `{integer}`"));
                return None;
            };
            Value::Number(number.into())
        }
        DeValue::Float(float) => {
            let Some(number) = float.as_str().parse().ok().and_then(Number::from_f64) else {
                report.error(&origin, "", format!("expected a finite number, got `{}`", float.as_str()));
                return None;
            };
            Value::Number(number)
        }
        DeValue::Array(array) => {
            Value::Array(array.into_iter().map(|item| convert(item, lines, report)).collect::<Option<_>>()?)
        }
        DeValue::Table(table) => object(table, lines, report)?,
    };
    Some(Node { value, origin })
}

fn object(table: DeTable<'_>, lines: &Lines<'_>, report: &Report) -> Option<Value> {
    let mut entries: Vec<_> = table.into_iter().collect();
    // The parser sorts by name; messages and rules use the order of the file.
    entries.sort_by_key(|(name, _)| name.span().start);
    let members = entries.into_iter().map(|(name, value)| {
        let origin = lines.origin(name.span().start);
        let node = convert(value, lines, report)?;
        Some(Member { name: name.into_inner().into_owned(), origin, node })
    });
    Some(Value::Object(members.collect::<Option<_>>()?))
}
