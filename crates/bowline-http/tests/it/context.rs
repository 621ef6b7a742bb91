//! What a handler sees of the request that made its call, and custom methods over HTTP.

use crate::wire::Ask;
use bowline_client::Client;
use bowline_http::{HttpService, http};
use bowline_server::{Call, Ctx, Error, Server, Tool, middleware::from_fn};
use bowline_types::Revision;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

#[derive(Clone)]
struct User(&'static str);

struct Tenant(u32);

fn server() -> Server {
    let seen = |ctx: &Ctx| {
        json!({
            "header": ctx.headers().get("x-request").and_then(|value| value.to_str().ok()),
            "user": ctx.extension::<User>().map(|User(name)| *name),
            "tenant": ctx.extension::<Tenant>().map(|Tenant(number)| *number),
            "session": ctx.session_id().is_some(),
        })
    };
    Server::new("s")
        .tool(Tool::new("at-once").handler(move |ctx: Ctx| seen(&ctx).to_string()))
        .tool(Tool::new("later").handler(move |ctx: Ctx| async move {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            seen(&ctx).to_string()
        }))
        .tool(Tool::new("blocking").blocking().handler(move |ctx: Ctx| seen(&ctx).to_string()))
        .method("example.com/seen", move |ctx: Ctx| std::future::ready(Ok::<_, Error>(seen(&ctx))))
        .layer(from_fn(|mut call: Call, next| async move {
            // Middleware sees what the transport knows, and adds to it.
            let tenant = if call.extensions.get::<User>().is_some() { 7 } else { 0 };
            call.extensions.insert(Tenant(tenant));
            next.run(call).await
        }))
}

#[tokio::test]
async fn a_handler_sees_headers_and_extensions_of_its_own_request() {
    let service = HttpService::new(server()).unwrap();
    let expected = json!({ "header": "a", "user": "ada", "tenant": 7, "session": false });
    for tool in ["at-once", "later", "blocking"] {
        let ask = Ask::modern("tools/call", json!({ "name": tool })).header("x-request", "a");
        let reply = ask.extension(User("ada")).send(&service).await.json().await;
        let text = reply["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), expected, "{tool}");
    }
    let ask = Ask::modern("example.com/seen", json!({})).header("x-request", "a");
    let mut reply = ask.extension(User("ada")).send(&service).await.json().await["result"].take();
    reply.as_object_mut().unwrap().retain(|key, _| expected.get(key).is_some());
    assert_eq!(reply, expected);
}

#[tokio::test]
async fn a_call_of_a_session_sees_its_own_http_request() {
    let service = HttpService::new(server()).unwrap();
    let initialize = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
    });
    let open = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize });
    let opened = Ask::post(&open).header("x-request", "handshake").send(&service).await;
    let session = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
    for (header, user) in [("one", Some("ada")), ("two", None)] {
        for tool in ["at-once", "later", "blocking"] {
            let call =
                json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": tool } });
            let mut ask = Ask::post(&call).header("mcp-session-id", &session).header("x-request", header);
            if let Some(user) = user {
                ask = ask.extension(User(user));
            }
            let reply = ask.send(&service).await.json().await;
            let text = reply["result"]["content"][0]["text"].as_str().unwrap();
            let tenant = if user.is_some() { 7 } else { 0 };
            let expected = json!({ "header": header, "user": user, "tenant": tenant, "session": true });
            assert_eq!(serde_json::from_str::<Value>(text).unwrap(), expected, "{tool}");
        }
    }
}

#[tokio::test]
async fn custom_methods_and_notifications_pass_over_http_in_every_revision() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&heard);
    let server = Server::new("s")
        .method("example.com/double", async |params: Value| {
            Ok::<_, Error>(json!({ "number": params["number"].as_i64().unwrap_or_default() * 2 }))
        })
        .notification("example.com/opened", move |params: Value| {
            noted.lock().unwrap().push(params["revision"].to_string());
            std::future::ready(())
        });
    let service = HttpService::new(server).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { service.serve(listener, std::future::pending()).await });
    let mut sent = Vec::new();
    for revision in Revision::ALL {
        let client = Client::builder().revisions([revision]).connect(http(url.clone())).await.unwrap();
        client.notify("example.com/opened", json!({ "revision": revision.as_str() })).await.unwrap();
        sent.push(format!("\"{revision}\""));
        let reply: Value = client.request("example.com/double", json!({ "number": 21 })).await.unwrap();
        assert_eq!(reply["number"], 42, "{revision}");
        let refused = client.request::<Value>("example.com/other", ()).await.unwrap_err();
        assert_eq!(refused.as_rpc().map(|error| error.code), Some(-32601), "{revision}");
        client.close().await;
    }
    // A notification has no reply to wait for.
    tokio::time::timeout(std::time::Duration::from_secs(30), async {
        while heard.lock().unwrap().len() < sent.len() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("every notification arrives");
    let mut heard = heard.lock().unwrap().clone();
    heard.sort();
    assert_eq!(heard, sent);
    serving.abort();
}

#[tokio::test]
async fn a_custom_method_needs_its_header() {
    let server = Server::new("s").method("example.com/x", async || Ok::<_, Error>(()));
    let service = HttpService::new(server).unwrap();
    let missing = Ask::modern("example.com/x", json!({})).without("mcp-method").send(&service).await;
    assert_eq!(missing.json().await["error"]["code"], -32020);
    let wrong =
        Ask::modern("example.com/x", json!({})).header("mcp-method", "example.com/y").send(&service).await;
    assert_eq!(wrong.json().await["error"]["code"], -32020);
    let fine = Ask::modern("example.com/x", json!({})).send(&service).await;
    assert_eq!(fine.json().await["result"]["resultType"], "complete");
}
