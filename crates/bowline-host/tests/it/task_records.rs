//! What a host records about tasks of callers of 2025-11-25.

use crate::task_script::{EXTENSION, Script, caller, completed, create, host_of};
use bowline_client::BoxFuture;
use bowline_host::Upstream;
use bowline_policy::{ArgumentTest, Policy, Rule};
use bowline_server::{Server, Task, Tool};
use bowline_store::{
    ClaimRequest, Group, Key, Memory, MemoryBus, NodeId, Owner, Page, Put, PutError, Reach, Record, Records,
    Store, StoreError, Version,
};
use bowline_testing::Peer;
use bowline_types::{RawJson, Revision};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;

fn allow() -> Policy {
    Policy::new([Rule::allow()])
}

async fn status(near: &mut Peer, id: &Value) -> Value {
    near.request("tasks/get", id.clone()).await.unwrap()["result"]["status"].clone()
}

#[tokio::test]
async fn a_rule_that_allows_some_arguments_keeps_the_tasks_available() {
    let main = ArgumentTest::Equals(RawJson::parse(r#""main""#.to_owned()).unwrap());
    let policy = Policy::new([Rule::allow().tool("build").argument("/branch", main), Rule::deny()]);
    let script = Script::default();
    let (host, handle) = script.host(policy, Store::memory());
    let mut near = caller(&handle, Some("ada")).await;
    let call = |branch: &str| json!({ "name": "far__build", "arguments": { "branch": branch }, "task": {} });
    let created = near.request("tools/call", call("main")).await.unwrap();
    let id = json!({ "taskId": created["result"]["task"]["taskId"] });
    assert_eq!(status(&mut near, &id).await, "working", "{created}");
    let listed = near.request("tasks/list", json!({})).await.unwrap();
    assert_eq!(listed["result"]["tasks"].as_array().unwrap().len(), 1, "{listed}");
    script.set("1", completed("built"));
    let result = near.request("tasks/result", id.clone()).await.unwrap();
    assert_eq!(result["result"]["content"][0]["text"], "built", "{result}");
    let refused = near.request("tools/call", call("other")).await.unwrap();
    assert!(refused["error"]["data"].is_object(), "{refused}");
    // A rule that denies every call ends the access.
    host.guard().set_policy(Policy::new([Rule::deny()]));
    assert_eq!(status(&mut near, &id).await, Value::Null);
    host.close().await;
}

#[tokio::test]
async fn an_id_that_a_server_uses_again_is_another_task() {
    let script = Script::default();
    let store = Store::memory();
    let (one, first) = script.host(allow(), store.clone());
    let mut near = caller(&first, None).await;
    let earlier = create(&mut near, "build").await;
    near.request("tasks/cancel", earlier.clone()).await.unwrap();
    // The server of another process of the host counts from 1 again.
    let (two, second) = script.host(allow(), store);
    let mut near = caller(&second, None).await;
    let later = create(&mut near, "build").await;
    assert_ne!(earlier, later);
    assert_eq!(status(&mut near, &later).await, "working");
    assert_eq!(status(&mut near, &earlier).await, "cancelled");
    let listed = near.request("tasks/list", json!({})).await.unwrap();
    assert_eq!(listed["result"]["tasks"].as_array().unwrap().len(), 2, "{listed}");
    one.close().await;
    two.close().await;
}

#[tokio::test]
async fn a_completed_task_is_not_cancelled_by_a_caller_of_2026_07_28() {
    let script = Script::default();
    let (host, handle) = script.host(allow(), Store::memory());
    let mut near = caller(&handle, None).await;
    let id = create(&mut near, "build").await;
    script.set("1", completed("built"));
    let mut modern = Peer::memory(&handle).unwrap().capabilities(json!({ "extensions": { EXTENSION: {} } }));
    let acknowledged = modern.modern("tasks/cancel", id.clone()).await.unwrap();
    assert!(acknowledged["error"].is_null(), "{acknowledged}");
    assert_eq!(status(&mut near, &id).await, "completed");
    let result = near.request("tasks/result", id).await.unwrap();
    assert_eq!(result["result"]["content"][0]["text"], "built", "{result}");
    // One that runs is cancelled.
    let id = create(&mut near, "build").await;
    modern.modern("tasks/cancel", id.clone()).await.unwrap();
    assert_eq!(status(&mut near, &id).await, "cancelled");
    host.close().await;
}

#[tokio::test]
async fn nobody_waits_for_the_result_of_a_cancelled_task() {
    let script = Script::default();
    let store = Store::memory();
    let (one, first) = script.host(allow(), store.clone());
    let (two, second) = script.host(allow(), store);
    // The server ignores cancellations. The second one arrives at another process, and the task is completed after it.
    for (number, by) in [("1", &first), ("2", &second)] {
        let (mut waits, mut cancels) = (caller(&first, None).await, caller(by, None).await);
        let id = create(&mut waits, "build").await;
        let waiting = waits.start("tasks/result", id.clone()).await.unwrap();
        // The request has been seen when a later one is answered.
        waits.request("tasks/get", id.clone()).await.unwrap();
        let cancelled = cancels.request("tasks/cancel", id.clone()).await.unwrap();
        assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
        if number == "2" {
            script.set(number, completed("built"));
        }
        let result = waits.response(&waiting).await.unwrap();
        assert_eq!(result["error"]["code"], -32603, "{number}: {result}");
        assert_eq!(status(&mut waits, &id).await, "cancelled");
    }
    one.close().await;
    two.close().await;
}

fn text(mebibytes: usize) -> String {
    "x".repeat(mebibytes << 20)
}

#[tokio::test]
async fn one_caller_does_not_fill_the_store_with_results() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let server = Server::new("far")
        .tool(Tool::new("large").handler(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            async { text(3) }
        }))
        // A server of 2026-07-28 decides itself which calls become tasks.
        .tool(Tool::new("slow").task(Task::now()).handler(async || "slow"))
        .tool(Tool::new("huge").handler(async || text(5)))
        .build()
        .unwrap();
    let upstream = Upstream::from(server).revision(Revision::V2026_07_28);
    let (host, handle) = host_of(upstream, allow(), Store::memory());
    let mut ada = caller(&handle, Some("ada")).await;
    // What cannot be kept has run nevertheless, and the error says so.
    let lost = ada.request("tools/call", json!({ "name": "far__huge", "task": {} })).await.unwrap();
    let message = lost["error"]["message"].as_str().unwrap_or_else(|| panic!("{lost}"));
    assert!(message.contains("`far__huge` has run") && message.contains("too large"), "{message}");
    // 32 MiB are full after 11 results.
    for _ in 0..11 {
        create(&mut ada, "large").await;
    }
    let refused = ada.request("tools/call", json!({ "name": "far__large", "task": {} })).await.unwrap();
    let message = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{refused}"));
    assert!(message.contains("at most 33554432 are kept"), "{message}");
    assert_eq!(calls.load(Ordering::Relaxed), 11, "a call that is refused does not run");
    let plain = ada.request("tools/call", json!({ "name": "far__large" })).await.unwrap();
    assert!(plain["error"].is_null());
    // Others keep theirs.
    let mut bob = caller(&handle, Some("bob")).await;
    create(&mut bob, "large").await;
    host.close().await;
}

#[tokio::test]
async fn results_of_calls_that_the_host_runs_as_tasks_count() {
    // Slow enough to become a task before it ends.
    let large = Tool::new("large").handler(async || {
        tokio::time::sleep(Duration::from_millis(50)).await;
        text(3)
    });
    let server = Server::new("far").tool(large).build().unwrap();
    let upstream =
        Upstream::from(server).revision(Revision::V2025_06_18).task_after(Some(Duration::from_millis(5)));
    let (host, handle) = host_of(upstream, allow(), Store::memory());
    let mut ada = caller(&handle, Some("ada")).await;
    for _ in 0..11 {
        let id = create(&mut ada, "large").await["taskId"].clone();
        let result = ada.request("tasks/result", json!({ "taskId": id })).await.unwrap();
        assert!(result["error"].is_null(), "{}", result["error"]);
    }
    let refused = ada.request("tools/call", json!({ "name": "far__large", "task": {} })).await.unwrap();
    let message = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("it is not refused"));
    assert!(message.contains("at most 33554432 are kept"), "{message}");
    host.close().await;
}

#[tokio::test]
async fn a_record_that_cannot_be_read_hides_no_others() {
    let (script, store) = (Script::default(), Store::memory());
    let (host, handle) = script.host(allow(), store.clone());
    let mut near = caller(&handle, Some("ada")).await;
    for _ in 0..25 {
        create(&mut near, "build").await;
    }
    let records = store.records().scan(None, 1000).await.unwrap().records;
    let first = records.iter().find(|record| record.key.as_str().starts_with("host-task/")).unwrap();
    store.records().put(Put::update(first.key.clone(), "damaged", first.version)).await.unwrap();
    let first = near.request("tasks/list", json!({})).await.unwrap();
    let cursor = json!({ "cursor": first["result"]["nextCursor"] });
    let second = near.request("tasks/list", cursor).await.unwrap();
    let count = |page: &Value| page["result"]["tasks"].as_array().unwrap_or_else(|| panic!("{page}")).len();
    assert_eq!((count(&first), count(&second)), (19, 5));
    host.close().await;
}

/// A store whose writes wait for ever from some time on.
#[derive(Debug, Default)]
struct Stuck {
    memory: Memory,
    holds_writes: AtomicBool,
    reached: Notify,
}

impl Records for Stuck {
    fn get<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        self.memory.get(keys)
    }

    fn put(&self, put: Put) -> BoxFuture<'_, Result<Version, PutError>> {
        if !self.holds_writes.load(Ordering::Relaxed) {
            return self.memory.put(put);
        }
        Box::pin(async {
            self.reached.notify_one();
            std::future::pending().await
        })
    }

    fn remove<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<(), StoreError>> {
        self.memory.remove(keys)
    }

    fn list<'a>(
        &'a self,
        group: &'a Group,
        after: Option<&'a Key>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        self.memory.list(group, after, limit)
    }

    fn count<'a>(&'a self, group: &'a Group) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.memory.count(group)
    }

    fn claim(&self, claim: ClaimRequest) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        self.memory.claim(claim)
    }

    fn renew(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Vec<(Key, Owner)>, StoreError>> {
        self.memory.renew(node, lease)
    }

    fn touch<'a>(&'a self, keys: &'a [Key], ttl: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        self.memory.touch(keys, ttl)
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.memory.sweep(limit)
    }

    fn scan<'a>(&'a self, after: Option<&'a str>, limit: usize) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.memory.scan(after, limit)
    }
}

#[tokio::test]
async fn a_task_whose_caller_goes_before_it_is_recorded_is_cancelled() {
    let (script, records) = (Script::default(), Arc::new(Stuck::default()));
    let engine = Arc::clone(&records) as Arc<dyn Records>;
    let store = Store::builder("stuck", engine, Arc::new(MemoryBus::new()), Reach::Process).build();
    let (host, handle) = script.host(allow(), store);
    let mut near = caller(&handle, None).await;
    records.holds_writes.store(true, Ordering::Relaxed);
    let call = near.start("tools/call", json!({ "name": "far__build", "task": {} })).await.unwrap();
    records.reached.notified().await;
    near.notify("notifications/cancelled", json!({ "requestId": call })).await.unwrap();
    assert_eq!(script.requested("tasks/cancel").await["taskId"], "1");
    host.close().await;
}
