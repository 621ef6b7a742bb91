//! Corrects the schema files where they are stricter or looser than the specification.

use serde_json::{Map, Value, json};

/// Widens what the generated files narrow.
pub(super) fn relax(definitions: &mut Map<String, Value>) {
    // In these two places the generator turned numbers into integers and lost `null`.
    if let Some(content) =
        definitions.get_mut("ElicitResult").and_then(|it| it.pointer_mut("/properties/content"))
    {
        widen(content, &["number"]);
    }
    if let Some(value) = definitions.get_mut("JSONValue") {
        widen(value, &["number", "null"]);
    }
    // An error about an unreadable request has no id; schemas before 2025-11-25 do not allow that.
    if let Some(required) = definitions.get_mut("JSONRPCError").and_then(|it| it.pointer_mut("/required"))
        && let Some(required) = required.as_array_mut()
    {
        required.retain(|member| member != "id");
    }
}

/// Adds types wherever an integer is one of several allowed types.
fn widen(schema: &mut Value, kinds: &[&str]) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Array(known)) = members.get_mut("type")
                && known.iter().any(|kind| kind == "integer")
            {
                known.extend(kinds.iter().map(|kind| json!(kind)));
            }
            members.values_mut().for_each(|member| widen(member, kinds));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| widen(item, kinds)),
        _ => {}
    }
}

/// Free-form objects that may have any members.
const FREE: [&str; 4] = ["_meta", "inputSchema", "outputSchema", "data"];

/// Definitions that others extend; these stay open for the members of the others.
const BASES: [&str; 6] =
    ["Result", "Request", "Notification", "PaginatedResult", "CacheableResult", "JSONRPCRequest"];

/// Forbids members that no definition names.
pub(super) fn close(definitions: &mut Map<String, Value>) {
    for (name, definition) in definitions.iter_mut() {
        if name.ends_with("MetaObject") || BASES.contains(&name.as_str()) {
            continue;
        }
        if let Some(Value::Object(properties)) = definition.get_mut("properties") {
            // The specification allows `_meta` in all params and results; some definitions lack it.
            if name.ends_with("Params") || name.ends_with("Result") {
                properties.entry("_meta").or_insert_with(|| json!({}));
            }
            // Extensions are already declared in 2025-11-25, the one revision with `tasks`, although only 2026-07-28
            // defines them.
            if name.ends_with("Capabilities") && properties.contains_key("tasks") {
                properties.entry("extensions").or_insert_with(|| json!({}));
            }
        }
        close_schema(definition);
    }
}

fn close_schema(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    // Each part of an `allOf` knows only its own members.
    if members.contains_key("allOf") {
        return;
    }
    if members.contains_key("properties") && !members.contains_key("additionalProperties") {
        members.insert("additionalProperties".into(), false.into());
    }
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        for (name, property) in properties {
            // The specification allows `_meta` in every message; some definitions of older files lack it.
            if name == "params"
                && let Some(Value::Object(params)) = property.get_mut("properties")
            {
                params.entry("_meta").or_insert_with(|| json!({}));
            }
            if !FREE.contains(&name.as_str()) {
                close_schema(property);
            }
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = members.get_mut(keyword) {
            close_schema(inner);
        }
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(options)) = members.get_mut(keyword) {
            options.iter_mut().for_each(close_schema);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definitions(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn narrowed_kinds_are_widened() {
        let mut known = definitions(json!({
            "ElicitResult": { "properties": { "content": { "additionalProperties": { "type": ["integer", "string"] } } } },
            "JSONValue": { "anyOf": [{ "type": ["string", "integer"] }] },
            "JSONRPCError": { "required": ["error", "id"] },
        }));
        relax(&mut known);
        let content = &known["ElicitResult"]["properties"]["content"]["additionalProperties"];
        assert_eq!(content["type"], json!(["integer", "string", "number"]));
        assert_eq!(known["JSONValue"]["anyOf"][0]["type"], json!(["string", "integer", "number", "null"]));
        assert_eq!(known["JSONRPCError"]["required"], json!(["error"]));
    }

    #[test]
    fn closed_objects_leave_meta_open() {
        let mut known = definitions(json!({
            "Tool": { "properties": { "a": { "properties": {} }, "_meta": { "properties": {} } } },
            "RequestMetaObject": { "properties": {} },
        }));
        close(&mut known);
        assert_eq!(known["Tool"]["additionalProperties"], false);
        assert_eq!(known["Tool"]["properties"]["a"]["additionalProperties"], false);
        assert_eq!(known["Tool"]["properties"]["_meta"], json!({ "properties": {} }));
        assert_eq!(known["RequestMetaObject"], json!({ "properties": {} }));
    }
}
