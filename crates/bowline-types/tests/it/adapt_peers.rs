//! What each revision makes of capabilities, of questions to the client and of errors.

use bowline_types::*;
use expect_test::expect;

use crate::snapshot::check;

#[test]
fn implementation() {
    check::<Implementation>(
        r#"{"name":"n","title":"t","version":"1","description":"d","icons":[{"src":"data:,"}],"websiteUrl":"w"}"#,
        expect![[r#"
            2024-11-05 2025-03-26
              {"name":"n","version":"1"}
            2025-06-18
              {"name":"n","title":"t","version":"1"}
            2025-11-25 2026-07-28
              {"name":"n","title":"t","version":"1","description":"d","icons":[{"src":"data:,"}],"websiteUrl":"w"}
        "#]],
    );
}

#[test]
fn client_capabilities() {
    check::<ClientCapabilities>(
        r#"{"experimental":{"e":{}},"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}},
            "elicitation":{"form":{},"url":{}},
            "tasks":{"list":{},"requests":{"sampling":{"createMessage":{}}}},
            "extensions":{"io.modelcontextprotocol/tasks":{},"com.example/x":{"a":1}}}"#,
        expect![[r#"
            2024-11-05 2025-03-26
              {"experimental":{"e":{}},"roots":{"listChanged":true},"sampling":{}}
            2025-06-18
              {"experimental":{"e":{}},"roots":{"listChanged":true},"sampling":{},"elicitation":{}}
            2025-11-25
              {"experimental":{"e":{}},"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}},"tasks":{"list":{},"requests":{"sampling":{"createMessage":{}}}},"extensions":{"com.example/x":{"a":1}}}
            2026-07-28
              {"experimental":{"e":{}},"roots":{},"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}},"extensions":{"io.modelcontextprotocol/tasks":{},"com.example/x":{"a":1}}}
        "#]],
    );
}

#[test]
fn url_only_elicitation_is_not_declared_in_2025_06_18() {
    check::<ClientCapabilities>(
        r#"{"elicitation":{"url":{}}}"#,
        expect![[r#"
        2024-11-05 2025-03-26 2025-06-18
          {}
        2025-11-25 2026-07-28
          {"elicitation":{"url":{}}}
    "#]],
    );
}

#[test]
fn server_capabilities() {
    check::<ServerCapabilities>(
        r#"{"logging":{},"completions":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":false},
            "tools":{},"tasks":{"requests":{"tools":{"call":{}}}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
        expect![[r#"
            2024-11-05
              {"logging":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":false},"tools":{}}
            2025-03-26 2025-06-18
              {"logging":{},"completions":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":false},"tools":{}}
            2025-11-25
              {"logging":{},"completions":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":false},"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}
            2026-07-28
              {"logging":{},"completions":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":false},"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}
        "#]],
    );
}

#[test]
fn handshake() {
    check::<InitializeParams>(
        r#"{"protocolVersion":"2024-11-05","capabilities":{"elicitation":{}},"clientInfo":{"name":"n","title":"t","version":"1"}}"#,
        expect![[r#"
            2024-11-05 2025-03-26
              {"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"n","version":"1"}}
            2025-06-18 2025-11-25 2026-07-28
              {"protocolVersion":"2024-11-05","capabilities":{"elicitation":{}},"clientInfo":{"name":"n","title":"t","version":"1"}}
        "#]],
    );
    check::<InitializeResult>(
        r#"{"protocolVersion":"2024-11-05","capabilities":{"completions":{}},"serverInfo":{"name":"n","title":"t","version":"1"}}"#,
        expect![[r#"
            2024-11-05
              {"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"n","version":"1"}}
            2025-03-26
              {"protocolVersion":"2024-11-05","capabilities":{"completions":{}},"serverInfo":{"name":"n","version":"1"}}
            2025-06-18 2025-11-25
              {"protocolVersion":"2024-11-05","capabilities":{"completions":{}},"serverInfo":{"name":"n","title":"t","version":"1"}}
            2026-07-28
              {"resultType":"complete","protocolVersion":"2024-11-05","capabilities":{"completions":{}},"serverInfo":{"name":"n","title":"t","version":"1"}}
        "#]],
    );
}

#[test]
fn form_elicitation() {
    check::<ElicitParams>(
        r#"{"mode":"form","message":"m","task":{},"requestedSchema":{"$schema":"s","type":"object","properties":{
            "text":{"type":"string","minLength":1,"default":"x"},
            "number":{"type":"integer","minimum":1,"default":2},
            "flag":{"type":"boolean","default":true},
            "plain":{"type":"string","enum":["a","b"],"default":"a"},
            "titled":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}],"default":"a"},
            "legacy":{"type":"string","enum":["a"],"enumNames":["A"]},
            "some":{"type":"array","title":"S","items":{"type":"string","enum":["a","b"]},"default":["a"]},
            "titledSome":{"type":"array","description":"D","minItems":1,"items":{"anyOf":[{"const":"a","title":"A"}]}}},
            "required":["text"]}}"#,
        expect![[r#"
            2024-11-05 2025-03-26 2025-06-18
              {"message":"m","requestedSchema":{"type":"object","properties":{"text":{"type":"string","minLength":1},"number":{"type":"integer","minimum":1},"flag":{"type":"boolean","default":true},"plain":{"type":"string","enum":["a","b"]},"titled":{"type":"string","enum":["a","b"],"enumNames":["A","B"]},"legacy":{"type":"string","enum":["a"],"enumNames":["A"]},"some":{"type":"string","title":"S","description":"Any of, separated by commas: a, b"},"titledSome":{"type":"string","description":"D\nAny of, separated by commas: a (A)"}},"required":["text"]}}
            2025-11-25
              {"mode":"form","message":"m","requestedSchema":{"type":"object","$schema":"s","properties":{"text":{"type":"string","minLength":1,"default":"x"},"number":{"type":"integer","minimum":1,"default":2},"flag":{"type":"boolean","default":true},"plain":{"type":"string","enum":["a","b"],"default":"a"},"titled":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}],"default":"a"},"legacy":{"type":"string","enum":["a"],"enumNames":["A"]},"some":{"type":"array","title":"S","items":{"type":"string","enum":["a","b"]},"default":["a"]},"titledSome":{"type":"array","description":"D","minItems":1,"items":{"anyOf":[{"const":"a","title":"A"}]}}},"required":["text"]},"task":{}}
            2026-07-28
              {"mode":"form","message":"m","requestedSchema":{"type":"object","$schema":"s","properties":{"text":{"type":"string","minLength":1,"default":"x"},"number":{"type":"integer","minimum":1,"default":2},"flag":{"type":"boolean","default":true},"plain":{"type":"string","enum":["a","b"],"default":"a"},"titled":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}],"default":"a"},"legacy":{"type":"string","enum":["a"],"enumNames":["A"]},"some":{"type":"array","title":"S","items":{"type":"string","enum":["a","b"]},"default":["a"]},"titledSome":{"type":"array","description":"D","minItems":1,"items":{"anyOf":[{"const":"a","title":"A"}]}}},"required":["text"]}}
        "#]],
    );
}

#[test]
fn url_elicitation() {
    check::<ElicitParams>(
        r#"{"mode":"url","message":"m","url":"https://example.com","elicitationId":"e","task":{"ttl":1}}"#,
        expect![[r#"
            2024-11-05 2025-03-26 2025-06-18
              {"mode":"url","message":"m","url":"https://example.com"}
            2025-11-25
              {"mode":"url","message":"m","url":"https://example.com","elicitationId":"e","task":{"ttl":1}}
            2026-07-28
              {"mode":"url","message":"m","url":"https://example.com"}
        "#]],
    );
}

#[test]
fn answer_to_an_elicitation() {
    check::<ElicitResult>(
        r#"{"resultType":"complete","action":"accept","content":{"a":["x","y"],"b":1.50}}"#,
        expect![[r#"
            2024-11-05 2025-03-26 2025-06-18
              {"action":"accept","content":{"a":"x, y","b":1.50}}
            2025-11-25 2026-07-28
              {"action":"accept","content":{"a":["x","y"],"b":1.50}}
        "#]],
    );
    check::<ElicitResult>(
        r#"{"action":"reject","content":{}}"#,
        expect![[r#"
        2024-11-05 2025-03-26 2025-06-18 2025-11-25 2026-07-28
          {"action":"decline"}
    "#]],
    );
}

#[test]
fn sampling_request() {
    check::<CreateMessageParams>(
        r#"{"messages":[
            {"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"image/png"}],"_meta":{}},
            {"role":"assistant","content":{"type":"tool_use","id":"1","name":"f","input":{}}},
            {"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"r"}],"structuredContent":[1]}]},
            {"role":"user","content":{"type":"audio","data":"","mimeType":"audio/wav"}},
            {"role":"user","content":{"type":"resource_link","uri":"u","name":"n"}},
            {"role":"user","content":[]}],
            "maxTokens":1,"temperature":1,"tools":[{"name":"n","inputSchema":{"type":"object"},"execution":{}}],
            "toolChoice":{"mode":"auto"},"task":{}}"#,
        expect![[r#"
            2024-11-05
              {"messages":[{"role":"user","content":{"type":"text","text":"a\n[image/png]"}},{"role":"assistant","content":{"type":"text","text":"[tool_use f {}]"}},{"role":"user","content":{"type":"text","text":"r"}},{"role":"user","content":{"type":"text","text":"[audio/wav]"}},{"role":"user","content":{"type":"text","text":"[n](u)"}},{"role":"user","content":{"type":"text","text":""}}],"temperature":1,"maxTokens":1}
            2025-03-26 2025-06-18
              {"messages":[{"role":"user","content":{"type":"text","text":"a\n[image/png]"}},{"role":"assistant","content":{"type":"text","text":"[tool_use f {}]"}},{"role":"user","content":{"type":"text","text":"r"}},{"role":"user","content":{"type":"audio","data":"","mimeType":"audio/wav"}},{"role":"user","content":{"type":"text","text":"[n](u)"}},{"role":"user","content":{"type":"text","text":""}}],"temperature":1,"maxTokens":1}
            2025-11-25
              {"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"image/png"}],"_meta":{}},{"role":"assistant","content":{"type":"tool_use","id":"1","name":"f","input":{}}},{"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"r"}]}]},{"role":"user","content":{"type":"audio","data":"","mimeType":"audio/wav"}},{"role":"user","content":{"type":"text","text":"[n](u)"}},{"role":"user","content":[]}],"temperature":1,"maxTokens":1,"tools":[{"name":"n","inputSchema":{"type":"object"},"execution":{}}],"toolChoice":{"mode":"auto"},"task":{}}
            2026-07-28
              {"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"image/png"}],"_meta":{}},{"role":"assistant","content":{"type":"tool_use","id":"1","name":"f","input":{}}},{"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"r"}],"structuredContent":[1]}]},{"role":"user","content":{"type":"audio","data":"","mimeType":"audio/wav"}},{"role":"user","content":{"type":"text","text":"[n](u)"}},{"role":"user","content":[]}],"temperature":1,"maxTokens":1,"tools":[{"name":"n","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"auto"}}
        "#]],
    );
}

#[test]
fn sampling_answer() {
    check::<CreateMessageResult>(
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{"a":1}}],"model":"m","stopReason":"toolUse","resultType":"complete"}"#,
        expect![[r#"
            2024-11-05 2025-03-26 2025-06-18
              {"role":"assistant","content":{"type":"text","text":"[tool_use f {\"a\":1}]"},"model":"m","stopReason":"endTurn"}
            2025-11-25 2026-07-28
              {"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{"a":1}}],"model":"m","stopReason":"toolUse"}
        "#]],
    );
}

#[test]
fn progress() {
    check::<ProgressParams>(
        r#"{"progressToken":1,"progress":50,"total":100.5,"message":"m"}"#,
        expect![[r#"
            2024-11-05
              {"progressToken":1,"progress":50,"total":100.5}
            2025-03-26 2025-06-18 2025-11-25 2026-07-28
              {"progressToken":1,"progress":50,"total":100.5,"message":"m"}
        "#]],
    );
}

#[test]
fn roots() {
    check::<ListRootsResult>(
        r#"{"roots":[{"uri":"file:///a","name":"a","_meta":{}}],"resultType":"complete"}"#,
        expect![[r#"
            2024-11-05 2025-03-26
              {"roots":[{"uri":"file:///a","name":"a"}]}
            2025-06-18 2025-11-25 2026-07-28
              {"roots":[{"uri":"file:///a","name":"a","_meta":{}}]}
        "#]],
    );
}

#[test]
fn questions_in_a_result() {
    check::<InputRequiredResult>(
        r#"{"inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"u","elicitationId":"e"}}},"requestState":"s"}"#,
        expect![[r#"
            2024-11-05 2025-03-26 2025-06-18
              {"inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"u"}}},"requestState":"s"}
            2025-11-25
              {"inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"u","elicitationId":"e"}}},"requestState":"s"}
            2026-07-28
              {"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"u"}}},"requestState":"s"}
        "#]],
    );
}

#[test]
fn errors() {
    let show = |error: RpcError| {
        let lines = Revision::ALL.map(|revision| {
            let mut error = error.clone();
            error.adapt(revision);
            format!("{revision} {}\n", serde_json::to_string(&error).unwrap())
        });
        lines.concat()
    };
    expect![[r#"
        2024-11-05 {"code":-32002,"message":"resource not found: file:///x","data":{"uri":"file:///x"}}
        2025-03-26 {"code":-32002,"message":"resource not found: file:///x","data":{"uri":"file:///x"}}
        2025-06-18 {"code":-32002,"message":"resource not found: file:///x","data":{"uri":"file:///x"}}
        2025-11-25 {"code":-32002,"message":"resource not found: file:///x","data":{"uri":"file:///x"}}
        2026-07-28 {"code":-32602,"message":"resource not found: file:///x","data":{"uri":"file:///x"}}
    "#]]
    .assert_eq(&show(RpcError::resource_not_found("file:///x")));
    expect![[r#"
        2024-11-05 {"code":-32603,"message":"URL elicitation required"}
        2025-03-26 {"code":-32603,"message":"URL elicitation required"}
        2025-06-18 {"code":-32603,"message":"URL elicitation required"}
        2025-11-25 {"code":-32042,"message":"URL elicitation required","data":{"elicitations":[{"mode":"url","message":"m","url":"u","elicitationId":"e"}]}}
        2026-07-28 {"code":-32603,"message":"URL elicitation required"}
    "#]].assert_eq(&show(RpcError::url_elicitation_required(vec![
        ElicitUrlParams::new("m", "u").elicitation_id("e"),
    ])));
    expect![[r#"
        2024-11-05 {"code":-32602,"message":"unsupported protocol version: 1999-01-01","data":{"supported":["2026-07-28"],"requested":"1999-01-01"}}
        2025-03-26 {"code":-32602,"message":"unsupported protocol version: 1999-01-01","data":{"supported":["2026-07-28"],"requested":"1999-01-01"}}
        2025-06-18 {"code":-32602,"message":"unsupported protocol version: 1999-01-01","data":{"supported":["2026-07-28"],"requested":"1999-01-01"}}
        2025-11-25 {"code":-32602,"message":"unsupported protocol version: 1999-01-01","data":{"supported":["2026-07-28"],"requested":"1999-01-01"}}
        2026-07-28 {"code":-32022,"message":"unsupported protocol version: 1999-01-01","data":{"supported":["2026-07-28"],"requested":"1999-01-01"}}
    "#]].assert_eq(&show(RpcError::unsupported_version("1999-01-01", &[Revision::LATEST])));
    let needed = ClientCapabilities::new().sampling(SamplingCapability::new());
    expect![[r#"
        2024-11-05 {"code":-32600,"message":"missing required client capability","data":{"requiredCapabilities":{"sampling":{}}}}
        2025-03-26 {"code":-32600,"message":"missing required client capability","data":{"requiredCapabilities":{"sampling":{}}}}
        2025-06-18 {"code":-32600,"message":"missing required client capability","data":{"requiredCapabilities":{"sampling":{}}}}
        2025-11-25 {"code":-32600,"message":"missing required client capability","data":{"requiredCapabilities":{"sampling":{}}}}
        2026-07-28 {"code":-32021,"message":"missing required client capability","data":{"requiredCapabilities":{"sampling":{}}}}
    "#]].assert_eq(&show(RpcError::missing_capability(&needed)));
    expect![[r#"
        2024-11-05 {"code":-32600,"message":"h"}
        2025-03-26 {"code":-32600,"message":"h"}
        2025-06-18 {"code":-32600,"message":"h"}
        2025-11-25 {"code":-32600,"message":"h"}
        2026-07-28 {"code":-32020,"message":"h"}
    "#]]
    .assert_eq(&show(RpcError::header_mismatch("h")));
    expect![[r#"
        2024-11-05 {"code":-32602,"message":"p","data":null}
        2025-03-26 {"code":-32602,"message":"p","data":null}
        2025-06-18 {"code":-32602,"message":"p","data":null}
        2025-11-25 {"code":-32602,"message":"p","data":null}
        2026-07-28 {"code":-32602,"message":"p","data":null}
    "#]]
    .assert_eq(&show(RpcError::invalid_params("p").with_data(RawJson::null())));
}

#[test]
fn metadata_of_params() {
    check::<EmptyParams>(
        r#"{"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"n","version":"1"},
            "io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info","io.modelcontextprotocol/related-task":{"taskId":"t"},
            "traceparent":"x","com.example/k":1}}"#,
        expect![[r#"
            2024-11-05 2025-03-26 2025-06-18
              {"_meta":{"progressToken":1,"traceparent":"x","com.example/k":1}}
            2025-11-25
              {"_meta":{"progressToken":1,"io.modelcontextprotocol/related-task":{"taskId":"t"},"traceparent":"x","com.example/k":1}}
            2026-07-28
              {"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"n","version":"1"},"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info","traceparent":"x","com.example/k":1}}
        "#]],
    );
}

#[test]
fn metadata_of_results() {
    check::<CallToolResult>(
        r#"{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"1"}}}"#,
        expect![[r#"
            2024-11-05 2025-03-26 2025-06-18 2025-11-25
              {"content":[]}
            2026-07-28
              {"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"1"}}}
        "#]],
    );
}
