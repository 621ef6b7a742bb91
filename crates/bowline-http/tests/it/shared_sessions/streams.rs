//! Streams that are resumed at another process.

use super::*;

#[tokio::test]
async fn a_stream_is_resumed_at_any_process_without_gap_or_duplicate() {
    // proves: HTTP-30, HTTP-47, HTTP-48, HTTP-51
    let pair = Pair::new();
    let client = pair.open().await;
    let mut reply = client.call(&pair.nodes[0], 1, "gated").await;
    let primed = reply.event().await.unwrap();
    let primed = primed.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    let (first, message) = reply.message().await.unwrap();
    assert_eq!(message["params"]["progress"], 1.0);
    pair.gates.entered.notified().await;
    drop(reply);
    // From the beginning, and from the first event.
    for (last, expected) in [(primed.as_str(), 1.0), (first.as_deref().unwrap(), 2.0)] {
        let mut again = client.get(&pair.nodes[1], Some(last)).await;
        assert_eq!(again.message().await.unwrap().1["params"]["progress"], expected);
    }
    let mut again = client.get(&pair.nodes[1], first.as_deref()).await;
    assert_eq!(again.message().await.unwrap().1["params"]["progress"], 2.0);
    pair.gates.open.notify_one();
    let (third, message) = again.message().await.unwrap();
    assert_eq!(message["params"]["progress"], 3.0);
    assert_eq!(again.message().await.unwrap().1["result"]["content"][0]["text"], "through");
    assert!(again.message().await.is_none());
    // After its end, at both.
    for node in &pair.nodes {
        let mut again = client.get(node, third.as_deref()).await;
        assert_eq!(again.message().await.unwrap().1["result"]["content"][0]["text"], "through");
        assert!(again.message().await.is_none());
    }
}

#[tokio::test]
async fn events_that_never_were_end_a_stream_with_an_error() {
    let pair = Pair::new();
    let client = pair.open().await;
    let mut reply = client.call(&pair.nodes[0], 1, "gated").await;
    let (id, _) = reply.message().await.unwrap();
    let (stream, _) = id.as_deref().unwrap().split_once('-').unwrap();
    let mut beyond = client.get(&pair.nodes[1], Some(&format!("{stream}-900"))).await;
    let (_, message) = beyond.message().await.unwrap();
    assert_eq!((&message["id"], &message["error"]["code"]), (&json!(1), &json!(-32603)));
    assert!(message["error"]["message"].as_str().unwrap().contains("events were lost"), "{message}");
    assert!(beyond.message().await.is_none());
    // A stream nobody knows, and what is no id at all.
    assert_eq!(client.get(&pair.nodes[1], Some("00ff.1.7-1")).await.status, StatusCode::NOT_FOUND);
    assert_eq!(client.get(&pair.nodes[1], Some("../x-1")).await.status, StatusCode::BAD_REQUEST);
    // Another session does not see the stream.
    let stranger = pair.open().await;
    assert_eq!(stranger.get(&pair.nodes[1], id.as_deref()).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_stream_is_resumed_where_its_last_event_is_not_confirmed_yet() {
    let pair = Pair::new();
    let client = pair.open().await;
    let mut reply = client.call(&pair.nodes[0], 1, "gated").await;
    reply.message().await.unwrap();
    let (second, _) = reply.message().await.unwrap();
    pair.gates.entered.notified().await;
    drop(reply);
    pair.store.is_mute.store(true, Ordering::SeqCst);
    pair.gates.open.notify_one();
    // The other process finds the event in the store; the one that wrote it does not know that it is there.
    let mut again = client.get(&pair.nodes[1], second.as_deref()).await;
    let (third, message) = again.message().await.unwrap();
    assert_eq!(message["params"]["progress"], 3.0);
    drop(again);
    let mut again = client.get(&pair.nodes[0], third.as_deref()).await;
    assert_eq!(again.status, StatusCode::OK);
    pair.store.is_mute.store(false, Ordering::SeqCst);
    assert_eq!(again.message().await.unwrap().1["result"]["content"][0]["text"], "through");
}

#[tokio::test]
async fn what_a_killed_store_loses_is_events_and_nothing_else() {
    let pair = Pair::new();
    pair.store.loses_relaxed.store(true, Ordering::SeqCst);
    let client = pair.open().await;
    let mut reply = client.call(&pair.nodes[0], 1, "gated").await;
    let (id, _) = reply.message().await.unwrap();
    // Whoever resumes the stream gets an error for the id of the call.
    let mut again = client.get(&pair.nodes[1], id.as_deref()).await;
    let (_, message) = again.message().await.unwrap();
    assert_eq!((&message["id"], &message["error"]["code"]), (&json!(1), &json!(-32603)));
    assert!(message["error"]["message"].as_str().unwrap().contains("events were lost"), "{message}");
    // An answer that was acknowledged arrives.
    let mut reply = client.call(&pair.nodes[0], 2, "greet").await;
    let (_, question) = reply.message().await.unwrap();
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
    assert_eq!(client.post(&pair.nodes[1], &answer).await.status, StatusCode::ACCEPTED);
    let (_, response) = reply.message().await.unwrap();
    assert_eq!(response["result"]["content"][0]["text"], "hello Ada");
}

#[tokio::test]
async fn a_killed_store_loses_no_end_of_a_stream_and_no_question() {
    let pair = Pair::new();
    let client = pair.open().await;
    let mut stream = client.call(&pair.nodes[0], 1, "gated").await;
    stream.message().await.unwrap();
    let (second, _) = stream.message().await.unwrap();
    pair.gates.entered.notified().await;
    pair.store.loses_relaxed.store(true, Ordering::SeqCst);
    pair.gates.open.notify_one();
    while stream.message().await.is_some() {}
    // Without the end, the other process would wait for events of a process that is alive.
    let mut again = client.get(&pair.nodes[1], second.as_deref()).await;
    let (_, message) = again.message().await.unwrap();
    let is_response = message["result"]["content"][0]["text"] == "through";
    let is_loss = message["error"]["message"].as_str().is_some_and(|text| text.contains("events were lost"));
    assert!(is_response || is_loss || message["params"]["progress"] == 3.0, "{message}");
    // A client that was cut off before the question came finds it at the other process.
    let mut stream = client.call(&pair.nodes[0], 2, "greet").await;
    let (question, _) = stream.message().await.unwrap();
    let (name, _) = question.as_deref().unwrap().split_once('-').unwrap();
    let mut again = client.get(&pair.nodes[1], Some(&format!("{name}-0"))).await;
    assert_eq!(again.message().await.unwrap().1["method"], "elicitation/create");
}

#[tokio::test]
async fn the_stream_of_a_dead_process_ends_with_an_error() {
    let mut pair = Pair::with(|store| store.node_time(Duration::from_millis(200)));
    let client = pair.open().await;
    let mut reply = client.call(&pair.nodes[0], 1, "gated").await;
    let (id, _) = reply.message().await.unwrap();
    drop(reply);
    // The process is gone without a word.
    drop(pair.nodes.remove(0));
    let mut again = client.get(&pair.nodes[0], id.as_deref()).await;
    assert_eq!(again.message().await.unwrap().1["params"]["progress"], 2.0);
    let (last, message) = again.message().await.unwrap();
    assert_eq!((&message["id"], &message["error"]["code"]), (&json!(1), &json!(-32603)));
    assert!(message["error"]["message"].as_str().unwrap().contains("has exited"), "{message}");
    assert!(last.is_some() && again.message().await.is_none());
}

#[tokio::test]
async fn a_resumed_stream_waits_for_a_store_that_refuses_writes() {
    let mut pair = Pair::with(|store| store.node_time(Duration::from_millis(200)));
    let client = pair.open().await;
    let mut reply = client.call(&pair.nodes[0], 1, "gated").await;
    let (id, _) = reply.message().await.unwrap();
    drop(reply);
    drop(pair.nodes.remove(0));
    pair.store.refuses_writes.store(true, Ordering::SeqCst);
    let mut again = client.get(&pair.nodes[0], id.as_deref()).await;
    assert_eq!(again.message().await.unwrap().1["params"]["progress"], 2.0);
    // Signs of life of the process are refused as well as the end of the stream.
    while pair.store.refused.load(Ordering::SeqCst) < 8 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    pair.store.refuses_writes.store(false, Ordering::SeqCst);
    let (_, message) = again.message().await.unwrap();
    assert!(message["error"]["message"].as_str().unwrap().contains("has exited"), "{message}");
}
