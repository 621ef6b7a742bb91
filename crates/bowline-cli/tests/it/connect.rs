//! `bowline connect` between a stdio client and the user's gateway.

use crate::place::{Background, Place};
use expect_test::expect;
use rustix::process::Signal;
use serde_json::{Value, json};

const SERVERS: &str = r#"
[[rules]]
effect = "allow"

[[rules]]
effect = "allow"
action = "form"

[servers.mine]
command = "bowline"
args = ["serve", "everything"]
start = "eager"
"#;

fn place() -> Place {
    let place = Place::new();
    place.put("user/.config/bowline/bowline.toml", SERVERS);
    place
}

fn up(place: &Place) -> Background {
    let mut up = Background::start(place.program(&["up", "--port", "0"]));
    assert!(up.line().starts_with("http://127.0.0.1:"));
    up
}

/// A legacy client with an open session.
fn legacy(place: &Place, revision: &str) -> Background {
    let mut client = Background::start(place.program(&["connect"]));
    client.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "test", "version": "1" },
    } }));
    let opened = client.receive(|message| message["id"] == 0);
    assert_eq!(opened["result"]["protocolVersion"], revision, "{opened}");
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    client
}

impl Background {
    /// Returns the first message that is wanted, and skips the others.
    fn receive(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "the output has ended");
            let message: Value = serde_json::from_str(&line).expect("each line is a message");
            if wanted(&message) {
                return message;
            }
        }
    }
}

#[test]
fn a_missing_gateway_is_an_error() {
    let place = place();
    place.check(
        &["connect"],
        4,
        &expect![[r#"
            error: your gateway is not running
              start it with `bowline up` or `bowline gateway`, as the same user
        "#]],
    );
    place.check(
        &["connect", "--port", "9"],
        4,
        &expect![[r#"
            error: your gateway is not running on port 9
              start it with `bowline up --port 9`
        "#]],
    );
}

#[test]
fn clients_of_every_revision_reach_the_gateway() {
    let place = place();
    let _up = up(&place);
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let words =
            ["call", "mine__echo", "message=hi there", "--revision", revision, "--", "bowline", "connect"];
        let (printed, code) = place.run(&words);
        assert_eq!((printed.trim_end(), code), ("hi there", Some(0)), "{revision}");
    }
}

#[test]
fn questions_of_the_server_reach_the_client_in_both_eras() {
    let place = place();
    let _up = up(&place);
    let call = |id: u32, meta: &Value, more: Value| {
        let mut params = json!({ "name": "mine__test_input_required_result_elicitation", "arguments": {} });
        let members = params.as_object_mut().expect("it is an object");
        members.extend(more.as_object().cloned().unwrap_or_default());
        if !meta.is_null() {
            members.insert("_meta".to_owned(), meta.clone());
        }
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let accepted = json!({ "action": "accept", "content": { "name": "Ada" } });

    let mut client = legacy(&place, "2025-06-18");
    client.send(&call(1, &Value::Null, json!({})));
    let asked = client.receive(|message| message["method"] == "elicitation/create");
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": accepted }));
    let answer = client.receive(|message| message["id"] == 1 && message.get("method").is_none());
    assert!(answer["result"].to_string().contains("Ada"), "{answer}");

    let mut client = Background::start(place.program(&["connect"]));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    client.send(&call(1, &meta, json!({})));
    let asked = client.receive(|message| message["id"] == 1);
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let requests = asked["result"]["inputRequests"].as_object().expect("it asks");
    let key = requests.keys().next().expect("it asks one thing");
    let more =
        json!({ "inputResponses": { key: accepted }, "requestState": asked["result"]["requestState"] });
    client.send(&call(2, &meta, more));
    let answer = client.receive(|message| message["id"] == 2);
    assert!(answer["result"].to_string().contains("Ada"), "{answer}");
    client.close_input();
    assert_eq!(client.end().0, Some(0));
}

#[test]
fn a_session_survives_a_restart_of_the_gateway() {
    let place = place();
    let first = up(&place);
    let mut client = legacy(&place, "2025-11-25");
    let list = |id: u32| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" });
    client.send(&list(1));
    let before = client.receive(|message| message["id"] == 1);
    // A running call fails with a reason.
    client.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "mine__wait", "arguments": { "seconds": 3600 }, "_meta": { "progressToken": "p" },
    } }));
    client.receive(|message| message["method"] == "notifications/progress");
    first.signal(Signal::KILL);
    first.end();
    let failed = client.receive(|message| message["id"] == 2);
    assert!(failed["error"]["message"].as_str().is_some_and(|text| text.contains("gateway")), "{failed}");
    let _second = up(&place);
    client.send(&list(3));
    client.receive(|message| message["method"] == "notifications/tools/list_changed");
    let after = client.receive(|message| message["id"] == 3);
    assert_eq!(after["result"]["tools"], before["result"]["tools"]);
}
