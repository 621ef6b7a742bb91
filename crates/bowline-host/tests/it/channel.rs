//! Several callers of one server that has a single channel for everything.

use super::wired::{Wired, called, caller, done, finished, hosted, question, start};
use bowline_host::{Host, Upstream};
use bowline_policy::{Guard, Policy, Rule};
use bowline_server::Server;
use bowline_testing::Peer;
use bowline_types::Revision;
use serde_json::{Value, json};
use tokio::sync::mpsc;

#[tokio::test]
async fn a_late_question_of_an_abandoned_call_reaches_no_other_caller() {
    // V-111
    let (host, handle, mut far) = hosted().await;
    let (mut one, mut other) = (caller(&handle).await, caller(&handle).await);
    let given_up = start(&mut one, "ask").await;
    called(&mut far, "ask").await;
    one.notify("notifications/cancelled", json!({ "requestId": given_up })).await.unwrap();
    far.recv_method("notifications/cancelled").await.unwrap();
    let running = start(&mut other, "plain").await;
    let call = called(&mut far, "plain").await;
    let asked = question(&mut far).await;
    let refused = far.response(&asked).await.unwrap();
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("unknown which of them to ask"),
        "{refused}"
    );
    done(&mut far, &call).await;
    finished(&mut other, &running).await;
    assert_eq!(other.close().await.unwrap(), Vec::<Value>::new());
    host.close().await;
}

#[tokio::test]
async fn while_a_user_thinks_others_can_call_tools_that_do_not_ask() {
    let (host, handle, mut far) = hosted().await;
    let (mut one, mut other) = (caller(&handle).await, caller(&handle).await);
    let asking = start(&mut one, "ask").await;
    let asked_about = called(&mut far, "ask").await;
    let asked = question(&mut far).await;
    let shown = one.recv_method("elicitation/create").await.unwrap();
    // What has asked waits for its turn, what has not does not.
    let waiting = start(&mut other, "ask").await;
    let plain = start(&mut other, "plain").await;
    let call = called(&mut far, "plain").await;
    done(&mut far, &call).await;
    finished(&mut other, &plain).await;
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    one.reply(&shown, answer).await.unwrap();
    let answer = far.response(&asked).await.unwrap();
    assert_eq!(answer["result"]["content"]["name"], "Ada", "{answer}");
    done(&mut far, &asked_about).await;
    finished(&mut one, &asking).await;
    let call = called(&mut far, "ask").await;
    done(&mut far, &call).await;
    finished(&mut other, &waiting).await;
    host.close().await;
}

#[tokio::test]
async fn hostile_output_affects_neither_other_servers_nor_other_calls() {
    // V-112, V-73
    let (host, handle, mut far) = hosted().await;
    let mut near = caller(&handle).await;
    let deep = format!("{}{}\n", "[".repeat(100_000), "]".repeat(100_000));
    let long = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\"}}\n", "x".repeat(17 * 1024 * 1024));
    let hostile: [&[u8]; 12] = [
        b"not a message\n",
        b"\xff\xfe\xfd\n",
        b"{}\n",
        b"[]\n",
        b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":987654321,\"result\":{}}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1e300,\"message\":7}}\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":{}}}\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"tools/call\",\"params\":{\"name\":\"near__hello\"}}\n",
        deep.as_bytes(),
        long.as_bytes(),
    ];
    for bytes in hostile {
        let running = start(&mut near, "plain").await;
        let call = called(&mut far, "plain").await;
        far.send_raw(bytes).await.unwrap();
        let neighbor = near.request("tools/call", json!({ "name": "near__hello" })).await.unwrap();
        assert_eq!(neighbor["result"]["content"][0]["text"], "done", "{neighbor}");
        done(&mut far, &call).await;
        finished(&mut near, &running).await;
    }
    // A result of the wrong shape costs its call alone.
    let running = start(&mut near, "plain").await;
    let call = called(&mut far, "plain").await;
    far.reply(&call, json!({ "content": "text" })).await.unwrap();
    let answer = near.response(&running).await.unwrap();
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("`far`")), "{answer}");
    host.close().await;
}

#[tokio::test]
async fn callers_with_the_same_token_receive_only_their_own_progress() {
    // V-113
    let (host, handle, mut far) = hosted().await;
    let (mut one, mut other) = (caller(&handle).await, caller(&handle).await);
    let mut started = Vec::new();
    for near in [&mut one, &mut other] {
        let params = json!({ "name": "far__plain", "_meta": { "progressToken": "t" } });
        let id = near.start("tools/call", params).await.unwrap();
        let call = called(&mut far, "plain").await;
        started.push((id, call));
    }
    let tokens: Vec<_> =
        started.iter().map(|(_, call)| call["params"]["_meta"]["progressToken"].clone()).collect();
    assert!(tokens[0] != tokens[1] && started[0].1["id"] != started[1].1["id"], "{tokens:?}");
    // What the caller said is no token of anybody here.
    for (token, progress) in [(&json!("t"), 1), (&tokens[1], 2), (&tokens[0], 3)] {
        let told = json!({ "progressToken": token, "progress": progress });
        far.notify("notifications/progress", told).await.unwrap();
    }
    for (near, (id, call), progress) in [(&mut one, &started[0], 3), (&mut other, &started[1], 2)] {
        done(&mut far, call).await;
        finished(near, id).await;
        let told = near.notifications();
        let [told] = told.as_slice() else { panic!("expected one, got {told:?}") };
        assert_eq!(told["params"], json!({ "progressToken": "t", "progress": progress }));
    }
    host.close().await;
}

#[tokio::test]
async fn the_state_of_one_call_is_invalid_for_another() {
    // V-113
    let (sender, mut started) = mpsc::unbounded_channel();
    let guard = Guard::builder().policy(Policy::new([Rule::allow()])).build();
    let upstream = || Upstream::to(Wired(sender.clone())).revision(Revision::V2026_07_28);
    let host = Host::builder().add("a", upstream()).add("b", upstream()).guard(guard).build();
    let handle = host.open(Server::new("gateway")).unwrap();
    let server = tokio::spawn(async move {
        let mut served = tokio::task::JoinSet::new();
        while let Some(peer) = started.recv().await {
            served.spawn(alike(peer));
        }
        served.join_all().await
    });
    let mut near = Peer::memory(&handle).unwrap().capabilities(json!({ "elicitation": { "form": {} } }));
    let mut states = Vec::new();
    for tool in ["a__ask", "b__ask"] {
        let answer = near.modern("tools/call", json!({ "name": tool })).await.unwrap();
        assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
        let key = answer["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        states.push((key, answer["result"]["requestState"].as_str().unwrap().to_owned()));
    }
    // Both servers said `s`; what the caller is given is the host's, and of one call each.
    assert!(states[0].1 != states[1].1 && states.iter().all(|(_, state)| state != "s"));
    let mut again = async |tool: &str, state: &str| {
        let accepted = json!({ "action": "accept", "content": { "name": "Ada" } });
        let answers = json!({ &states[0].0: accepted });
        let params = json!({ "name": tool, "inputResponses": answers, "requestState": state });
        near.modern("tools/call", params).await.unwrap()
    };
    for (tool, state) in [("b__ask", states[0].1.as_str()), ("a__ask", states[1].1.as_str()), ("a__ask", "s")]
    {
        let refused = again(tool, state).await;
        assert!(refused.get("error").is_some(), "{tool}: {refused}");
    }
    let answer = again("a__ask", &states[0].1).await;
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    host.close().await;
    drop((host, handle, near, sender));
    server.abort();
}

/// A modern server that asks about every call with one and the same state.
async fn alike(mut far: Peer) {
    while let Ok(request) = far.recv().await {
        let params = &request["params"];
        let result = match request["method"].as_str().unwrap_or_default() {
            "server/discover" => {
                json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } })
            }
            "tools/list" => json!({ "tools": [{ "name": "ask", "inputSchema": { "type": "object" } }] }),
            "tools/call" if params["requestState"] == "s" => {
                json!({ "content": [{ "type": "text", "text": "done" }] })
            }
            "tools/call" => {
                let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
                let asked = json!({ "mode": "form", "message": "Who?", "requestedSchema": schema });
                let question = json!({ "q": { "method": "elicitation/create", "params": asked } });
                json!({ "resultType": "input_required", "inputRequests": question, "requestState": "s" })
            }
            _ => continue,
        };
        let mut result = result;
        if result.get("resultType").is_none() {
            result["resultType"] = "complete".into();
        }
        if far.reply(&request, result).await.is_err() {
            return;
        }
    }
}
