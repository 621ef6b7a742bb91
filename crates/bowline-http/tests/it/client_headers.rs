//! What a request of the modern era says in its headers.

use crate::client_peer::{Asked, Peer, modern, text};
use bowline_client::{Client, Result};
use serde_json::{Value, json};

fn everything() -> Value {
    json!({ "tools": {}, "prompts": {}, "resources": {}, "completions": {} })
}

/// What holds for every request of this era.
fn look_at(asked: &Asked) {
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/mcp"));
    assert_eq!(asked.header("content-type"), Some("application/json"));
    let accept = asked.header("accept").unwrap();
    assert!(accept.contains("application/json") && accept.contains("text/event-stream"), "{accept}");
    let body = asked.body.as_object().expect("a body is one message");
    assert!(body.contains_key("method") && body.contains_key("id"), "{body:?}");
    let meta = &asked.body["params"]["_meta"];
    assert_eq!(
        asked.header("mcp-protocol-version"),
        meta["io.modelcontextprotocol/protocolVersion"].as_str()
    );
    assert_eq!(asked.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(asked.header("mcp-method"), asked.body["method"].as_str());
    for none in ["mcp-session-id", "last-event-id", "authorization", "origin"] {
        assert_eq!(asked.header(none), None);
    }
}

#[tokio::test]
async fn every_request_has_its_method_and_name_in_headers() {
    // proves: HTTP-10, HTTP-11, HTTP-14, HTTP-68, HTTP-69, HDR-01, HDR-02, HDR-03
    let mut peer = Peer::new().await;
    let connecting = Client::connect(peer.target());
    let (client, ()) = tokio::join!(connecting, async {
        let discover = peer.post("server/discover").await;
        look_at(&discover);
        assert_eq!(discover.header("mcp-name"), None);
        discover.result(&crate::client_peer::discovery(&everything())).await;
    });
    let client = client.unwrap();
    let ((), ()) = tokio::join!(
        async {
            client.tools().await.unwrap();
            client.call("add", json!({ "name": "not this" })).await.unwrap();
            client.read("note://one").await.unwrap();
            client.prompt("greet", ()).await.unwrap();
        },
        async {
            let contents = json!([{ "uri": "note://one", "text": "x" }]);
            for (method, name, result) in [
                ("tools/list", None, json!({ "tools": [], "ttlMs": 0, "cacheScope": "private" })),
                ("tools/call", Some("add"), text("3")),
                (
                    "resources/read",
                    Some("note://one"),
                    json!({ "contents": contents, "ttlMs": 0, "cacheScope": "private" }),
                ),
                ("prompts/get", Some("greet"), json!({ "messages": [] })),
            ] {
                let asked = peer.next().await;
                look_at(&asked);
                assert_eq!(asked.body["method"], method);
                assert_eq!(asked.header("mcp-name"), name);
                asked.result(&result).await;
            }
        }
    );
    client.close().await;
    assert!(peer.unseen().is_empty(), "there is no session to end: {:?}", peer.unseen());
}

#[tokio::test]
async fn requests_about_a_task_name_the_task() {
    // proves: TASKX-48
    let mut capabilities = everything();
    capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
    let (client, mut peer) = modern(Client::builder().tasks(), capabilities).await;
    let state = |status: &str| {
        json!({
            "resultType": "complete", "taskId": "a b\u{e4}", "status": status, "createdAt": "2026-01-01T00:00:00Z",
            "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": null, "pollIntervalMs": 1,
        })
    };
    let task = client.task("a b\u{e4}");
    let mut answers = bowline_types::InputResponses::new();
    answers.insert("q1", json!({ "action": "decline" }).into());
    let ((), ()) = tokio::join!(
        async {
            task.status().await.unwrap();
            task.answer(answers).await.unwrap();
            task.cancel().await.unwrap();
        },
        async {
            for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
                let asked = peer.post(method).await;
                look_at(&asked);
                assert_eq!(asked.header("mcp-name"), Some("=?base64?YSBiw6Q=?="));
                assert_eq!(asked.body["params"]["taskId"], "a b\u{e4}");
                asked.result(&state("working")).await;
            }
        }
    );
}

#[tokio::test]
async fn a_name_that_fits_no_header_is_encoded() {
    // proves: HDR-04
    let (client, mut peer) = modern(Client::builder(), everything()).await;
    for (name, header) in [
        ("plain", "plain"),
        ("two words", "two words"),
        ("Zürich", "=?base64?WsO8cmljaA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line\nbreak", "=?base64?bGluZQpicmVhaw==?="),
        ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
    ] {
        let (called, ()) = tokio::join!(client.call(name, ()), async {
            let asked = peer.post("tools/call").await;
            assert_eq!(asked.header("mcp-name"), Some(header));
            assert_eq!(asked.body["params"]["name"], name);
            asked.result(&text("ok")).await;
        });
        called.unwrap();
    }
}

/// Lists one tool, whose arguments are all mirrored.
async fn list(client: &Client, peer: &mut Peer, tools: Value) -> Result<Vec<String>> {
    let (tools, ()) = tokio::join!(client.tools(), async {
        let page = json!({ "tools": tools, "ttlMs": 0, "cacheScope": "private" });
        peer.post("tools/list").await.result(&page).await;
    });
    Ok(tools?.into_iter().map(|tool| tool.name).collect())
}

fn tool(name: &str, properties: &Value) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object", "properties": properties } })
}

/// Calls a tool, and returns the headers of the request.
async fn mirrored(client: &Client, peer: &mut Peer, arguments: Value) -> Vec<(String, String)> {
    let (called, headers) = tokio::join!(client.call("query", arguments), async {
        let asked = peer.post("tools/call").await;
        let headers = asked.mirrored().into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        asked.result(&text("rows")).await;
        headers
    });
    called.unwrap();
    headers
}

#[tokio::test]
async fn arguments_are_repeated_in_headers_as_the_tool_asks() {
    // proves: HDR-05, HDR-06, HDR-18, HDR-19, HDR-20, HDR-21, HDR-22, HDR-24, HDR-38
    let (client, mut peer) = modern(Client::builder(), everything()).await;
    // Of a tool that was never listed nothing is known.
    assert!(mirrored(&client, &mut peer, json!({ "region": "eu" })).await.is_empty());
    let properties = json!({
        "region": { "type": "string", "x-mcp-header": "Region" },
        "count": { "type": "integer", "x-mcp-header": "Count" },
        "dry": { "type": "boolean", "x-mcp-header": "Dry" },
        "at": { "type": "object", "properties": { "zone": { "type": "string", "x-mcp-header": "Zone" } } },
    });
    assert_eq!(list(&client, &mut peer, json!([tool("query", &properties)])).await.unwrap(), ["query"]);
    for (arguments, expected) in [
        (json!({}), vec![]),
        (json!({ "region": null, "zone": "not this one" }), vec![]),
        (json!({ "region": "eu" }), vec![("mcp-param-region", "eu")]),
        (json!({ "region": "us west 1" }), vec![("mcp-param-region", "us west 1")]),
        (json!({ "region": "" }), vec![("mcp-param-region", "")]),
        (json!({ "region": "世界" }), vec![("mcp-param-region", "=?base64?5LiW55WM?=")]),
        (json!({ "region": " a" }), vec![("mcp-param-region", "=?base64?IGE=?=")]),
        (json!({ "region": "a\nb" }), vec![("mcp-param-region", "=?base64?YQpi?=")]),
        (json!({ "region": "=?base64?x?=" }), vec![("mcp-param-region", "=?base64?PT9iYXNlNjQ/eD89?=")]),
        (json!({ "count": 42, "dry": true }), vec![("mcp-param-count", "42"), ("mcp-param-dry", "true")]),
        (json!({ "count": -7, "dry": false }), vec![("mcp-param-count", "-7"), ("mcp-param-dry", "false")]),
        (json!({ "at": { "zone": "b" } }), vec![("mcp-param-zone", "b")]),
    ] {
        let expected: Vec<(String, String)> =
            expected.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        assert_eq!(mirrored(&client, &mut peer, arguments).await, expected);
    }
    // What fits no header is not sent at all.
    let error = client.call("query", json!({ "region": ["eu"] })).await.unwrap_err();
    assert!(error.to_string().contains("query"), "{error}");
    assert!(peer.unseen().is_empty());
}

#[tokio::test]
async fn only_a_tool_with_impossible_headers_is_omitted() {
    // proves: HDR-15
    let (client, mut peer) = modern(Client::builder(), everything()).await;
    let annotated = |header: Value| json!({ "a": { "type": "string", "x-mcp-header": header } });
    let twice = json!({
        "a": { "type": "string", "x-mcp-header": "Same" },
        "b": { "type": "string", "x-mcp-header": "SAME" },
    });
    let tools = json!([
        tool("good", &annotated(json!("Good"))),
        tool("empty", &annotated(json!(""))),
        tool("spaced", &annotated(json!("a b"))),
        tool("broken", &annotated(json!("a\r\nb"))),
        tool("number", &annotated(json!(7))),
        tool("twice", &twice),
        tool("fraction", &json!({ "a": { "type": "number", "x-mcp-header": "A" } })),
        tool(
            "items",
            &json!({ "a": { "type": "array", "items": { "type": "string", "x-mcp-header": "A" } } })
        ),
        tool("plain", &json!({ "a": { "type": "string" } })),
    ]);
    assert_eq!(list(&client, &mut peer, tools).await.unwrap(), ["good", "plain"]);
}

#[tokio::test]
async fn a_call_refused_for_its_headers_is_sent_again_with_those_of_now() {
    // proves: HDR-37
    let (client, mut peer) = modern(Client::builder(), everything()).await;
    let page = |header: &str, next: Value| {
        let properties = json!({ "region": { "type": "string", "x-mcp-header": header } });
        let mut page = json!({ "tools": [tool("query", &properties)], "ttlMs": 0, "cacheScope": "private" });
        if next.is_string() {
            page["tools"] = json!([tool("other", &json!({}))]);
            page["nextCursor"] = next;
        }
        page
    };
    let mismatch = || json!({ "code": -32020, "message": "where is Mcp-Param-Zone?" });
    let (called, ()) = tokio::join!(client.call("query", json!({ "region": "eu" })), async {
        let first = peer.post("tools/call").await;
        assert!(first.mirrored().is_empty());
        let id = first.body["id"].clone();
        first.error(400, mismatch()).await;
        let listing = peer.post("tools/list").await;
        look_at(&listing);
        assert_ne!(listing.body["id"], id);
        listing.result(&page("Zone", json!("2"))).await;
        let listing = peer.post("tools/list").await;
        assert_eq!(listing.body["params"]["cursor"], "2");
        // The second page comes as events.
        let events = listing.events(&[]).await;
        events.result(&page("Zone", Value::Null)).await;
        let again = peer.post("tools/call").await;
        look_at(&again);
        assert_eq!(again.mirrored(), [("mcp-param-zone", "eu")]);
        again.result(&text("rows")).await;
    });
    assert_eq!(called.unwrap().text(), "rows");
    // Once, and only if there is something to correct.
    let (called, ()) = tokio::join!(client.call("query", json!({ "region": "eu" })), async {
        peer.post("tools/call").await.error(400, mismatch()).await;
        peer.post("tools/list").await.result(&page("Zone", Value::Null)).await;
    });
    assert_eq!(called.unwrap_err().as_rpc().unwrap().code, -32020);
    let (called, ()) = tokio::join!(client.call("query", json!({ "region": "eu" })), async {
        peer.post("tools/call").await.error(400, mismatch()).await;
        peer.post("tools/list").await.result(&page("Area", Value::Null)).await;
        peer.post("tools/call").await.error(400, mismatch()).await;
    });
    assert_eq!(called.unwrap_err().as_rpc().unwrap().code, -32020);
    assert!(peer.unseen().is_empty());
}
