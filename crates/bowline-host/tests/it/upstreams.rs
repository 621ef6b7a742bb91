//! Servers that are slow, hostile or silent behind a host. They are scripted, and the clock is stopped.

use crate::wired::Wired;
use bowline_client::ListLimits;
use bowline_host::{Health, Host, Upstream};
use bowline_policy::{Guard, Policy, Rule};
use bowline_server::{Server, ServerHandle, Tool};
use bowline_testing::{Log, Peer};
use bowline_types::Revision;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;

/// Longer than anything a test waits for.
const LONG: Duration = Duration::from_secs(1_000_000);

/// A host in front of a scripted server called `far` and a well-behaved one called `near`.
fn hosted(adjust: impl FnOnce(Upstream) -> Upstream) -> (Host, ServerHandle, mpsc::UnboundedReceiver<Peer>) {
    let (sender, started) = mpsc::unbounded_channel();
    let guard = Guard::builder().policy(Policy::new([Rule::allow()])).build();
    let neighbor = Server::new("near").tool(Tool::new("hello").handler(|| "done")).build().unwrap();
    let far = adjust(Upstream::to(Wired(sender)));
    let host = Host::builder().add("far", far).add("near", neighbor).guard(guard).build();
    let handle = host.open(Server::new("gateway")).unwrap();
    (host, handle, started)
}

async fn caller(handle: &ServerHandle) -> Peer {
    let mut peer = Peer::memory(handle).unwrap().deadline(LONG);
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    peer
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

/// Opens a session as a server of 2025-11-25 with tools.
async fn open_legacy(far: &mut Peer) {
    let greeting = far.recv_method("initialize").await.unwrap();
    let server = json!({ "name": "far", "version": "1" });
    let greeted =
        json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": server });
    far.reply(&greeting, greeted).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_that_starts_slowly_is_reached() {
    let (host, handle, mut started) = hosted(|far| far);
    let mut near = caller(&handle).await;
    let call = near.start("tools/call", json!({ "name": "far__echo", "arguments": {} })).await.unwrap();
    let mut far = started.recv().await.unwrap().deadline(LONG);
    // It reads nothing before the host has given up on the probe and offers the handshake.
    let probe = far.recv_method("server/discover").await.unwrap();
    let greeting = far.recv_method("initialize").await.unwrap();
    let found = json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } });
    far.reply(&probe, found).await.unwrap();
    let data = json!({ "supported": ["2026-07-28"], "requested": "2025-11-25" });
    let error = json!({ "code": -32022, "message": "unsupported protocol version", "data": data });
    far.send(json!({ "jsonrpc": "2.0", "id": greeting["id"], "error": error })).await.unwrap();
    loop {
        let request = far.recv().await.unwrap();
        match request["method"].as_str() {
            Some("tools/list") => {
                let list = json!({ "resultType": "complete", "tools": [tool("echo")] });
                far.reply(&request, list).await.unwrap();
            }
            Some("tools/call") => {
                let content = json!([{ "type": "text", "text": "late, but here" }]);
                let result = json!({ "resultType": "complete", "content": content });
                far.reply(&request, result).await.unwrap();
                break;
            }
            _ => panic!("unexpected {request}"),
        }
    }
    let answer = near.response(&call).await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "late, but here", "{answer}");
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_without_end_is_refused_and_spoils_no_other() {
    // V-112
    let limits = ListLimits::default().entries(100).bytes(64 * 1024);
    for size in [1, 100_000] {
        let (host, handle, mut started) =
            hosted(|far| far.revision(Revision::V2025_11_25).list_limits(limits));
        let mut near = caller(&handle).await;
        let listed = near.start("tools/list", json!({})).await.unwrap();
        let mut far = started.recv().await.unwrap().deadline(LONG);
        open_legacy(&mut far).await;
        let mut pages = 0;
        let answer = loop {
            tokio::select! {
                request = far.recv_method("tools/list") => {
                    let request = request.unwrap();
                    pages += 1;
                    let tools: Vec<_> = (0..40).map(|number| tool(&format!("t{pages}-{number}"))).collect();
                    let page = json!({ "tools": tools, "nextCursor": format!("{pages}"), "padding": "x".repeat(size) });
                    far.reply(&request, page).await.unwrap();
                }
                answer = near.response(&listed) => break answer.unwrap(),
            }
        };
        let names: Vec<_> =
            answer["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
        assert_eq!(names, ["near__hello"]);
        assert_eq!(pages, if size == 1 { 3 } else { 1 });
        host.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_legacy_server_is_found_out_by_pings() {
    // proves: PING-02, PING-03
    let (host, handle, mut started) = hosted(|far| far.revision(Revision::V2025_11_25).idle_stop(None));
    let mut near = caller(&handle).await;
    let listed = near.start("tools/list", json!({})).await.unwrap();
    let mut far = started.recv().await.unwrap().deadline(LONG);
    open_legacy(&mut far).await;
    let request = far.recv_method("tools/list").await.unwrap();
    far.reply(&request, json!({ "tools": [tool("echo")] })).await.unwrap();
    near.response(&listed).await.unwrap();
    let answered = tokio::time::Instant::now();
    let ping = far.recv_method("ping").await.unwrap();
    assert!(answered.elapsed() >= Duration::from_secs(50), "pinged after {:?}", answered.elapsed());
    far.reply(&ping, json!({})).await.unwrap();
    // The next one is not answered.
    far.recv_method("ping").await.unwrap();
    let health = || host.status().into_iter().find(|status| status.name == "far").map(|status| status.health);
    while !matches!(health(), Some(Health::Failed(_))) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(
        health(),
        Some(Health::Failed("the connection is closed: a ping was not answered in time".to_owned()))
    );
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn servers_that_are_missing_from_a_list_are_reported_in_one_line() {
    let (log, _guard) = Log::start();
    let (sender, mut started) = mpsc::unbounded_channel();
    let slow = || Upstream::to(Wired(sender.clone())).startup_timeout(LONG);
    let host = Host::builder().add("one", slow()).add("two", slow()).build();
    let handle = host.open(Server::new("gateway")).unwrap();
    let mut near = caller(&handle).await;
    for _ in 0..2 {
        let listed = near.request("tools/list", json!({})).await.unwrap();
        assert_eq!(listed["result"]["tools"], json!([]));
    }
    // They were started and say nothing.
    let peers = [started.recv().await.unwrap(), started.recv().await.unwrap()];
    assert_eq!(log.count(&["a list is incomplete", "one, two"]), 1, "{:?}", log.lines());
    assert_eq!(log.count(&["a list is incomplete"]), 1, "{:?}", log.lines());
    host.close().await;
    drop(peers);
}
