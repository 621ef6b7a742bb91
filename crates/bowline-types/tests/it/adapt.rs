//! What each revision makes of a value that uses everything.

use std::fmt::Write as _;

use bowline_types::*;
use expect_test::{Expect, expect};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a value and writes it for every revision, one line each; equal neighbors share a line.
#[expect(clippy::needless_pass_by_value, reason = "that is how snapshots are written at the call")]
fn check<T: Adapt + Serialize + DeserializeOwned>(json: &str, expected: Expect) {
    let mut lines: Vec<(String, String)> = Vec::new();
    for revision in Revision::ALL {
        let mut value: T = serde_json::from_str(json).unwrap();
        value.adapt(revision);
        let once = serde_json::to_string(&value).unwrap();
        value.adapt(revision);
        assert_eq!(serde_json::to_string(&value).unwrap(), once, "adapting twice changes nothing more");
        match lines.last_mut() {
            Some((revisions, text)) if *text == once => write!(revisions, " {revision}").unwrap(),
            _ => lines.push((revision.to_string(), once)),
        }
    }
    let shown: Vec<String> =
        lines.iter().map(|(revisions, text)| format!("{revisions}\n  {text}\n")).collect();
    expected.assert_eq(&shown.concat());
}

#[test]
fn tool() {
    check::<Tool>(
        r#"{"name":"n","title":"t","description":"d","icons":[{"src":"data:,"}],
            "inputSchema":{"$schema":"s","type":"object","properties":{"a":{"x-mcp-header":"A","type":"string"},"b":true}},
            "outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},
            "execution":{"taskSupport":"optional"},"_meta":{"k":1},"vendor":2}"#,
        expect![[r#"
            2024-11-05
              {"name":"n","description":"d","inputSchema":{"type":"object","properties":{"a":{"type":"string"},"b":{}}},"vendor":2}
            2025-03-26
              {"name":"n","description":"d","inputSchema":{"type":"object","properties":{"a":{"type":"string"},"b":{}}},"annotations":{"title":"t","readOnlyHint":true},"vendor":2}
            2025-06-18
              {"name":"n","title":"t","description":"d","inputSchema":{"type":"object","properties":{"a":{"type":"string"},"b":{}}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"k":1},"vendor":2}
            2025-11-25
              {"name":"n","title":"t","description":"d","icons":[{"src":"data:,"}],"inputSchema":{"$schema":"s","type":"object","properties":{"a":{"type":"string"},"b":{}}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"optional"},"_meta":{"k":1},"vendor":2}
            2026-07-28
              {"name":"n","title":"t","description":"d","icons":[{"src":"data:,"}],"inputSchema":{"$schema":"s","type":"object","properties":{"a":{"x-mcp-header":"A","type":"string"},"b":true}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"k":1},"vendor":2}
        "#]],
    );
}

#[test]
fn tool_title_in_2025_03_26_does_not_displace_the_hint() {
    check::<Tool>(
        r#"{"name":"n","title":"t","inputSchema":{"type":"object"},"annotations":{"title":"hint"}}"#,
        expect![[r#"
            2024-11-05
              {"name":"n","inputSchema":{"type":"object"}}
            2025-03-26
              {"name":"n","inputSchema":{"type":"object"},"annotations":{"title":"hint"}}
            2025-06-18 2025-11-25 2026-07-28
              {"name":"n","title":"t","inputSchema":{"type":"object"},"annotations":{"title":"hint"}}
        "#]],
    );
}

#[test]
fn output_schema_of_something_other_than_an_object() {
    check::<Tool>(
        r#"{"name":"n","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}"#,
        expect![[r#"
            2024-11-05 2025-03-26 2025-06-18 2025-11-25
              {"name":"n","inputSchema":{"type":"object"}}
            2026-07-28
              {"name":"n","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}
        "#]],
    );
}

#[test]
fn a_schema_that_needs_no_change_keeps_its_bytes() {
    check::<Tool>(
        r#"{"name":"n","inputSchema":{ "type" : "object" }}"#,
        expect![[r#"
        2024-11-05 2025-03-26 2025-06-18 2025-11-25 2026-07-28
          {"name":"n","inputSchema":{ "type" : "object" }}
    "#]],
    );
}

#[test]
fn content_of_a_tool_result() {
    check::<CallToolResult>(
        r#"{"content":[
            {"type":"text","text":"x","annotations":{"lastModified":"2025-01-01T00:00:00Z"},"_meta":{"k":1}},
            {"type":"image","data":"aGk=","mimeType":"image/png","annotations":{"audience":["user"],"priority":1.0,"lastModified":"l"}},
            {"type":"audio","data":"aGk=","mimeType":"audio/wav","annotations":{"priority":0.5}},
            {"type":"resource_link","uri":"file:///a","name":"a","title":"A","icons":[{"src":"data:,"}],"_meta":{}},
            {"type":"resource","resource":{"uri":"file:///b","text":"b","_meta":{}},"_meta":{}},
            {"type":"hologram","depth":3}],"_meta":{"k":1}}"#,
        expect![[r#"
            2024-11-05
              {"content":[{"type":"text","text":"x"},{"type":"image","data":"aGk=","mimeType":"image/png","annotations":{"audience":["user"],"priority":1}},{"type":"text","text":"[audio/wav]","annotations":{"priority":0.5}},{"type":"text","text":"[A](file:///a)"},{"type":"resource","resource":{"uri":"file:///b","text":"b"}},{"type":"hologram","depth":3}],"_meta":{"k":1}}
            2025-03-26
              {"content":[{"type":"text","text":"x"},{"type":"image","data":"aGk=","mimeType":"image/png","annotations":{"audience":["user"],"priority":1}},{"type":"audio","data":"aGk=","mimeType":"audio/wav","annotations":{"priority":0.5}},{"type":"text","text":"[A](file:///a)"},{"type":"resource","resource":{"uri":"file:///b","text":"b"}},{"type":"hologram","depth":3}],"_meta":{"k":1}}
            2025-06-18
              {"content":[{"type":"text","text":"x","annotations":{"lastModified":"2025-01-01T00:00:00Z"},"_meta":{"k":1}},{"type":"image","data":"aGk=","mimeType":"image/png","annotations":{"audience":["user"],"priority":1,"lastModified":"l"}},{"type":"audio","data":"aGk=","mimeType":"audio/wav","annotations":{"priority":0.5}},{"type":"resource_link","uri":"file:///a","name":"a","title":"A","_meta":{}},{"type":"resource","resource":{"uri":"file:///b","text":"b","_meta":{}},"_meta":{}},{"type":"hologram","depth":3}],"_meta":{"k":1}}
            2025-11-25
              {"content":[{"type":"text","text":"x","annotations":{"lastModified":"2025-01-01T00:00:00Z"},"_meta":{"k":1}},{"type":"image","data":"aGk=","mimeType":"image/png","annotations":{"audience":["user"],"priority":1,"lastModified":"l"}},{"type":"audio","data":"aGk=","mimeType":"audio/wav","annotations":{"priority":0.5}},{"type":"resource_link","uri":"file:///a","name":"a","title":"A","icons":[{"src":"data:,"}],"_meta":{}},{"type":"resource","resource":{"uri":"file:///b","text":"b","_meta":{}},"_meta":{}},{"type":"hologram","depth":3}],"_meta":{"k":1}}
            2026-07-28
              {"resultType":"complete","content":[{"type":"text","text":"x","annotations":{"lastModified":"2025-01-01T00:00:00Z"},"_meta":{"k":1}},{"type":"image","data":"aGk=","mimeType":"image/png","annotations":{"audience":["user"],"priority":1,"lastModified":"l"}},{"type":"audio","data":"aGk=","mimeType":"audio/wav","annotations":{"priority":0.5}},{"type":"resource_link","uri":"file:///a","name":"a","title":"A","icons":[{"src":"data:,"}],"_meta":{}},{"type":"resource","resource":{"uri":"file:///b","text":"b","_meta":{}},"_meta":{}},{"type":"hologram","depth":3}],"_meta":{"k":1}}
        "#]],
    );
}

#[test]
fn blocks_of_sampling_in_a_tool_result_become_text() {
    check::<CallToolResult>(
        r#"{"content":[{"type":"tool_use","id":"1","name":"f","input":{"a":1}},
            {"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"one"},{"type":"image","data":"","mimeType":"image/png"}]}]}"#,
        expect![[r#"
            2024-11-05 2025-03-26 2025-06-18 2025-11-25
              {"content":[{"type":"text","text":"[tool_use f {\"a\":1}]"},{"type":"text","text":"one\n[image/png]"}]}
            2026-07-28
              {"resultType":"complete","content":[{"type":"text","text":"[tool_use f {\"a\":1}]"},{"type":"text","text":"one\n[image/png]"}]}
        "#]],
    );
}

#[test]
fn structured_content_that_is_an_object() {
    check::<CallToolResult>(
        r#"{"content":[],"structuredContent":{"a":1},"isError":false}"#,
        expect![[r#"
        2024-11-05 2025-03-26
          {"content":[{"type":"text","text":"{\"a\":1}"}],"isError":false}
        2025-06-18 2025-11-25
          {"content":[],"structuredContent":{"a":1},"isError":false}
        2026-07-28
          {"resultType":"complete","content":[],"structuredContent":{"a":1},"isError":false}
    "#]],
    );
}

#[test]
fn structured_content_that_is_no_object() {
    check::<CallToolResult>(
        r#"{"content":[],"structuredContent":null}"#,
        expect![[r#"
        2024-11-05 2025-03-26 2025-06-18 2025-11-25
          {"content":[{"type":"text","text":"null"}]}
        2026-07-28
          {"resultType":"complete","content":[],"structuredContent":null}
    "#]],
    );
    check::<CallToolResult>(
        r#"{"content":[{"type":"text","text":"two"}],"structuredContent":2}"#,
        expect![[r#"
            2024-11-05 2025-03-26 2025-06-18 2025-11-25
              {"content":[{"type":"text","text":"two"}]}
            2026-07-28
              {"resultType":"complete","content":[{"type":"text","text":"two"}],"structuredContent":2}
        "#]],
    );
}

#[test]
fn list_of_tools() {
    check::<ListToolsResult>(
        r#"{"resultType":"complete","tools":[{"name":"n","title":"t","inputSchema":{"type":"object"}}],"nextCursor":"","ttlMs":5,"cacheScope":"public"}"#,
        expect![[r#"
            2024-11-05
              {"tools":[{"name":"n","inputSchema":{"type":"object"}}],"nextCursor":""}
            2025-03-26
              {"tools":[{"name":"n","inputSchema":{"type":"object"},"annotations":{"title":"t"}}],"nextCursor":""}
            2025-06-18 2025-11-25
              {"tools":[{"name":"n","title":"t","inputSchema":{"type":"object"}}],"nextCursor":""}
            2026-07-28
              {"resultType":"complete","tools":[{"name":"n","title":"t","inputSchema":{"type":"object"}}],"nextCursor":"","ttlMs":5,"cacheScope":"public"}
        "#]],
    );
}

#[test]
fn list_without_cache_hints() {
    check::<ListPromptsResult>(
        r#"{"prompts":[{"name":"n","title":"t","icons":[{"src":"data:,"}],"_meta":{},"arguments":[{"name":"a","title":"A","required":true}]}]}"#,
        expect![[r#"
            2024-11-05 2025-03-26
              {"prompts":[{"name":"n","arguments":[{"name":"a","required":true}]}]}
            2025-06-18
              {"prompts":[{"name":"n","title":"t","arguments":[{"name":"a","title":"A","required":true}],"_meta":{}}]}
            2025-11-25
              {"prompts":[{"name":"n","title":"t","arguments":[{"name":"a","title":"A","required":true}],"icons":[{"src":"data:,"}],"_meta":{}}]}
            2026-07-28
              {"resultType":"complete","prompts":[{"name":"n","title":"t","arguments":[{"name":"a","title":"A","required":true}],"icons":[{"src":"data:,"}],"_meta":{}}],"ttlMs":0,"cacheScope":"private"}
        "#]],
    );
}

#[test]
fn list_of_resources() {
    check::<ListResourcesResult>(
        r#"{"resources":[{"uri":"u","name":"n","title":"t","size":3,"icons":[{"src":"data:,"}],"_meta":{},"annotations":{"lastModified":"l","priority":0}}]}"#,
        expect![[r#"
            2024-11-05 2025-03-26
              {"resources":[{"uri":"u","name":"n","annotations":{"priority":0},"size":3}]}
            2025-06-18
              {"resources":[{"uri":"u","name":"n","title":"t","annotations":{"priority":0,"lastModified":"l"},"size":3,"_meta":{}}]}
            2025-11-25
              {"resources":[{"uri":"u","name":"n","title":"t","annotations":{"priority":0,"lastModified":"l"},"size":3,"icons":[{"src":"data:,"}],"_meta":{}}]}
            2026-07-28
              {"resultType":"complete","resources":[{"uri":"u","name":"n","title":"t","annotations":{"priority":0,"lastModified":"l"},"size":3,"icons":[{"src":"data:,"}],"_meta":{}}],"ttlMs":0,"cacheScope":"private"}
        "#]],
    );
}

#[test]
fn list_of_templates() {
    check::<ListResourceTemplatesResult>(
        r#"{"resourceTemplates":[{"uriTemplate":"u","name":"n","title":"t","icons":[{"src":"data:,"}],"_meta":{},"annotations":{"lastModified":"l"}}]}"#,
        expect![[r#"
            2024-11-05 2025-03-26
              {"resourceTemplates":[{"uriTemplate":"u","name":"n"}]}
            2025-06-18
              {"resourceTemplates":[{"uriTemplate":"u","name":"n","title":"t","annotations":{"lastModified":"l"},"_meta":{}}]}
            2025-11-25
              {"resourceTemplates":[{"uriTemplate":"u","name":"n","title":"t","annotations":{"lastModified":"l"},"icons":[{"src":"data:,"}],"_meta":{}}]}
            2026-07-28
              {"resultType":"complete","resourceTemplates":[{"uriTemplate":"u","name":"n","title":"t","annotations":{"lastModified":"l"},"icons":[{"src":"data:,"}],"_meta":{}}],"ttlMs":0,"cacheScope":"private"}
        "#]],
    );
}

#[test]
fn contents_of_a_resource() {
    check::<ReadResourceResult>(
        r#"{"contents":[{"uri":"u","text":"t","_meta":{}},{"uri":"v","blob":"aGk=","mimeType":"x/y"}]}"#,
        expect![[r#"
            2024-11-05 2025-03-26
              {"contents":[{"uri":"u","text":"t"},{"uri":"v","mimeType":"x/y","blob":"aGk="}]}
            2025-06-18 2025-11-25
              {"contents":[{"uri":"u","text":"t","_meta":{}},{"uri":"v","mimeType":"x/y","blob":"aGk="}]}
            2026-07-28
              {"resultType":"complete","contents":[{"uri":"u","text":"t","_meta":{}},{"uri":"v","mimeType":"x/y","blob":"aGk="}],"ttlMs":0,"cacheScope":"private"}
        "#]],
    );
}

#[test]
fn params_with_answers() {
    check::<CallToolParams>(
        r#"{"name":"n","arguments":{},"task":{"ttl":5},"inputResponses":{"k":{"action":"cancel"}},"requestState":"s"}"#,
        expect![[r#"
            2024-11-05 2025-03-26 2025-06-18
              {"name":"n","arguments":{}}
            2025-11-25
              {"name":"n","arguments":{},"task":{"ttl":5}}
            2026-07-28
              {"name":"n","arguments":{},"inputResponses":{"k":{"action":"cancel"}},"requestState":"s"}
        "#]],
    );
    check::<ReadResourceParams>(
        r#"{"uri":"u","inputResponses":{},"requestState":"s"}"#,
        expect![[r#"
        2024-11-05 2025-03-26 2025-06-18 2025-11-25
          {"uri":"u"}
        2026-07-28
          {"uri":"u","inputResponses":{},"requestState":"s"}
    "#]],
    );
    check::<GetPromptParams>(
        r#"{"name":"n","arguments":{"a":"b"},"inputResponses":{},"requestState":"s"}"#,
        expect![[r#"
            2024-11-05 2025-03-26 2025-06-18 2025-11-25
              {"name":"n","arguments":{"a":"b"}}
            2026-07-28
              {"name":"n","arguments":{"a":"b"},"inputResponses":{},"requestState":"s"}
        "#]],
    );
}

#[test]
fn prompt_messages() {
    check::<GetPromptResult>(
        r#"{"messages":[{"role":"user","content":{"type":"audio","data":"aGk=","mimeType":"audio/wav"}}]}"#,
        expect![[r#"
            2024-11-05
              {"messages":[{"role":"user","content":{"type":"text","text":"[audio/wav]"}}]}
            2025-03-26 2025-06-18 2025-11-25
              {"messages":[{"role":"user","content":{"type":"audio","data":"aGk=","mimeType":"audio/wav"}}]}
            2026-07-28
              {"resultType":"complete","messages":[{"role":"user","content":{"type":"audio","data":"aGk=","mimeType":"audio/wav"}}]}
        "#]],
    );
}

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
fn elicitation_by_url_only_is_no_elicitation_in_2025_06_18() {
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
fn completion_request() {
    check::<CompleteParams>(
        r#"{"ref":{"type":"ref/prompt","name":"n","title":"t"},"argument":{"name":"a","value":""},"context":{"arguments":{"b":"c"}}}"#,
        expect![[r#"
            2024-11-05 2025-03-26
              {"ref":{"type":"ref/prompt","name":"n"},"argument":{"name":"a","value":""}}
            2025-06-18 2025-11-25 2026-07-28
              {"ref":{"type":"ref/prompt","name":"n","title":"t"},"argument":{"name":"a","value":""},"context":{"arguments":{"b":"c"}}}
        "#]],
    );
}

#[test]
fn completion_is_cut_at_one_hundred_values() {
    let values: Vec<String> = (0..101).map(|index| index.to_string()).collect();
    let mut result = CompleteResult::new(Completion::new(values));
    result.adapt(Revision::V2024_11_05);
    let completion = &result.completion;
    assert_eq!(
        (completion.values.len(), completion.total, completion.has_more),
        (100, Some(101), Some(true))
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
