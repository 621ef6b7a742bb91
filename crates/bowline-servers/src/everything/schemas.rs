//! Tools whose schema is what matters.

use bowline::{prelude::*, types::RawJson};
use serde_json::Value;

pub(super) fn add(server: Server) -> Server {
    server.tool(json_schema_2020_12_tool()).tool(test_custom_header)
}

/// A tool with a schema written by hand, which clients see as it is.
fn json_schema_2020_12_tool() -> Tool {
    let schema = RawJson::of(&schema()).unwrap_or_default();
    Tool::new("json_schema_2020_12_tool")
        .description("Take arguments described with the vocabulary of JSON Schema 2020-12")
        .input_schema(schema)
        .handler(|| "the arguments fit")
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

/// Take a parameter that clients repeat in a header of HTTP, where routers can read it.
#[tool(read_only)]
fn test_custom_header(
    /// Where to look.
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
) -> String {
    format!("looked in {region}")
}
