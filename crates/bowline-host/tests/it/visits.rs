//! Pages that servers send users to.

use super::wired::{called, caller, done, finished, hosted, start};
use bowline_testing::Peer;
use serde_json::{Value, json};

fn page(id: &str) -> Value {
    json!({ "mode": "url", "message": "Sign in", "url": "https://example.com/login", "elicitationId": id })
}

/// Fails a call until a page was visited.
async fn requires_visit(far: &mut Peer, call: &Value) {
    let error = json!({ "code": -32042, "message": "first", "data": { "elicitations": [page("e1")] } });
    far.send(json!({ "jsonrpc": "2.0", "id": call["id"], "error": error })).await.unwrap();
}

#[tokio::test]
async fn completion_of_a_url_elicitation_reaches_only_the_asked_client() {
    // V-113
    let (host, handle, mut far) = hosted().await;
    let (mut one, mut other) = (caller(&handle).await, caller(&handle).await);
    let asking = start(&mut one, "ask").await;
    let call = called(&mut far, "ask").await;
    let asked = far.start("elicitation/create", page("e1")).await.unwrap();
    let shown = one.recv_method("elicitation/create").await.unwrap();
    assert_eq!(shown["params"]["message"], "[far] Sign in");
    let id = shown["params"]["elicitationId"].as_str().unwrap().to_owned();
    assert_ne!(id, "e1");
    let plain = start(&mut other, "plain").await;
    let beside = called(&mut far, "plain").await;
    for known in ["e1", "e1", "e2"] {
        far.notify("notifications/elicitation/complete", json!({ "elicitationId": known })).await.unwrap();
    }
    done(&mut far, &beside).await;
    finished(&mut other, &plain).await;
    one.reply(&shown, json!({ "action": "accept" })).await.unwrap();
    assert_eq!(far.response(&asked).await.unwrap()["result"]["action"], "accept");
    done(&mut far, &call).await;
    finished(&mut one, &asking).await;
    let told: Vec<_> = one.notifications().iter().map(|told| told["params"].clone()).collect();
    assert_eq!(told, [json!({ "elicitationId": id })]);
    assert_eq!(other.close().await.unwrap(), Vec::<Value>::new());
    host.close().await;
}

#[tokio::test]
async fn a_visit_that_a_call_waits_for_is_a_question_to_a_modern_caller() {
    let (host, handle, mut far) = hosted().await;
    let peer = Peer::memory(&handle).unwrap();
    let mut near = peer.capabilities(json!({ "elicitation": { "url": {} } }));
    let params = json!({ "name": "far__plain" });
    for (action, expected) in [("accept", "done"), ("decline", "the user declined")] {
        let (answer, ()) = tokio::join!(near.modern("tools/call", params.clone()), async {
            let call = called(&mut far, "plain").await;
            requires_visit(&mut far, &call).await;
        });
        let result = &answer.unwrap()["result"];
        let question = &result["inputRequests"]["visit0"]["params"];
        let asked = json!({ "mode": "url", "message": "[far] Sign in", "url": "https://example.com/login" });
        assert_eq!(*question, asked, "{result}");
        let mut again = params.clone();
        again["requestState"] = result["requestState"].clone();
        again["inputResponses"] = json!({ "visit0": { "action": action } });
        let (answer, ()) = tokio::join!(near.modern("tools/call", again), async {
            if action == "accept" {
                let call = called(&mut far, "plain").await;
                assert!(call["params"].get("inputResponses").is_none(), "{call}");
                done(&mut far, &call).await;
            }
        });
        assert_eq!(answer.unwrap()["result"]["content"][0]["text"], expected);
    }
    host.close().await;
}

#[tokio::test]
async fn a_legacy_caller_gets_a_url_elicitation_in_the_form_of_its_revision() {
    let (host, handle, mut far) = hosted().await;
    let mut near = caller(&handle).await;
    let running = start(&mut near, "plain").await;
    let call = called(&mut far, "plain").await;
    requires_visit(&mut far, &call).await;
    let error = near.response(&running).await.unwrap()["error"].clone();
    let told = &error["data"]["elicitations"][0];
    assert_eq!((&error["code"], &told["message"]), (&json!(-32042), &json!("[far] Sign in")), "{error}");
    assert_ne!(told["elicitationId"], "e1");
    // One that cannot be sent anywhere is told in plain words.
    let mut deaf = Peer::memory(&handle).unwrap();
    deaf.initialize(bowline_types::Revision::V2025_06_18).await.unwrap();
    let running = start(&mut deaf, "plain").await;
    let call = called(&mut far, "plain").await;
    requires_visit(&mut far, &call).await;
    let error = deaf.response(&running).await.unwrap()["error"].clone();
    assert_eq!(error["code"], -32603, "{error}");
    assert!(error["message"].as_str().unwrap().contains("https://example.com/login"), "{error}");
    host.close().await;
}
