//! Compiles untrusted JSON Schemas within limits, and validates values.

use bowline_types::RawJson;
use jsonschema::{Draft, PatternOptions};
use serde_json::Value;

/// The maximum size of a schema.
const MAX_SCHEMA: usize = 256 * 1024;
/// The maximum number of subschemas, and their nesting.
const MAX_PARTS: usize = 10_000;
const MAX_DEPTH: usize = 64;

/// A compiled schema of a peer. Compiling and validating are limited, and no reference leads out of the schema.
#[derive(Debug)]
pub struct Validator(jsonschema::Validator);

impl Validator {
    /// Compiles a schema. The error says why it cannot be used.
    pub fn new(schema: &RawJson) -> Result<Self, String> {
        if schema.as_bytes().len() > MAX_SCHEMA {
            return Err(format!("it is longer than {MAX_SCHEMA} bytes"));
        }
        let schema = schema.to_value().map_err(|error| error.to_string())?;
        let mut budget = MAX_PARTS;
        measure(&schema, MAX_DEPTH, &mut budget)?;
        jsonschema::options()
            .with_draft(dialect(&schema)?)
            // Linear in the length of the value, for any pattern.
            .with_pattern_options(PatternOptions::regex())
            .with_retriever(Unreachable)
            .build(&schema)
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// Returns at most `limit` problems of a value: a JSON pointer and what is wrong there.
    pub fn problems(&self, value: &RawJson, limit: usize) -> Result<Vec<(String, String)>, String> {
        let value = value.to_value().map_err(|error| error.to_string())?;
        let errors = self.0.iter_errors(&value).take(limit);
        Ok(errors.map(|error| (error.instance_path().to_string(), error.to_string())).collect())
    }

    /// Validates a value. The error names the path.
    pub(super) fn check(&self, value: &RawJson) -> Result<(), String> {
        let value = value.to_value().map_err(|error| error.to_string())?;
        let Some(error) = self.0.iter_errors(&value).next() else { return Ok(()) };
        let place = error.instance_path().to_string();
        Err(format!("{}: {error}", if place.is_empty() { "/" } else { &place }))
    }
}

/// Returns the dialect: 2020-12, unless the schema names another.
fn dialect(schema: &Value) -> Result<Draft, String> {
    let named = schema.get("$schema").and_then(Value::as_str);
    match named.map(|dialect| dialect.trim_end_matches('#')) {
        None | Some("https://json-schema.org/draft/2020-12/schema") => Ok(Draft::Draft202012),
        Some("https://json-schema.org/draft/2019-09/schema") => Ok(Draft::Draft201909),
        Some("http://json-schema.org/draft-07/schema" | "https://json-schema.org/draft-07/schema") => {
            Ok(Draft::Draft7)
        }
        Some(other) => {
            Err(format!("the dialect `{other}` is not supported; 2020-12, 2019-09 and draft-07 are"))
        }
    }
}

/// Does not follow references to other documents.
struct Unreachable;

impl jsonschema::Retrieve for Unreachable {
    fn retrieve(
        &self,
        uri: &jsonschema::Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("`$ref` to `{uri}` is not followed").into())
    }
}

fn measure(value: &Value, depth: usize, budget: &mut usize) -> Result<(), String> {
    let children: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Object(members) => Box::new(members.values()),
        Value::Array(items) => Box::new(items.iter()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(()),
    };
    let depth = depth.checked_sub(1).ok_or_else(|| format!("it nests deeper than {MAX_DEPTH}"))?;
    *budget = budget.checked_sub(1).ok_or_else(|| format!("it has more than {MAX_PARTS} parts"))?;
    for child in children {
        measure(child, depth, budget)?;
    }
    Ok(())
}
