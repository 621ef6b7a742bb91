//! Methods and notifications outside of the protocol, through the host.

use super::wired::caller;
use bowline_host::{Host, Upstream};
use bowline_policy::{Guard, Policy, Rule};
use bowline_server::{Error, Server, ServerHandle};
use bowline_testing::Peer;
use bowline_types::Revision;
use serde_json::{Value, json};
use tokio::sync::mpsc;

fn allowing() -> Guard {
    Guard::builder().policy(Policy::new([Rule::allow()])).build()
}

fn named(name: &'static str, heard: mpsc::UnboundedSender<Value>) -> ServerHandle {
    let server = Server::new(name)
        .method("example.com/who", move |params: Value| async move {
            Ok::<_, Error>(json!({ "server": name, "given": params }))
        })
        .extension_method("com.example/words", "com.example/words/count", async || {
            Ok::<_, Error>(json!({ "count": 3 }))
        })
        .notification("example.com/told", move |params: Value| {
            heard.send(json!({ "server": name, "given": params })).expect("the test listens");
            std::future::ready(())
        });
    server.build().expect("the server can be built")
}

/// A host in front of servers of these names and revision.
fn hosted(
    names: &[&'static str],
    revision: Revision,
    guard: Guard,
) -> (Host, ServerHandle, mpsc::UnboundedReceiver<Value>) {
    let (sender, heard) = mpsc::unbounded_channel();
    let host = names.iter().fold(Host::builder().guard(guard), |host, name| {
        host.add(*name, Upstream::from(named(name, sender.clone())).revision(revision))
    });
    let host = host.build();
    let handle = host.open(Server::new("gateway")).expect("the gateway can be built");
    (host, handle, heard)
}

fn modern(handle: &ServerHandle, capabilities: Value) -> Peer {
    Peer::memory(handle).expect("the host is served").capabilities(capabilities)
}

async fn ask(peer: &mut Peer, is_modern: bool, method: &str, params: Value) -> Value {
    let reply =
        if is_modern { peer.modern(method, params).await } else { peer.request(method, params).await };
    reply.expect("the host answers")
}

#[tokio::test]
async fn the_only_server_gets_every_custom_method() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let (host, handle, mut heard) = hosted(&["alpha"], revision, allowing());
        for is_modern in [false, true] {
            let mut near = if is_modern { modern(&handle, json!({})) } else { caller(&handle).await };
            let reply = ask(&mut near, is_modern, "example.com/who", json!({ "a": 1 })).await;
            let result = &reply["result"];
            assert_eq!(
                (&result["server"], &result["given"]),
                (&json!("alpha"), &json!({ "a": 1 })),
                "{reply}"
            );
            let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
            assert_eq!(*info, if is_modern { json!("gateway") } else { Value::Null }, "{reply}");
            let unknown = ask(&mut near, is_modern, "example.com/other", json!({})).await;
            assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
            near.notify("example.com/told", json!({ "b": 2 })).await.unwrap();
            assert_eq!(heard.recv().await.unwrap(), json!({ "server": "alpha", "given": { "b": 2 } }));
        }
        host.close().await;
    }
}

#[tokio::test]
async fn with_several_servers_a_custom_method_names_its_server() {
    let (host, handle, mut heard) = hosted(&["alpha", "beta"], Revision::V2026_07_28, allowing());
    let mut near = caller(&handle).await;
    let reply = near.request("beta/example.com/who", json!({})).await.unwrap();
    assert_eq!(reply["result"]["server"], "beta", "{reply}");
    near.notify("alpha/example.com/told", json!({})).await.unwrap();
    assert_eq!(heard.recv().await.unwrap()["server"], "alpha");
    let unclear = near.request("example.com/who", json!({})).await.unwrap();
    assert_eq!(unclear["error"]["code"], -32601, "{unclear}");
    let message = unclear["error"]["message"].as_str().unwrap();
    assert!(message.contains("`SERVER/example.com/who`"), "{message}");
    // A method of the protocol is not reached by another name.
    for method in ["beta/tools/list", "gamma/example.com/who"] {
        let refused = near.request(method, json!({})).await.unwrap();
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
    }
    host.close().await;
}

#[tokio::test]
async fn rules_for_tools_apply_to_custom_methods() {
    let guard =
        Guard::builder().policy(Policy::new([Rule::deny().tool("example.com/who"), Rule::allow()])).build();
    let (host, handle, _heard) = hosted(&["alpha"], Revision::V2026_07_28, guard);
    let mut near = caller(&handle).await;
    let denied = near.request("example.com/who", json!({})).await.unwrap();
    assert!(denied.get("result").is_none(), "{denied}");
    host.close().await;

    // Without a rule, what may change something asks, and there is nobody to ask.
    let (host, handle, mut heard) = hosted(&["alpha"], Revision::V2026_07_28, Guard::builder().build());
    let mut near = caller(&handle).await;
    let refused = near.request("example.com/who", json!({})).await.unwrap();
    assert!(refused.get("result").is_none(), "{refused}");
    near.notify("example.com/told", json!({})).await.unwrap();
    assert_eq!(near.request("ping", json!({})).await.unwrap()["result"], json!({}));
    assert!(heard.try_recv().is_err());
    host.close().await;
}

#[tokio::test]
async fn the_extensions_of_a_caller_reach_the_server_of_a_custom_method() {
    let (host, handle, _heard) = hosted(&["alpha"], Revision::V2026_07_28, allowing());
    let mut able = modern(&handle, json!({ "extensions": { "com.example/words": {} } }));
    let reply = able.modern("com.example/words/count", json!({})).await.unwrap();
    assert_eq!(reply["result"]["count"], 3, "{reply}");
    let mut bare = modern(&handle, json!({}));
    let refused = bare.modern("com.example/words/count", json!({})).await.unwrap();
    assert!(refused.get("result").is_none(), "{refused}");
    host.close().await;
}
