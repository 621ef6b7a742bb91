//! What one caller or one server can take from the others: a bounded share.

use super::wired::{Wired, called, caller, done, finished, hosted, question, start};
use bowline_host::{Health, Host, Share, Upstream};
use bowline_http::{HttpOptions, HttpService, PeerAddress};
use bowline_policy::{
    Guard, Policy, Rule,
    audit::{Audit, AuditSettings},
};
use bowline_server::{Server, ServerHandle, Tool};
use bowline_testing::{Log, Peer};
use bowline_types::Revision;
use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::{future::Future, time::Duration};
use tokio::sync::mpsc;

fn allowing() -> Guard {
    Guard::builder().policy(Policy::new([Rule::allow()])).build()
}

fn plain(name: &str) -> ServerHandle {
    Server::new(name).tool(Tool::new("hello").handler(|| "hello")).build().expect("the server can be built")
}

#[tokio::test]
async fn a_flood_of_one_caller_does_not_delay_another() {
    let (host, handle, mut far) = hosted().await;
    let (mut flood, mut other) = (caller(&handle).await, caller(&handle).await);
    let mut flooding = Vec::new();
    for _ in 0..100 {
        flooding.push(start(&mut flood, "plain").await);
    }
    // Sixteen of them are at the server, and none is answered.
    let mut running = Vec::new();
    for _ in 0..16 {
        running.push(called(&mut far, "plain").await);
    }
    let calling = start(&mut other, "ask").await;
    let call = called(&mut far, "ask").await;
    done(&mut far, &call).await;
    finished(&mut other, &calling).await;
    // The others of the flood follow as those are answered, in their order.
    for _ in 16..100 {
        let first = running.remove(0);
        done(&mut far, &first).await;
        running.push(called(&mut far, "plain").await);
    }
    for call in &running {
        done(&mut far, call).await;
    }
    for call in &flooding {
        finished(&mut flood, call).await;
    }
    host.close().await;
}

/// Starts a call of a client that has neither a session nor a user.
async fn start_anonymous(near: &mut Peer, tool: &str) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    let params = json!({ "name": format!("far__{tool}"), "_meta": meta });
    near.start("tools/call", params).await.expect("the host listens")
}

#[tokio::test]
async fn anonymous_calls_that_wait_for_their_turn_do_not_use_up_the_quota() {
    let (host, handle, mut far) = hosted().await;
    let mut asked_user = caller(&handle).await;
    let asking = start(&mut asked_user, "ask").await;
    let asking_call = called(&mut far, "ask").await;
    let question = question(&mut far).await;
    let shown = asked_user.recv_method("elicitation/create").await.unwrap();
    // More calls than all anonymous callers together may run. `ask` has one caller at a time, so all of them wait.
    let mut anonymous = Peer::memory(&handle).unwrap();
    let mut waiting = Vec::new();
    for _ in 0..100 {
        waiting.push(start_anonymous(&mut anonymous, "ask").await);
    }
    let plain = start_anonymous(&mut anonymous, "plain").await;
    let call = called(&mut far, "plain").await;
    done(&mut far, &call).await;
    finished(&mut anonymous, &plain).await;
    asked_user.reply(&shown, json!({ "action": "decline" })).await.unwrap();
    far.response(&question).await.unwrap();
    done(&mut far, &asking_call).await;
    finished(&mut asked_user, &asking).await;
    // The calls that waited follow, one at a time.
    for _ in &waiting {
        let call = called(&mut far, "ask").await;
        done(&mut far, &call).await;
    }
    for call in &waiting {
        finished(&mut anonymous, call).await;
    }
    host.close().await;
}

/// A call of 2026-07-28 without a user, as it arrives from an address.
fn anonymous_request(address: &str) -> Request<Full<Bytes>> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "far__plain", "arguments": { "from": address }, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = Request::post("/mcp")
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "far__plain")
        .extension(PeerAddress(address.parse().unwrap()));
    request.body(Full::new(body.to_string().into())).unwrap()
}

#[tokio::test]
async fn an_anonymous_address_at_its_limit_does_not_delay_others() {
    let (host, handle, mut far) = hosted().await;
    let service = HttpService::with_options(handle, HttpOptions::new());
    let call = |address: &str| {
        let (service, request) = (service.clone(), anonymous_request(address));
        tokio::spawn(async move {
            let body = service.respond(request).await.into_body().collect().await.unwrap().to_bytes();
            String::from_utf8(body.to_vec()).unwrap()
        })
    };
    let flood: Vec<_> = (0..100).map(|_| call("192.0.2.1")).collect();
    for _ in 0..64 {
        called(&mut far, "plain").await;
    }
    let other = call("192.0.2.2");
    let others = called(&mut far, "plain").await;
    assert_eq!(others["params"]["arguments"]["from"], "192.0.2.2");
    done(&mut far, &others).await;
    let answer = other.await.unwrap();
    assert!(answer.contains("done"), "{answer}");
    flood.iter().for_each(tokio::task::JoinHandle::abort);
    host.close().await;
}

#[tokio::test]
async fn per_client_servers_are_limited_and_the_error_says_so() {
    let private = Upstream::from(plain("private")).share(Share::PerClient);
    let host = Host::builder().add("private", private).guard(allowing()).max_client_servers(2, 2).build();
    let handle = host.open(Server::new("gateway")).unwrap();
    let call = json!({ "name": "private__hello" });
    let mut peers = Vec::new();
    for _ in 0..2 {
        let mut peer = caller(&handle).await;
        let answer = peer.request("tools/call", call.clone()).await.unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "hello", "{answer}");
        peers.push(peer);
    }
    let mut third = caller(&handle).await;
    let answer = third.request("tools/call", call.clone()).await.unwrap();
    let error = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(
        error.contains("2 per-client servers are running") && error.contains("max_client_servers"),
        "{answer}"
    );
    // Whoever leaves makes room.
    peers.pop().unwrap().close().await.unwrap();
    until(&mut third, call, |answer| answer.get("result").is_some()).await;
    host.close().await;
}

/// Calls until the answer is as it should be.
async fn until(peer: &mut Peer, call: Value, is_good: impl Fn(&Value) -> bool) {
    let waiting = async {
        while !is_good(&peer.request("tools/call", call.clone()).await.unwrap()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("it becomes good");
}

/// A server whose list of tools the test writes.
fn listing(tools: impl Fn(&Value) -> Value + Send + 'static) -> (Upstream, impl Future<Output = ()>) {
    let (sender, mut started) = mpsc::unbounded_channel::<Peer>();
    let serving = async move {
        while let Some(mut far) = started.recv().await {
            while let Ok(frame) = far.recv().await {
                let result = match frame["method"].as_str() {
                    Some("initialize") => json!({
                        "protocolVersion": "2025-11-25",
                        "capabilities": { "tools": {} },
                        "serverInfo": { "name": "far", "version": "1" },
                    }),
                    Some("tools/list") => tools(&frame["params"]["cursor"]),
                    _ => continue,
                };
                if far.reply(&frame, result).await.is_err() {
                    break;
                }
            }
        }
    };
    (Upstream::to(Wired(sender)).revision(Revision::V2025_11_25), serving)
}

#[tokio::test]
async fn a_list_that_is_too_large_affects_only_its_server_and_is_reported() {
    // V-112
    let (hostile, serving) = listing(|cursor| {
        let page = cursor.as_str().map_or(0, |cursor| cursor.parse::<u32>().unwrap_or(0));
        let tool = json!({ "name": format!("t{page}"), "description": "x".repeat(1 << 20), "inputSchema": { "type": "object" } });
        json!({ "tools": [tool], "nextCursor": (page + 1).to_string() })
    });
    let serving = tokio::spawn(serving);
    let host = Host::builder().add("hostile", hostile).add("good", plain("good")).guard(allowing()).build();
    let handle = host.open(Server::new("gateway")).unwrap();
    let mut peer = caller(&handle).await;
    let listed = peer.request("tools/list", json!({})).await.unwrap();
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.iter().map(|tool| &tool["name"]).collect::<Vec<_>>(), ["good__hello"]);
    let status = host.status().into_iter().find(|status| status.name == "hostile").unwrap();
    assert_eq!(status.health, Health::Ready);
    let problem = status.list_problem.unwrap();
    assert!(
        problem.contains("larger than") || problem.contains("too large") || problem.contains("limit"),
        "{problem}"
    );
    let answer = peer.request("tools/call", json!({ "name": "hostile__t0" })).await.unwrap();
    assert!(answer["error"]["message"].as_str().unwrap().contains(&problem), "{answer}");
    host.close().await;
    serving.abort();
}

#[tokio::test]
async fn a_server_that_stays_broken_is_reported_once() {
    let (log, _guard) = Log::start();
    let (broken, serving) = listing(|_| json!({ "tools": "none" }));
    let serving = tokio::spawn(serving);
    let host = Host::builder().add("broken", broken).add("good", plain("good")).guard(allowing()).build();
    let handle = host.open(Server::new("gateway")).unwrap();
    let mut peer = caller(&handle).await;
    for _ in 0..10 {
        let listed = peer.request("tools/list", json!({})).await.unwrap();
        assert_eq!(listed["result"]["tools"][0]["name"], "good__hello", "{listed}");
    }
    let reported = log.count(&["cannot get the lists of a server", "broken"]);
    assert_eq!(reported, 1, "{:?}", log.lines());
    host.close().await;
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn changes_of_lists_are_announced_once_per_interval_and_never_lost() {
    let (host, handle, mut far) = hosted().await;
    let mut peer = caller(&handle).await;
    // What the start itself announced.
    tokio::time::sleep(Duration::from_secs(5)).await;
    peer.request("ping", json!({})).await.unwrap();
    peer.notifications();
    for _ in 0..50 {
        far.notify("notifications/tools/list_changed", json!({})).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    peer.request("ping", json!({})).await.unwrap();
    let told = peer.notifications();
    assert_eq!(told.len(), 2, "the first at once, the others together: {told:?}");
    far.notify("notifications/tools/list_changed", json!({})).await.unwrap();
    peer.recv_method("notifications/tools/list_changed").await.unwrap();
    host.close().await;
}

#[tokio::test]
async fn every_large_parallel_call_leaves_its_lines_in_the_audit_log() {
    let path = std::env::temp_dir().join(format!("bowline-{}-audit-parallel.jsonl", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let audit = Audit::open(AuditSettings::new(&path).max_bytes(1 << 30)).unwrap();
    let guard = Guard::builder().policy(Policy::new([Rule::allow()])).audit(audit.clone()).build();
    let host = Host::builder().add("good", plain("good")).guard(guard).build();
    let handle = host.open(Server::new("gateway")).unwrap();
    let mut peer = caller(&handle).await;
    let text = "x".repeat(256 << 10);
    let mut calls = Vec::new();
    for number in 0..200 {
        let arguments = json!({ "number": number, "text": text });
        let call = json!({ "name": "good__hello", "arguments": arguments });
        calls.push(peer.start("tools/call", call).await.unwrap());
    }
    for call in &calls {
        peer.response(call).await.unwrap();
    }
    host.close().await;
    audit.flush();
    assert_eq!(audit.dropped(), 0);
    let lines = std::fs::read_to_string(&path).unwrap();
    let count =
        |event: &str| lines.lines().filter(|line| line.contains(&format!(r#""event":"{event}""#))).count();
    assert_eq!((count("decision"), count("call"), count("dropped")), (200, 200, 0));
    let _ = std::fs::remove_file(&path);
}
