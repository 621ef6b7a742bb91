//! Changes at run time, and who is notified of them.

use crate::wire::Peer;
use bowline_server::{Prompt, Resource, Server, Tool};
use serde_json::{Value, json};

fn tool(name: &str) -> Tool {
    Tool::new(name).handler(|| "ok")
}

fn server() -> Server {
    Server::new("shop")
        .tool(tool("first"))
        .prompt(Prompt::new("greet").handler(|| "hello"))
        .resource(Resource::new("shop://stock", "stock").text("3"))
        .resource(Resource::new("shop://menu", "menu").text("soup"))
}

const META: &str = "io.modelcontextprotocol/subscriptionId";

fn listen(id: &Value, filter: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
        "notifications": filter,
    } })
}

#[tokio::test]
async fn a_legacy_client_is_notified_of_changed_lists_once_per_burst() {
    // proves: TOOL-34
    let server = server();
    let registry = server.registry();
    let mut peer = Peer::new(server);
    let hello = peer.initialize("2025-06-18").await;
    assert_eq!(hello["result"]["capabilities"]["tools"]["listChanged"], true, "{hello}");
    peer.request("ping", json!({})).await;
    for name in ["second", "third"] {
        registry.add_tool(tool(name)).unwrap();
    }
    assert!(registry.remove_tool("first"));
    let changed = peer.recv().await;
    assert_eq!(changed, json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    let list = peer.request("tools/list", json!({})).await;
    let names: Vec<_> =
        list["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["second", "third"]);
}

// proves: RES-20, PRM-14
#[tokio::test]
async fn changed_lists_of_prompts_and_resources_are_announced() {
    let server = server();
    let registry = server.registry();
    let mut peer = Peer::new(server);
    let hello = peer.initialize("2025-06-18").await;
    for offer in ["prompts", "resources"] {
        assert_eq!(hello["result"]["capabilities"][offer]["listChanged"], true, "{hello}");
    }
    peer.request("ping", json!({})).await;
    registry.add_prompt(Prompt::new("other").handler(|| "hi")).unwrap();
    assert_eq!(peer.recv().await["method"], "notifications/prompts/list_changed");
    registry.add_resource(Resource::new("shop://other", "other").text("x")).unwrap();
    assert_eq!(peer.recv().await["method"], "notifications/resources/list_changed");
}

#[tokio::test]
async fn nothing_is_announced_before_the_handshake_is_complete() {
    let server = server();
    let registry = server.registry();
    let mut peer = Peer::new(server);
    peer.request("initialize", json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } })).await;
    registry.add_tool(tool("second")).unwrap();
    assert_eq!(peer.request("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn a_subscription_of_the_legacy_kind_covers_its_uri_and_ends() {
    // proves: RES-19
    // proves: RES-18
    let server = server();
    let registry = server.registry();
    let mut peer = Peer::new(server);
    peer.initialize("2025-11-25").await;
    let done = peer.request("resources/subscribe", json!({ "uri": "shop://stock" })).await;
    assert_eq!(done["result"], json!({}));
    registry.resource_updated("shop://menu");
    registry.resource_updated("shop://stock");
    registry.resource_updated("shop://stock");
    let updated = peer.recv().await;
    assert_eq!(
        updated,
        json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": "shop://stock" } })
    );
    let done = peer.request("resources/unsubscribe", json!({ "uri": "shop://stock" })).await;
    assert_eq!(done["result"], json!({}));
    registry.resource_updated("shop://stock");
    assert_eq!(peer.request("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn a_listener_receives_its_changes_and_nothing_before_the_acknowledgment() {
    // proves: SUB-02, SUB-03, SUB-04, SUB-05, SUB-07, SUB-09, SUB-10, SUB-20, META-25
    for id in [json!(1), json!("1")] {
        let server = server();
        let registry = server.registry();
        let mut peer = Peer::new(server);
        let filter = json!({ "toolsListChanged": true, "promptsListChanged": false, "resourceSubscriptions": ["shop://stock"] });
        peer.send(listen(&id, &filter)).await;
        let acknowledged = peer.recv().await;
        assert_eq!(
            acknowledged,
            json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
                "_meta": { META: id },
                "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["shop://stock"] },
            } })
        );
        registry.add_prompt(Prompt::new("other").handler(|| "hi")).unwrap();
        registry.resource_updated("shop://menu");
        registry.add_tool(tool("second")).unwrap();
        registry.resource_updated("shop://stock");
        let tools = peer.recv().await;
        assert_eq!(
            tools,
            json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": { "_meta": { META: id } } })
        );
        let stock = peer.recv().await;
        assert_eq!(stock["params"], json!({ "uri": "shop://stock", "_meta": { META: id } }));
    }
}

#[tokio::test]
async fn two_listeners_are_independent_and_one_can_end() {
    // proves: SUB-15
    let server = server();
    let registry = server.registry();
    let mut peer = Peer::new(server);
    peer.send(listen(&json!(1), &json!({ "toolsListChanged": true }))).await;
    peer.send(listen(&json!(2), &json!({ "toolsListChanged": true }))).await;
    for id in [1, 2] {
        assert_eq!(peer.recv().await["params"]["_meta"][META], id);
    }
    registry.add_tool(tool("second")).unwrap();
    for id in [1, 2] {
        assert_eq!(peer.recv().await["params"]["_meta"][META], id);
    }
    peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }))
        .await;
    let discovered = peer.modern("server/discover", json!({})).await;
    assert!(discovered.get("result").is_some());
    registry.add_tool(tool("third")).unwrap();
    assert_eq!(peer.recv().await["params"]["_meta"][META], 2);
}

#[tokio::test]
async fn unsupported_changes_are_missing_from_the_acknowledgment() {
    // proves: SUB-07, SUB-22
    let mut peer = Peer::new(Server::new("still").tool(tool("only")));
    let filter = json!({ "toolsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": ["shop://stock"] });
    peer.send(listen(&json!(1), &filter)).await;
    assert_eq!(peer.recv().await["params"]["notifications"], json!({}));
}
