//! Tools with special schemas.

use bowline::{prelude::*, types::RawJson};
use serde_json::Value;

pub(super) fn add(server: Server) -> Server {
    server.tool(json_schema_2020_12_tool()).tool(test_custom_header::tool())
}

/// A tool with a hand-written schema, which clients see unchanged.
fn json_schema_2020_12_tool() -> Tool {
    let schema = RawJson::of(&schema()).unwrap_or_default();
    Tool::new("json_schema_2020_12_tool")
        .description("Take arguments described by a JSON Schema 2020-12 schema")
        .input_schema(schema)
        .handler(|| "the arguments are valid")
}

fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

/// Take an argument that clients mirror in an HTTP header for routing.
#[tool(read_only)]
fn test_custom_header(
    /// The region.
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
) -> String {
    format!("looked in {region}")
}
