//! Converts OpenAPI schemas to self-contained JSON Schema.

use super::document::{At, Document};
use crate::web::error::Error;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The approximate maximum size of the definitions of a tool. Beyond it, any value is allowed.
const MAX_DEFINITIONS: usize = 32 * 1024;
/// The maximum nesting of schemas without a reference.
const MAX_DEPTH: usize = 24;

/// Keywords that are copied unchanged.
const KEPT: [&str; 23] = [
    "type",
    "enum",
    "const",
    "title",
    "description",
    "default",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "deprecated",
    "examples",
    "contentEncoding",
    "contentMediaType",
];

/// Converts schemas and collects their references.
#[derive(Debug)]
pub(super) struct Schemas<'a> {
    document: &'a Document,
    /// The definition names, by reference.
    names: BTreeMap<String, String>,
    /// The references that are not yet converted.
    left: Vec<(String, String)>,
}

impl<'a> Schemas<'a> {
    pub(super) fn new(document: &'a Document) -> Self {
        Self { document, names: BTreeMap::new(), left: Vec::new() }
    }

    /// Converts a schema, with references into `$defs`.
    pub(super) fn convert(&mut self, at: &At<'_>) -> Result<Value, Error> {
        self.convert_at(at, MAX_DEPTH)
    }

    /// Returns the `$defs` of all converted schemas.
    pub(super) fn definitions(mut self) -> Result<Map<String, Value>, Error> {
        let mut definitions = Map::new();
        let mut size = 0;
        while let Some((reference, name)) = self.left.pop() {
            // Each reference is converted once, so recursion terminates.
            let definition = if size > MAX_DEFINITIONS {
                json!({ "description": "See the documentation of the API." })
            } else {
                let at =
                    self.document.find(&reference).map_err(|reason| Error::new(reference.clone(), reason))?;
                self.convert(&at)?
            };
            size += definition.to_string().len();
            definitions.insert(name, definition);
        }
        Ok(definitions)
    }

    fn refer(&mut self, at: &At<'_>, reference: &str) -> Result<String, Error> {
        if let Some(name) = self.names.get(reference) {
            return Ok(name.clone());
        }
        self.document.find(reference).map_err(|reason| at.wrong(reason))?;
        let last = reference.rsplit('/').next().unwrap_or_default();
        let mut name: String = last
            .chars()
            .map(|character| if character.is_ascii_alphanumeric() { character } else { '_' })
            .collect();
        while self.names.values().any(|taken| *taken == name) {
            name.push('_');
        }
        self.names.insert(reference.into(), name.clone());
        self.left.push((reference.into(), name.clone()));
        Ok(name)
    }

    fn convert_at(&mut self, at: &At<'_>, depth: usize) -> Result<Value, Error> {
        let members = match at.value {
            Value::Bool(_) => return Ok(at.value.clone()),
            _ => at.object()?,
        };
        if depth == 0 {
            return Ok(json!({}));
        }
        if let Some(reference) = members.get("$ref") {
            let reference = reference.as_str().ok_or_else(|| at.wrong("`$ref` must be a string"))?;
            let name = self.refer(at, reference)?;
            let mut schema = json!({ "$ref": format!("#/$defs/{name}") });
            if let Some(description) = members.get("description").filter(|value| value.is_string()) {
                schema["description"] = description.clone();
            }
            return Ok(schema);
        }
        let mut schema = Map::new();
        for (name, inner) in at.members()? {
            match name {
                "properties" | "patternProperties" => {
                    let mut converted = Map::new();
                    for (property, inner) in inner.members()? {
                        // Read-only properties are not part of a request.
                        if !inner.is("readOnly") {
                            converted.insert(property.into(), self.convert_at(&inner, depth - 1)?);
                        }
                    }
                    schema.insert(name.into(), converted.into());
                }
                "items" | "additionalProperties" | "not" | "contains" | "propertyNames" => {
                    schema.insert(name.into(), self.convert_at(&inner, depth - 1)?);
                }
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                    let converted: Result<Vec<Value>, Error> =
                        at.items(name)?.iter().map(|inner| self.convert_at(inner, depth - 1)).collect();
                    schema.insert(name.into(), converted?.into());
                }
                "required" => {
                    let required =
                        at.items(name)?.into_iter().map(|item| item.value.clone()).collect::<Vec<_>>();
                    schema.insert(name.into(), required.into());
                }
                // Patterns use another regular expression dialect.
                "pattern"
                    if inner.value.as_str().is_some_and(|pattern| regex::Regex::new(pattern).is_ok()) =>
                {
                    schema.insert(name.into(), inner.value.clone());
                }
                _ if KEPT.contains(&name) => drop(schema.insert(name.into(), inner.value.clone())),
                _ => {}
            }
        }
        modernize(&mut schema, members);
        Ok(schema.into())
    }
}

/// Converts OpenAPI 3.0 keywords to JSON Schema.
fn modernize(schema: &mut Map<String, Value>, members: &Map<String, Value>) {
    let is = |name: &str| members.get(name) == Some(&Value::Bool(true));
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if schema.get(exclusive).is_some_and(Value::is_boolean) {
            schema.remove(exclusive);
            if is(exclusive)
                && let Some(value) = schema.remove(bound)
            {
                schema.insert(exclusive.into(), value);
            }
        }
    }
    if is("nullable") {
        if let Some(Value::String(kind)) = schema.get("type") {
            let either = json!([kind, "null"]);
            schema.insert("type".into(), either);
        }
        if let Some(Value::Array(values)) = schema.get_mut("enum")
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        let properties = members.get("properties");
        let only_answers = |name: &Value| {
            let property = name.as_str().and_then(|name| properties?.get(name));
            property.and_then(|property| property.get("readOnly")) == Some(&Value::Bool(true))
        };
        required.retain(|name| name.is_string() && !only_answers(name));
        required.dedup();
    }
    if schema.get("description").is_some_and(|description| !description.is_string()) {
        schema.remove("description");
    }
    // An invalid schema would make the whole tool unusable.
    let is_type = |kind: &Value| {
        ["string", "number", "integer", "boolean", "object", "array", "null"]
            .iter()
            .any(|known| kind == known)
    };
    let fits = match schema.get("type") {
        Some(Value::Array(kinds)) => !kinds.is_empty() && kinds.iter().all(is_type),
        Some(kind) => is_type(kind),
        None => true,
    };
    if !fits {
        schema.remove("type");
    }
    if schema.get("enum").is_some_and(|values| values.as_array().is_none_or(Vec::is_empty)) {
        schema.remove("enum");
    }
}
