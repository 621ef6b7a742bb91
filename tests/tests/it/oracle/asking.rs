//! What passes between the sides besides calls: questions, answers, notices and errors, with the members of every revision.

use super::{
    json::{
        Member::{self, Always, Sometimes},
        Values, any_object, anything, base64, count, flag, list, meta, name, number, object, one_of, share,
        text, uri,
    },
    values::{block, content, result_meta, tool},
};
use proptest::prelude::{Just, Strategy, prop_oneof};
use serde_json::json;

/// Every kind of block that sampling has.
fn sampling_content() -> Values {
    let media = || vec![Always("data", base64()), Always("mimeType", text())];
    let tagged = |kind: &'static str, mut members: Vec<Member>| {
        members.push(Always("type", Just(kind.into()).boxed()));
        members.push(Sometimes("_meta", meta()));
        object(members)
    };
    let block = prop_oneof![
        block("text", vec![Always("text", text())]),
        block("image", media()),
        block("audio", media()),
        tagged("tool_use", vec![Always("id", name()), Always("name", name()), Always("input", any_object())]),
        tagged(
            "tool_result",
            vec![
                Always("toolUseId", name()),
                Always("content", list(content())),
                Sometimes("structuredContent", any_object()),
                Sometimes("isError", flag()),
            ]
        ),
    ]
    .boxed();
    prop_oneof![block.clone(), list(block)].boxed()
}

pub(crate) fn create_message_params() -> Values {
    let message = object(vec![
        Always("role", one_of(&["user", "assistant"])),
        Always("content", sampling_content()),
        Sometimes("_meta", meta()),
    ]);
    let preferences = object(vec![
        Sometimes("hints", list(object(vec![Sometimes("name", text())]))),
        Sometimes("costPriority", share()),
        Sometimes("speedPriority", share()),
        Sometimes("intelligencePriority", share()),
    ]);
    object(vec![
        Always("messages", list(message)),
        Always("maxTokens", count()),
        Sometimes("modelPreferences", preferences),
        Sometimes("systemPrompt", text()),
        Sometimes("includeContext", one_of(&["none", "thisServer", "allServers"])),
        Sometimes("temperature", share()),
        Sometimes("stopSequences", list(text())),
        Sometimes("metadata", any_object()),
        Sometimes("tools", list(tool())),
        Sometimes("toolChoice", object(vec![Sometimes("mode", one_of(&["auto", "required", "none"]))])),
        Sometimes("task", object(vec![Sometimes("ttl", count())])),
        Sometimes("_meta", meta()),
    ])
}

pub(crate) fn create_message_result() -> Values {
    object(vec![
        Always("role", one_of(&["assistant"])),
        Always("content", sampling_content()),
        Always("model", text()),
        Sometimes("stopReason", one_of(&["endTurn", "toolUse", "maxTokens", "else"])),
        Sometimes("_meta", meta()),
    ])
}

fn named(kind: &'static str, mut members: Vec<Member>) -> Values {
    members.push(Always("type", Just(kind.into()).boxed()));
    members.push(Sometimes("title", text()));
    members.push(Sometimes("description", text()));
    object(members)
}

/// Every kind of question a form can have.
fn field() -> Values {
    let choices = || list(name());
    let titled = || list(object(vec![Always("const", name()), Always("title", text())]));
    let items = prop_oneof![
        object(vec![Always("type", Just("string".into()).boxed()), Always("enum", choices())]),
        object(vec![Always("anyOf", titled())]),
    ]
    .boxed();
    let numeric = |kind| {
        named(
            kind,
            vec![
                Sometimes("minimum", number()),
                Sometimes("maximum", number()),
                Sometimes("default", number()),
            ],
        )
    };
    prop_oneof![
        named(
            "string",
            vec![
                Sometimes("minLength", count()),
                Sometimes("maxLength", count()),
                Sometimes("format", one_of(&["email", "uri", "date", "date-time"])),
                Sometimes("default", text()),
            ]
        ),
        numeric("number"),
        numeric("integer"),
        named("boolean", vec![Sometimes("default", flag())]),
        named("string", vec![Always("enum", choices()), Sometimes("default", name())]),
        named("string", vec![Always("enum", choices()), Always("enumNames", choices())]),
        named("string", vec![Always("oneOf", titled()), Sometimes("default", name())]),
        named(
            "array",
            vec![
                Always("items", items),
                Sometimes("minItems", count()),
                Sometimes("maxItems", count()),
                Sometimes("default", choices()),
            ]
        ),
    ]
    .boxed()
}

pub(crate) fn form_params() -> Values {
    let requested = object(vec![
        Always("type", Just("object".into()).boxed()),
        Always("properties", object(vec![Sometimes("a", field()), Sometimes("b", field())])),
        Sometimes("required", list(one_of(&["a", "b"]))),
        Sometimes("$schema", one_of(&["https://json-schema.org/draft/2020-12/schema"])),
    ]);
    object(vec![
        Always("message", text()),
        Always("requestedSchema", requested),
        Sometimes("mode", Just("form".into()).boxed()),
        Sometimes("task", object(vec![Sometimes("ttl", count())])),
        Sometimes("_meta", meta()),
    ])
}

pub(crate) fn url_params() -> Values {
    object(vec![
        Always("mode", Just("url".into()).boxed()),
        Always("message", text()),
        Always("url", one_of(&["https://example.com/sign-in"])),
        Always("elicitationId", name()),
        Sometimes("task", object(vec![Sometimes("ttl", count())])),
        Sometimes("_meta", meta()),
    ])
}

pub(crate) fn elicit_result() -> Values {
    let answer = prop_oneof![text(), number(), flag(), list(text())].boxed();
    object(vec![
        Always("action", one_of(&["accept", "decline", "cancel"])),
        Sometimes("content", object(vec![Sometimes("a", answer.clone()), Sometimes("b", answer)])),
        Sometimes("_meta", meta()),
    ])
}

pub(crate) fn list_roots_result() -> Values {
    let root = object(vec![
        Always("uri", one_of(&["file:///tmp/a", "file:///b%20c"])),
        Sometimes("name", text()),
        Sometimes("_meta", meta()),
    ]);
    object(vec![Always("roots", list(root)), Sometimes("_meta", meta())])
}

pub(crate) fn input_required_result() -> Values {
    let request = |method: &'static str, params: Values| {
        object(vec![Always("method", Just(method.into()).boxed()), Always("params", params)])
    };
    let requests = object(vec![
        Sometimes("form", request("elicitation/create", form_params())),
        Sometimes("url", request("elicitation/create", url_params())),
        Sometimes("sample", request("sampling/createMessage", create_message_params())),
        Sometimes("roots", object(vec![Always("method", Just("roots/list".into()).boxed())])),
    ]);
    object(vec![
        Always("resultType", Just("input_required".into()).boxed()),
        Sometimes("inputRequests", requests),
        Always("requestState", text()),
        Sometimes("_meta", result_meta()),
    ])
}

pub(crate) fn progress_params() -> Values {
    object(vec![
        Always("progressToken", prop_oneof![text(), count()].boxed()),
        Always("progress", number()),
        Sometimes("total", number()),
        Sometimes("message", text()),
        Sometimes("_meta", meta()),
    ])
}

pub(crate) fn log_params() -> Values {
    let levels = &["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    object(vec![
        Always("level", one_of(levels)),
        Always("data", anything()),
        Sometimes("logger", text()),
        Sometimes("_meta", meta()),
    ])
}

/// What a server of 2026-07-28 may miss.
fn missing_capabilities() -> Values {
    let none = || Just(json!({})).boxed();
    object(vec![
        Sometimes("roots", none()),
        Sometimes("sampling", object(vec![Sometimes("tools", none())])),
        Sometimes("elicitation", object(vec![Sometimes("form", none()), Sometimes("url", none())])),
    ])
}

pub(crate) fn error() -> Values {
    let with = |code: i64, data: Option<Values>| {
        let mut members = vec![Always("code", Just(code.into()).boxed()), Always("message", text())];
        members.extend(data.map(|data| Always("data", data)));
        object(members)
    };
    prop_oneof![
        prop_oneof![
            with(-32700, None),
            with(-32601, Some(anything())),
            with(-32603, None),
            with(7, Some(anything()))
        ],
        with(-32602, Some(anything())),
        with(-32002, Some(object(vec![Always("uri", uri())]))),
        with(-32042, Some(object(vec![Always("elicitations", list(url_params()))]))),
        with(-32020, None),
        with(-32021, Some(object(vec![Always("requiredCapabilities", missing_capabilities())]))),
        with(
            -32022,
            Some(object(vec![
                Always("supported", list(one_of(&["2026-07-28"]))),
                Always("requested", text())
            ]))
        ),
    ]
    .boxed()
}
