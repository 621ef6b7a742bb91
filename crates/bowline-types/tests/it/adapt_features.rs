//! What each revision makes of tools, resources, prompts and completions that use everything.

use bowline_types::*;
use expect_test::expect;

use crate::snapshot::check;

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
fn structured_content_that_is_not_an_object() {
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
