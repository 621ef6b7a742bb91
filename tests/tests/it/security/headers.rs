//! Headers that say something else than the body: whoever stands in between believes the headers.

use super::support::{Endpoint, Request, Watch, server};
use bowline_http::HttpOptions;
use bowline_server::{Server, Tool};
use bowline_types::RawJson;
use serde_json::{Value, json};

/// Refused with 400 and -32020, and nothing ran.
async fn check(endpoint: &Endpoint, request: Request) {
    let reply = endpoint.send(&request).await;
    assert_eq!((reply.status, reply.code(), endpoint.ran()), (400, -32020, 0), "{request:?}: {reply:?}");
    assert_eq!(reply.json()["id"], 1);
}

#[tokio::test]
async fn v13_headers_that_disagree_with_the_body_are_refused() {
    let endpoint = Endpoint::new().await;
    let hit = || Request::call("hit", json!({}));
    for (name, others) in [
        ("MCP-Protocol-Version", &["2025-11-25", "", "2026-07-28x", "=?base64?MjAyNi0wNy0yOA==?="][..]),
        ("Mcp-Method", &["tools/list", "TOOLS/CALL", "", "tools/call\u{e9}", "=?base64?dG9vbHMvY2FsbA==?="]),
        (
            "Mcp-Name",
            &[
                "who",
                "HIT",
                "",
                "=?base64?d2hv?=",
                "=?BASE64?aGl0?=",
                "=?base64?aGl0!?=",
                "=?base64?aGl?=",
                "=?base64??=",
                "h\u{ed}t",
            ],
        ),
    ] {
        check(&endpoint, hit().without(name)).await;
        for other in others {
            check(&endpoint, hit().set(name, other)).await;
        }
        // Twice: the same value, or another before or after it.
        let right = ["2026-07-28", "tools/call", "hit"][["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"]
            .iter()
            .position(|known| *known == name)
            .unwrap()];
        for second in [right, others[0]] {
            check(&endpoint, hit().add(name, second)).await;
            check(&endpoint, hit().set(name, second).add(name, right)).await;
        }
        check(&endpoint, hit().set(name, &format!("{right}, {right}"))).await;
    }
    let encoded = endpoint.send(&hit().set("Mcp-Name", "=?base64?aGl0?=")).await;
    assert_eq!((encoded.status, endpoint.ran()), (200, 1), "the same value in its other form");
}

#[tokio::test]
async fn v13_an_unexpected_name_header_is_refused() {
    let endpoint = Endpoint::new().await;
    for (method, params) in [
        ("tools/list", json!({})),
        ("server/discover", json!({})),
        ("resources/list", json!({})),
        ("subscriptions/listen", json!({ "notifications": {} })),
    ] {
        check(&endpoint, Request::modern(&json!(1), method, params).set("Mcp-Name", "hit")).await;
    }
}

#[tokio::test]
async fn v13_mirrored_arguments_must_match() {
    let endpoint = Endpoint::new().await;
    let region = |region: Value| Request::call("region", json!({ "region": region }));
    let limit = |limit: &str| {
        let call = Request::call("limit", json!({ "limit": "LIMIT" }));
        let body = String::from_utf8(call.body.clone()).unwrap().replace("\"LIMIT\"", limit);
        call.body(body)
    };
    for request in [
        region(json!("eu")),
        region(json!("eu")).set("Mcp-Param-Region", "us"),
        region(json!("eu")).set("Mcp-Param-Region", "EU"),
        region(json!("eu")).set("Mcp-Param-Region", "=?base64?dXM=?="),
        region(json!("eu")).set("Mcp-Param-Region", "=?base64?!!?="),
        region(json!("eu")).set("Mcp-Param-Region", "=?BASE64?ZXU=?="),
        region(json!("eu")).add("Mcp-Param-Region", "eu").add("Mcp-Param-Region", "eu"),
        region(json!("eu")).add("Mcp-Param-Region", "eu").add("Mcp-Param-Region", "us"),
        // A header for an argument that is not there.
        region(Value::Null).set("Mcp-Param-Region", "eu"),
        region(Value::Null).set("Mcp-Param-Region", "null"),
        Request::call("region", json!({})).set("Mcp-Param-Region", "eu"),
        // Numbers are compared as numbers, as far as all readers agree on them.
        limit("42").set("Mcp-Param-Limit", "43"),
        limit("42").set("Mcp-Param-Limit", "42.5"),
        limit("42").set("Mcp-Param-Limit", "042"),
        limit("42").set("Mcp-Param-Limit", "0x2a"),
        limit("9007199254740993").set("Mcp-Param-Limit", "9007199254740993"),
        limit("9007199254740992.0").set("Mcp-Param-Limit", "9007199254740992"),
        limit("100000000000000000000").set("Mcp-Param-Limit", "100000000000000000000"),
        limit("1e400").set("Mcp-Param-Limit", "1"),
    ] {
        let reply = endpoint.send(&request).await;
        // What no reader can hold is refused for that already.
        let expected = [-32020, -32602].contains(&reply.code());
        assert!(expected && endpoint.ran() == 0, "{request:?}: {reply:?}");
    }
    for request in [
        region(json!("eu")).set("Mcp-Param-Region", "eu"),
        region(json!("eu")).set("Mcp-Param-Region", "=?base64?ZXU=?="),
        region(Value::Null),
        limit("42").set("Mcp-Param-Limit", "42.0"),
        limit("42.0").set("Mcp-Param-Limit", "42"),
        limit("9007199254740991").set("Mcp-Param-Limit", "9007199254740991"),
    ] {
        let before = endpoint.ran();
        let reply = endpoint.send(&request).await;
        assert_eq!(
            (reply.status, reply.code(), endpoint.ran()),
            (200, 0, before + 1),
            "{request:?}: {reply:?}"
        );
    }
}

#[tokio::test]
async fn v13_headers_do_not_reveal_a_hidden_tool() {
    let watch = Watch::default();
    let schema = json!({
        "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
    });
    let tool = |name: &str| Tool::new(name).input_schema(RawJson::of(&schema).unwrap()).handler(|| "rows");
    let server: Server = server(&watch)
        .tool(tool("secret").guard(|client| client.principal.as_deref() == Some("ada")))
        .tool(tool("clumsy").guard(|_| panic!("in the guard")));
    let endpoint = Endpoint::serve(server, watch, HttpOptions::new()).await;
    let call = |tool: &str| Request::call(tool, json!({ "region": "eu" }));
    let service = &endpoint.service;
    let (secret, absent) =
        (call("secret").send_as(None, service).await, call("absent").send_as(None, service).await);
    assert_eq!((secret.status, secret.code()), (200, -32602));
    let told = |text: &[u8]| String::from_utf8_lossy(text).replace("secret", "absent");
    assert_eq!(told(&secret.body), told(&absent.body), "as if there were no such tool");
    assert_eq!(secret.headers, absent.headers);
    // Who may see it is held to the rules.
    let seen = call("secret").send_as(Some("ada"), service).await;
    assert_eq!((seen.status, seen.code()), (400, -32020));
    let right = call("secret").set("Mcp-Param-Region", "eu").send_as(Some("ada"), service).await;
    assert_eq!((right.status, right.code()), (200, 0));
    // A guard that fails lets nobody in, and takes nothing down.
    let clumsy = endpoint.send(&call("clumsy")).await;
    assert_eq!((clumsy.status, clumsy.code()), (200, -32603));
    endpoint.is_alive().await;
}

#[test]
fn v14_a_tool_with_an_impossible_header_is_not_served() {
    for header in [
        "X\r\nAuthorization",
        "X\nY",
        "X\r",
        "",
        " ",
        "X Y",
        "X:Y",
        "X\0",
        "X\u{e9}",
        "(x)",
        "x/y",
        "\"x\"",
        "{x}",
    ] {
        for kind in ["string", "integer", "boolean"] {
            let schema = json!({
                "type": "object",
                "properties": { "a": { "type": kind, "x-mcp-header": header } },
            });
            let tool = Tool::new("t").input_schema(RawJson::of(&schema).unwrap()).handler(|| "ok");
            let built = Server::new("s").tool(tool).build();
            assert!(built.is_err(), "{header:?} on a {kind}");
        }
    }
}
