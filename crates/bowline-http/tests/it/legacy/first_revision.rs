//! Sessions of 2024-11-05, which has two endpoints.

use super::*;

#[tokio::test]
async fn the_first_revision_has_two_endpoints() {
    // proves: SSE-01, SSE-02, SSE-04, SSE-06, SSE-07, HTTP-03, HTTP-98
    let default = HttpService::new(server(Arc::default())).unwrap();
    let http_response = Ask::new(Method::GET).path("/sse").send(&default).await;
    assert!(http_response.status.is_client_error(), "this transport is off by default");
    let settings = HttpOptions::new().sse_path("/sse");
    let endpoint = HttpService::with_options(server(Arc::default()).build().unwrap(), settings);
    let mut http_response = Ask::new(Method::GET).path("/sse").send(&endpoint).await;
    let opening = http_response.event().await.unwrap();
    let address = opening.lines().find_map(|line| line.strip_prefix("data:")).unwrap().trim();
    // Relative to the URL of the stream, so that it holds behind a router that cuts the path.
    assert!(address.starts_with("?sessionId="), "{address}");
    let address = format!("/sse{address}");
    assert!(opening.contains("event: endpoint"), "{opening}");
    let post = |body: Value| Ask::post(&body).path(&address);
    assert_eq!(post(hello("2024-11-05")).send(&endpoint).await.status, StatusCode::ACCEPTED);
    let (_, greeting) = http_response.message().await.unwrap();
    assert_eq!(greeting["result"]["protocolVersion"], "2024-11-05");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "now" } });
    let accepted = post(call).send(&endpoint).await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED);
    assert_eq!(accepted.json().await, Value::Null, "the response comes on the stream");
    let event = http_response.event().await.unwrap();
    let (name, data) = event.split_once('\n').unwrap();
    assert_eq!(name, "event: message");
    let reply: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(reply["result"]["content"][0]["text"], "now");
    let foreign =
        Ask::new(Method::GET).path("/sse").header("origin", "http://evil.com").send(&endpoint).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    let guess = Ask::post(&json!({})).path("/sse?sessionId=guess").send(&endpoint).await;
    assert_eq!(guess.status, StatusCode::NOT_FOUND);
    let other = Ask::new(Method::PUT).path("/sse").send(&endpoint).await;
    assert_eq!(other.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(other.headers["allow"], "GET, POST");
    // Clients of later revisions use the other endpoint.
    let later = Session::open(&endpoint, "2025-11-25").await;
    assert_eq!(later.call(1, "now").await.json().await["result"]["content"][0]["text"], "now");
}

#[tokio::test]
async fn a_session_of_the_first_revision_ends_with_its_stream() {
    let settings = HttpOptions::new().sse_path("/sse");
    let endpoint = HttpService::with_options(server(Arc::default()).build().unwrap(), settings);
    let mut http_response = Ask::new(Method::GET).path("/sse").send(&endpoint).await;
    let (_, address) = http_response.message().await.unwrap();
    let post = || Ask::post(&hello("2024-11-05")).path(&format!("/sse{}", address.as_str().unwrap()));
    assert_eq!(post().send(&endpoint).await.status, StatusCode::ACCEPTED);
    // Nothing can be sent to this client any more: in this revision, streams cannot be resumed.
    drop(http_response);
    assert_eq!(post().send(&endpoint).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_the_first_revision_ends_with_the_server_but_not_before_its_calls() {
    let sure = Tool::new("sure").handler(|ctx: Ctx| async move {
        let roots = ctx.roots().await?;
        Result::<_>::Ok(roots.len().to_string())
    });
    let settings = HttpOptions::new().sse_path("/sse");
    let endpoint = HttpService::with_options(Server::new("first").tool(sure).build().unwrap(), settings);
    let mut http_response = Ask::new(Method::GET).path("/sse").send(&endpoint).await;
    let (_, address) = http_response.message().await.unwrap();
    let post =
        |body: Value| Ask::post(&body).path(&format!("/sse{}", address.as_str().unwrap())).send(&endpoint);
    let mut hello = hello("2024-11-05");
    hello["params"]["capabilities"] = json!({ "roots": {} });
    post(hello).await;
    post(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    http_response.message().await.unwrap();
    let call =
        |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "sure" } });
    post(call(1)).await;
    let (_, question) = http_response.message().await.unwrap();
    endpoint.end();
    assert_eq!(post(call(2)).await.status, StatusCode::SERVICE_UNAVAILABLE);
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } });
    assert_eq!(post(answer).await.status, StatusCode::ACCEPTED);
    let (_, response) = http_response.message().await.unwrap();
    assert_eq!(response["result"]["content"][0]["text"], "0");
    let end = tokio::time::timeout(Duration::from_secs(60), http_response.message()).await;
    assert_eq!(end, Ok(None));
}
