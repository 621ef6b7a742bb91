//! What servers and clients say of themselves and offer, with the members of every revision.

use super::json::{
    Member::{self, Always, Sometimes},
    Values, any_object, anything, base64, count, flag, list, meta, name, object, one_of, settings, share,
    text, uri,
};
use proptest::prelude::{Just, Strategy, prop_oneof};
use serde_json::json;

/// The `_meta` of a result: it may name the server.
pub(crate) fn result_meta() -> Values {
    object(vec![
        Sometimes("com.example/key", anything()),
        Sometimes("io.modelcontextprotocol/serverInfo", implementation()),
    ])
}

fn icons() -> Values {
    list(object(vec![
        Always("src", one_of(&["https://example.com/icon.png", "data:image/png;base64,cG5n"])),
        Sometimes("mimeType", one_of(&["image/png"])),
        Sometimes("sizes", list(one_of(&["48x48", "any"]))),
        Sometimes("theme", one_of(&["light", "dark"])),
    ]))
}

fn annotations() -> Values {
    object(vec![
        Sometimes("audience", list(one_of(&["user", "assistant"]))),
        Sometimes("priority", share()),
        Sometimes("lastModified", one_of(&["2025-01-12T15:00:58Z"])),
    ])
}

pub(crate) fn implementation() -> Values {
    object(vec![
        Always("name", text()),
        Always("version", text()),
        Sometimes("title", text()),
        Sometimes("description", text()),
        Sometimes("icons", icons()),
        Sometimes("websiteUrl", one_of(&["https://example.com/"])),
    ])
}

fn contents() -> Values {
    let common = || vec![Always("uri", uri()), Sometimes("mimeType", text()), Sometimes("_meta", meta())];
    let with = |member| object(common().into_iter().chain([member]).collect());
    prop_oneof![with(Always("text", text())), with(Always("blob", base64()))].boxed()
}

/// A block with hints and metadata.
pub(crate) fn block(kind: &'static str, mut members: Vec<Member>) -> Values {
    members.push(Always("type", Just(kind.into()).boxed()));
    members.push(Sometimes("annotations", annotations()));
    members.push(Sometimes("_meta", meta()));
    object(members)
}

/// Every kind of block that tools and prompts have.
pub(crate) fn content() -> Values {
    let media = || vec![Always("data", base64()), Always("mimeType", text())];
    let link = vec![
        Always("uri", uri()),
        Always("name", name()),
        Sometimes("title", text()),
        Sometimes("description", text()),
        Sometimes("mimeType", text()),
        Sometimes("size", count()),
        Sometimes("icons", icons()),
    ];
    prop_oneof![
        block("text", vec![Always("text", text())]),
        block("image", media()),
        block("audio", media()),
        block("resource_link", link),
        block("resource", vec![Always("resource", contents())]),
    ]
    .boxed()
}

pub(crate) fn schema() -> Values {
    object(vec![
        Always("type", Just("object".into()).boxed()),
        Sometimes("$schema", one_of(&["https://json-schema.org/draft/2020-12/schema"])),
        Sometimes(
            "properties",
            object(vec![
                Sometimes("a", Just(json!({ "type": "string", "x-mcp-header": "A" })).boxed()),
                Sometimes("b", Just(json!(true)).boxed()),
                Sometimes("c", Just(json!({ "type": "object", "properties": { "d": false } })).boxed()),
            ]),
        ),
        Sometimes("required", list(name())),
        Sometimes("additionalProperties", flag()),
    ])
}

pub(crate) fn tool() -> Values {
    let hints = vec![
        Sometimes("title", text()),
        Sometimes("readOnlyHint", flag()),
        Sometimes("destructiveHint", flag()),
        Sometimes("idempotentHint", flag()),
        Sometimes("openWorldHint", flag()),
    ];
    let output = prop_oneof![schema(), Just(json!({ "type": "array" })).boxed()].boxed();
    object(vec![
        Always("name", name()),
        Always("inputSchema", schema()),
        Sometimes("title", text()),
        Sometimes("description", text()),
        Sometimes("icons", icons()),
        Sometimes("outputSchema", output),
        Sometimes("annotations", object(hints)),
        Sometimes(
            "execution",
            object(vec![Sometimes("taskSupport", one_of(&["forbidden", "optional", "required"]))]),
        ),
        Sometimes("_meta", meta()),
    ])
}

pub(crate) fn call_tool_result() -> Values {
    object(vec![
        Always("content", list(content())),
        Sometimes("structuredContent", anything()),
        Sometimes("isError", flag()),
        Sometimes("_meta", result_meta()),
    ])
}

fn resource_members() -> Vec<Member> {
    vec![
        Always("name", name()),
        Sometimes("title", text()),
        Sometimes("description", text()),
        Sometimes("mimeType", text()),
        Sometimes("annotations", annotations()),
        Sometimes("icons", icons()),
        Sometimes("_meta", meta()),
    ]
}

pub(crate) fn resource() -> Values {
    let own = [Always("uri", uri()), Sometimes("size", count())];
    object(resource_members().into_iter().chain(own).collect())
}

pub(crate) fn resource_template() -> Values {
    let own = [Always("uriTemplate", one_of(&["test://{id}", "test://x{?a,b}"]))];
    object(resource_members().into_iter().chain(own).collect())
}

pub(crate) fn prompt() -> Values {
    let argument = object(vec![
        Always("name", name()),
        Sometimes("title", text()),
        Sometimes("description", text()),
        Sometimes("required", flag()),
    ]);
    object(vec![
        Always("name", name()),
        Sometimes("title", text()),
        Sometimes("description", text()),
        Sometimes("arguments", list(argument)),
        Sometimes("icons", icons()),
        Sometimes("_meta", meta()),
    ])
}

pub(crate) fn get_prompt_result() -> Values {
    let message = object(vec![Always("role", one_of(&["user", "assistant"])), Always("content", content())]);
    object(vec![
        Always("messages", list(message)),
        Sometimes("description", text()),
        Sometimes("_meta", result_meta()),
    ])
}

pub(crate) fn cached(mut members: Vec<Member>) -> Values {
    members.push(Sometimes("ttlMs", count()));
    members.push(Sometimes("cacheScope", one_of(&["public", "private"])));
    members.push(Sometimes("_meta", result_meta()));
    object(members)
}

/// A page of a list.
pub(crate) fn page(items: &'static str, item: Values) -> Values {
    cached(vec![Always(items, list(item)), Sometimes("nextCursor", text())])
}

pub(crate) fn read_resource_result() -> Values {
    cached(vec![Always("contents", list(contents()))])
}

pub(crate) fn complete_result() -> Values {
    let completion = object(vec![
        Always("values", list(text())),
        Sometimes("total", count()),
        Sometimes("hasMore", flag()),
    ]);
    object(vec![Always("completion", completion), Sometimes("_meta", result_meta())])
}

pub(crate) fn client_capabilities() -> Values {
    let tasks = object(vec![
        Sometimes("list", any_object()),
        Sometimes("cancel", any_object()),
        Sometimes(
            "requests",
            object(vec![
                Sometimes("sampling", object(vec![Sometimes("createMessage", any_object())])),
                Sometimes("elicitation", object(vec![Sometimes("create", any_object())])),
            ]),
        ),
    ]);
    object(vec![
        Sometimes("experimental", settings()),
        Sometimes("roots", object(vec![Sometimes("listChanged", flag())])),
        Sometimes(
            "sampling",
            object(vec![Sometimes("context", any_object()), Sometimes("tools", any_object())]),
        ),
        Sometimes(
            "elicitation",
            object(vec![Sometimes("form", any_object()), Sometimes("url", any_object())]),
        ),
        Sometimes("tasks", tasks),
        Sometimes("extensions", settings()),
    ])
}

pub(crate) fn server_capabilities() -> Values {
    let changing = || object(vec![Sometimes("listChanged", flag())]);
    let tasks = object(vec![
        Sometimes("list", any_object()),
        Sometimes("cancel", any_object()),
        Sometimes(
            "requests",
            object(vec![Sometimes("tools", object(vec![Sometimes("call", any_object())]))]),
        ),
    ]);
    object(vec![
        Sometimes("experimental", settings()),
        Sometimes("logging", any_object()),
        Sometimes("completions", any_object()),
        Sometimes("prompts", changing()),
        Sometimes("tools", changing()),
        Sometimes(
            "resources",
            object(vec![Sometimes("subscribe", flag()), Sometimes("listChanged", flag())]),
        ),
        Sometimes("tasks", tasks),
        Sometimes("extensions", settings()),
    ])
}

pub(crate) fn initialize_params() -> Values {
    object(vec![
        Always("protocolVersion", one_of(&["2025-11-25", "2024-11-05"])),
        Always("capabilities", client_capabilities()),
        Always("clientInfo", implementation()),
    ])
}

pub(crate) fn initialize_result() -> Values {
    object(vec![
        Always("protocolVersion", one_of(&["2025-11-25", "2024-11-05"])),
        Always("capabilities", server_capabilities()),
        Always("serverInfo", implementation()),
        Sometimes("instructions", text()),
        Sometimes("_meta", result_meta()),
    ])
}

pub(crate) fn discover_result() -> Values {
    cached(vec![
        Always("supportedVersions", list(one_of(&["2026-07-28", "2025-11-25"]))),
        Always("capabilities", server_capabilities()),
        Sometimes("instructions", text()),
    ])
}
