//! Who answers the questions of tasks of servers behind a host.

use crate::task_script::{EXTENSION, Script, asking, caller, create, form, host_of};
use bowline_host::{Share, Upstream};
use bowline_policy::{Action, Policy, Rule};
use bowline_server::ServerHandle;
use bowline_store::Store;
use bowline_testing::Peer;
use bowline_types::Root;
use serde_json::{Value, json};

/// A client of 2026-07-28 with tasks, and its capabilities.
fn modern(handle: &ServerHandle, mut capabilities: Value) -> Peer {
    capabilities["extensions"] = json!({ EXTENSION: {} });
    Peer::memory(handle).unwrap().capabilities(capabilities)
}

async fn start(near: &mut Peer) -> Value {
    let created = near.modern("tools/call", json!({ "name": "far__build" })).await.unwrap();
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    json!({ "taskId": created["result"]["taskId"] })
}

async fn get(near: &mut Peer, id: &Value) -> Value {
    let got = near.modern("tasks/get", id.clone()).await.unwrap();
    assert!(got["error"].is_null(), "{got}");
    got["result"].clone()
}

fn roots() -> Value {
    json!({ "method": "roots/list" })
}

#[tokio::test]
async fn the_host_answers_what_only_the_host_can() {
    let folder = tempfile::tempdir().unwrap();
    let uri = format!("file://{}", folder.path().display());
    let script = Script::default();
    let upstream = Upstream::to(script.clone()).roots([Root::new(uri.clone())]);
    let (host, handle) = host_of(upstream, Policy::new([Rule::allow()]), Store::memory());
    let mut near = modern(&handle, json!({}));
    let id = start(&mut near).await;
    script.set("1", asking("r1", &roots()));
    // The caller has nothing to answer.
    let state = get(&mut near, &id).await;
    assert_eq!((&state["status"], state.get("inputRequests")), (&json!("working"), None), "{state}");
    let update = script.requested("tasks/update").await;
    assert_eq!(update["inputResponses"]["r1"]["roots"][0]["uri"], uri, "{update}");
    assert_eq!(get(&mut near, &id).await["status"], "completed");
    assert_eq!(script.requests("tasks/update").len(), 1);
    host.close().await;
}

#[tokio::test]
async fn a_request_that_nobody_may_answer_ends_the_task() {
    let script = Script::default();
    // A rule denies what the host could answer, and nobody can answer at all.
    let denied = Upstream::to(script.clone()).roots([Root::new("file:///srv")]);
    let rules = [Rule::deny().action(Action::Roots), Rule::allow()];
    for (upstream, number) in [(denied, 1), (Upstream::to(script.clone()), 2)] {
        let (host, handle) = host_of(upstream, Policy::new(rules.clone()), Store::memory());
        let mut near = modern(&handle, json!({}));
        let id = start(&mut near).await;
        script.set("1", asking("r1", &roots()));
        assert_eq!(get(&mut near, &id).await["status"], "working");
        let is_cancelled = async {
            while script.requests("tasks/cancel").len() < number {
                script.requested("tasks/cancel").await;
                tokio::task::yield_now().await;
            }
        };
        is_cancelled.await;
        assert_eq!(script.requests("tasks/update"), Vec::<Value>::new());
        host.close().await;
    }
}

#[tokio::test]
async fn a_client_that_only_looks_leaves_questions_to_the_one_that_created_the_task() {
    let script = Script::default();
    let (host, handle) = script.host(Policy::new([Rule::allow()]), Store::memory());
    let mut creator = modern(&handle, json!({ "elicitation": {} }));
    let mut reader = modern(&handle, json!({}));
    let id = start(&mut creator).await;
    script.set("1", asking("q1", &form()));
    let state = get(&mut reader, &id).await;
    assert_eq!(
        (&state["status"], &state["inputRequests"]),
        (&json!("input_required"), &json!({})),
        "{state}"
    );
    assert_eq!(script.requests("tasks/update"), Vec::<Value>::new());
    let state = get(&mut creator, &id).await;
    assert_eq!(state["inputRequests"]["q1"]["method"], "elicitation/create", "{state}");

    // Without such a client the question is cancelled, so that the task goes on.
    let id = start(&mut reader).await;
    script.set("2", asking("q2", &form()));
    get(&mut reader, &id).await;
    let update = script.requested("tasks/update").await;
    assert_eq!(update["inputResponses"]["q2"]["action"], "cancel", "{update}");
    host.close().await;
}

#[tokio::test]
async fn questions_of_two_callers_do_not_wait_for_each_other() {
    let script = Script::default();
    let upstream = Upstream::to(script.clone()).share(Share::PerClient);
    let (host, handle) = host_of(upstream, Policy::new([Rule::allow()]), Store::memory());
    let (mut ada, mut bob) = (caller(&handle, Some("ada")).await, caller(&handle, Some("bob")).await);
    // Each has a server of its own, which counts its tasks from 1.
    let (of_ada, of_bob) = (create(&mut ada, "build").await, create(&mut bob, "build").await);
    script.set("1", asking("q1", &form()));
    ada.start("tasks/result", of_ada).await.unwrap();
    ada.recv_method("elicitation/create").await.unwrap();
    // While Ada thinks:
    let waiting = bob.start("tasks/result", of_bob).await.unwrap();
    let asked = bob.recv_method("elicitation/create").await.unwrap();
    bob.reply(&asked, json!({ "action": "decline" })).await.unwrap();
    let result = bob.response(&waiting).await.unwrap();
    let text = result["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"));
    assert!(text.contains("decline"), "{text}");
    host.close().await;
}
