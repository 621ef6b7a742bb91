//! The oracle lets frames pass that are right, and tells what is wrong with others.

use super::ORACLES;
use bowline_testing::oracle::Conversation;
use bowline_types::{
    Direction::{self, ClientToServer, ServerToClient},
    Revision,
};
use serde_json::{Value, json};

/// Checks what the oracle says of a frame; nothing when it is right.
#[track_caller]
fn check(revision: Revision, direction: Direction, frame: &Value, method: Option<&str>, reason: &str) {
    let [oracle, _] = &*ORACLES;
    let told = oracle.check_frame(revision, direction, frame, method).err().unwrap_or_default();
    assert_eq!(told.is_empty(), reason.is_empty(), "{told}");
    assert!(told.contains(reason), "{told}");
}

#[test]
fn requests_have_their_side_and_their_revision() {
    let roots = json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" });
    check(Revision::V2025_11_25, ServerToClient, &roots, None, "");
    check(Revision::V2025_11_25, ClientToServer, &roots, None, "must not send");
    check(Revision::V2026_07_28, ServerToClient, &roots, None, "2026-07-28 has no `roots/list`");
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    check(Revision::V2024_11_05, ClientToServer, &list, None, "");
    check(Revision::V2026_07_28, ClientToServer, &list, None, "\"params\" is a required property");
    let unknown = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/lost" });
    check(Revision::V2024_11_05, ClientToServer, &unknown, None, "unknown method `tools/lost`");
}

#[test]
fn notifications_have_no_id_and_requests_have_one() {
    let notice = json!({ "jsonrpc": "2.0", "id": 1, "method": "notifications/tools/list_changed" });
    check(Revision::V2025_06_18, ServerToClient, &notice, None, "has an id");
    let request = json!({ "jsonrpc": "2.0", "method": "ping" });
    check(Revision::V2025_06_18, ServerToClient, &request, None, "has no id");
}

#[test]
fn results_are_those_of_their_method() {
    let list = json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [] } });
    check(Revision::V2025_11_25, ServerToClient, &list, Some("tools/list"), "");
    check(
        Revision::V2025_11_25,
        ServerToClient,
        &list,
        Some("tools/call"),
        "\"content\" is a required property",
    );
    check(
        Revision::V2026_07_28,
        ServerToClient,
        &list,
        Some("tools/list"),
        "\"resultType\" is a required property",
    );
    let asks = json!({ "jsonrpc": "2.0", "id": 1, "result": { "resultType": "input_required", "requestState": "x" } });
    check(Revision::V2026_07_28, ServerToClient, &asks, Some("tools/call"), "");
    check(Revision::V2026_07_28, ServerToClient, &asks, Some("tools/list"), "cannot ask for input");
    let nothing = json!({ "jsonrpc": "2.0", "id": 1, "result": { "resultType": "input_required" } });
    check(Revision::V2026_07_28, ServerToClient, &nothing, Some("tools/call"), "both missing");
}

#[test]
fn errors_have_the_data_of_their_code() {
    let bare = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32022, "message": "no" } });
    check(Revision::V2025_06_18, ServerToClient, &bare, None, "");
    check(Revision::V2026_07_28, ServerToClient, &bare, None, "\"data\" is a required property");
    let unreadable = json!({ "jsonrpc": "2.0", "error": { "code": -32700, "message": "no" } });
    for revision in Revision::ALL {
        check(revision, ServerToClient, &unreadable, None, "");
    }
}

#[test]
fn batches_belong_to_one_revision() {
    let batch = json!([{ "jsonrpc": "2.0", "id": 1, "result": {} }]);
    check(Revision::V2025_03_26, ServerToClient, &batch, None, "");
    check(Revision::V2025_06_18, ServerToClient, &batch, None, "2025-06-18 has no batches");
    check(Revision::V2025_03_26, ServerToClient, &json!([]), None, "never empty");
}

#[test]
fn values_that_the_schema_files_restrict_too_much_are_allowed() {
    let [oracle, _] = &*ORACLES;
    let answer = json!({ "action": "accept", "content": { "a": 3.5 } });
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        assert_eq!(oracle.validate(revision, "ElicitResult", &answer), Ok(()));
    }
    assert_eq!(oracle.validate(Revision::V2026_07_28, "JSONValue", &json!([null, 3.5])), Ok(()));
    assert!(
        oracle.validate(Revision::V2026_07_28, "Toil", &json!({})).unwrap_err().contains("no definition")
    );
}

#[test]
fn a_conversation_knows_what_is_answered_and_in_which_revision() {
    let [oracle, _] = &*ORACLES;
    let mut conversation = Conversation::new(Some(oracle));
    conversation.sent(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} }));
    let greeting = json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": { "name": "a", "version": "1" } });
    conversation.received(&json!({ "jsonrpc": "2.0", "id": 1, "result": greeting })).unwrap();
    conversation.sent(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {} }));
    let audio = json!({ "content": [{ "type": "audio", "data": "", "mimeType": "audio/wav" }] });
    let told = conversation.received(&json!({ "jsonrpc": "2.0", "id": 2, "result": audio })).unwrap_err();
    assert!(told.contains("not a CallToolResult of 2024-11-05"), "{told}");
    let told = conversation.received(&json!({ "jsonrpc": "2.0", "id": "2", "result": {} })).unwrap_err();
    assert!(told.contains("response to unknown request \"2\""), "{told}");
}
