//! Whether the schemas of tools are ones that every client takes.

use super::{
    facts::{Facts, name_of},
    finding::{Finding, Level},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// How deep a schema is looked into.
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
    let advice = "write `\"type\": \"object\"` at the root, also for a tool without parameters";
    Finding::new(Level::Error, "schema-root", "an `inputSchema` whose root is no object", advice).at_all(
        tools_where(facts, |tool| {
            tool.get("inputSchema").is_some_and(|schema| schema.get("type") != Some(&json!("object")))
        }),
    )
}

/// Schemas that no validator takes.
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
        "a schema that is no JSON Schema",
        "clients that check arguments cannot use the tool",
    )
    .at_all(places)
}

/// Everything of a schema that is a schema itself, with `visit` for each.
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

/// The tools whose schema has a keyword somewhere, with the keywords.
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

/// What the function declarations of Gemini do not know.
fn gemini(facts: &Facts) -> Option<Finding> {
    let refused = |keyword: &str, value: &Value| match keyword {
        "oneOf" | "allOf" | "not" | "if" | "$ref" | "$defs" | "definitions" | "const"
        | "patternProperties" | "prefixItems" | "propertyNames" | "exclusiveMinimum" | "exclusiveMaximum"
        | "dependentSchemas" => true,
        // A list of types is a choice between them.
        "type" => value.is_array(),
        "format" => {
            !matches!(value.as_str(), Some("enum" | "date-time" | "int32" | "int64" | "float" | "double"))
        }
        "enum" => value.as_array().is_some_and(|values| !values.iter().all(Value::is_string)),
        _ => false,
    };
    let advice = "use plain types with `properties`, `items`, `enum` of texts and `required`: Gemini refuses the request or drops the rest";
    Finding::new(Level::Hint, "schema-gemini", "a schema that goes beyond what Gemini takes", advice)
        .at_all(with_keywords(facts, refused))
}

/// What the strict mode of OpenAI does not take.
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
    let advice = "only matters where strict mode is wanted: require every property, forbid others with `\"additionalProperties\": false`, and have no defaults";
    Finding::new(Level::Hint, "schema-strict", "a schema that OpenAI's strict mode does not take", advice)
        .at_all(places)
}

/// What clients with a validator of draft-07 do not know, or read differently.
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
    let advice = "many clients check with draft-07, which passes over these words: nothing is checked there";
    Finding::new(Level::Hint, "schema-draft-07", "a schema with words that draft-07 does not have", advice)
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
    fn a_plain_schema_is_not_mentioned() {
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
    fn what_some_clients_refuse_is_told() {
        check_one(json!({}), expect!["error schema-root: an `inputSchema` whose root is no object [t]"]);
        check_one(
            json!({ "type": "object", "properties": { "a": { "type": "strnig" } } }),
            expect![[r"
                error schema-broken: a schema that is no JSON Schema [t.inputSchema/properties/a/type]
                hint schema-strict: a schema that OpenAI's strict mode does not take [t]"]],
        );
        check_one(
            json!({ "type": "object", "$defs": { "x": { "type": ["string", "null"], "format": "uri" } }, "anyOf": [{ "$ref": "#/$defs/x" }] }),
            expect![
                "hint schema-gemini: a schema that goes beyond what Gemini takes [t ($defs, $ref, format, type)]"
            ],
        );
        check_one(
            json!({ "type": "object", "required": ["a"], "additionalProperties": false, "properties": { "a": { "default": 1 } } }),
            expect!["hint schema-strict: a schema that OpenAI's strict mode does not take [t]"],
        );
        check_one(
            json!({ "type": "object", "unevaluatedProperties": false }),
            expect![
                "hint schema-draft-07: a schema with words that draft-07 does not have [t (unevaluatedProperties)]"
            ],
        );
    }
}
