//! Tasks of 2025-11-25, from the same handlers.

use crate::{
    tasks::{EXTENSION, peer, server},
    wire::Peer,
};
use serde_json::{Value, json};
use std::time::Duration;

async fn session(principal: Option<&str>) -> Peer {
    let mut peer = Peer::of(&server().build().unwrap(), principal);
    peer.initialize("2025-11-25").await;
    peer
}

async fn create(peer: &mut Peer, tool: &str) -> Value {
    let reply = peer.request("tools/call", json!({ "name": tool, "task": { "ttl": 60_000 } })).await;
    assert!(reply["result"]["task"].is_object(), "{reply}");
    reply["result"]["task"].clone()
}

async fn until(peer: &mut Peer, id: &Value, status: &str) -> Value {
    for _ in 0..200 {
        let task = peer.request("tasks/get", json!({ "taskId": id })).await["result"].clone();
        if task["status"] == status {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the task never became {status}");
}

#[tokio::test(start_paused = true)]
async fn the_caller_decides_and_reads_the_result() {
    // proves: TASK-01, TASK-12, TASK-13, TASK-14, TASK-15, TASK-16, TASK-18, TASK-21, TASK-22, TASK-26, TASK-27, TASK-28, TASK-29
    // proves: TASK-31, TASK-32
    let mut peer = Peer::of(&server().build().unwrap(), None);
    let hello = peer.initialize("2025-11-25").await;
    assert_eq!(
        hello["result"]["capabilities"]["tasks"],
        json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } })
    );
    let tools = peer.request("tools/list", json!({})).await;
    let support = |name: &str| {
        let mut tools = tools["result"]["tools"].as_array().unwrap().iter();
        tools.find(|tool| tool["name"] == name).unwrap()["execution"]["taskSupport"].clone()
    };
    assert_eq!(
        (support("quick"), support("required"), support("plain")),
        (json!("optional"), json!("required"), Value::Null)
    );

    let plain = peer.request("tools/call", json!({ "name": "quick" })).await;
    assert_eq!(plain["result"]["content"][0]["text"], "done");
    let task = create(&mut peer, "quick").await;
    assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &json!(60_000)));
    assert_eq!(task.get("ttlMs"), None);
    let other = json!({ "taskId": task["taskId"], "_meta": { "io.modelcontextprotocol/related-task": { "taskId": "other" } } });
    let result = peer.request("tasks/result", other).await;
    assert_eq!(result["result"]["content"], plain["result"]["content"]);
    let related = &result["result"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related, &json!({ "taskId": task["taskId"] }));
    let got = peer.request("tasks/get", json!({ "taskId": task["taskId"] })).await["result"].clone();
    assert_eq!(got["status"], "completed");
    assert_eq!((got.get("result"), got.get("task"), got.get("_meta")), (None, None, None));
    for member in ["createdAt", "lastUpdatedAt"] {
        assert!(got[member].as_str().unwrap().ends_with('Z'));
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_a_task_or_must_be_one_is_refused() {
    // proves: TASK-03, TASK-06, TASK-09, TASK-10, TASKX-54
    let mut peer = session(None).await;
    for (name, params) in
        [("plain", json!({ "name": "plain", "task": {} })), ("required", json!({ "name": "required" }))]
    {
        let refused = peer.request("tools/call", params).await;
        assert_eq!(refused["error"]["code"], -32601, "{name}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(name));
    }
    // The extension means nothing in this revision.
    let mut declaring = Peer::of(&server().build().unwrap(), None);
    declaring.capabilities = json!({ "extensions": { EXTENSION: {} } });
    let hello = declaring.initialize("2025-11-25").await;
    assert_eq!(hello["result"]["capabilities"].get("extensions"), None);
    let plain = declaring.request("tools/call", json!({ "name": "quick" })).await;
    assert_eq!(plain["result"]["content"][0]["text"], "done");
    // Revisions without tasks do not see what runs only as one.
    let mut older = Peer::of(&server().build().unwrap(), None);
    older.initialize("2025-06-18").await;
    let tools = older.request("tools/list", json!({})).await.to_string();
    assert!(tools.contains("\"quick\"") && !tools.contains("\"required\""));
    let inline = older.request("tools/call", json!({ "name": "quick", "task": {} })).await;
    assert_eq!(inline["result"]["content"][0]["text"], "done");
    assert_eq!(older.request("tools/call", json!({ "name": "required" })).await["error"]["code"], -32602);
    // A server without tasks ignores the member.
    let bare = bowline_server::Server::new("s").tool(bowline_server::Tool::new("t").handler(async || "done"));
    let mut bare = Peer::new(bare);
    let hello = bare.initialize("2025-11-25").await;
    assert_eq!(hello["result"]["capabilities"].get("tasks"), None);
    let inline = bare.request("tools/call", json!({ "name": "t", "task": {} })).await;
    assert_eq!(inline["result"]["content"][0]["text"], "done");
    assert_eq!(bare.request("tasks/get", json!({ "taskId": "x" })).await["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_task_goes_to_the_client_that_waits_for_the_result() {
    // proves: TASK-30, TASK-33
    let mut peer = session(None).await;
    let task = create(&mut peer, "confirm").await;
    until(&mut peer, &task["taskId"], "input_required").await;
    let waiting = peer.start("tasks/result", json!({ "taskId": task["taskId"] })).await;
    let question = loop {
        let frame = peer.recv().await;
        if frame["method"] == "elicitation/create" {
            break frame;
        }
    };
    let related = &question["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related, &json!({ "taskId": task["taskId"] }));
    let answer = json!({ "action": "accept", "content": { "sure": true } });
    peer.send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer })).await;
    let result = peer.response(waiting).await;
    assert_eq!(result["result"]["content"][0]["text"], "sure: true", "{result}");
}

#[tokio::test(start_paused = true)]
async fn a_question_whose_stream_was_lost_is_put_again() {
    let mut peer = session(None).await;
    let task = create(&mut peer, "confirm").await;
    until(&mut peer, &task["taskId"], "input_required").await;
    let id = json!({ "taskId": task["taskId"] });
    // The first stays without an answer, as if its stream had broken.
    peer.start("tasks/result", id.clone()).await;
    let waiting = peer.start("tasks/result", id).await;
    let mut questions = Vec::new();
    while questions.len() < 2 {
        let frame = peer.recv().await;
        if frame["method"] == "elicitation/create" {
            questions.push(frame["id"].clone());
        }
    }
    assert_ne!(questions[0], questions[1]);
    let answer = json!({ "action": "accept", "content": { "sure": true } });
    peer.send(json!({ "jsonrpc": "2.0", "id": questions[1], "result": answer })).await;
    let result = peer.response(waiting).await;
    assert_eq!(result["result"]["content"][0]["text"], "sure: true", "{result}");
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_call_are_the_result_of_the_task() {
    // proves: TASK-27, TASK-49, TASK-50
    let mut peer = session(None).await;
    let wrong = create(&mut peer, "wrong").await;
    let result = peer.request("tasks/result", json!({ "taskId": wrong["taskId"] })).await;
    assert_eq!(
        (&result["result"]["isError"], &result["result"]["content"][0]["text"]),
        (&json!(true), &json!("no luck"))
    );
    let failed = until(&mut peer, &wrong["taskId"], "failed").await;
    assert!(failed["statusMessage"].is_string());
    let broken = create(&mut peer, "broken").await;
    let result = peer.request("tasks/result", json!({ "taskId": broken["taskId"] })).await;
    assert_eq!(result["error"], json!({ "code": -32602, "message": "odd" }));
    assert_eq!(until(&mut peer, &broken["taskId"], "failed").await["statusMessage"], "odd");
}

#[tokio::test(start_paused = true)]
async fn a_task_is_cancelled_before_the_reply_and_only_once() {
    // proves: TASK-43, TASK-44, TASK-46, TASK-48
    let mut peer = session(None).await;
    let task = create(&mut peer, "endless").await;
    let cancelled = peer.request("tasks/cancel", json!({ "taskId": task["taskId"] })).await;
    assert_eq!(
        (&cancelled["result"]["status"], &cancelled["result"]["taskId"]),
        (&json!("cancelled"), &task["taskId"])
    );
    let again = peer.request("tasks/cancel", json!({ "taskId": task["taskId"] })).await;
    assert_eq!(again["error"]["code"], -32602);
    assert_eq!(again["error"]["message"], "the task has ended already: it is cancelled");
    let result = peer.request("tasks/result", json!({ "taskId": task["taskId"] })).await;
    assert_eq!(result["error"], json!({ "code": -32603, "message": "the task was cancelled" }));
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let refused = peer.request(method, json!({ "taskId": "nonsense" })).await;
        assert_eq!(refused["error"]["code"], -32602, "{method}");
    }
    let refused = peer.request("tasks/list", json!({ "cursor": "odd" })).await;
    assert_eq!(refused["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn the_list_has_pages_and_shows_the_callers_tasks_only() {
    // proves: TASK-17, TASK-39, TASK-40, TASK-41, TASK-42, TASK-51, TASK-52, TASK-53
    let server = server().build().unwrap();
    let (mut ada, mut bob) = (Peer::of(&server, Some("ada")), Peer::of(&server, Some("bob")));
    ada.initialize("2025-11-25").await;
    bob.initialize("2025-11-25").await;
    let mut ids = Vec::new();
    for _ in 0..70 {
        ids.push(create(&mut ada, "quick").await["taskId"].as_str().unwrap().to_owned());
    }
    let (mut listed, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
        let page = ada.request("tasks/list", params).await["result"].clone();
        listed.extend(
            page["tasks"].as_array().unwrap().iter().map(|task| task["taskId"].as_str().unwrap().to_owned()),
        );
        pages += 1;
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
        // A cursor of another caller is not one.
        assert_eq!(bob.request("tasks/list", json!({ "cursor": cursor })).await["error"]["code"], -32602);
    }
    ids.sort();
    assert_eq!((listed, pages), (ids.clone(), 2));
    assert_eq!(bob.request("tasks/list", json!({})).await["result"]["tasks"], json!([]));
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        assert_eq!(
            bob.request(method, json!({ "taskId": ids[0] })).await["error"]["code"],
            -32602,
            "{method}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_creator_is_notified_of_changes() {
    // proves: TASK-35, TASK-32, PROG-14, PROG-15, PROG-16
    let mut peer = session(None).await;
    let params = json!({ "name": "report", "task": {}, "_meta": { "progressToken": "p" } });
    let task = peer.request("tools/call", params).await["result"]["task"].clone();
    let (mut status, mut progress) = (false, false);
    while !(status && progress) {
        let frame = peer.recv().await;
        match frame["method"].as_str() {
            Some("notifications/tasks/status") => {
                assert_eq!(frame["params"]["taskId"], task["taskId"]);
                assert_eq!(frame["params"].get("_meta"), None);
                status |= frame["params"]["statusMessage"] == "halfway";
            }
            Some("notifications/progress") => {
                assert_eq!(
                    (&frame["params"]["progressToken"], &frame["params"]["total"]),
                    (&json!("p"), &json!(3))
                );
                let related = &frame["params"]["_meta"]["io.modelcontextprotocol/related-task"];
                assert_eq!(related, &json!({ "taskId": task["taskId"] }));
                progress = true;
            }
            other => panic!("unexpected {other:?}: {frame}"),
        }
    }
    // The progress of the task is known, but is not sent again once the task has ended.
    peer.request("tasks/cancel", json!({ "taskId": task["taskId"] })).await;
    while peer.recv().await["params"]["status"] != "cancelled" {}
    tokio::time::sleep(Duration::from_secs(60)).await;
    let ping = peer.start("ping", json!({})).await;
    let next = peer.recv().await;
    assert_eq!(next["id"], ping, "{next}");
}

#[tokio::test(start_paused = true)]
async fn tasks_of_2025_can_be_looked_after_in_2026() {
    // proves: TASKX-55
    let server = server().build().unwrap();
    let mut older = Peer::of(&server, Some("ada"));
    older.initialize("2025-11-25").await;
    let task = create(&mut older, "endless").await;
    let mut newer = peer(&server, Some("ada"));
    newer.capabilities = json!({ "tasks": {} });
    let got = newer.modern("tasks/get", json!({ "taskId": task["taskId"] })).await;
    assert_eq!((&got["result"]["status"], &got["result"]["ttlMs"]), (&json!("working"), &json!(60_000)));
    let update =
        newer.modern("tasks/update", json!({ "taskId": task["taskId"], "inputResponses": {} })).await;
    assert_eq!(update["error"]["code"], -32021);
    assert!(newer.modern("tasks/cancel", json!({ "taskId": task["taskId"] })).await.get("result").is_some());
    assert_eq!(until(&mut older, &task["taskId"], "cancelled").await["taskId"], task["taskId"]);
}
