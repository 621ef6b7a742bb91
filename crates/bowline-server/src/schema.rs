//! JSON Schemas: derived from types, and held against values.
//!
//! Decoding into a type is a validation of its own, so the validator runs only where a schema says more than the type
//! does, or to name the place when decoding fails. It never fetches anything and its size is bounded.

use bowline_types::RawJson;
#[cfg(feature = "validate")]
use bowline_types::{ElicitSchema, PrimitiveSchema, RawMap, StringSchema};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
#[cfg(feature = "validate")]
use std::sync::OnceLock;

/// A type that JSON is decoded into, and that says by a schema which JSON that is.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from JSON",
    label = "put `#[data]` on its definition",
    note = "`#[data]` derives `serde::Deserialize` and `schemars::JsonSchema`"
)]
pub trait FromJson: DeserializeOwned + JsonSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> FromJson for T {}

/// A type that is encoded as JSON, and that says by a schema which JSON that is.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as JSON",
    label = "put `#[data]` on its definition",
    note = "`#[data]` derives `serde::Serialize` and `schemars::JsonSchema`"
)]
pub trait ToJson: Serialize + JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema> ToJson for T {}

/// Returns the schema of `T` in dialect 2020-12.
pub(crate) fn of<T: JsonSchema>() -> RawJson {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    // 2020-12 is the default of the protocol, and the name of a Rust type does not help the model.
    schema.remove("$schema");
    schema.remove("title");
    RawJson::of(&schema).unwrap_or_else(|_| RawJson::empty_object())
}

/// Returns the schema of a tool without arguments.
pub(crate) fn no_arguments() -> RawJson {
    RawJson::of(&serde_json::json!({ "type": "object", "additionalProperties": false }))
        .unwrap_or_else(|_| RawJson::empty_object())
}

/// The reason why a schema or a value is invalid.
pub(crate) type Reason = String;

/// A schema ready to be held against values.
#[derive(Debug)]
pub(crate) struct Validator {
    /// A derived schema is compiled on first use, which most never need.
    #[cfg(feature = "validate")]
    compiled: OnceLock<Result<jsonschema::Validator, Reason>>,
    #[cfg(feature = "validate")]
    schema: Value,
    /// Whether a value that decodes into the type the schema was derived from needs no further look.
    pub(crate) decoding_suffices: bool,
}

/// The longest schema that is compiled.
const MAX_SCHEMA: usize = 256 * 1024;
/// The maximum number of subschemas, and their nesting.
const MAX_SUBSCHEMAS: usize = 10_000;
const MAX_DEPTH: usize = 64;

impl Validator {
    /// Prepares a schema. `derived` means that it was generated from the type of its values.
    pub(crate) fn new(schema: &RawJson, derived: bool) -> Result<Self, Reason> {
        if schema.as_bytes().len() > MAX_SCHEMA {
            return Err(format!("the schema is longer than {MAX_SCHEMA} bytes"));
        }
        let value = schema.to_value().map_err(|error| error.to_string())?;
        let mut budget = MAX_SUBSCHEMAS;
        measure(&value, MAX_DEPTH, &mut budget)?;
        let validator = Self {
            #[cfg(feature = "validate")]
            compiled: OnceLock::new(),
            decoding_suffices: derived && is_implied_by_type(&value),
            #[cfg(feature = "validate")]
            schema: value,
        };
        #[cfg(feature = "validate")]
        if !derived {
            validator.compiled()?;
        }
        Ok(validator)
    }

    #[cfg(feature = "validate")]
    fn compiled(&self) -> Result<&jsonschema::Validator, Reason> {
        self.compiled.get_or_init(|| compile(&self.schema)).as_ref().map_err(Clone::clone)
    }

    /// Holds a value against the schema. The reason names the place.
    #[cfg(feature = "validate")]
    pub(crate) fn check(&self, value: &RawJson) -> Result<(), Reason> {
        let value = value.to_value().map_err(|error| error.to_string())?;
        let compiled = self.compiled().map_err(|reason| format!("invalid schema: {reason}"))?;
        let reasons: Vec<_> = compiled
            .iter_errors(&value)
            .take(5)
            .map(|error| {
                let path = error.instance_path().to_string();
                let reason = self.choices_at(&error.schema_path().to_string()).map_or_else(
                    || error.to_string(),
                    |choices| format!("{} is not one of {choices}", error.instance()),
                );
                if path.is_empty() { reason } else { format!("{path}: {reason}") }
            })
            .collect();
        if reasons.is_empty() { Ok(()) } else { Err(reasons.join("; ")) }
    }

    /// Returns the values that a list of alternatives allows, if it contains nothing else, as for documented variants
    /// of an enum.
    #[cfg(feature = "validate")]
    fn choices_at(&self, schema_path: &str) -> Option<String> {
        if !schema_path.ends_with("/oneOf") && !schema_path.ends_with("/anyOf") {
            return None;
        }
        let choices = choices(self.schema.pointer(schema_path)?, &self.schema, 4)?;
        let named: Vec<_> = choices.iter().map(ToString::to_string).collect();
        Some(named.join(", "))
    }

    /// Without the validator the type is the only check.
    #[cfg(not(feature = "validate"))]
    #[expect(clippy::unused_self, reason = "the validator of the other build is in `self`")]
    pub(crate) fn check(&self, value: &RawJson) -> Result<(), Reason> {
        value.decode::<serde::de::IgnoredAny>().map(drop).map_err(|error| error.to_string())
    }
}

/// Returns the constants in `alternatives`, if there is nothing else.
#[cfg(feature = "validate")]
fn choices<'a>(alternatives: &'a Value, root: &'a Value, depth: u8) -> Option<Vec<&'a Value>> {
    let mut found = Vec::new();
    for alternative in alternatives.as_array()? {
        let target = alternative.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#'));
        let alternative = target.map_or(Some(alternative), |pointer| root.pointer(pointer))?;
        if let Some(only) = alternative.get("const") {
            found.push(only);
        } else if let Some(values) = alternative.get("enum").and_then(Value::as_array) {
            found.extend(values);
        } else if let Some(inner) = alternative.get("oneOf").or_else(|| alternative.get("anyOf")) {
            found.extend(choices(inner, root, depth.checked_sub(1)?)?);
        } else if alternative.get("type").is_none_or(|kind| kind != "null") {
            return None;
        }
    }
    Some(found)
}

#[cfg(feature = "validate")]
fn compile(schema: &Value) -> Result<jsonschema::Validator, Reason> {
    use jsonschema::{Draft, PatternOptions};
    let dialect = schema.get("$schema").and_then(Value::as_str);
    let draft = match dialect.map(|dialect| dialect.trim_end_matches('#')) {
        None | Some("https://json-schema.org/draft/2020-12/schema") => Draft::Draft202012,
        Some("http://json-schema.org/draft-07/schema" | "https://json-schema.org/draft-07/schema") => {
            Draft::Draft7
        }
        Some("https://json-schema.org/draft/2019-09/schema") => Draft::Draft201909,
        Some(other) => {
            return Err(format!("the dialect `{other}` is not supported; use 2020-12 or draft-07"));
        }
    };
    jsonschema::options()
        .with_draft(draft)
        // Linear in the length of the value, for any pattern.
        .with_pattern_options(PatternOptions::regex())
        .with_retriever(Unreachable)
        .build(schema)
        .map_err(|error| error.to_string())
}

/// Checks the texts of an answer against the patterns of its form. A pattern that cannot be read is not enforced.
#[cfg(feature = "validate")]
pub(crate) fn check_patterns(form: &ElicitSchema, content: &RawJson) -> Result<(), Reason> {
    let members: RawMap = content.decode().map_err(|error| error.to_string())?;
    for (name, field) in &form.properties {
        let PrimitiveSchema::String(StringSchema { pattern: Some(pattern), .. }) = field else { continue };
        let Some(text) = members.get(name).and_then(|text| text.to_value().ok()) else { continue };
        let validator = compile(&serde_json::json!({ "pattern": pattern }));
        if validator.is_ok_and(|validator| !validator.is_valid(&text)) {
            return Err(format!("`{name}`: expected text that matches the pattern `{pattern}`"));
        }
    }
    Ok(())
}

/// Without the validator patterns are not enforced.
#[cfg(not(feature = "validate"))]
#[expect(clippy::unnecessary_wraps, reason = "the signature of the other build")]
pub(crate) fn check_patterns(_: &bowline_types::ElicitSchema, _: &RawJson) -> Result<(), Reason> {
    Ok(())
}

/// References to other documents are not followed.
#[cfg(feature = "validate")]
struct Unreachable;

#[cfg(feature = "validate")]
impl jsonschema::Retrieve for Unreachable {
    fn retrieve(
        &self,
        uri: &jsonschema::Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("`$ref` to `{uri}` is not followed: schemas must be self-contained").into())
    }
}

fn measure(value: &Value, depth: usize, budget: &mut usize) -> Result<(), Reason> {
    let children: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Object(members) => Box::new(members.values()),
        Value::Array(items) => Box::new(items.iter()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(()),
    };
    let Some(depth) = depth.checked_sub(1) else {
        return Err(format!("the schema nests deeper than {MAX_DEPTH}"));
    };
    *budget =
        budget.checked_sub(1).ok_or_else(|| format!("the schema has more than {MAX_SUBSCHEMAS} parts"))?;
    for child in children {
        measure(child, depth, budget)?;
    }
    Ok(())
}

/// Returns whether a derived schema requires only what decoding enforces.
fn is_implied_by_type(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return true };
    members.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" | "description" | "title" | "default" | "examples" | "required" | "$ref" | "deprecated" => {
            true
        }
        "format" => is_number_format(value),
        // Derived for the width of an integer type.
        "minimum" | "maximum" => members.get("format").is_some_and(|format| is_bound_of(format, value)),
        "properties" | "$defs" => {
            value.as_object().is_some_and(|named| named.values().all(is_implied_by_type))
        }
        "items" | "additionalProperties" => is_implied_by_type(value),
        "anyOf" | "oneOf" => value.as_array().is_some_and(|options| options.iter().all(is_implied_by_type)),
        _ => false,
    })
}

/// Returns whether a limit is that of an integer type, which no value of the type can exceed.
fn is_bound_of(format: &Value, limit: &Value) -> bool {
    let bounds: &[i64] = match format.as_str() {
        Some("uint8") => &[0, 0xff],
        Some("uint16") => &[0, 0xffff],
        Some("uint32" | "uint64" | "uint128" | "uint") => &[0],
        Some("int8") => &[-0x80, 0x7f],
        Some("int16") => &[-0x8000, 0x7fff],
        _ => &[],
    };
    limit.as_i64().is_some_and(|limit| bounds.contains(&limit))
}

/// Returns whether a format is the width of a number type.
pub(crate) fn is_number_format(format: &Value) -> bool {
    let Some(format) = format.as_str() else { return false };
    let width = format.strip_prefix("uint").or_else(|| format.strip_prefix("int"));
    width.is_some_and(|width| width.chars().all(|digit| digit.is_ascii_digit()))
        || matches!(format, "float" | "double")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Plain {
        /// How many.
        count: u32,
        name: Option<String>,
        ratio: f64,
        nested: Vec<Inner>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Inner {
        flag: bool,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Ranged {
        #[schemars(range(min = 1, max = 10))]
        count: u32,
    }

    #[test]
    fn a_plain_type_is_its_own_validation() {
        assert!(Validator::new(&of::<Plain>(), true).unwrap().decoding_suffices, "{}", of::<Plain>());
        assert!(!Validator::new(&of::<Plain>(), false).unwrap().decoding_suffices);
        assert!(!Validator::new(&of::<Ranged>(), true).unwrap().decoding_suffices, "{}", of::<Ranged>());
    }

    #[test]
    fn schemas_are_bounded() {
        let deep = format!("{}{{}}{}", r#"{"items":"#.repeat(100), "}".repeat(100));
        let reason = Validator::new(&RawJson::parse(deep).unwrap(), false).unwrap_err();
        assert_eq!(reason, "the schema nests deeper than 64");
    }

    #[cfg(feature = "validate")]
    fn check(schema: &'static str, value: &'static str) -> Result<(), String> {
        let validator = Validator::new(&RawJson::parse(schema).unwrap(), false)?;
        validator.check(&RawJson::parse(value).unwrap())
    }

    #[cfg(feature = "validate")]
    #[test]
    fn both_dialects_are_followed() {
        // proves: JSON-01, JSON-02, JSON-03
        // `prefixItems` is a keyword of 2020-12, and unknown to draft-07, where `items` may be a list.
        assert!(check(r#"{"prefixItems":[{"type":"string"}]}"#, "[1]").is_err());
        let draft_07 =
            r#"{"$schema":"http://json-schema.org/draft-07/schema#","prefixItems":[{"type":"string"}]}"#;
        assert!(check(draft_07, "[1]").is_ok());
        let tuple = r#"{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}]}"#;
        assert_eq!(check(tuple, "[1]").unwrap_err(), "/0: 1 is not of type \"string\"");
    }

    #[cfg(feature = "validate")]
    #[test]
    fn an_unknown_dialect_is_an_error() {
        // proves: JSON-04
        let reason = check(r#"{"$schema":"https://example.com/mine"}"#, "1").unwrap_err();
        assert_eq!(
            reason,
            "the dialect `https://example.com/mine` is not supported; use 2020-12 or draft-07"
        );
    }

    #[cfg(feature = "validate")]
    #[test]
    fn references_to_the_network_are_refused() {
        // proves: JSON-08, JSON-09
        let reason = check(r#"{"$ref":"http://127.0.0.1:9/schema.json"}"#, "1").unwrap_err();
        assert!(reason.contains("is not followed"), "{reason}");
    }

    /// A size.
    #[derive(Deserialize, JsonSchema)]
    enum Size {
        /// A small one.
        Small,
        /// A large one.
        Large,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Sized {
        size: Size,
        other: Option<Size>,
    }

    #[cfg(feature = "validate")]
    #[test]
    fn an_error_for_an_invalid_choice_lists_the_choices() {
        let validator = Validator::new(&of::<Sized>(), true).unwrap();
        let reason = |value: &'static str| validator.check(&RawJson::parse(value).unwrap()).unwrap_err();
        assert_eq!(reason(r#"{"size":"Huge"}"#), r#"/size: "Huge" is not one of "Small", "Large""#);
        assert_eq!(
            reason(r#"{"size":"Small","other":"Huge"}"#),
            r#"/other: "Huge" is not one of "Small", "Large""#
        );
        assert_eq!(reason("{}"), r#""size" is a required property"#);
    }
}
