//! Values of several types, and how they are distinguished.

use bowline_types::*;
use serde_json::json;

fn read<T: serde::de::DeserializeOwned>(value: &serde_json::Value) -> Result<T, String> {
    let from_tree = serde_json::from_value::<T>(value.clone()).map_err(|error| error.to_string());
    let from_text = serde_json::from_str::<T>(&value.to_string()).map_err(|error| error.to_string());
    assert_eq!(from_tree.is_ok(), from_text.is_ok(), "{value}");
    from_text
}

#[test]
fn blocks_are_identified_by_their_type_at_any_position() {
    let kinds = [
        (r#"{"type":"text","text":"x"}"#, "text"),
        (r#"{"text":"x","type":"text"}"#, "text"),
        (r#"{"data":"","mimeType":"m","type":"image"}"#, "image"),
        (r#"{"type":"audio","data":"","mimeType":"m"}"#, "audio"),
        (r#"{"uri":"u","name":"n","type":"resource_link"}"#, "resource_link"),
        (r#"{"resource":{"uri":"u","text":""},"type":"resource"}"#, "resource"),
        (r#"{"type":"tool_use","id":"i","name":"n","input":{}}"#, "tool_use"),
        (r#"{"type":"tool_result","toolUseId":"i","content":[]}"#, "tool_result"),
        (r#"{"type":"video","data":""}"#, "video"),
    ];
    for (json, kind) in kinds {
        let block: ContentBlock = serde_json::from_str(json).unwrap();
        assert_eq!(block.kind().as_deref(), Some(kind), "{json}");
        assert_eq!(matches!(block, ContentBlock::Unknown(_)), kind == "video", "{json}");
    }
    let odd: ContentBlock = serde_json::from_str(r#"{"type":7}"#).unwrap();
    assert_eq!((odd.kind(), serde_json::to_string(&odd).unwrap()), (None, r#"{"type":7}"#.to_owned()));
    assert!(serde_json::from_str::<ContentBlock>(r#"{"type":"text"}"#).is_err());
    assert!(serde_json::from_str::<ContentBlock>("7").is_err());
}

#[test]
fn contents_are_identified_by_their_members() {
    let contents = |value| read::<ResourceContents>(&value);
    assert!(matches!(contents(json!({"uri": "u", "text": "t"})), Ok(ResourceContents::Text(_))));
    assert!(matches!(contents(json!({"blob": "", "uri": "u"})), Ok(ResourceContents::Blob(_))));
    let both = contents(json!({"uri": "u", "text": "t", "blob": "b"})).unwrap();
    assert_eq!(serde_json::to_value(both).unwrap(), json!({"uri": "u", "text": "t", "blob": "b"}));
    assert!(contents(json!({"uri": "u"})).unwrap_err().contains("expected `text` or `blob`"));
    assert!(contents(json!({"text": "t"})).unwrap_err().contains("missing field `uri`"));
}

#[test]
fn bytes_are_written_in_base64() {
    let block = ContentBlock::image([0xff, 0, 1], "image/png");
    assert_eq!(
        serde_json::to_value(block).unwrap(),
        json!({"type": "image", "data": "/wAB", "mimeType": "image/png"})
    );
    let block = ContentBlock::resource(ResourceContents::blob("u", b"hi").mime_type("x/y"));
    assert_eq!(
        serde_json::to_value(block).unwrap(),
        json!({"type": "resource", "resource": {"uri": "u", "mimeType": "x/y", "blob": "aGk="}}),
    );
}

#[test]
fn references_are_identified_by_their_type() {
    let reference = |value| read::<Reference>(&value);
    assert_eq!(reference(json!({"type": "ref/prompt", "name": "n"})), Ok(Reference::prompt("n")));
    assert_eq!(reference(json!({"type": "ref/resource", "uri": "u"})), Ok(Reference::resource("u")));
    assert!(reference(json!({"type": "ref/tool"})).unwrap_err().contains("unknown variant `ref/tool`"));
    assert!(reference(json!({"name": "n"})).unwrap_err().contains("missing field `type`"));
}

// proves: ELIF-08
#[test]
fn elicitation_is_identified_by_its_mode() {
    let params = |value| read::<ElicitParams>(&value);
    let schema = json!({"type": "object", "properties": {}});
    let form = json!({"message": "m", "requestedSchema": schema});
    assert!(matches!(params(form), Ok(ElicitParams::Form(_))));
    let form = json!({"mode": "form", "message": "m", "requestedSchema": schema});
    assert!(matches!(params(form), Ok(ElicitParams::Form(_))));
    assert!(matches!(params(json!({"mode": "url", "message": "m", "url": "u"})), Ok(ElicitParams::Url(_))));
    assert!(
        params(json!({"mode": "voice", "message": "m"})).unwrap_err().contains("unknown variant `voice`")
    );
    assert!(params(json!({"message": "m"})).unwrap_err().contains("missing field `requestedSchema`"));
}

#[test]
fn form_fields_are_identified_by_type_and_choices() {
    let kind = |value: serde_json::Value| match read::<PrimitiveSchema>(&value).unwrap() {
        PrimitiveSchema::String(_) => "string",
        PrimitiveSchema::Number(_) => "number",
        PrimitiveSchema::Boolean(_) => "boolean",
        PrimitiveSchema::Enum(_) => "enum",
        PrimitiveSchema::MultiSelect(_) => "multi",
        PrimitiveSchema::Unknown(_) => "unknown",
        _ => "new",
    };
    for (schema, expected) in [
        (json!({"type": "string"}), "string"),
        (json!({"type": "string", "enum": ["a"]}), "enum"),
        (json!({"type": "string", "enum": ["a"], "enumNames": ["A"]}), "enum"),
        (json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}), "enum"),
        (json!({"type": "number"}), "number"),
        (json!({"type": "integer"}), "number"),
        (json!({"type": "boolean"}), "boolean"),
        (json!({"type": "array", "items": {"type": "string", "enum": ["a"]}}), "multi"),
        (json!({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}), "multi"),
        (json!({"type": "array", "items": {"type": "object"}}), "unknown"),
        (json!({"type": "object", "properties": {}}), "unknown"),
        (json!({"type": ["string", "null"]}), "unknown"),
        (json!({}), "unknown"),
    ] {
        assert_eq!(kind(schema.clone()), expected, "{schema}");
    }
}

#[test]
fn content_of_messages_is_one_block_or_a_list() {
    let message = |value| read::<SamplingMessage>(&value).unwrap().content;
    let block = json!({"type": "text", "text": "x"});
    assert!(matches!(message(json!({"role": "user", "content": block})), OneOrMany::One(_)));
    let OneOrMany::Many(blocks) = message(json!({"role": "user", "content": [block]})) else {
        panic!("a list stays a list");
    };
    assert_eq!(blocks, [ContentBlock::text("x")]);
}

#[test]
fn questions_are_identified_by_their_method() {
    let request = |value| read::<InputRequest>(&value);
    assert_eq!(request(json!({"method": "roots/list", "id": 1})), Ok(InputRequest::ListRoots));
    assert_eq!(
        request(json!({"method": "roots/list", "params": {"_meta": {}}})),
        Ok(InputRequest::ListRoots)
    );
    let sampling = json!({"params": {"messages": [], "maxTokens": 1}, "method": "sampling/createMessage"});
    assert!(matches!(request(sampling), Ok(InputRequest::CreateMessage(_))));
    assert!(request(json!({"method": "ping"})).unwrap_err().contains("unknown variant `ping`"));
    assert!(request(json!({"method": "elicitation/create"})).unwrap_err().contains("missing field `params`"));
    assert_eq!(serde_json::to_value(InputRequest::ListRoots).unwrap(), json!({"method": "roots/list"}));
}

#[test]
fn actions_accept_the_names_of_the_drafts() {
    let action =
        |text: &str| serde_json::from_value::<ElicitAction>(json!(text)).map_err(|error| error.to_string());
    assert_eq!(action("reject"), Ok(ElicitAction::Decline));
    assert_eq!(serde_json::to_value(ElicitAction::Decline).unwrap(), json!("decline"));
    assert!(action("ignore").unwrap_err().contains("unknown variant `ignore`"));
}

#[test]
fn results_inside_results_are_not_followed() {
    let inner = json!({"type": "tool_result", "toolUseId": "2", "content": []});
    let outer =
        json!({"type": "tool_result", "toolUseId": "1", "content": [inner, {"type": "text", "text": "x"}]});
    let ContentBlock::ToolResult(block) = read(&outer).unwrap() else { panic!("the outer one is read") };
    assert!(matches!(block.content[..], [ContentBlock::Unknown(_), ContentBlock::Text(_)]));
    assert_eq!(serde_json::to_value(&block).unwrap(), outer);
}

#[test]
fn deep_nesting_does_not_exhaust_the_stack() {
    let depth = 50_000;
    let open = r#"{"type":"tool_result","toolUseId":"1","content":["#.repeat(depth);
    let json = format!("{open}{}", "]}".repeat(depth));
    assert!(matches!(serde_json::from_str::<ContentBlock>(&json), Ok(ContentBlock::ToolResult(_))));

    let depth = 5_000;
    let open = r#"{"type":"object","properties":{"a":"#.repeat(depth);
    let schema = format!("{open}true{}", "}}".repeat(depth));
    let mut tool = Tool::new("n", RawJson::parse(schema).unwrap());
    tool.adapt(Revision::V2024_11_05);
    assert!(tool.input_schema.as_str().contains("true"));
}
