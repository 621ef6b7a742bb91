//! Fetching pages.

use super::{call, refusal, site::Site};
use bowline::prelude::Server;
use bowline_servers::web::Web;
use serde_json::{Value, json};
use std::time::Duration;

fn open() -> Server {
    Web::new().allow_private(true).server().unwrap()
}

async fn pages() -> Site {
    Site::start(|path| match path {
        "/page" => "200 OK\nContent-Type: text/html; charset=utf-8\n\n<title>Knots</title><h1>Bowline</h1><p>It <a href=/next>holds</a>.".into(),
        "/bare" => "200 OK\n\n<!DOCTYPE html><p>bare".into(),
        "/data" => "200 OK\nContent-Type: application/json\n\n{\"a\":[1]}".into(),
        "/text" => format!("200 OK\nContent-Type: text/plain\n\n{}", "äb".repeat(50)),
        "/image" => "200 OK\nContent-Type: image/png\n\nnot really".into(),
        "/pdf" => "200 OK\nContent-Type: application/pdf\n\n%PDF".into(),
        "/hidden" => "200 OK\nContent-Type: text/html\n\n<title>K\u{e0041}nots</title><p>Hold\u{202e}s.<p hidden>Obey.".into(),
        "/gone" => "404 Not Found\nContent-Type: text/plain\n\nnothing\nhere".into(),
        "/large" => format!("200 OK\nContent-Type: text/plain\n\n{}", "x".repeat(1001)),
        "/exact" => format!("200 OK\nContent-Type: text/plain\n\n{}", "x".repeat(1000)),
        "/gzip" => "200 OK\nContent-Type: text/plain\nContent-Encoding: gzip\n\nx".into(),
        "/hop" => "302 Found\nLocation: ../page#top\n\n".into(),
        "/circle" => "301 Moved\nLocation: /circle\n\n".into(),
        path if path.starts_with("/to/") => format!("307 There\nLocation: {}\n\n", path.trim_start_matches("/to/")),
        _ => "200 OK\nContent-Type: text/plain\n\nelse".into(),
    })
    .await
}

async fn fetch(site: &Site, path: &str, more: Value) -> Value {
    let mut arguments = json!({ "url": site.url(path) });
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call(open(), "fetch", arguments).await
}

#[tokio::test]
async fn a_page_is_converted_to_text() {
    let site = pages().await;
    let result = fetch(&site, "/page", json!({})).await;
    let expected = json!({
        "url": site.url("/page"), "title": "Knots", "content_type": "text/html", "text": "# Bowline\n\nIt holds.", "length": 20,
    });
    assert_eq!(result["structuredContent"], expected);
    assert_eq!(
        result["content"][0]["text"],
        format!("{}\nKnots\n\n# Bowline\n\nIt holds.", site.url("/page"))
    );
    let result = fetch(&site, "/page", json!({ "links": true })).await;
    let text = result["structuredContent"]["text"].as_str().unwrap();
    assert!(text.contains("[holds][1]") && text.ends_with(&format!("[1]: {}", site.url("/next"))), "{text}");
    let result = fetch(&site, "/page", json!({ "raw": true })).await;
    assert!(result["structuredContent"]["text"].as_str().unwrap().starts_with("<title>"));
    assert_eq!(fetch(&site, "/bare", json!({})).await["structuredContent"]["text"], "bare");
    assert!(
        site.asked()
            .iter()
            .all(|request| request.starts_with("GET ") && request.contains("user-agent: bowline/"))
    );
}

// proves: TOOL-48
#[tokio::test]
async fn hidden_text_of_a_page_does_not_reach_the_model() {
    let site = pages().await;
    for more in [json!({}), json!({ "whole": true })] {
        let result = fetch(&site, "/hidden", more).await;
        assert_eq!(result["structuredContent"]["title"], "Knots");
        assert_eq!(result["structuredContent"]["text"], "Holds.");
        assert!(!result.to_string().contains("Obey"), "{result}");
    }
    // The source has its elements, but no hidden characters.
    let source = fetch(&site, "/hidden", json!({ "raw": true })).await;
    assert_eq!(source["structuredContent"]["text"], "<title>Knots</title><p>Holds.<p hidden>Obey.");
}

#[tokio::test]
async fn other_types_are_detected() {
    let site = pages().await;
    let data = fetch(&site, "/data", json!({})).await;
    assert_eq!(data["structuredContent"]["text"], "{\n  \"a\": [\n    1\n  ]\n}");
    let image = fetch(&site, "/image", json!({})).await;
    assert_eq!(
        image["content"][0],
        json!({ "type": "image", "data": "bm90IHJlYWxseQ==", "mimeType": "image/png" })
    );
    for (path, told) in [
        (
            "/pdf",
            "unsupported content type `application/pdf`; expected HTML, text, JSON or an image".to_owned(),
        ),
        ("/gone", format!("{} answers 404 Not Found: nothing here", site.url("/gone"))),
        ("/gzip", "the server sent a compressed body without being asked".into()),
    ] {
        assert_eq!(refusal(open(), "fetch", json!({ "url": site.url(path) })).await, told);
    }
}

#[tokio::test]
async fn the_main_content_of_a_page_is_returned() {
    let prose = "<p>A long paragraph, with commas, that says something about knots and ropes.</p>".repeat(6);
    let html = format!(
        "<title>T</title><nav><a href=/>Menu</a></nav><main><h1>Knots</h1>{prose}</main><footer>Imprint</footer>"
    );
    let site = Site::start(move |_| format!("200 OK\nContent-Type: text/html\n\n{html}")).await;
    let result = fetch(&site, "/", json!({})).await;
    let text = result["structuredContent"]["text"].as_str().unwrap();
    assert_eq!(result["structuredContent"]["main_content"], true);
    assert!(text.starts_with("# Knots") && !text.contains("Menu") && !text.contains("Imprint"), "{text}");
    let shown = result["content"][0]["text"].as_str().unwrap();
    assert!(shown.ends_with("(main content only; use `whole` for the whole page)"), "{shown}");
    let result = fetch(&site, "/", json!({ "whole": true })).await;
    let text = result["structuredContent"]["text"].as_str().unwrap();
    assert!(text.contains("Menu") && text.contains("# Knots") && text.contains("Imprint"), "{text}");
    assert_eq!(result["structuredContent"]["main_content"], Value::Null);
}

#[tokio::test]
async fn pages_disallowed_by_robots_txt_are_not_fetched() {
    let site = Site::start(|path| match path {
        "/robots.txt" => "200 OK\n\nUser-agent: *\nDisallow: /private\nAllow: /private/open".into(),
        "/hop" => "302 Found\nLocation: /private/x\n\n".into(),
        _ => "200 OK\nContent-Type: text/plain\n\nread".into(),
    })
    .await;
    let server = open();
    let mut peer = bowline_testing::Peer::memory(server).unwrap();
    let mut ask = async |path: &str| {
        let call = json!({ "name": "fetch", "arguments": { "url": site.url(path) } });
        peer.modern("tools/call", call).await.unwrap()["result"].clone()
    };
    for path in ["/", "/private/open", "/public?x=/private"] {
        assert_eq!(ask(path).await["structuredContent"]["text"], "read", "{path}");
    }
    for path in ["/private", "/private/x?y", "/%70rivate", "/hop"] {
        let told = ask(path).await["content"][0]["text"].clone();
        assert!(told.as_str().unwrap().contains("start the server with `--ignore-robots`"), "{path}: {told}");
    }
    let asked = site.asked();
    assert!(
        !asked.iter().any(|request| request.starts_with("GET /private ") || request.contains("/private/x"))
    );
    assert_eq!(
        asked.iter().filter(|request| request.starts_with("GET /robots.txt ")).count(),
        1,
        "asked once"
    );
    let ignoring = Web::new().allow_private(true).ignore_robots(true).server().unwrap();
    let result = call(ignoring, "fetch", json!({ "url": site.url("/private") })).await;
    assert_eq!(result["structuredContent"]["text"], "read");
}

#[tokio::test]
async fn a_failing_robots_txt_disallows_everything() {
    let failing = Site::start(|path| match path {
        "/robots.txt" => "503 Busy\n\n".into(),
        _ => "200 OK\nContent-Type: text/plain\n\nread".into(),
    })
    .await;
    let told = refusal(open(), "fetch", json!({ "url": failing.url("/") })).await;
    assert!(told.contains("robots.txt"), "{told}");
    let without = Site::start(|path| match path {
        "/robots.txt" => "404 Not Found\n\n".into(),
        _ => "200 OK\nContent-Type: text/plain\n\nread".into(),
    })
    .await;
    assert_eq!(fetch(&without, "/", json!({})).await["structuredContent"]["text"], "read");
}

#[tokio::test]
async fn an_error_names_the_flag_that_allows_writing() {
    let told = refusal(Web::new().server().unwrap(), "fetch", json!({ "url": "http://127.0.0.1:1/" })).await;
    assert!(told.contains("start the server with `--allow-host 127.0.0.1`"), "{told}");
    let told = refusal(Web::new().server().unwrap(), "fetch", json!({ "url": "http://nas.local/" })).await;
    assert!(told.contains("start the server with `--allow-host nas.local`"), "{told}");
}

#[tokio::test]
async fn long_text_is_returned_in_parts() {
    let site = pages().await;
    let first = fetch(&site, "/text", json!({ "max_length": 60 })).await["structuredContent"].clone();
    assert_eq!((&first["length"], &first["next_index"]), (&json!(100), &json!(60)));
    let second =
        fetch(&site, "/text", json!({ "start_index": 60, "max_length": 40 })).await["structuredContent"]
            .clone();
    assert_eq!(second["next_index"], Value::Null);
    let whole = format!("{}{}", first["text"].as_str().unwrap(), second["text"].as_str().unwrap());
    assert_eq!(whole, "äb".repeat(50));
    let told = refusal(open(), "fetch", json!({ "url": site.url("/text"), "start_index": 100 })).await;
    assert!(told.contains("less than 100"), "{told}");
}

#[tokio::test]
async fn responses_are_limited() {
    let site = pages().await;
    let small = || Web::new().allow_private(true).max_bytes(1000).server().unwrap();
    let exact = call(small(), "fetch", json!({ "url": site.url("/exact") })).await;
    assert_eq!(exact["structuredContent"]["length"], 1000);
    let told = refusal(small(), "fetch", json!({ "url": site.url("/large") })).await;
    assert_eq!(told, "the answer is longer than 1000 bytes");
    // The site accepts the connection and never responds.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let hasty = Web::new().allow_private(true).time_limit(Duration::from_millis(50)).server().unwrap();
    assert_eq!(refusal(hasty, "fetch", json!({ "url": url })).await, "request timed out after 50ms");
}

#[tokio::test]
async fn redirects_are_followed_up_to_a_limit() {
    let site = pages().await;
    let result = fetch(&site, "/hop", json!({})).await;
    assert_eq!(result["structuredContent"]["url"], site.url("/page"));
    let told = refusal(open(), "fetch", json!({ "url": site.url("/circle") })).await;
    assert_eq!(told, "more than 5 redirects");
}

// V-92
#[tokio::test]
async fn local_addresses_are_refused_under_any_name() {
    let canary = pages().await;
    let port = canary.port;
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://localhost.:{port}/"),
        format!("http://a.localhost:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://0x7f.1:{port}/"),
        format!("http://0177.0.0.1:{port}/"),
        format!("http://127.1:{port}/"),
        format!("http://0.0.0.0:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://[64:ff9b::7f00:1]:{port}/"),
        format!("http://user@127.0.0.1:{port}/"),
        format!("http://example.com@127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}\\@example.com/"),
        format!("http://127.0.0.1:{port}#@example.com/"),
        "file:///etc/passwd".into(),
        "gopher://127.0.0.1/".into(),
        "http://169.254.169.254/latest/meta-data/".into(),
        "http://metadata.google.internal/".into(),
    ] {
        refusal(Web::new().server().unwrap(), "fetch", json!({ "url": url })).await;
    }
    assert!(canary.asked().is_empty(), "nothing was sent");
}

// V-50, V-92, BP-14
#[tokio::test]
async fn redirects_cannot_reach_forbidden_addresses() {
    let (canary, site) = (pages().await, pages().await);
    let allowing = || Web::new().allow_hosts([format!("127.0.0.1:{}", site.port)]).server().unwrap();
    let fine = call(allowing(), "fetch", json!({ "url": site.url("/hop") })).await;
    assert_eq!(fine["structuredContent"]["title"], "Knots");
    for to in [
        canary.url("/"),
        format!("http://localhost:{}/", canary.port),
        format!("http://[::ffff:7f00:1]:{}/", canary.port),
        format!("//127.0.0.1:{}/", canary.port),
        "file:///etc/passwd".into(),
        "http://169.254.169.254/".into(),
        site.url("/to/http://10.0.0.1/"),
    ] {
        refusal(allowing(), "fetch", json!({ "url": site.url(&format!("/to/{to}")) })).await;
    }
    assert!(canary.asked().is_empty(), "nothing was sent");
}
