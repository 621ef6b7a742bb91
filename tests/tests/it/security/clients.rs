//! Our client and servers that mean it harm.

use super::support::{DEADLINE, find};
use bowline_client::{Client, Error};
use bowline_http::http;
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

type Script = Arc<dyn Fn(&Value) -> Vec<u8> + Send + Sync>;

/// A server that answers the opening as it should, and everything else with bytes of a script's.
struct Hostile {
    address: SocketAddr,
    /// The heads of the requests, as they came.
    heads: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

impl Hostile {
    async fn new(script: impl Fn(&Value) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let script: Script = Arc::new(script);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&heads);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&script), Arc::clone(&seen)));
            }
        });
        Self { address, heads, serving }
    }

    async fn client(&self) -> Client {
        Client::connect(http(format!("http://{}/mcp", self.address))).await.unwrap()
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(mut stream: TcpStream, script: Script, heads: Arc<Mutex<Vec<String>>>) {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    let head = loop {
        if let Some(end) = find(&bytes, b"\r\n\r\n") {
            break end + 4;
        }
        let Ok(length @ 1..) = stream.read(&mut buffer).await else { return };
        bytes.extend_from_slice(&buffer[..length]);
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let length = text
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    let length: usize = length.map_or(0, |length| length.parse().unwrap());
    while bytes.len() < head + length {
        let Ok(length @ 1..) = stream.read(&mut buffer).await else { return };
        bytes.extend_from_slice(&buffer[..length]);
    }
    heads.lock().unwrap().push(text);
    let request: Value = serde_json::from_slice(&bytes[head..]).unwrap_or_default();
    let reply = if request["method"] == "server/discover" {
        let result = json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
            "capabilities": { "tools": {}, "resources": {}, "prompts": {} },
        });
        whole(&response(&request, &result))
    } else {
        script(&request)
    };
    // The client may have heard enough.
    drop(stream.write_all(&reply).await);
    drop(stream.shutdown().await);
}

fn response(request: &Value, result: &Value) -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string().into_bytes()
}

fn text(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
}

/// A reply in one piece.
fn whole(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A stream of events.
fn events(events: &[u8]) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    [head.as_bytes(), events].concat()
}

fn event(message: &[u8]) -> Vec<u8> {
    [b"data: ", message, b"\n\n"].concat()
}

/// Calls a tool whose name tells the script what to do; then one that is answered as it should.
async fn call(client: &Client, tool: &str) -> Result<String, Error> {
    let called = tokio::time::timeout(DEADLINE, client.call(tool, json!({}))).await.expect("it settles");
    let fine = tokio::time::timeout(DEADLINE, client.call("fine", json!({}))).await.expect("it settles");
    assert_eq!(fine.unwrap().text(), "fine", "the client goes on");
    called.map(|called| called.text())
}

/// A server that answers `fine`, and other tools with bytes.
async fn hostile(script: impl Fn(&str, &Value) -> Vec<u8> + Send + Sync + 'static) -> (Hostile, Client) {
    let server = Hostile::new(move |request| match request["params"]["name"].as_str() {
        Some("fine") => whole(&response(request, &text("fine"))),
        name => script(name.unwrap_or_default(), request),
    })
    .await;
    let client = server.client().await;
    (server, client)
}

#[tokio::test]
async fn v14_a_hostile_schema_adds_no_header() {
    let property = |name: &str| json!({ "type": "string", "x-mcp-header": name });
    let tool = |name: &str, property: Value| json!({ "name": name, "inputSchema": { "type": "object", "properties": { "a": property } } });
    let twice = json!({ "name": "twice", "inputSchema": { "type": "object", "properties": {
        "a": property("Same"), "b": property("SAME"),
    } } });
    let tools = json!([
        tool("breaks", property("X\r\nAuthorization: Bearer stolen\r\nX")),
        tool("feeds", property("X\nY")),
        tool("empty", property("")),
        tool("blank", property("X Y")),
        tool("number", json!({ "type": "number", "x-mcp-header": "N" })),
        tool("items", json!({ "type": "array", "items": property("I") })),
        tool("choice", json!({ "oneOf": [property("O")] })),
        tool("reference", json!({ "$ref": "#/$defs/a", "x-mcp-header": "R" })),
        twice,
        tool("fine", property("Good")),
    ]);
    let server = Hostile::new(move |request| {
        let result = match request["method"].as_str() {
            Some("tools/list") => {
                json!({ "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private" })
            }
            _ => text("fine"),
        };
        whole(&response(request, &result))
    })
    .await;
    let client = server.client().await;
    let names: Vec<_> = client.tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["fine"], "the others are left out");
    for value in [
        "x\r\nAuthorization: Bearer stolen",
        "x\ny",
        "\u{0}",
        "\u{e9}",
        " x",
        "x ",
        "=?base64?eA==?=",
        "\u{7f}",
        "\t",
    ] {
        client.call("fine", json!({ "a": value })).await.unwrap();
        let head = server.heads.lock().unwrap().pop().unwrap();
        let mirrored: Vec<_> =
            head.lines().filter(|line| line.to_ascii_lowercase().starts_with("mcp-param-")).collect();
        assert_eq!(mirrored.len(), 1, "{head}");
        assert!(mirrored[0].contains("=?base64?") && mirrored[0].is_ascii(), "{head}");
        assert!(
            !head.contains("stolen") && !head.to_ascii_lowercase().contains("\r\nauthorization"),
            "{head}"
        );
    }
}

#[tokio::test]
async fn v15_replies_nested_too_deep_fail_their_request_alone() {
    let (_server, client) = hostile(|tool, request| {
        let depth: usize = tool.split('-').next_back().unwrap().parse().unwrap();
        let nested = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let body = String::from_utf8(response(request, &json!({ "content": [], "x": "NESTED" }))).unwrap();
        let body = body.replace("\"NESTED\"", &nested).into_bytes();
        if tool.starts_with("event") { events(&event(&body)) } else { whole(&body) }
    })
    .await;
    for kind in ["body", "event"] {
        assert!(call(&client, &format!("{kind}-100")).await.is_ok(), "{kind}");
        for depth in [129, 200, 100_000, 1_000_000] {
            assert!(call(&client, &format!("{kind}-{depth}")).await.is_err(), "{kind} {depth}");
        }
    }
}

#[tokio::test]
async fn v15_schemas_nested_too_deep_are_survived() {
    let server = Hostile::new(|request| {
        let depth: usize = request["params"]["cursor"].as_str().map_or(30, |depth| depth.parse().unwrap());
        let schema = format!("{}{{}}{}", "{\"properties\":{\"a\":".repeat(depth), "}}".repeat(depth));
        let page = json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "tools": [{ "name": "t", "inputSchema": "SCHEMA" }],
        });
        let body = String::from_utf8(response(request, &page)).unwrap().replace("\"SCHEMA\"", &schema);
        whole(body.as_bytes())
    })
    .await;
    let client = server.client().await;
    assert_eq!(client.tools().await.unwrap().len(), 1);
    for depth in [60, 100, 100_000] {
        let params = bowline_types::RawJson::of(&json!({ "cursor": depth.to_string() })).unwrap();
        let listed =
            tokio::time::timeout(DEADLINE, client.request::<bowline_types::RawJson>("tools/list", params))
                .await;
        // Left out or refused; either is an answer.
        drop(listed.expect("it settles"));
    }
    assert_eq!(client.tools().await.unwrap().len(), 1, "the client goes on");
}

#[tokio::test]
async fn v17_endless_events_fail_their_request_or_are_skipped() {
    let (_server, client) = hostile(|tool, request| {
        let told = event(&response(request, &text("told")));
        let noise = match tool {
            "data" => [b"data: ".to_vec(), vec![b'x'; 20 * 1024 * 1024]].concat(),
            "comment" => [b":".to_vec(), vec![b'x'; 20 * 1024 * 1024], b"\n".to_vec()].concat(),
            "comments" => b": x\n".repeat(300_000),
            "empty" => [b"data:\n".repeat(300_000), b"\n".to_vec()].concat(),
            "nothing" => b"event: message\n\n".repeat(100_000),
            _ => Vec::new(),
        };
        events(&[noise, told].concat())
    })
    .await;
    for endless in ["data", "comment"] {
        assert!(call(&client, endless).await.is_err(), "{endless}");
    }
    for skipped in ["comments", "empty", "nothing", "none"] {
        assert_eq!(call(&client, skipped).await.unwrap(), "told", "{skipped}");
    }
}

#[test]
fn v18_events_to_skip_take_no_stack_in_a_client() {
    // More events than the stack has bytes for, if each took but three of them.
    let (address, told) = std::sync::mpsc::channel();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let serving = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Hostile::new(|request| {
                let noise =
                    b"data: {\n\ndata: []\n\nevent: x\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n";
                events(&[noise.repeat(30_000), event(&response(request, &text("told")))].concat())
            })
            .await;
            address.send(server.address).unwrap();
            drop(ended.await);
        });
    });
    let client = std::thread::Builder::new().stack_size(256 * 1024).spawn(move || {
        let address: SocketAddr = told.recv().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = Client::connect(http(format!("http://{address}/mcp"))).await.unwrap();
            assert_eq!(client.call("any", json!({})).await.unwrap().text(), "told");
        });
    });
    client.unwrap().join().expect("loops do not need a stack");
    drop(end);
    serving.join().unwrap();
}

#[tokio::test]
async fn v19_replies_that_are_not_utf8_fail_only_their_request() {
    let (_server, client) = hostile(|tool, request| {
        let body = String::from_utf8(response(request, &text("told"))).unwrap();
        let body = match tool {
            "utf-16" => body.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            "utf-32" => body.chars().flat_map(|character| u32::from(character).to_be_bytes()).collect(),
            "latin-1" => body
                .replace("told", "t\u{1}ld")
                .into_bytes()
                .iter()
                .map(|byte| if *byte == 1 { 0xe9 } else { *byte })
                .collect(),
            "zero" => body.replace("told", "t\u{0}ld").into_bytes(),
            "half" => body.replace("told", "\\ud800").into_bytes(),
            _ => body.into_bytes(),
        };
        whole(&body)
    })
    .await;
    for tool in ["utf-16", "utf-32", "latin-1", "zero", "half"] {
        assert!(call(&client, tool).await.is_err(), "{tool}");
    }
    assert_eq!(call(&client, "plain").await.unwrap(), "told");
}

#[tokio::test]
async fn v20_the_client_continues_after_any_result() {
    let kinds = || {
        vec![
            Value::Null,
            json!(true),
            json!(-1),
            json!(1.5),
            json!(""),
            json!("x"),
            json!([]),
            json!([null]),
            json!({}),
            json!({ "resultType": null }),
            json!({ "resultType": 1 }),
            json!({ "resultType": "unheard-of" }),
            json!({ "content": null }),
            json!({ "content": {} }),
            json!({ "content": [null] }),
            json!({ "content": [{ "type": "text" }] }),
            json!({ "content": [{ "type": "text", "text": 1 }] }),
            json!({ "content": [{ "type": "unheard-of" }] }),
            json!({ "content": [{}], "isError": "yes" }),
            json!({ "contents": [{ "uri": 1 }] }),
            json!({ "messages": [{ "role": "x", "content": null }] }),
            json!({ "resultType": "input_required" }),
            json!({ "resultType": "input_required", "inputRequests": { "a": { "method": "x", "params": 1 } } }),
            json!({ "resultType": "input_required", "inputRequests": [], "requestState": 1 }),
            json!({ "tools": [{ "name": 1 }, null, { "name": "x", "inputSchema": 1 }], "ttlMs": -1 }),
            json!({ "tools": [], "nextCursor": 1 }),
            json!({ "ttlMs": 1e308, "cacheScope": 1, "tools": [] }),
        ]
    };
    let (_server, client) = hostile(move |_, request| {
        let number = request["params"]["_meta"]["number"].as_u64().unwrap();
        let result = kinds().swap_remove(usize::try_from(number).unwrap());
        whole(
            &response(request, &json!("RESULT"))
                .iter()
                .map(|byte| *byte as char)
                .collect::<String>()
                .replace("\"RESULT\"", &result.to_string())
                .into_bytes(),
        )
    })
    .await;
    for number in 0..27_u64 {
        let raw = bowline_types::RawJson::from(json!(number));
        let settle = |result: Result<(), Error>| drop(result);
        settle(client.call("any", json!({})).meta("number", raw.clone()).await.map(drop));
        settle(client.read("http://x/y").meta("number", raw.clone()).await.map(drop));
        settle(client.prompt("p", json!({})).meta("number", raw).await.map(drop));
    }
    assert_eq!(call(&client, "fine").await.unwrap(), "fine");
}

#[tokio::test]
async fn v22_a_response_to_another_request_is_not_used() {
    let (_server, client) = hostile(|tool, request| {
        let id = &request["id"];
        let other = match tool {
            "text" => json!(id.to_string()),
            "next" => json!(id.as_i64().unwrap() + 1),
            "previous" => json!(id.as_i64().unwrap() - 1),
            "fraction" => json!(id.as_f64().unwrap() + 0.5),
            "null" => Value::Null,
            _ => json!([id]),
        };
        let body = json!({ "jsonrpc": "2.0", "id": other, "result": text("forged") }).to_string();
        if tool == "next" { events(&event(body.as_bytes())) } else { whole(body.as_bytes()) }
    })
    .await;
    for tool in ["text", "next", "previous", "fraction", "null", "list"] {
        let called = call(&client, tool).await;
        assert!(called.is_err(), "{tool}: {called:?}");
    }
}

#[tokio::test]
async fn v24_a_response_is_of_one_kind_and_a_modern_server_asks_nothing() {
    let (server, client) = hostile(|tool, request| {
        let id = &request["id"];
        let error = json!({ "code": 1, "message": "m" });
        let told = response(request, &text("told"));
        match tool {
            "both" => whole(
                json!({ "jsonrpc": "2.0", "id": id, "result": text("x"), "error": error })
                    .to_string()
                    .as_bytes(),
            ),
            "request" => whole(
                json!({ "jsonrpc": "2.0", "id": id, "method": "ping", "result": text("x") })
                    .to_string()
                    .as_bytes(),
            ),
            "neither" => whole(json!({ "jsonrpc": "2.0", "id": id }).to_string().as_bytes()),
            "batch" => whole(&[b"[", &told[..], b"]"].concat()),
            // Answered once; what follows is nobody's.
            "twice" => events(&[event(&told), event(&response(request, &text("again")))].concat()),
            // Requests of the server have no place on a stream of this revision.
            _ => {
                let ask = json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" }).to_string();
                events(&[event(ask.as_bytes()), event(&told)].concat())
            }
        }
    })
    .await;
    for tool in ["both", "request", "neither", "batch"] {
        let called = call(&client, tool).await;
        assert!(called.is_err(), "{tool}: {called:?}");
    }
    assert_eq!(call(&client, "twice").await.unwrap(), "told");
    let before = server.heads.lock().unwrap().len();
    assert_eq!(call(&client, "asks").await.unwrap(), "told");
    assert_eq!(server.heads.lock().unwrap().len(), before + 2, "the client has answered nothing");
}
