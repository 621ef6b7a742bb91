//! Forms in a terminal: asks field by field, validates, and shows the result before it is sent.

use bowline_client::check_field;
use bowline_types::{ElicitSchema, NumberKind, PrimitiveSchema, RawJson, RawMap, StringFormat, StringSchema};
use serde_json::Value;
use std::io;
use tokio::io::{AsyncBufRead, AsyncWrite};

use super::console::Console;
use super::show::Shown;
use crate::gate::{Edit, Verdict};
use bowline_text::visible;

/// The meaning of an entered line.
enum Entered {
    Value(Value),
    Skipped,
    Declined,
    Cancelled,
}

pub(super) async fn ask<R, W>(
    console: &mut Console<R, W>,
    server: &str,
    message: &str,
    schema: &ElicitSchema,
) -> io::Result<Verdict>
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let mut shown = Shown::default();
    shown.head(server, "The server asks you to fill in a form.");
    shown.block(message);
    shown.line("  (Enter: default or skip; \"\": empty text; :decline: decline; :cancel: cancel)");
    console.show(&shown).await?;
    loop {
        let content = match fill(console, schema).await? {
            Ok(content) => content,
            Err(verdict) => return Ok(verdict),
        };
        let mut shown = Shown::default();
        shown.line("");
        shown.line(&format!("  This is what `{}` will get:", visible(server)));
        if content.is_empty() {
            shown.line("  | (nothing)");
        }
        for (name, value) in &content {
            shown.block(&format!("{}: {value}", visible(name)));
        }
        shown.line("[s] send  [e] fill in again  [n] no  [c] cancel");
        console.show(&shown).await?;
        loop {
            match console.prompt().await?.to_ascii_lowercase().as_str() {
                "s" => return Ok(Verdict::edited(Edit::Form(content))),
                "e" => break,
                "n" => return Ok(Verdict::decline()),
                "c" => return Ok(Verdict::Cancel),
                _ => console.show_error("expected one of the letters above").await?,
            }
        }
    }
}

async fn fill<R, W>(console: &mut Console<R, W>, schema: &ElicitSchema) -> io::Result<Result<RawMap, Verdict>>
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let mut content = RawMap::new();
    let count = schema.properties.len();
    for (place, (name, field)) in schema.properties.iter().enumerate() {
        let required = schema.required.iter().any(|required| required == name);
        console.show(&describe(place + 1, count, name, field, required)).await?;
        loop {
            let line = console.prompt().await?;
            match read(&line, field, required) {
                Ok(Entered::Value(value)) => {
                    content.insert(name, RawJson::from(value));
                    break;
                }
                Ok(Entered::Skipped) => break,
                Ok(Entered::Declined) => return Ok(Err(Verdict::decline())),
                Ok(Entered::Cancelled) => return Ok(Err(Verdict::Cancel)),
                Err(reason) => console.show_error(&reason).await?,
            }
        }
    }
    Ok(Ok(content))
}

/// Describes a field.
fn describe(place: usize, count: usize, name: &str, field: &PrimitiveSchema, required: bool) -> Shown {
    let (title, description) = match field {
        PrimitiveSchema::String(schema) => (&schema.title, &schema.description),
        PrimitiveSchema::Number(schema) => (&schema.title, &schema.description),
        PrimitiveSchema::Boolean(schema) => (&schema.title, &schema.description),
        PrimitiveSchema::Enum(schema) => (&schema.title, &schema.description),
        PrimitiveSchema::MultiSelect(schema) => (&schema.title, &schema.description),
        _ => (&None, &None),
    };
    let mut shown = Shown::default();
    shown.line("");
    let title = title.as_ref().map_or_else(String::new, |title| format!(" ({})", visible(title)));
    let need = if required { "required" } else { "may be left out" };
    shown.line(&format!("  {place}/{count} {}{title}: {}, {need}", visible(name), kind(field)));
    if let Some(description) = description {
        shown.block(description);
    }
    for (number, (value, title)) in choices(field).iter().enumerate() {
        let title = if value == title { String::new() } else { format!(" = {}", visible(title)) };
        shown.line(&format!("  | {}) {}{title}", number + 1, visible(value)));
    }
    if let Some(default) = field.default_value() {
        shown.block(&format!("default: {default}"));
    }
    shown
}

fn choices(field: &PrimitiveSchema) -> Vec<(&str, &str)> {
    match field {
        PrimitiveSchema::Enum(schema) => schema.choices(),
        PrimitiveSchema::MultiSelect(schema) => schema.choices(),
        _ => Vec::new(),
    }
}

fn kind(field: &PrimitiveSchema) -> String {
    match field {
        PrimitiveSchema::String(schema) => text_kind(schema),
        PrimitiveSchema::Number(schema) => {
            let kind = if schema.kind == NumberKind::Integer { "whole number" } else { "number" };
            kind.to_owned() + &range(schema.minimum.as_ref(), schema.maximum.as_ref(), "")
        }
        PrimitiveSchema::Boolean(_) => "yes or no".to_owned(),
        PrimitiveSchema::Enum(_) => "one of these".to_owned(),
        PrimitiveSchema::MultiSelect(schema) => {
            let range = range(schema.min_items.as_ref(), schema.max_items.as_ref(), "");
            format!("any of these, separated by commas{range}")
        }
        _ => "text or JSON".to_owned(),
    }
}

fn text_kind(schema: &StringSchema) -> String {
    let kind = match &schema.format {
        Some(StringFormat::Email) => "email address",
        Some(StringFormat::Uri) => "URI",
        Some(StringFormat::Date) => "date (YYYY-MM-DD)",
        Some(StringFormat::DateTime) => "date and time (RFC 3339)",
        Some(_) | None => "text",
    };
    let pattern = schema.pattern.as_ref();
    let pattern = pattern.map_or_else(String::new, |pattern| format!(", matching {}", visible(pattern)));
    kind.to_owned() + &range(schema.min_length.as_ref(), schema.max_length.as_ref(), " characters") + &pattern
}

fn range<N: ToString>(least: Option<&N>, most: Option<&N>, unit: &str) -> String {
    match (least.map(ToString::to_string), most.map(ToString::to_string)) {
        (Some(least), Some(most)) => format!(", {least} to {most}{unit}"),
        (Some(least), None) => format!(", at least {least}{unit}"),
        (None, Some(most)) => format!(", at most {most}{unit}"),
        (None, None) => String::new(),
    }
}

fn read(line: &str, field: &PrimitiveSchema, required: bool) -> Result<Entered, String> {
    let line = match line {
        ":decline" => return Ok(Entered::Declined),
        ":cancel" => return Ok(Entered::Cancelled),
        "" => {
            let Some(default) = field.default_value() else {
                return if required {
                    Err("this field is required".to_owned())
                } else {
                    Ok(Entered::Skipped)
                };
            };
            let default = default.to_value().map_err(|error| error.to_string())?;
            check_field(field, &default).map_err(|error| format!("the default value is invalid: {error}"))?;
            return Ok(Entered::Value(default));
        }
        // A value that starts with a colon is entered with two.
        escaped if escaped.starts_with("::") => escaped.strip_prefix(':').unwrap_or(escaped),
        command if command.starts_with(':') => {
            return Err(
                "expected :decline or :cancel; start text that begins with a colon with `::`".to_owned()
            );
        }
        line => line,
    };
    let value = match field {
        PrimitiveSchema::String(_) => {
            Value::String(if line == "\"\"" { String::new() } else { line.to_owned() })
        }
        PrimitiveSchema::Number(_) => match serde_json::from_str(line) {
            Ok(Value::Number(number)) => Value::Number(number),
            _ => return Err("expected a number".to_owned()),
        },
        PrimitiveSchema::Boolean(_) => match line.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Value::Bool(true),
            "n" | "no" | "false" => Value::Bool(false),
            _ => return Err("expected yes or no".to_owned()),
        },
        PrimitiveSchema::Enum(schema) => Value::String(choose(line, &schema.choices())),
        PrimitiveSchema::MultiSelect(schema) => {
            let choices = schema.choices();
            let parts = line.split(',').map(str::trim).filter(|part| !part.is_empty() && *part != "\"\"");
            Value::Array(parts.map(|part| Value::String(choose(part, &choices))).collect())
        }
        _ => serde_json::from_str(line).unwrap_or_else(|_| Value::String(line.to_owned())),
    };
    check_field(field, &value)?;
    Ok(Entered::Value(value))
}

/// Returns the choice with this number, value or title. A value that is a number takes precedence over an index.
fn choose(line: &str, choices: &[(&str, &str)]) -> String {
    let by_name = choices
        .iter()
        .find(|(value, _)| *value == line)
        .or_else(|| choices.iter().find(|(_, title)| *title == line));
    let by_number = || line.parse::<usize>().ok()?.checked_sub(1).and_then(|place| choices.get(place));
    by_name.or_else(by_number).map_or(line, |(value, _)| value).to_owned()
}
