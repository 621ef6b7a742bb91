//! What takes more than one connection, a transport of one's own, or every method at once.

use bowline_server::{Key, KeyRing, Limits, Server};
use bowline_testing::{Peer, Result, Transcript};
use bowline_types::{Method, Revision};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, path::Path, time::Duration};
use tokio::{
    io::{duplex, split},
    task::JoinSet,
};

fn fixture(name: &str) -> Server {
    bowline_tests::fixture(name).expect("the fixture is there")
}

#[tokio::test]
async fn a_subscription_ends_with_its_connection() -> Result {
    // proves: SUB-14
    let server = fixture("everything");
    let registry = server.registry();
    let handle = server.build().expect("the fixture is in order");
    let filter =
        json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["test://text"] } });

    let mut first = Peer::memory(&handle)?;
    let id = start(&mut first, "subscriptions/listen", filter).await?;
    first.recv_method("notifications/subscriptions/acknowledged").await?;
    registry.resource_updated("test://text");
    let updated = first.recv_method("notifications/resources/updated").await?;
    assert_eq!(updated["params"]["uri"], "test://text");
    let farewell = first.close().await?;
    assert_eq!(farewell.last().map(|frame| &frame["id"]), Some(&id), "{farewell:?}");

    // The same server, the same client, the same id of a request: what was asked for before is forgotten.
    let mut second = Peer::memory(&handle)?;
    second.modern("server/discover", json!({})).await?;
    registry.resource_updated("test://text");
    registry.add_tool(bowline_server::Tool::new("new").handler(|| "new")).expect("the name is free");
    let listed = second.modern("tools/list", json!({})).await?;
    assert!(
        listed["result"]["tools"].as_array().is_some_and(|tools| tools.iter().any(|it| it["name"] == "new"))
    );
    assert!(second.close().await?.is_empty(), "{}", second.transcript());
    Ok(())
}

#[tokio::test]
async fn a_question_can_be_answered_over_another_connection() -> Result {
    // proves: BASE-32, BASE-34
    let keys = || KeyRing::new(Key::new([7; 32]));
    // Two servers as two processes would be: they share the keys and nothing else.
    let (first, second) = (fixture("everything").keys(keys()), fixture("everything").keys(keys()));
    let capabilities = || json!({ "elicitation": {} });

    let mut peer = Peer::memory(first)?.capabilities(capabilities());
    let asked = peer.modern("tools/call", json!({ "name": "ask_again" })).await?;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    peer.close().await?;

    let mut peer = Peer::memory(second)?.capabilities(capabilities());
    let answer = json!({ "q0": { "action": "accept", "content": { "name": "Ada" } } });
    let state = &asked["result"]["requestState"];
    let params = json!({ "name": "ask_again", "inputResponses": answer, "requestState": state });
    let next = peer.modern("tools/call", params).await?;
    let message = &next["result"]["inputRequests"]["q1"]["params"]["message"];
    assert_eq!(message, "How old are you, Ada?", "{next}");

    // Without the state there is nothing to go on with, whatever the connection has seen.
    let params = json!({ "name": "ask_again", "inputResponses": answer });
    let again = peer.modern("tools/call", params).await?;
    assert!(again["result"]["inputRequests"].get("q0").is_some(), "{again}");
    Ok(())
}

#[tokio::test]
async fn an_unanswered_question_times_out() -> Result {
    // proves: LIFE-21, LIFE-22, CANCEL-01, CANCEL-05
    for revision in Revision::ALL.into_iter().filter(|revision| revision.is_legacy()) {
        let limits = Limits::default().question(Duration::from_millis(20));
        let server = fixture("everything").limits(limits);
        let mut peer = Peer::memory(server)?.capabilities(json!({ "roots": {} }));
        peer.initialize(revision).await?;
        let call = peer.start("tools/call", json!({ "name": "roots" })).await?;
        let question = peer.recv_method("roots/list").await?;
        let taken_back = peer.recv().await?;
        let params = json!({ "requestId": question["id"], "reason": "the call that asks has ended" });
        let expected = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        assert_eq!(taken_back, expected);
        let failed = peer.response(&call).await?;
        assert_eq!(failed["result"]["isError"], true, "{failed}");
        // An answer that comes too late is dropped.
        peer.reply(&question, json!({ "roots": [] })).await?;
        assert!(peer.close().await?.is_empty(), "{}", peer.transcript());
    }
    Ok(())
}

#[tokio::test]
async fn conversations_work_over_a_custom_transport() -> Result {
    // proves: BASE-44, BASE-45, STDIO-20
    let oracle = crate::oracle();
    let mut serving = JoinSet::new();
    let mut held = 0;
    for area in ["lifecycle", "versioning", "meta", "asking", "subscriptions", "cancellation", "progress"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts").join(area);
        for entry in fs::read_dir(folder).expect("the folder of the area is there") {
            let path = entry.expect("the folder can be read").path();
            let text = fs::read_to_string(&path).expect("a file that was found can be read");
            let transcript = Transcript::parse(path.to_string_lossy(), &text)?;
            // Too narrow for a whole frame, so that both sides have to put theirs together.
            let connect = || {
                let (ours, theirs) = duplex(13);
                let server = fixture(transcript.server());
                serving.spawn(async move {
                    let (read, write) = split(theirs);
                    server.serve(read, write).await
                });
                let (read, write) = split(ours);
                Ok(Peer::over(read, write))
            };
            transcript.run(Some(&oracle), connect).await?;
            held += 1;
        }
    }
    assert!(held > 20, "only {held} conversations were held");
    while let Some(served) = serving.join_next().await {
        served.expect("serving does not panic").expect("every connection ends well");
    }
    Ok(())
}

#[tokio::test]
async fn every_response_has_a_shape_and_a_code_of_its_revision() -> Result {
    // proves: BASE-09, BASE-10, BASE-11, BASE-12, BASE-28, BASE-35, BASE-37, BASE-38
    for revision in Revision::ALL {
        let mut allowed = BTreeSet::from([-32700, -32600, -32601, -32602, -32603]);
        if revision.is_legacy() {
            allowed.extend(
                [-32002, -32042]
                    .into_iter()
                    .filter(|code| *code == -32002 || revision == Revision::V2025_11_25),
            );
        } else {
            allowed.extend([-32020, -32021, -32022]);
        }
        for name in ["everything", "bare", "sign-in", "paged"] {
            let mut peer = Peer::memory(fixture(name))?;
            if revision.is_legacy() {
                peer.initialize(revision).await?;
            }
            for (method, params) in odd_requests() {
                let sent = if revision.is_legacy() {
                    peer.start(method, params).await?
                } else {
                    start(&mut peer, method, params).await?
                };
                let response = answer(&mut peer, &sent, revision).await?;
                check_shape(&response, &allowed);
            }
        }
    }
    Ok(())
}

/// Every method with params that fit none, some or all of them.
fn odd_requests() -> Vec<(&'static str, Value)> {
    let odd = [
        json!({}),
        json!({ "name": 7, "uri": 7, "cursor": 7, "level": 7, "taskId": 7, "notifications": 7 }),
        json!({ "name": "nope", "uri": "test://nope", "cursor": "nope", "level": "nope", "taskId": "nope" }),
        json!({ "name": "nope", "uri": "not a uri", "arguments": [], "inputResponses": [], "requestState": 1 }),
        json!({ "name": "mail", "requestState": "forged", "inputResponses": {} }),
        json!({ "name": "fail" }),
        json!({ "name": "panic" }),
        json!({ "name": "ask", "uri": "test://secret" }),
        json!({ "name": "ask_url", "ref": {}, "argument": {} }),
        json!({ "name": "personal", "ref": { "type": "ref/prompt", "name": "nope" }, "argument": { "name": "a", "value": "" } }),
        json!({ "name": "add", "arguments": { "a": "one" }, "_meta": { "progressToken": 1.5 } }),
        json!({ "name": "add", "_meta": { "io.modelcontextprotocol/protocolVersion": "1900-01-01" } }),
    ];
    // What is a notification makes no request, which is one more way to be odd.
    let methods = Method::ALL.iter().map(|method| method.as_str()).chain(["bogus/method", ""]);
    methods.flat_map(|method| odd.iter().map(move |params| (method, params.clone()))).collect()
}

/// The response to a request; a subscription that opens instead is ended, which gives none.
async fn answer(peer: &mut Peer, id: &Value, revision: Revision) -> Result<Value> {
    loop {
        let frame = peer.recv().await?;
        match frame.get("method").and_then(Value::as_str) {
            None => {
                assert_eq!(frame.get("id"), Some(id), "{frame}");
                return Ok(frame);
            }
            Some("notifications/subscriptions/acknowledged") => {
                peer.notify("notifications/cancelled", json!({ "requestId": id })).await?;
                return Ok(json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
            }
            // Nothing was declared, so nothing may be asked, in whatever revision.
            Some(method) => assert!(frame.get("id").is_none(), "{revision}: the server requests `{method}`"),
        }
    }
}

fn check_shape(response: &Value, allowed: &BTreeSet<i64>) {
    assert_eq!(response["jsonrpc"], "2.0", "{response}");
    let (result, error) = (response.get("result"), response.get("error"));
    assert!(result.is_some() != error.is_some(), "{response}");
    let Some(error) = error else { return };
    let code = error["code"].as_i64().expect("a code is a whole number");
    assert!(allowed.contains(&code), "{response}");
    let message = error["message"].as_str().expect("a message is a text");
    assert!(!message.is_empty() && message.len() <= 200 && !message.contains('\n'), "{response}");
}

/// Starts a self-describing request.
async fn start(peer: &mut Peer, method: &str, mut params: Value) -> Result<Value> {
    if params.get("_meta").is_none() {
        params["_meta"] = json!({});
    }
    if let Some(meta) = params["_meta"].as_object_mut() {
        meta.entry("io.modelcontextprotocol/protocolVersion").or_insert_with(|| "2026-07-28".into());
        meta.entry("io.modelcontextprotocol/clientCapabilities").or_insert_with(|| json!({}));
    }
    peer.start(method, params).await
}
