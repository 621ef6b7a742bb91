//! The socket of a gateway: the token, health, readiness and numbers, with stdio beside it.

use super::{Far, Headers, call, client, config, environment, gateway, open_file, text};
use bowline_host::Gateway;
use bowline_http::HttpOptions;
use bowline_server::{Key, KeyRing, Server};
use bowline_store::Store;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

struct Served {
    address: SocketAddr,
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

async fn serve(gateway: &Gateway) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (end, told) = oneshot::channel::<()>();
    let gateway = gateway.clone();
    let task = tokio::spawn(async move {
        gateway.serve_http(listener, async { drop(told.await) }).await.unwrap();
    });
    Served { address, end, task }
}

impl Served {
    async fn send(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        reply
    }

    async fn get(&self, path: &str, headers: &str) -> String {
        let host = if headers.contains("Host:") { "" } else { "Host: localhost\r\n" };
        self.send(&format!("GET {path} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n")).await
    }

    async fn call(&self, name: &str, headers: &str) -> String {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({ "name": name, "arguments": {}, "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let modern =
            format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {name}\r\n");
        self.post(&body, &format!("{modern}{headers}")).await
    }

    async fn post(&self, body: &Value, headers: &str) -> String {
        let body = body.to_string();
        self.send(&format!(
            "POST /gate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nConnection: close\r\n{headers}\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await
    }
}

const TOKEN: &str = "Authorization: Bearer s3cret-token\r\n";

#[track_caller]
fn check(reply: &str, status: &str, part: &str) {
    assert!(
        reply.starts_with(&format!("HTTP/1.1 {status}")) && reply.contains(part),
        "{status} {part}: {reply}"
    );
}

#[tokio::test]
async fn one_gateway_is_served_over_http_and_standard_streams() {
    let far = Far::start().await;
    let file = format!("[gateway]\npath = \"/gate\"\ntoken_env = \"GATE_TOKEN\"\n{}", open_file(&far));
    let gateway = gateway(&file);
    let served = serve(&gateway).await;
    let mut peer = client(gateway.open().unwrap()).await;
    assert_eq!(text(&call(&mut peer, "far__fast", json!({})).await), "fast is done");
    check(&served.call("far__fast", TOKEN).await, "200", "fast is done");
    // Both are one gateway, with one server behind it.
    let status = gateway.status();
    assert_eq!((status[0].instances[0].starts, status[0].instances[0].calls), (1, 2));
    drop(served.end);
    served.task.await.unwrap();
    gateway.close().await;
}

#[tokio::test]
async fn protected_paths_require_the_token() {
    // proves: SEC-22, HTTP-09
    let far = Far::start().await;
    let file = format!("[gateway]\npath = \"/gate\"\ntoken_env = \"GATE_TOKEN\"\n{}", open_file(&far));
    let gateway = gateway(&file);
    let served = serve(&gateway).await;
    check(&served.get("/healthz", "").await, "200", "ok");
    check(&served.get("/livez", "").await, "200", "ok");
    check(&served.get("/readyz", "").await, "200", "ready");
    check(&served.get("/readyz?verbose", "").await, "200", "ready\nservers: up\nstore: not used\n");
    check(
        &served.get("/readyz", "Origin: https://evil.example\r\n").await,
        "403",
        "origin `https://evil.example` is not allowed; add it to `gateway.allowed_origins`",
    );
    check(&served.call("far__fast", "").await, "401", "www-authenticate: Bearer realm=\"bowline\"\r\n");
    let wrong = "Authorization: Bearer s3cret-tokem\r\n";
    check(&served.call("far__fast", wrong).await, "401", "error=\"invalid_token\"");
    check(&served.get("/metrics", "").await, "401", "www-authenticate");
    check(&served.get("/elsewhere", "").await, "401", "www-authenticate");
    check(&served.get("/elsewhere", TOKEN).await, "404", "not found");
    check(&served.call("far__fast", TOKEN).await, "200", "fast is done");
    let numbers = served.get("/metrics", TOKEN).await;
    check(&numbers, "200", "content-type: text/plain; version=0.0.4");
    check(&numbers, "200", "bowline_sessions_active 0");
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
    } });
    let opened = served.post(&hello, TOKEN).await;
    check(&opened, "200", "mcp-session-id");
    // A session does not stand for the token.
    let id = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    check(&served.post(&ping, &format!("{TOKEN}Mcp-Session-Id: {id}\r\n")).await, "200", "result");
    check(&served.post(&ping, &format!("Mcp-Session-Id: {id}\r\n")).await, "401", "www-authenticate");
    check(&served.get("/metrics", TOKEN).await, "200", "bowline_sessions_active 1");
    check(&numbers, "200", r#"bowline_calls_total{upstream="far",method="tools/call",outcome="ok"} 1"#);
    gateway.close().await;
}

/// Two gateways that share what `[sessions]` needs, and how a session of the first works at the second.
async fn opened_at_one_used_at_the_other(mode: &str) -> (String, String) {
    let far = Far::start().await;
    let file = format!("[gateway]\npath = \"/gate\"\n[sessions]\nmode = \"{mode}\"\n{}", open_file(&far));
    let (store, keys) = (Store::memory(), KeyRing::new(Key::new([7; 32])));
    let build = || {
        let builder = Gateway::builder(config(&file))
            .environment(environment())
            .store(store.clone())
            .keys(keys.clone());
        builder.build().unwrap()
    };
    let (one, other) = (build(), build());
    let (first, second) = (serve(&one).await, serve(&other).await);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
    } });
    let opened = first.post(&hello, "").await;
    let id = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let session = format!("Mcp-Session-Id: {id}\r\n");
    let done = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    second.post(&done, &session).await;
    let call =
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "far__fast" } });
    let used = second.post(&call, &session).await;
    let status = second.get("/readyz?verbose", "").await;
    one.close().await;
    other.close().await;
    (used, status)
}

#[tokio::test]
async fn gateways_behind_one_address_share_sessions() {
    let (used, status) = opened_at_one_used_at_the_other("store").await;
    check(&used, "200", "fast is done");
    check(&status, "200", "store: up");
    let (used, status) = opened_at_one_used_at_the_other("sealed").await;
    check(&used, "200", "fast is done");
    check(&status, "200", "store: not used");
    let (used, _) = opened_at_one_used_at_the_other("process").await;
    check(&used, "404", "unknown or expired session");
}

#[tokio::test]
async fn shared_sessions_need_a_store_and_keys() {
    let build = |mode: &str| {
        let file = format!("[gateway]\npath = \"/gate\"\n[sessions]\nmode = \"{mode}\"\n");
        Gateway::builder(config(&file)).environment(environment())
    };
    let problem = |gateway: Gateway| gateway.http().unwrap_err().to_string();
    let missing = problem(build("store").build().unwrap());
    assert!(missing.contains("set `store.url`"), "{missing}");
    for gateway in [build("store").store(Store::memory()), build("sealed")] {
        let missing = problem(gateway.build().unwrap());
        assert!(missing.contains("`store.keys_env`"), "{missing}");
    }
}

#[tokio::test]
async fn headers_of_a_client_are_not_forwarded() {
    // proves: HDR-40, HDR-43
    // V-110
    let seen = Headers::default();
    let far = Far::served(Server::new("far"), HttpOptions::new().filter(seen.clone())).await;
    let file = format!("[gateway]\npath = \"/gate\"\ntoken_env = \"GATE_TOKEN\"\n{}", open_file(&far));
    let gateway = gateway(&file);
    let served = serve(&gateway).await;
    let claims = [
        "X-Forwarded-User: canary",
        "X-Forwarded-For: canary",
        "Forwarded: for=canary",
        "X-Real-Ip: canary",
        "Cookie: canary=1",
        "Proxy-Authorization: canary",
        "Mcp-Session-Id: canary",
        "Last-Event-Id: canary",
        "Mcp-Param-Region: canary",
        "X-Mcp-Router-Key: canary",
        "X-Mcp-Servers: canary",
        "Traceparent: canary",
        "Baggage: canary=1",
    ];
    for claim in claims {
        check(&served.call("far__fast", &format!("{TOKEN}{claim}\r\n")).await, "200", "fast is done");
    }
    // Nor does what opens the gateway open anything behind it.
    let seen = seen.all();
    assert!(seen.contains("mcp-method") && !seen.contains("canary") && !seen.contains("s3cret"), "{seen}");
    // A name in a header does not stand for the one in the body.
    let other = served.call("far__fast", &format!("{TOKEN}Mcp-Name: far__slow\r\n")).await;
    check(&other, "400", "-32020");
    assert!(!other.contains("is done"), "{other}");
    gateway.close().await;
}

#[tokio::test]
async fn a_missing_token_refuses_every_request() {
    // V-66
    let gateway = gateway("[gateway]\ntoken_env = \"NOT_THERE\"\n");
    let error = gateway.http().unwrap_err();
    assert_eq!(error.to_string(), "gateway.token_env: the environment variable `NOT_THERE` is not set");
    assert_eq!(gateway.problems(), error.problems());
    // Whoever started the process may still talk to it.
    assert!(gateway.open().is_ok());
    gateway.close().await;
}

#[tokio::test]
async fn a_gateway_is_ready_when_its_servers_are_up_or_known_to_be_down() {
    // It takes connections and says nothing.
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let far = Far::start().await;
    let file = format!(
        "[servers.mute]\nurl = \"http://{}/mcp\"\nstart = \"eager\"\n\
         [servers.far]\nurl = \"{}\"\nstart = \"eager\"\n[servers.lazy]\ncommand = \"nothing\"\n",
        mute.local_addr().unwrap(),
        far.url
    );
    let gateway = gateway(&file);
    assert!(!gateway.host().is_ready());
    let served = serve(&gateway).await;
    check(&served.get("/readyz", "").await, "503", "starting");
    check(&served.get("/healthz", "").await, "200", "ok");
    // Its end resets the connection.
    drop(mute.accept().await.unwrap());
    drop(mute);
    while !gateway.host().is_ready() {
        tokio::task::yield_now().await;
    }
    check(&served.get("/readyz", "").await, "200", "ready");
    gateway.close().await;
}

#[tokio::test]
async fn a_call_that_waits_for_a_start_is_answered_when_the_gateway_ends() {
    // It takes connections and says nothing.
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = mute.local_addr().unwrap();
    let file = format!("[gateway]\npath = \"/gate\"\n[servers.mute]\nurl = \"http://{address}/mcp\"\n");
    let gateway = gateway(&file);
    let Served { address, end, task } = serve(&gateway).await;
    let (unused, _) = oneshot::channel();
    let caller = Served { address, end: unused, task: tokio::spawn(async {}) };
    let calling = tokio::spawn(async move { caller.call("mute__id", "").await });
    let _connection = mute.accept().await.unwrap();
    end.send(()).unwrap();
    // Were it cut off with its connection, there would be no reply.
    check(
        &calling.await.unwrap(),
        "",
        "the server `mute` is not available: it was removed, or the host is shutting down",
    );
    task.await.unwrap();
    gateway.close().await;
}

#[tokio::test]
async fn only_health_checks_accept_any_host() {
    let gateway = gateway("[gateway]\npath = \"/gate\"\ntoken_env = \"GATE_TOKEN\"\n");
    let served = serve(&gateway).await;
    for host in ["Host: 10.0.0.5:7337\r\n", "Host: gateway.internal\r\n"] {
        check(&served.get("/healthz", host).await, "200", "ok");
        check(&served.get("/readyz", host).await, "200", "ready");
    }
    // Some load balancers name no host at all.
    check(&served.send("GET /healthz HTTP/1.0\r\n\r\n").await.replace("HTTP/1.0", "HTTP/1.1"), "200", "ok");
    let host = format!("Host: 10.0.0.5:7337\r\n{TOKEN}");
    let refusal = "host `10.0.0.5` is not allowed; add it to `gateway.allowed_hosts`";
    check(&served.get("/gate", &host).await, "403", refusal);
    check(&served.get("/metrics", &host).await, "403", refusal);
    gateway.close().await;
}

#[tokio::test]
async fn every_host_may_be_allowed_where_a_token_is_needed() {
    let gateway =
        gateway("[gateway]\npath = \"/gate\"\ntoken_env = \"GATE_TOKEN\"\nallowed_hosts = [\"*\"]\n");
    assert_eq!(gateway.problems(), []);
    let served = serve(&gateway).await;
    let host = "Host: 10.0.0.5:7337\r\n";
    check(&served.get("/metrics", &format!("{host}{TOKEN}")).await, "200", "bowline_sessions_active");
    check(&served.get("/metrics", host).await, "401", "www-authenticate");
    gateway.close().await;
}

#[tokio::test]
async fn every_host_is_a_mistake_where_no_token_is_needed() {
    let gateway = gateway("[gateway]\nallowed_hosts = [\"*\"]\n");
    let error = gateway.http().unwrap_err();
    assert!(
        error.to_string().starts_with("gateway.allowed_hosts: `*` allows requests for every host"),
        "{error}"
    );
    assert_eq!(gateway.problems(), error.problems());
    gateway.close().await;
}

#[test]
fn hosts_and_origins_that_can_never_match_are_mistakes() {
    let wrong = config(
        "[gateway]\nallowed_hosts = [\"ok.example.com:80\", \"https://a.example.com\", \"*.example.com\"]\n\
         allowed_origins = [\"https://ok.example.com\", \"app.example.com\", \"https://a.example.com/\"]\n",
    );
    let told: Vec<String> = wrong.errors.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 4, "{told:?}");
    for (told, part) in told.iter().zip([
        "allowed_hosts[1]: expected a host",
        "allowed_hosts[2]: expected a host",
        "allowed_origins[1]: expected an origin",
        "allowed_origins[2]: expected an origin",
    ]) {
        assert!(told.contains(part), "{told}");
    }
}

#[tokio::test]
async fn pages_of_named_origins_may_call() {
    let gateway = gateway(
        "[gateway]\npath = \"/gate\"\ntoken_env = \"GATE_TOKEN\"\nallowed_origins = [\"https://app.example.com\"]\n",
    );
    let served = serve(&gateway).await;
    let preflight = |origin: &str| {
        format!(
            "OPTIONS /gate HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\nConnection: close\r\n\
             Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n\r\n"
        )
    };
    // A browser asks before it sends the token.
    let told = served.send(&preflight("https://app.example.com")).await;
    check(&told, "204", "access-control-allow-origin: https://app.example.com\r\n");
    check(&told, "204", "access-control-allow-headers: authorization\r\n");
    let origin = "Origin: https://app.example.com\r\n";
    let told = served.get("/metrics", &format!("{origin}{TOKEN}")).await;
    check(&told, "200", "access-control-allow-origin: https://app.example.com\r\n");
    // The page can read why it is refused, too.
    check(&served.get("/metrics", origin).await, "401", "access-control-allow-origin");
    let told = served.send(&preflight("https://evil.example")).await;
    check(&told, "403", "");
    assert!(!told.contains("access-control"), "{told}");
    gateway.close().await;
}

#[tokio::test]
async fn clients_of_the_first_revision_find_their_stream() {
    for (path, status) in [("/gate", "200"), ("/sse", "400")] {
        let gateway = gateway(&format!("[gateway]\npath = \"{path}\"\n"));
        let served = serve(&gateway).await;
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(b"GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut head = vec![0; 4096];
        let mut told = String::new();
        while !told.contains("\r\n\r\n") || status == "200" && !told.contains("?sessionId=") {
            let length = stream.read(&mut head).await.unwrap();
            assert!(length > 0, "{told}");
            told.push_str(&String::from_utf8_lossy(&head[..length]));
        }
        // A path that the user gave to the endpoint is the endpoint's.
        check(&told, status, "");
        drop(stream);
        gateway.close().await;
    }
}

#[tokio::test]
async fn the_stream_of_the_first_revision_needs_the_token_as_well() {
    let gateway = gateway("[gateway]\ntoken_env = \"GATE_TOKEN\"\n");
    let served = serve(&gateway).await;
    check(&served.get("/sse", "").await, "401", "www-authenticate");
    gateway.close().await;
}

#[tokio::test]
async fn one_caller_has_so_many_sessions_and_no_more() {
    let gateway = gateway("[gateway]\npath = \"/gate\"\nmax_sessions = 2\n");
    let served = serve(&gateway).await;
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
    } });
    for status in ["200", "200", "503"] {
        check(&served.post(&hello, "").await, status, "");
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_gateway_about_to_end_is_not_ready_and_still_answers() {
    let far = Far::start().await;
    let gateway = gateway(&format!("[gateway]\npath = \"/gate\"\n{}", open_file(&far)));
    let served = serve(&gateway).await;
    check(&served.get("/readyz", "").await, "200", "ready");
    gateway.announce_shutdown();
    check(&served.get("/readyz", "").await, "503", "ending");
    check(&served.get("/healthz", "").await, "200", "ok");
    check(&served.call("far__fast", "").await, "200", "fast is done");
    gateway.close().await;
}

#[test]
fn listening_on_the_network_without_a_token_is_reported() {
    let open = Gateway::builder(config("[gateway]\nlisten = \"0.0.0.0:8080\"\n")).build().unwrap();
    assert_eq!(open.problems().len(), 1);
    let closed = "[gateway]\nlisten = \"0.0.0.0:8080\"\ntoken_env = \"GATE_TOKEN\"\n";
    let closed = Gateway::builder(config(closed)).environment(super::environment()).build().unwrap();
    assert_eq!(closed.problems(), []);
}
