//! Validates answers to forms, including patterns.

use crate::tools;
use bowline_types::{ElicitSchema, PrimitiveSchema, RawMap};
use serde_json::Value;

/// Validates the answer to a form. The error names the field and the reason.
///
/// In addition to [`ElicitSchema::validate_members`], this checks the patterns of text fields, which needs the feature
/// `validate`. An unsupported pattern, such as one with look-around, is not enforced.
pub fn check_form(schema: &ElicitSchema, content: &RawMap) -> Result<(), String> {
    schema.validate_members(content)?;
    for (name, field) in &schema.properties {
        let value = content.get(name).and_then(|value| value.to_value().ok());
        if let Some(value) = value {
            check_pattern(field, &value).map_err(|reason| format!("`{name}`: {reason}"))?;
        }
    }
    Ok(())
}

/// Validates the value of one field of a form, like [`check_form`].
pub fn check_field(field: &PrimitiveSchema, value: &Value) -> Result<(), String> {
    field.validate(value)?;
    check_pattern(field, value)
}

fn check_pattern(field: &PrimitiveSchema, value: &Value) -> Result<(), String> {
    let (PrimitiveSchema::String(schema), Some(text)) = (field, value.as_str()) else { return Ok(()) };
    match &schema.pattern {
        Some(pattern) if !tools::matches_pattern(pattern, text) => {
            Err(format!("expected text that matches the pattern `{pattern}`"))
        }
        _ => Ok(()),
    }
}
