//! Generates `web/api.d.ts` from the types of the API, so that the page and the program cannot drift.

use crate::{action, events, form, inbox, query, render};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// The types that the page sends or receives. Types that they contain are found by themselves.
fn schemas() -> Map<String, Value> {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    let mut generator = SchemaGenerator::new(settings);
    macro_rules! add {
        ($($type:ty),* $(,)?) => { $(generator.subschema_for::<$type>();)* };
    }
    add!(
        query::Query,
        query::Overview,
        query::ServerDetail,
        query::Entries,
        form::FormPlan,
        query::Checked,
        query::HeadsPage,
        query::CallTree,
        query::Message,
        query::ResultView,
        query::Found,
        query::Inbox,
        query::Copied,
        query::ApiError,
        query::Rules,
        query::Decided,
        query::PinsView,
        query::AuditPage,
        query::ChecksView,
        query::AnswersView,
        action::Action,
        action::Sent,
        action::Done,
        action::Completed,
        action::Enter,
        action::Entered,
        action::Link,
        events::Event,
        inbox::Answer,
        render::ContentPart,
    );
    generator.take_definitions(true)
}

fn document(out: &mut String, indent: &str, schema: &Value) {
    let Some(text) = schema.get("description").and_then(Value::as_str) else { return };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("[`", "`").replace("`]", "`");
    let _ = writeln!(out, "{indent}/** {text} */");
}

fn type_of(schema: &Value, indent: &str) -> String {
    let union = |schemas: &Vec<Value>| {
        let parts: Vec<_> = schemas.iter().map(|schema| type_of(schema, indent)).collect();
        parts.join(" | ")
    };
    let Some(members) = schema.as_object() else { return "unknown".into() };
    if let Some(name) = members.get("$ref").and_then(Value::as_str) {
        let name = name.rsplit('/').next().unwrap_or(name).to_owned();
        return match members.get("properties") {
            Some(_) => format!("{name} & {}", object(members, indent)),
            None => name,
        };
    }
    if let Some(value) = members.get("const") {
        return value.to_string();
    }
    if let Some(Value::Array(values)) = members.get("enum") {
        return values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ");
    }
    if let Some(Value::Array(schemas)) = members.get("oneOf").or_else(|| members.get("anyOf")) {
        let lines: Vec<_> = schemas.iter().map(|schema| type_of(schema, indent)).collect();
        return if lines.iter().any(|line| line.len() > 60) {
            lines.iter().fold(String::new(), |out, line| out + "\n" + indent + "  | " + line)
        } else {
            union(schemas)
        };
    }
    match members.get("type") {
        Some(Value::Array(types)) => {
            let each = types.iter().map(|one| {
                let mut copy = members.clone();
                copy.insert("type".into(), one.clone());
                type_of(&Value::Object(copy), indent)
            });
            each.collect::<Vec<_>>().join(" | ")
        }
        Some(Value::String(one)) => match one.as_str() {
            "string" => "string".into(),
            "integer" | "number" => "number".into(),
            "boolean" => "boolean".into(),
            "null" => "null".into(),
            "array" => match (members.get("items"), members.get("maxItems")) {
                (Some(items), Some(Value::Number(size))) => {
                    let item = type_of(items, indent);
                    let size = usize::try_from(size.as_u64().unwrap_or(1)).unwrap_or(1);
                    format!("[{}]", vec![item; size].join(", "))
                }
                (Some(items), _) => {
                    let item = type_of(items, indent);
                    if item.contains(" | ") || item.contains('\n') {
                        format!("({item})[]")
                    } else {
                        format!("{item}[]")
                    }
                }
                (None, _) => "unknown[]".into(),
            },
            _ => object(members, indent),
        },
        _ => "unknown".into(),
    }
}

fn object(members: &Map<String, Value>, indent: &str) -> String {
    let inner = format!("{indent}  ");
    let Some(properties) = members.get("properties").and_then(Value::as_object) else {
        return match members.get("additionalProperties") {
            Some(values @ Value::Object(_)) => format!("Record<string, {}>", type_of(values, indent)),
            _ if members.contains_key("additionalProperties") => "Record<string, never>".into(),
            _ => "Record<string, unknown>".into(),
        };
    };
    let required: Vec<_> = members
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut out = String::from("{\n");
    for (name, schema) in properties {
        document(&mut out, &inner, schema);
        let optional =
            if required.contains(&name.as_str()) && schema.get("x-optional").is_none() { "" } else { "?" };
        let mut shown = type_of(schema, &inner);
        // An absent member is left out of the message, never `null`.
        if optional == "?" {
            shown = shown.strip_suffix(" | null").map_or_else(|| shown.clone(), str::to_owned);
        }
        let _ = writeln!(out, "{inner}{name}{optional}: {shown};");
    }
    out.push_str(indent);
    out.push('}');
    out
}

fn declarations() -> String {
    let mut out = "// Types of the API of the inspector. Generated from the Rust types by `cargo test -p bowline-inspector` with\n// UPDATE_EXPECT=1; do not edit.\n".to_owned();
    let mut schemas: Vec<_> = schemas().into_iter().collect();
    schemas.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (name, schema) in schemas {
        out.push('\n');
        document(&mut out, "", &schema);
        let _ = writeln!(out, "export type {name} = {};", type_of(&schema, ""));
    }
    out
}

#[test]
fn api_d_ts_is_current() {
    expect_test::expect_file!["../web/api.d.ts"].assert_eq(&declarations());
}

#[test]
fn every_type_has_a_schema() {
    fn check<T: JsonSchema>() -> String {
        T::schema_name().into_owned()
    }
    assert_eq!(check::<events::Head>(), "Head");
}
