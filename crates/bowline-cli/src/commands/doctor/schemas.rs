//! Checks that tool schemas are accepted by all clients.

use super::{
    facts::{Facts, name_of},
    finding::{Finding, Level},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The maximum depth of a schema.
const DEPTH: usize = 64;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let found = [root(facts), broken(facts), gemini(facts), strict(facts), dialect(facts)];
    found.into_iter().flatten().collect()
}

fn schema(tool: &Value) -> &Value {
    tool.get("inputSchema").unwrap_or(&Value::Null)
}

fn tools_where(facts: &Facts, wrong: impl Fn(&Value) -> bool) -> Vec<String> {
    facts.tools().filter(|tool| wrong(tool)).map(name_of).collect()
}

fn root(facts: &Facts) -> Option<Finding> {
    let advice = "set `\"type\": \"object\"` at the root, even for a tool without parameters";
    Finding::new(Level::Error, "schema-root", "root of `inputSchema` is not an object", advice).at_all(
        tools_where(facts, |tool| {
            tool.get("inputSchema").is_some_and(|schema| schema.get("type") != Some(&json!("object")))
        }),
    )
}

/// Finds invalid schemas.
fn broken(facts: &Facts) -> Option<Finding> {
    let mut places = Vec::new();
    for tool in facts.tools() {
        for member in ["inputSchema", "outputSchema"] {
            let Some(schema) = tool.get(member).filter(|schema| schema.is_object()) else { continue };
            if let Err(error) = jsonschema::meta::validate(schema) {
                let place = error.instance_path().to_string();
                places.push(format!("{}.{member}{place}", name_of(tool)));
            }
        }
    }
    Finding::new(
        Level::Error,
        "schema-broken",
        "invalid JSON Schema",
        "fix it: clients that validate arguments cannot use the tool",
    )
    .at_all(places)
}

/// Calls `visit` for a schema and all schemas in it.
fn each(schema: &Value, depth: usize, visit: &mut impl FnMut(&Value)) {
    if depth == 0 || !schema.is_object() {
        return;
    }
    visit(schema);
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        match keyword.as_str() {
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                for inner in value.as_object().into_iter().flat_map(|members| members.values()) {
                    each(inner, depth - 1, visit);
                }
            }
            "items" | "prefixItems" | "anyOf" | "oneOf" | "allOf" => match value {
                Value::Array(inner) => inner.iter().for_each(|inner| each(inner, depth - 1, visit)),
                inner => each(inner, depth - 1, visit),
            },
            "additionalProperties" | "not" | "if" | "then" | "else" | "contains" | "propertyNames" => {
                each(value, depth - 1, visit);
            }
            _ => {}
        }
    }
}

/// Returns the tools whose schemas contain the wanted keywords, with the keywords.
fn with_keywords(facts: &Facts, wanted: impl Fn(&str, &Value) -> bool) -> Vec<String> {
    let mut places = Vec::new();
    for tool in facts.tools() {
        let mut keywords: BTreeSet<String> = BTreeSet::new();
        each(schema(tool), DEPTH, &mut |schema| {
            let found =
                schema.as_object().into_iter().flatten().filter(|(keyword, value)| wanted(keyword, value));
            keywords.extend(found.map(|(keyword, _)| keyword.clone()));
        });
        if !keywords.is_empty() {
            let keywords: Vec<String> = keywords.into_iter().collect();
            places.push(format!("{} ({})", name_of(tool), keywords.join(", ")));
        }
    }
    places
}

/// Finds keywords that Gemini does not support in function declarations.
fn gemini(facts: &Facts) -> Option<Finding> {
    let refused = |keyword: &str, value: &Value| match keyword {
        "oneOf" | "allOf" | "not" | "if" | "$ref" | "$defs" | "definitions" | "const"
        | "patternProperties" | "prefixItems" | "propertyNames" | "exclusiveMinimum" | "exclusiveMaximum"
        | "dependentSchemas" => true,
        // Gemini does not support a list of types.
        "type" => value.is_array(),
        "format" => {
            !matches!(value.as_str(), Some("enum" | "date-time" | "int32" | "int64" | "float" | "double"))
        }
        "enum" => value.as_array().is_some_and(|values| !values.iter().all(Value::is_string)),
        _ => false,
    };
    let advice = "use only plain types, `properties`, `items`, `enum` with strings, and `required`: Gemini rejects the request or ignores the rest";
    Finding::new(Level::Hint, "schema-gemini", "schema uses keywords that Gemini does not support", advice)
        .at_all(with_keywords(facts, refused))
}

/// Finds schemas that OpenAI's strict mode rejects.
fn strict(facts: &Facts) -> Option<Finding> {
    let mut places = Vec::new();
    for tool in facts.tools() {
        let mut strict = true;
        each(schema(tool), DEPTH, &mut |schema| {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
            let required = schema.get("required").and_then(Value::as_array);
            let has = |name: &str| required.is_some_and(|required| required.iter().any(|one| one == name));
            strict &= properties.keys().all(|name| has(name))
                && schema.get("additionalProperties") == Some(&json!(false))
                && !properties.values().any(|property| property.get("default").is_some());
        });
        if !strict {
            places.push(name_of(tool));
        }
    }
    let advice = "if you need strict mode: require every property, set `\"additionalProperties\": false`, and remove defaults";
    Finding::new(Level::Hint, "schema-strict", "schema is not compatible with OpenAI's strict mode", advice)
        .at_all(places)
}

/// Finds keywords that draft-07 validators do not know or interpret differently.
fn dialect(facts: &Facts) -> Option<Finding> {
    let newer = |keyword: &str, value: &Value| match keyword {
        "prefixItems"
        | "unevaluatedProperties"
        | "unevaluatedItems"
        | "dependentSchemas"
        | "dependentRequired"
        | "minContains"
        | "maxContains"
        | "$dynamicRef"
        | "$anchor" => true,
        "$schema" => value
            .as_str()
            .is_some_and(|dialect| !dialect.contains("draft-07") && !dialect.contains("2020-12")),
        _ => false,
    };
    let advice = "many clients validate with draft-07, which ignores these keywords";
    Finding::new(Level::Hint, "schema-draft-07", "schema uses keywords newer than draft-07", advice)
        .at_all(with_keywords(facts, newer))
}

#[cfg(test)]
mod tests {
    use super::{super::finding::summary_lines, *};
    use expect_test::{Expect, expect};

    #[expect(clippy::needless_pass_by_value, reason = "an inline snapshot is made where it is checked")]
    fn check_one(schema: Value, expected: Expect) {
        expected.assert_eq(&summary_lines(&check(&Facts::with_tools(
            json!([{ "name": "t", "inputSchema": schema }]),
        ))));
    }

    #[test]
    fn a_plain_schema_has_no_findings() {
        check_one(json!({ "type": "object" }), expect![""]);
        check_one(
            json!({
                "$schema": "http://json-schema.org/draft-07/schema#",
                "type": "object",
                "properties": { "a": { "type": "string", "enum": ["x"] }, "oneOf": { "type": "integer" } },
                "required": ["a", "oneOf"],
                "additionalProperties": false,
            }),
            expect![""],
        );
    }

    #[test]
    fn incompatible_schemas_are_reported() {
        check_one(json!({}), expect!["error schema-root: root of `inputSchema` is not an object [t]"]);
        check_one(
            json!({ "type": "object", "properties": { "a": { "type": "strnig" } } }),
            expect![[r"
                error schema-broken: invalid JSON Schema [t.inputSchema/properties/a/type]
                hint schema-strict: schema is not compatible with OpenAI's strict mode [t]"]],
        );
        check_one(
            json!({ "type": "object", "$defs": { "x": { "type": ["string", "null"], "format": "uri" } }, "anyOf": [{ "$ref": "#/$defs/x" }] }),
            expect![
                "hint schema-gemini: schema uses keywords that Gemini does not support [t ($defs, $ref, format, type)]"
            ],
        );
        check_one(
            json!({ "type": "object", "required": ["a"], "additionalProperties": false, "properties": { "a": { "default": 1 } } }),
            expect!["hint schema-strict: schema is not compatible with OpenAI's strict mode [t]"],
        );
        check_one(
            json!({ "type": "object", "unevaluatedProperties": false }),
            expect![
                "hint schema-draft-07: schema uses keywords newer than draft-07 [t (unevaluatedProperties)]"
            ],
        );
    }
}
