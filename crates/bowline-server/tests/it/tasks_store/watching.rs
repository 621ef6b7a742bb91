//! Waiting for tasks whose store fails.

use super::*;

/// A process that accepts tasks and does not run them.
fn front(records: Arc<dyn Records>, bus: &Arc<MemoryBus>) -> ServerHandle {
    let work = Tool::new("work").task(Task::now()).handler(async || "never runs here");
    let tasks = Tasks::new(shared(records, bus)).space("test").run(false);
    Server::new("node").tool(work).tasks(tasks).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn many_who_wait_for_one_task_share_its_reads() {
    let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
    let counted = Faulty::new(&memory, 1);
    let front = front(Arc::clone(&counted) as _, &bus);
    let mut peer = crate::wire::Peer::of(&front, None);
    peer.initialize("2025-11-25").await;
    let reply = peer.request("tools/call", json!({ "name": "work", "task": {} })).await;
    let id = reply["result"]["task"]["taskId"].clone();
    let mut waiting = Vec::new();
    for _ in 0..50 {
        waiting.push(peer.start("tasks/result", json!({ "taskId": id })).await);
        // They do not all begin at the same time.
        tokio::time::sleep(Duration::from_millis(13)).await;
    }
    let before = counted.operations.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let reads = counted.operations.load(Ordering::Relaxed) - before;
    // About one per second, not fifty. The follower of the client that created the task is one who waits, too.
    assert!((20..=70).contains(&reads), "{reads} reads in 60 s");
    // Another process runs it, and says so: everybody gets the result, after one or two more reads.
    let go_on = Arc::new(tokio::sync::Notify::new());
    let resume = Arc::clone(&go_on);
    let work = Tool::new("work").task(Task::now()).handler(move || {
        let resume = Arc::clone(&resume);
        async move {
            resume.notified().await;
            "done"
        }
    });
    let tasks = Tasks::new(shared(memory.clone(), &bus)).space("test");
    let _worker = Server::new("node").tool(work).tasks(tasks).build().unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = counted.operations.load(Ordering::Relaxed);
    go_on.notify_one();
    for id in waiting {
        assert_eq!(peer.response(id).await["result"]["content"][0]["text"], "done");
    }
    let reads = counted.operations.load(Ordering::Relaxed) - before;
    assert!(reads <= 3, "{reads} reads for one change");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_cannot_be_read_for_a_while_is_still_followed() {
    let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
    let server = front(memory.clone(), &bus);
    let mut peer = peer(&server, None);
    let [first, second] = [create(&mut peer, "work").await, create(&mut peer, "work").await];
    let listen = json!({
        "notifications": { "taskIds": [first["taskId"], second["taskId"]] },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": peer.capabilities,
        },
    });
    peer.start("subscriptions/listen", listen).await;
    let mut notified = Vec::new();
    while notified.len() < 2 {
        let frame = peer.recv().await;
        if frame["method"] == "notifications/tasks" {
            notified.push(frame["params"]["taskId"].clone());
        }
    }
    // A newer version of the program writes the first task, and an older one again later.
    let records = memory.scan(None, 100).await.unwrap().records;
    let name = first["taskId"].as_str().unwrap();
    let row = records.into_iter().find(|row| row.key.as_str().ends_with(name)).unwrap();
    let mut newer: serde_json::Value = serde_json::from_slice(&row.value).unwrap();
    newer["format"] = json!(99);
    let version = memory.put(Put::update(row.key.clone(), newer.to_string(), row.version)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    memory.put(Put::update(row.key, row.value, version)).await.unwrap();
    for task in [&second, &first] {
        peer.modern("tasks/cancel", json!({ "taskId": task["taskId"] })).await;
        loop {
            let frame = peer.recv().await;
            if frame["method"] == "notifications/tasks" && frame["params"]["status"] == "cancelled" {
                assert_eq!(frame["params"]["taskId"], task["taskId"]);
                break;
            }
        }
    }
}
