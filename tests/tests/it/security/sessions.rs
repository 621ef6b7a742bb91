//! Sessions: taken over, chosen, guessed, resumed by others, and opened by the thousand.

use super::support::{Endpoint, Request, Watch, server};
use bowline_http::{HttpOptions, HttpService};
use serde_json::json;
use std::{collections::HashSet, time::Duration};

#[tokio::test]
async fn v31_every_message_is_on_one_stream() {
    let endpoint = Endpoint::new().await;
    let session = endpoint.open("2025-06-18").await;
    let get = Request::stream(&session, None).bytes(endpoint.address);
    let (mut first, mut second) = (endpoint.connect().await, endpoint.connect().await);
    first.write(&get).await;
    assert_eq!(first.head().await.status, 200);
    let change = |name: &str| {
        endpoint.registry.add_tool(bowline_server::Tool::new(name).handler(|| "ok")).unwrap();
    };
    change("one");
    first.until("list_changed").await;
    second.write(&get).await;
    assert_eq!(second.head().await.status, 200);
    // The first has ended, with nothing that the second gets as well.
    let rest = first.until("\r\n0\r\n\r\n").await;
    assert!(!rest.contains("jsonrpc"), "{rest:?}");
    change("two");
    let seen = second.until("list_changed").await;
    assert_eq!(seen.matches("jsonrpc").count(), 1, "what the first was told is not told again: {seen}");
    // A call of the session answers on the stream of its own request.
    let reply = endpoint.send(&Request::in_session(&session, &json!(5), "hit", json!({}))).await;
    assert_eq!(reply.json()["id"], 5);
    change("three");
    let seen = second.until("list_changed").await;
    assert!(!seen.contains("\"id\":5"), "{seen}");
}

#[tokio::test]
async fn v32_an_id_is_the_servers_choice() {
    let endpoint = Endpoint::new().await;
    let victim = endpoint.open("2025-11-25").await;
    let long = "x".repeat(8 * 1024);
    for chosen in ["attacker", victim.as_str(), "", "../../etc", "*", "a:b", "a,b", long.as_str()] {
        let opened = endpoint.send(&Request::hello("2025-11-25").set("Mcp-Session-Id", chosen)).await;
        // A handshake that names a session is for that session to refuse, if there is one.
        assert!([200, 400, 404].contains(&opened.status), "{chosen}: {opened:?}");
        assert!(opened.json().get("result").is_none(), "{chosen}: {opened:?}");
        assert_eq!(opened.header("mcp-session-id"), None);
    }
    let before = endpoint.service.sessions();
    assert_eq!(before, 1);
    assert!(victim.len() >= 32 && victim.bytes().all(|byte| byte.is_ascii_graphic()), "{victim}");
    for guess in [
        "attacker",
        "..",
        "../session",
        ":",
        "*",
        "?",
        "[a-f]*",
        "a b",
        "null",
        "0",
        "\u{e9}",
        "%00",
        long.as_str(),
        &victim.to_uppercase(),
        &victim[1..],
        &format!("{victim}x"),
        &format!("{victim}, {victim}"),
    ] {
        for request in [
            Request::in_session(guess, &json!(1), "hit", json!({})),
            Request::stream(guess, None),
            Request::new("DELETE").set("Mcp-Session-Id", guess),
        ] {
            let reply = endpoint.send(&request).await;
            assert!([400, 404].contains(&reply.status), "{guess}: {reply:?}");
        }
    }
    let twice = Request::in_session(&victim, &json!(1), "hit", json!({})).add("Mcp-Session-Id", "attacker");
    assert_eq!(endpoint.send(&twice).await.status, 400);
    assert_eq!((endpoint.ran(), endpoint.service.sessions()), (0, before));
}

#[tokio::test]
async fn v32_ids_have_no_pattern() {
    // proves: SEC-24
    let service = HttpService::new(server(&Watch::default())).unwrap();
    let mut seen = HashSet::new();
    let mut ones = [0_u32; 128];
    for _ in 0..1000 {
        let hello = Request::hello("2025-11-25").send_as(None, &service).await;
        let id = u128::from_str_radix(hello.header("mcp-session-id").unwrap(), 16).unwrap();
        assert!(seen.insert(id), "no id comes twice");
        for (bit, count) in ones.iter_mut().enumerate() {
            *count += u32::from(id >> bit & 1 == 1);
        }
    }
    // Half of them, give or take six standard deviations: a wrong alarm in four million runs.
    for (bit, count) in ones.iter().enumerate() {
        assert!((405..=595).contains(count), "bit {bit} was set {count} times in 1000");
    }
}

#[tokio::test]
async fn v33_a_request_without_a_session_is_in_none() {
    let endpoint = Endpoint::new().await;
    let session = endpoint.open("2025-06-18").await;
    let call = Request::in_session(&session, &json!(1), "hit", json!({}));
    for request in [
        call.clone().without("Mcp-Session-Id"),
        call.clone().without("Mcp-Session-Id").set("MCP-Protocol-Version", "2025-06-18"),
        call.clone().without("Mcp-Session-Id").target(&format!("/mcp?sessionId={session}")),
        call.clone().without("Mcp-Session-Id").set("Cookie", &format!("Mcp-Session-Id={session}")),
        call.clone().without("Mcp-Session-Id").set("X-Mcp-Session-Id", &session),
        Request::stream(&session, None).without("Mcp-Session-Id"),
        Request::new("DELETE"),
    ] {
        let reply = endpoint.send(&request).await;
        assert_eq!(reply.status, 400, "{request:?}: {reply:?}");
    }
    assert_eq!((endpoint.ran(), endpoint.service.sessions()), (0, 1));
}

#[tokio::test]
async fn v35_only_the_owner_can_resume_a_stream() {
    let endpoint = Endpoint::new().await;
    let (adas, bobs) = (endpoint.open("2025-11-25").await, endpoint.open("2025-11-25").await);
    // A stream of Ada's with a secret on it, kept for her to come back to.
    let mut wire = endpoint.connect().await;
    let params =
        json!({ "name": "report", "arguments": { "message": "secret" }, "_meta": { "progressToken": 1 } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    wire.write(&Request::post(&call).set("Mcp-Session-Id", &adas).bytes(endpoint.address)).await;
    let head = wire.until("secret").await;
    let ids: Vec<_> = head.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    let genuine = ids.first().expect("events have ids").to_string();
    for last in [
        genuine.as_str(),
        "0-1",
        "1-0",
        "1-1",
        "1-2",
        "2-0",
        "9-9",
        "0-18446744073709551615",
        "18446744073709551616-0",
        "-1-0",
        "0--1",
        "../0-0",
        "0-0/../1-0",
        "0_0",
        "1_1",
        "0-0-0",
        "",
        " ",
        "0-x",
        "0x0-0",
        "\u{e9}",
        "'; DROP TABLE",
        &format!("{adas}-1"),
        &"9".repeat(4096),
    ] {
        let mut wire = endpoint.connect().await;
        wire.write(&Request::stream(&bobs, Some(last)).bytes(endpoint.address)).await;
        let reply = wire.head().await;
        assert!([400, 404].contains(&reply.status), "{last}: {reply:?}");
    }
    let back = endpoint.send(&Request::stream(&adas, Some(&genuine))).await;
    assert!(String::from_utf8_lossy(&back.body).contains("secret"), "she herself can: {back:?}");
}

#[tokio::test(start_paused = true)]
async fn v40_sessions_are_limited_and_an_unfinished_handshake_expires() {
    let settings = HttpOptions::new().max_sessions(300, 100);
    let service = HttpService::with_options(server(&Watch::default()).build().unwrap(), settings);
    let mut refused = 0;
    for _ in 0..1000 {
        let hello = Request::hello("2025-11-25").send_as(None, &service).await;
        if hello.status != 200 {
            assert_eq!((hello.status, hello.header("retry-after")), (503, Some("5")));
            assert_eq!(hello.header("mcp-session-id"), None);
            refused += 1;
        }
    }
    assert_eq!((refused, service.sessions()), (700, 300));
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(service.sessions(), 300);
    // One minute, and the time until somebody looks.
    tokio::time::sleep(Duration::from_secs(26)).await;
    assert_eq!(service.sessions(), 0);
    assert_eq!(Request::hello("2025-11-25").send_as(None, &service).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn v40_a_session_expires_when_idle_and_after_a_day() {
    let settings = HttpOptions::new().session_idle(Duration::from_secs(300));
    let service = HttpService::with_options(server(&Watch::default()).build().unwrap(), settings);
    let open = async || {
        let hello = Request::hello("2025-11-25").send_as(None, &service).await;
        let id = hello.header("mcp-session-id").unwrap().to_owned();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        Request::post(&ready).set("Mcp-Session-Id", &id).send_as(None, &service).await;
        id
    };
    let (idle, busy) = (open().await, open().await);
    let ping = |id: &str| {
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        Request::post(&ping).set("Mcp-Session-Id", id)
    };
    let began = tokio::time::Instant::now();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(ping(&busy).send_as(None, &service).await.status, 200);
    }
    assert_eq!(ping(&idle).send_as(None, &service).await.status, 404, "five minutes are over");
    // However much it is used, a day is enough.
    let mut last = began.elapsed();
    while ping(&busy).send_as(None, &service).await.status == 200 {
        last = began.elapsed();
        tokio::time::sleep(Duration::from_secs(240)).await;
    }
    let day = 24 * 3600;
    assert!((day - 300..=day + 30).contains(&last.as_secs()), "it ended after {last:?}");
    assert_eq!(service.sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn v40_an_open_stream_does_not_keep_a_session_without_a_handshake() {
    use http_body_util::BodyExt;
    let settings = HttpOptions::new().sse_path("/sse");
    let service = HttpService::with_options(server(&Watch::default()).build().unwrap(), settings);
    let get = http::Request::get("/sse").header("host", "localhost");
    let get = get.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    let mut body = service.respond(get).await.into_body();
    let mut frames = 0;
    let reading = async {
        while let Some(Ok(_)) = body.frame().await {
            frames += 1;
        }
    };
    tokio::time::timeout(Duration::from_secs(300), reading).await.expect("the stream ends");
    assert!(frames >= 4, "the address, and what keeps the stream alive for a minute");
    tokio::time::sleep(Duration::from_secs(16)).await;
    assert_eq!(service.sessions(), 0);
}

#[tokio::test]
async fn v40_a_refused_request_opens_no_session() {
    let endpoint = Endpoint::new().await;
    let hello = || Request::hello("2025-11-25");
    let padded = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": { "experimental": { "x": "x".repeat(100_000) } },
        "clientInfo": { "name": "c", "version": "1" },
    } });
    for request in [
        hello().set("Origin", "http://evil.com"),
        hello().set("Host", "evil.com"),
        hello().set("Content-Type", "text/plain"),
        hello().set("Accept", "text/html"),
        hello().body("{"),
        hello().body(r#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#),
        hello().body(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#),
        hello().body(r#"{"jsonrpc":"2.0","method":"initialize"}"#),
        hello().body(format!("[{}]", String::from_utf8(hello().body).unwrap())),
        // A session keeps what its client said of itself, so that has to be short.
        Request::post(&padded),
    ] {
        let reply = endpoint.send(&request).await;
        assert_eq!(reply.header("mcp-session-id"), None, "{request:?}: {reply:?}");
        assert!(reply.status >= 400 || reply.code() != 0, "{request:?}: {reply:?}");
    }
    assert_eq!(endpoint.service.sessions(), 0);
}
