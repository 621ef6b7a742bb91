//! What every record promises: nothing is lost, nothing is doubled, nothing is invented.

use bowline_types::*;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

fn round_trip<T: Serialize + DeserializeOwned>(json: &str) -> String {
    serde_json::to_string(&serde_json::from_str::<T>(json).unwrap()).unwrap()
}

fn error<T: DeserializeOwned + std::fmt::Debug>(json: &str) -> String {
    serde_json::from_str::<T>(json).unwrap_err().to_string()
}

#[test]
fn unknown_members_survive_byte_for_byte() {
    let json = r#"{"name":"n","inputSchema":{"type":"object"},"z":{"b" : 1.50,"a":[ ]},"a":"\u00e9"}"#;
    assert_eq!(round_trip::<Tool>(json), json);
}

#[test]
fn unknown_values_of_enums_survive() {
    for json in [
        r#"{"role":"critic","content":{"type":"text","text":"x"}}"#,
        r#"{"role":"user","content":{"type":"smell","data":"\u0061","n":1.0}}"#,
    ] {
        assert_eq!(round_trip::<PromptMessage>(json), json);
    }
    assert_eq!(round_trip::<TaskStatus>(r#""paused""#), r#""paused""#);
    assert_eq!(round_trip::<StopReason>(r#""refusal""#), r#""refusal""#);
    assert_eq!(round_trip::<IconTheme>(r#""sepia""#), r#""sepia""#);
    assert_eq!(round_trip::<ResultType>(r#""zzz""#), r#""zzz""#);
}

#[test]
fn members_that_occur_twice_are_refused() {
    assert!(error::<Tool>(r#"{"name":"a","name":"b"}"#).starts_with("duplicate field `name`"));
    assert!(error::<Tool>(r#"{"name":"a","title":null,"title":"b"}"#).starts_with("duplicate field `title`"));
    let twice = r#"{"name":"a","inputSchema":{},"x":1,"x":2}"#;
    assert!(error::<Tool>(twice).starts_with("duplicate field `x`"));
    assert!(error::<TextContent>(r#"{"type":"text","type":"text"}"#).starts_with("duplicate field `type`"));
}

#[test]
fn required_members_are_required() {
    assert!(error::<Tool>(r#"{"name":"a"}"#).starts_with("missing field `inputSchema`"));
    assert!(error::<TextContent>(r#"{"text":"x"}"#).starts_with("missing field `type`"));
    assert!(
        error::<TextContent>(r#"{"type":"image","text":"x"}"#).starts_with("expected `type` to be `text`")
    );
    assert!(error::<Tool>("[]").contains("expected a Tool object"));
    assert!(error::<Tool>("null").contains("expected a Tool object"));
}

#[test]
fn null_is_absence_where_null_means_nothing() {
    assert_eq!(
        round_trip::<Implementation>(r#"{"name":"n","title":null,"version":"1","icons":null}"#),
        r#"{"name":"n","version":"1"}"#
    );
    assert_eq!(round_trip::<CallToolParams>(r#"{"name":"n","arguments":null}"#), r#"{"name":"n"}"#);
}

#[test]
fn null_is_a_value_where_any_value_is_allowed() {
    let json = r#"{"content":[],"structuredContent":null}"#;
    assert_eq!(round_trip::<CallToolResult>(json), json);
}

// proves: CACHE-10
#[test]
fn ttl_accepts_any_number() {
    let ttl = |json: &str| serde_json::from_str::<ListToolsResult>(json).unwrap().ttl_ms;
    assert_eq!(ttl(r#"{"tools":[],"ttlMs":-1}"#), Some(0));
    assert_eq!(ttl(r#"{"tools":[],"ttlMs":1500.9}"#), Some(1500));
    assert_eq!(ttl(r#"{"tools":[],"ttlMs":1e300}"#), Some(u64::MAX));
    assert_eq!(ttl(r#"{"tools":[],"ttlMs":null}"#), None);
    assert!(error::<ListToolsResult>(r#"{"tools":[],"ttlMs":"5"}"#).contains("expected a number"));
}

#[test]
fn numbers_are_written_without_an_empty_fraction() {
    let token = r#""progressToken":"t""#;
    for (given, written) in
        [("50", "50"), ("50.0", "50"), ("0.25", "0.25"), ("-3", "-3"), ("1e300", "1e+300")]
    {
        let json = format!(r#"{{{token},"progress":{given}}}"#);
        assert_eq!(round_trip::<ProgressParams>(&json), format!(r#"{{{token},"progress":{written}}}"#));
    }
}

#[test]
fn a_task_without_limit_says_so() {
    let json = r#"{"taskId":"t","status":"working","createdAt":"c","lastUpdatedAt":"u","ttl":null}"#;
    assert_eq!(round_trip::<TaskV2025>(json), json);
    let task = Task::from(serde_json::from_str::<TaskV2025>(json).unwrap());
    assert_eq!(
        serde_json::to_string(&TaskExt::from(task.clone()).into_creation()).unwrap(),
        r#"{"resultType":"task","taskId":"t","status":"working","createdAt":"c","lastUpdatedAt":"u","ttlMs":null}"#,
    );
    assert_eq!(Task::from(TaskExt::from(task.clone())), task);
    assert_eq!(
        serde_json::to_string(&CreateTaskResultV2025::from(task)).unwrap(),
        format!(r#"{{"task":{json}}}"#),
    );
}

#[test]
fn identifiers_are_strings_or_integers() {
    for json in ["1", "-7", r#""1""#, r#""""#, "9223372036854775807"] {
        assert_eq!(round_trip::<Id>(json), json);
    }
    for json in ["null", "true", "1.5", "1.0", "[1]", "{}", "9223372036854775808"] {
        let error = error::<Id>(json);
        assert!(error.contains("expected a string or an integer"), "{json}: {error}");
    }
    assert_ne!(Id::from(1), Id::from("1"));
}

#[test]
fn errors_carry_code_and_message() {
    let json = r#"{"code":-32000,"message":"m","data":null}"#;
    assert_eq!(round_trip::<RpcError>(json), json);
    assert!(error::<RpcError>(r#"{"code":1}"#).starts_with("missing field `message`"));
    assert!(error::<RpcError>(r#"{"code":1.5,"message":"m"}"#).contains("expected i64"));
    assert_eq!(RpcError::internal("boom").to_string(), "boom (-32603)");
}

#[test]
fn modern_errors_are_recognized_by_code_and_data() {
    let read = |json: &str| serde_json::from_str::<RpcError>(json).unwrap();
    for json in [
        r#"{"code":-32020,"message":"m"}"#,
        r#"{"code":-32021,"message":"m","data":{"requiredCapabilities":{"elicitation":{}}}}"#,
        r#"{"code":-32022,"message":"m","data":{"supported":["2026-07-28"],"requested":"x"}}"#,
    ] {
        assert!(read(json).is_modern(), "{json}");
    }
    for json in [
        r#"{"code":-32021,"message":"m"}"#,
        r#"{"code":-32021,"message":"m","data":{"requiredCapabilities":["elicitation"]}}"#,
        r#"{"code":-32022,"message":"m","data":{"supported":"2026-07-28","requested":"x"}}"#,
        r#"{"code":-32022,"message":"m","data":7}"#,
        r#"{"code":-32601,"message":"m"}"#,
    ] {
        assert!(!read(json).is_modern(), "{json}");
    }
}

#[test]
fn the_empty_filter_asks_for_nothing() {
    let empty = |json: &str| serde_json::from_str::<SubscriptionFilter>(json).unwrap().is_empty();
    assert!(empty(r#"{"toolsListChanged":false,"resourceSubscriptions":[]}"#));
    assert!(!empty(r#"{"taskIds":["t"]}"#));
}

#[test]
fn elicitation_without_a_mode_means_forms() {
    let modes = |json: &str| {
        let capabilities: ClientCapabilities = serde_json::from_str(json).unwrap();
        (capabilities.has_form_elicitation(), capabilities.has_url_elicitation())
    };
    assert_eq!(modes("{}"), (false, false));
    assert_eq!(modes(r#"{"elicitation":{}}"#), (true, false));
    assert_eq!(modes(r#"{"elicitation":{"url":{}}}"#), (false, true));
    assert_eq!(modes(r#"{"elicitation":{"form":{},"url":{}}}"#), (true, true));
}

/// JSON made of the words of the protocol, so that a good part of it is nearly right.
fn nearly_right() -> impl Strategy<Value = serde_json::Value> {
    let word = prop::sample::select(vec![
        "text",
        "image",
        "audio",
        "resource",
        "resource_link",
        "tool_use",
        "tool_result",
        "string",
        "array",
        "object",
        "integer",
        "form",
        "url",
        "user",
        "",
        "\u{e9}",
    ]);
    let key = prop::sample::select(vec![
        "type",
        "text",
        "data",
        "mimeType",
        "uri",
        "name",
        "resource",
        "content",
        "structuredContent",
        "isError",
        "input",
        "id",
        "toolUseId",
        "role",
        "messages",
        "maxTokens",
        "tools",
        "inputSchema",
        "outputSchema",
        "properties",
        "items",
        "enum",
        "oneOf",
        "const",
        "title",
        "mode",
        "message",
        "url",
        "requestedSchema",
        "annotations",
        "priority",
        "_meta",
        "code",
        "blob",
        "model",
        "ttlMs",
        "$schema",
    ]);
    let leaf = prop_oneof![
        word.prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        (-1e9..1e9_f64).prop_map(serde_json::Value::from),
        any::<bool>().prop_map(serde_json::Value::from),
        Just(serde_json::Value::Null),
    ];
    leaf.prop_recursive(5, 48, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::hash_map(key.clone(), inner, 0..8)
                .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

/// Whatever can be read can be adapted to every revision, written, and read again.
fn survives<T: Adapt + Serialize + DeserializeOwned>(json: &str) {
    for revision in Revision::ALL {
        let Ok(mut value) = serde_json::from_str::<T>(json) else { return };
        value.adapt(revision);
        let written = serde_json::to_string(&value).unwrap();
        assert!(serde_json::from_str::<T>(&written).is_ok(), "{written}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(json in "\\PC{0,64}") {
        let _ = RawJson::parse(json.clone());
        survives::<ContentBlock>(&json);
    }

    #[test]
    fn almost_valid_json_is_read_or_refused(value in nearly_right()) {
        let json = value.to_string();
        survives::<ContentBlock>(&json);
        survives::<CallToolResult>(&json);
        survives::<Tool>(&json);
        survives::<CreateMessageParams>(&json);
        survives::<CreateMessageResult>(&json);
        survives::<ElicitParams>(&json);
        survives::<PrimitiveSchema>(&json);
        survives::<ReadResourceResult>(&json);
        survives::<ClientCapabilities>(&json);
        survives::<RpcError>(&json);
    }

    #[test]
    fn any_text_survives_in_a_block(text in any::<String>()) {
        let block = ContentBlock::text(text.clone());
        let json = serde_json::to_string(&block).unwrap();
        let read: ContentBlock = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(read.as_text(), Some(text.as_str()));
        prop_assert_eq!(read, block);
    }

    #[test]
    fn any_unknown_member_survives(key in "[a-z]{1,8}", value in -1e300..1e300_f64) {
        prop_assume!(key != "uri" && key != "name");
        let json = serde_json::json!({"uri": "file:///", key: value}).to_string();
        let root: Root = serde_json::from_str(&json).unwrap();
        let written: serde_json::Value = serde_json::to_value(&root).unwrap();
        prop_assert_eq!(written, serde_json::from_str::<serde_json::Value>(&json).unwrap());
    }
}
