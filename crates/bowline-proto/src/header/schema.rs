//! Finds and checks the header annotations of a tool's input schema.

use std::collections::HashSet;
use std::fmt;

use serde_json::Value;

use super::param::{ParamHeader, ParamType};
use super::{PARAM_PREFIX, clip};

const ANNOTATION: &str = "x-mcp-header";
const MAX_DEPTH: usize = 128;

/// Why the header annotations of an input schema are invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamHeaderError {
    property: String,
    problem: SchemaProblem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SchemaProblem {
    NotText,
    NotToken(String),
    Duplicate(String),
    WrongType,
    Unreachable,
    TooDeep,
}

impl fmt::Display for ParamHeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.property.is_empty() {
            write!(f, "`{ANNOTATION}` in the schema: ")?;
        } else {
            write!(f, "`{ANNOTATION}` of property `{}`: ", self.property)?;
        }
        match &self.problem {
            SchemaProblem::NotText => f.write_str("expected a string"),
            SchemaProblem::NotToken(name) => write!(f, "expected a header name, got {name:?}"),
            SchemaProblem::Duplicate(name) => write!(f, "expected a name not used before, got {name:?}"),
            SchemaProblem::WrongType => {
                f.write_str("expected the type of the property to be string, integer or boolean")
            }
            SchemaProblem::Unreachable => {
                f.write_str("only allowed on properties that are reached through `properties` alone")
            }
            SchemaProblem::TooDeep => write!(f, "expected at most {MAX_DEPTH} levels"),
        }
    }
}

impl std::error::Error for ParamHeaderError {}

/// Finds the annotated properties of an input schema.
pub(super) fn read_schema(schema: &Value) -> Result<Vec<ParamHeader>, ParamHeaderError> {
    let mut reader = SchemaReader { path: Vec::new(), headers: Vec::new(), names: HashSet::new() };
    reader.schema(schema, Place::Root, 0)?;
    Ok(reader.headers)
}

/// The position of a subschema.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    /// Reached from the root through `properties` only.
    Property,
    Elsewhere,
}

struct SchemaReader {
    /// The names of the properties on the way to the current schema.
    path: Vec<String>,
    headers: Vec<ParamHeader>,
    /// The header names taken so far, in lower case.
    names: HashSet<String>,
}

impl SchemaReader {
    fn schema(&mut self, schema: &Value, place: Place, depth: usize) -> Result<(), ParamHeaderError> {
        if depth > MAX_DEPTH {
            return Err(self.error(SchemaProblem::TooDeep));
        }
        match schema {
            Value::Object(keywords) => {
                if let Some(annotation) = keywords.get(ANNOTATION) {
                    self.annotation(annotation, keywords.get("type"), place)?;
                }
                for (keyword, value) in keywords {
                    self.keyword(keyword, value, place, depth + 1)?;
                }
                Ok(())
            }
            Value::Array(schemas) => {
                schemas.iter().try_for_each(|schema| self.schema(schema, Place::Elsewhere, depth + 1))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: &Value,
        place: Place,
        depth: usize,
    ) -> Result<(), ParamHeaderError> {
        match (keyword, value) {
            // These hold values, not schemas: an `x-mcp-header` in them annotates nothing.
            (ANNOTATION | "const" | "default" | "enum" | "examples", _) => Ok(()),
            ("properties", Value::Object(properties)) if place != Place::Elsewhere => {
                properties.iter().try_for_each(|(name, schema)| {
                    self.path.push(name.clone());
                    self.schema(schema, Place::Property, depth)?;
                    self.path.pop();
                    Ok(())
                })
            }
            // The members are named by the author, so that one may well be called `x-mcp-header`.
            (
                "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions",
                Value::Object(schemas),
            ) => schemas.values().try_for_each(|schema| self.schema(schema, Place::Elsewhere, depth)),
            _ => self.schema(value, Place::Elsewhere, depth),
        }
    }

    fn annotation(
        &mut self,
        annotation: &Value,
        declared: Option<&Value>,
        place: Place,
    ) -> Result<(), ParamHeaderError> {
        if place != Place::Property {
            return Err(self.error(SchemaProblem::Unreachable));
        }
        let Value::String(name) = annotation else {
            return Err(self.error(SchemaProblem::NotText));
        };
        if name.is_empty() || !name.bytes().all(is_token_character) {
            return Err(self.error(SchemaProblem::NotToken(clip(name))));
        }
        let Some(kind) = declared.and_then(param_type) else {
            return Err(self.error(SchemaProblem::WrongType));
        };
        if !self.names.insert(name.to_ascii_lowercase()) {
            return Err(self.error(SchemaProblem::Duplicate(clip(name))));
        }
        let name = format!("{PARAM_PREFIX}{name}");
        self.headers.push(ParamHeader::new(name, self.path.clone(), kind));
        Ok(())
    }

    fn error(&self, problem: SchemaProblem) -> ParamHeaderError {
        ParamHeaderError { property: clip(&self.path.join(".")), problem }
    }
}

/// Returns the type of a schema, if it is allowed in a header. An optional argument may also be null.
fn param_type(declared: &Value) -> Option<ParamType> {
    match declared {
        Value::String(name) => match name.as_str() {
            "string" => Some(ParamType::String),
            "integer" => Some(ParamType::Integer),
            "boolean" => Some(ParamType::Boolean),
            _ => None,
        },
        Value::Array(names) => {
            let mut others = names.iter().filter(|name| *name != "null");
            let only = others.next().filter(|name| name.is_string())?;
            if others.next().is_none() { param_type(only) } else { None }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Returns whether a character is allowed in an HTTP token.
fn is_token_character(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::super::ParamHeaders;
    use super::*;
    use expect_test::{Expect, expect};
    use serde_json::json;

    fn properties(properties: &Value) -> Result<ParamHeaders, ParamHeaderError> {
        ParamHeaders::from_schema(&json!({ "type": "object", "properties": properties }))
    }

    fn refused(schema: &Value, expected: &Expect) {
        expected.assert_eq(&ParamHeaders::from_schema(schema).unwrap_err().to_string());
    }

    fn refused_property(property: &Value, expected: &Expect) {
        refused(&json!({ "properties": { "p": property } }), expected);
    }

    #[test]
    fn annotations_are_found_at_any_depth_of_properties() {
        let headers = properties(&json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "plain": { "type": "number" },
            "options": {
                "type": "object",
                "properties": {
                    "limit": { "type": "integer", "x-mcp-header": "Limit!" },
                    "dry": { "type": ["boolean", "null"], "x-mcp-header": "Method" },
                },
            },
        }))
        .unwrap();
        // The order follows the members of the schema, which the reader of JSON may have sorted.
        let mut found: Vec<_> =
            headers.iter().map(|header| (header.name(), header.path().join("/"), header.kind())).collect();
        found.sort_by(|one, other| one.1.cmp(&other.1));
        assert_eq!(
            found,
            [
                ("Mcp-Param-Method", "options/dry".to_owned(), ParamType::Boolean),
                ("Mcp-Param-Limit!", "options/limit".to_owned(), ParamType::Integer),
                ("Mcp-Param-Region", "region".to_owned(), ParamType::String),
            ]
        );
    }

    #[test]
    fn schemas_without_annotation_ask_for_nothing() {
        for schema in [
            json!(true),
            json!({}),
            json!({ "properties": { "x-mcp-header": { "type": "number" } } }),
            json!({ "$defs": { "x-mcp-header": { "type": "string" } } }),
            json!({ "properties": { "p": { "default": { "x-mcp-header": "A" } } } }),
            json!({ "properties": { "p": { "enum": [{ "x-mcp-header": "A" }] } } }),
            json!({ "properties": { "p": { "const": { "x-mcp-header": "A" }, "examples": [{ "x-mcp-header": 1 }] } } }),
            json!({ "required": ["x-mcp-header"] }),
        ] {
            assert!(ParamHeaders::from_schema(&schema).unwrap().is_empty(), "{schema}");
        }
    }

    #[test]
    fn header_names_are_tokens() {
        for name in
            ["", "My Region", "Region:1", "Région", "Region\t1", "X\r\nAuthorization", "a/b", "(a)", "\u{0}"]
        {
            let error = properties(&json!({ "p": { "type": "string", "x-mcp-header": name } })).unwrap_err();
            assert_eq!(error.problem, SchemaProblem::NotToken(name.to_owned()));
        }
        refused_property(
            &json!({ "type": "string", "x-mcp-header": "a b" }),
            &expect![[r#"`x-mcp-header` of property `p`: expected a header name, got "a b""#]],
        );
        refused_property(
            &json!({ "type": "string", "x-mcp-header": null }),
            &expect!["`x-mcp-header` of property `p`: expected a string"],
        );
    }

    #[test]
    fn header_names_are_unique_without_regard_to_case() {
        for (one, other) in [("Region", "Region"), ("Region", "REGION")] {
            let error = properties(&json!({
                "a": { "type": "string", "x-mcp-header": one },
                "b": { "properties": { "c": { "type": "string", "x-mcp-header": other } } },
            }))
            .unwrap_err();
            let expected =
                format!("`x-mcp-header` of property `b.c`: expected a name not used before, got {other:?}");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn only_strings_integers_and_booleans_are_annotated() {
        for declared in [
            json!("number"),
            json!("object"),
            json!("array"),
            json!("null"),
            json!("String"),
            json!(["null"]),
            json!([]),
            json!(["string", "integer"]),
            json!([["string"]]),
            json!(1),
        ] {
            let error = properties(&json!({ "p": { "type": declared, "x-mcp-header": "A" } })).unwrap_err();
            assert_eq!(error.problem, SchemaProblem::WrongType, "{declared}");
        }
        refused_property(
            &json!({ "enum": ["a"], "x-mcp-header": "A" }),
            &expect![
                "`x-mcp-header` of property `p`: expected the type of the property to be string, integer or boolean"
            ],
        );
    }

    #[test]
    fn annotations_are_only_allowed_on_properties() {
        let annotated = json!({ "type": "string", "x-mcp-header": "A" });
        for keyword in
            ["items", "not", "if", "then", "else", "additionalProperties", "contains", "propertyNames", "x-y"]
        {
            let inner = json!({ "properties": { "p": { keyword: annotated } } });
            let outer = json!({ keyword: { "properties": { "p": annotated } } });
            for schema in [inner, outer] {
                let error = ParamHeaders::from_schema(&schema).unwrap_err();
                assert_eq!(error.problem, SchemaProblem::Unreachable, "{schema}");
            }
        }
        for keyword in ["oneOf", "anyOf", "allOf", "prefixItems"] {
            let schema = json!({ keyword: [{}, { "properties": { "p": annotated } }] });
            assert_eq!(
                ParamHeaders::from_schema(&schema).unwrap_err().problem,
                SchemaProblem::Unreachable,
                "{schema}"
            );
        }
        for keyword in ["$defs", "definitions", "dependentSchemas", "patternProperties"] {
            let schema = json!({ keyword: { "x": { "properties": { "p": annotated } } } });
            assert_eq!(
                ParamHeaders::from_schema(&schema).unwrap_err().problem,
                SchemaProblem::Unreachable,
                "{schema}"
            );
        }
        refused(
            &annotated,
            &expect![
                "`x-mcp-header` in the schema: only allowed on properties that are reached through `properties` alone"
            ],
        );
    }

    #[test]
    fn schemas_nest_to_a_limit() {
        let nested = |levels: usize| (0..levels).fold(json!({}), |schema, _| json!({ "not": schema }));
        assert!(ParamHeaders::from_schema(&nested(MAX_DEPTH)).is_ok());
        assert!(ParamHeaders::from_schema(&nested(MAX_DEPTH + 1)).is_err());
    }
}
