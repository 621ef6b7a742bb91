//! Derived schemas in the words a model is given: short, and without what clients are known to stumble over.
//!
//! What is derived from a type is exact: an optional member may be `null`, an integer has the width of its type, a type of
//! its own is a reference. Models do not need this, and some clients refuse unions with `null`, references or
//! formats they do not know.

use bowline_types::RawJson;
use serde_json::{Map, Value, map::Entry};
use std::collections::HashMap;

/// Whose schema it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The schema of input: an optional member need not be `null`.
    Arguments,
    /// The schema of output, which is described as it is written.
    Result,
}

/// Returns the schema that models see. It allows nothing that the derived schema does not.
pub(crate) fn shown(derived: &RawJson, side: Side) -> RawJson {
    let Ok(Value::Object(mut root)) = derived.to_value() else { return derived.clone() };
    inline(&mut root);
    simplify(&mut root, side);
    RawJson::of(&root).unwrap_or_else(|_| derived.clone())
}

const DEFINITIONS: &str = "#/$defs/";

/// Puts definitions that are referred to once to where that is.
fn inline(root: &mut Map<String, Value>) {
    let Some(Value::Object(mut definitions)) = root.shift_remove("$defs") else { return };
    let mut uses = HashMap::new();
    count(root, &mut uses);
    definitions.values().filter_map(Value::as_object).for_each(|schema| count(schema, &mut uses));
    // A definition that is put somewhere may itself hold the only reference to another.
    let mut once: Map<String, Value> = Map::new();
    for (name, used) in uses {
        if used == 1
            && let Some(schema) = definitions.shift_remove(&name)
        {
            once.insert(name, schema);
        }
    }
    resolve(root, &mut once);
    for schema in definitions.values_mut().filter_map(Value::as_object_mut) {
        resolve(schema, &mut once);
    }
    // Definitions that cannot be inlined stay references.
    definitions.extend(once);
    if !definitions.is_empty() {
        root.insert("$defs".into(), definitions.into());
    }
}

fn target(schema: &Map<String, Value>) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix(DEFINITIONS)
}

fn count(schema: &Map<String, Value>, uses: &mut HashMap<String, usize>) {
    if let Some(name) = target(schema) {
        *uses.entry(name.to_owned()).or_default() += 1;
    }
    for inner in schema.values() {
        each(inner, &mut |schema| count(schema, uses));
    }
}

fn resolve(schema: &mut Map<String, Value>, once: &mut Map<String, Value>) {
    while let Some(name) = target(schema).map(str::to_owned)
        && once.get(&name).and_then(Value::as_object).is_some_and(|definition| fits(schema, definition))
        && let Some(Value::Object(definition)) = once.shift_remove(&name)
    {
        schema.shift_remove("$ref");
        merge(schema, definition);
    }
    for inner in schema.values_mut() {
        each_mut(inner, &mut |schema| resolve(schema, once));
    }
}

/// Returns whether two schemas can be merged: they share no keywords except descriptive ones.
fn fits(schema: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let describes = |keyword: &str| {
        matches!(keyword, "title" | "description" | "default" | "examples" | "deprecated" | "$comment")
    };
    other.keys().all(|keyword| describes(keyword) || !schema.contains_key(keyword))
}

/// Adds the keywords of another schema. Keywords of this schema, such as a description, take precedence.
fn merge(schema: &mut Map<String, Value>, other: Map<String, Value>) {
    for (keyword, value) in other {
        if let Entry::Vacant(entry) = schema.entry(keyword) {
            entry.insert(value);
        }
    }
}

/// The objects directly in a value.
fn each(value: &Value, visit: &mut dyn FnMut(&Map<String, Value>)) {
    match value {
        Value::Object(members) => visit(members),
        Value::Array(items) => items.iter().for_each(|item| each(item, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn each_mut(value: &mut Value, visit: &mut dyn FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(members) => visit(members),
        Value::Array(items) => items.iter_mut().for_each(|item| each_mut(item, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn simplify(schema: &mut Map<String, Value>, side: Side) {
    // The width of a number: nothing a model could use, and no format of the standard.
    if schema.get("format").is_some_and(crate::schema::is_number_format) {
        schema.shift_remove("format");
    }
    let required: Vec<String> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
        .unwrap_or_default();
    for (keyword, value) in schema.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(members)) => {
                for (name, member) in members.iter_mut() {
                    let Value::Object(member) = member else { continue };
                    if side == Side::Arguments && !required.contains(name) {
                        forbid_null(member);
                    }
                    simplify(member, side);
                }
            }
            ("$defs", Value::Object(members)) => {
                members.values_mut().for_each(|inner| each_mut(inner, &mut |schema| simplify(schema, side)));
            }
            ("items" | "additionalProperties" | "anyOf" | "oneOf" | "allOf" | "prefixItems", value) => {
                each_mut(value, &mut |schema| simplify(schema, side));
            }
            _ => {}
        }
    }
}

/// Removes `null` from the types of a member, which can be omitted instead.
fn forbid_null(schema: &mut Map<String, Value>) {
    // `null` would no longer be a valid default.
    if schema.get("default").is_some_and(Value::is_null) {
        schema.shift_remove("default");
    }
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            schema.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(options)) = schema.get_mut("anyOf") {
        options.retain(|option| option.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = options.as_slice() {
            let only = only.clone();
            if fits(schema, &only) {
                schema.shift_remove("anyOf");
                merge(schema, only);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use schemars::JsonSchema;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Mode {
        Fast,
        Slow,
    }

    /// A place.
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Place {
        x: f64,
        label: Option<String>,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Search {
        #[schemars(range(min = 1, max = 100))]
        limit: Option<u8>,
        /// How hard.
        mode: Option<Mode>,
        must: Option<u32>,
        at: Place,
        start: Option<Place>,
        tree: Option<Tree>,
        #[serde(default)]
        nullable: Option<bool>,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Tree {
        children: Vec<Self>,
    }

    #[derive(JsonSchema)]
    #[serde(tag = "kind")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Shape {
        Point(Place),
    }

    #[test]
    fn a_definition_is_not_put_where_it_would_lose_a_part() {
        let shown = shown(&crate::schema::of::<Shape>(), Side::Arguments).to_value().unwrap();
        assert_eq!(shown.pointer("/$defs/Place/properties/x/type"), Some(&"number".into()), "{shown}");
        assert_eq!(shown.pointer("/oneOf/0/$ref"), Some(&"#/$defs/Place".into()), "{shown}");
    }

    #[expect(clippy::needless_pass_by_value, reason = "snapshots are written in place")]
    fn check<T: JsonSchema>(side: Side, expected: Expect) {
        let shown = shown(&crate::schema::of::<T>(), side);
        expected.assert_eq(&serde_json::to_string_pretty(&shown.to_value().unwrap()).unwrap());
    }

    #[test]
    fn listed_schemas_omit_null_widths_and_single_references() {
        check::<Search>(
            Side::Arguments,
            expect![[r##"
            {
              "type": "object",
              "properties": {
                "limit": {
                  "type": "integer",
                  "minimum": 1,
                  "maximum": 100
                },
                "mode": {
                  "description": "How hard.",
                  "type": "string",
                  "enum": [
                    "Fast",
                    "Slow"
                  ]
                },
                "must": {
                  "type": "integer",
                  "minimum": 0
                },
                "at": {
                  "$ref": "#/$defs/Place"
                },
                "start": {
                  "$ref": "#/$defs/Place"
                },
                "tree": {
                  "$ref": "#/$defs/Tree"
                },
                "nullable": {
                  "type": "boolean"
                }
              },
              "required": [
                "at"
              ],
              "$defs": {
                "Place": {
                  "description": "A place.",
                  "type": "object",
                  "properties": {
                    "x": {
                      "type": "number"
                    },
                    "label": {
                      "type": "string"
                    }
                  },
                  "required": [
                    "x"
                  ]
                },
                "Tree": {
                  "type": "object",
                  "properties": {
                    "children": {
                      "type": "array",
                      "items": {
                        "$ref": "#/$defs/Tree"
                      }
                    }
                  },
                  "required": [
                    "children"
                  ]
                }
              }
            }"##]],
        );
    }

    #[test]
    fn results_may_contain_null() {
        check::<Place>(
            Side::Result,
            expect![[r#"
            {
              "description": "A place.",
              "type": "object",
              "properties": {
                "x": {
                  "type": "number"
                },
                "label": {
                  "type": [
                    "string",
                    "null"
                  ]
                }
              },
              "required": [
                "x"
              ]
            }"#]],
        );
    }
}
