//! Streams end when the token that opened them expires. Running calls continue.

use super::{NOW, Script, Session, bearer, caller, endpoint, protect};
use crate::wire::Ask;
use bowline_http::{HttpOptions, HttpService};
use bowline_server::{Ctx, Resource, Server, Tool};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

/// A token that expires after ten seconds, and one of the same principal that lasts.
fn script() -> Script {
    Script::default().add("short", Ok(Arc::new(caller("ada", "notes:read").with_expiry(NOW + 10)))).accept(
        "long",
        "ada",
        "notes:read",
    )
}

fn server(gate: Arc<Notify>) -> Server {
    let gated = move |ctx: Ctx| {
        let gate = Arc::clone(&gate);
        async move {
            ctx.progress(1, 2);
            gate.notified().await;
            "through"
        }
    };
    Server::new("streams")
        .tool(Tool::new("gated").handler(gated))
        .resource(Resource::new("notes://a", "a").text("a"))
        .dynamic()
}

/// The stream ends between these times: expiry and skew.
fn is_in_time(since: Instant) -> bool {
    (Duration::from_secs(70)..Duration::from_secs(72)).contains(&since.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_get_stream_ends_with_its_token_and_the_session_stays() {
    let server = server(Arc::default());
    let registry = server.registry();
    let endpoint = endpoint(server, protect(&script()));
    let session = Session::open(&endpoint, "2025-11-25", "short").await;
    let since = Instant::now();
    let mut stream = bearer(session.get(), "short").send(&endpoint).await;
    assert_eq!(stream.status, 200);
    while stream.event().await.is_some() {}
    assert!(is_in_time(since), "{:?}", since.elapsed());
    // What happens meanwhile is read with the next token.
    registry.add_tool(Tool::new("later").handler(|| "later")).unwrap();
    let mut again = bearer(session.get(), "long").send(&endpoint).await;
    let (_, message) = again.message().await.unwrap();
    assert_eq!(message["method"], "notifications/tools/list_changed");
    // The long one lasts longer.
    let waiting = timeout(Duration::from_secs(1800), again.message()).await;
    assert!(waiting.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_busy_stream_ends_with_its_token_too() {
    let server = server(Arc::default());
    let registry = server.registry();
    let endpoint = endpoint(server, protect(&script()));
    let session = Session::open(&endpoint, "2025-11-25", "short").await;
    let since = Instant::now();
    let mut stream = bearer(session.get(), "short").send(&endpoint).await;
    loop {
        registry.resources_changed();
        tokio::time::sleep(Duration::from_millis(500)).await;
        registry.resources_changed();
        if stream.event().await.is_none() {
            break;
        }
        assert!(since.elapsed() < Duration::from_secs(80), "the stream went on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_listen_ends_with_its_result_when_its_token_expires() {
    let endpoint = endpoint(server(Arc::default()), protect(&script()));
    let listen =
        || Ask::modern("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    let since = Instant::now();
    let mut stream = bearer(listen(), "short").send(&endpoint).await;
    assert_eq!(stream.status, 200);
    let mut last = None;
    // A stream that does not end sends comments for ever.
    let reading = async {
        while let Some((_, message)) = stream.message().await {
            last = Some(message);
        }
    };
    timeout(Duration::from_secs(300), reading).await.expect("the stream ends");
    assert!(is_in_time(since), "{:?}", since.elapsed());
    assert!(last.unwrap()["result"].is_object());
    assert_eq!(bearer(listen(), "long").send(&endpoint).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_running_call_finishes_after_its_token_expired() {
    let gate = Arc::new(Notify::new());
    let endpoint = endpoint(server(Arc::clone(&gate)), protect(&script()));
    let session = Session::open(&endpoint, "2025-11-25", "short").await;
    let params = json!({ "name": "gated", "_meta": { "progressToken": 1 } });
    for ask in [Ask::modern("tools/call", params.clone()), session.request(1, "tools/call", &params)] {
        let mut stream = bearer(ask, "short").send(&endpoint).await;
        assert_eq!(stream.message().await.unwrap().1["method"], "notifications/progress");
        assert!(timeout(Duration::from_secs(300), stream.message()).await.is_err());
        gate.notify_one();
        let (_, message) = stream.message().await.unwrap();
        assert_eq!(super::text(&message), "through");
    }
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_2024_ends_with_its_token() {
    // Longer than the token, so that the session does not end first for want of a handshake.
    let opening = Duration::from_secs(600);
    let options = HttpOptions::new().sse_path("/sse").session_opening(opening).protect(protect(&script()));
    let endpoint = HttpService::with_options(server(Arc::default()).build().unwrap(), options);
    let since = Instant::now();
    let ask = Ask::new(http::Method::GET).path("/sse").header("accept", "text/event-stream");
    let mut stream = bearer(ask, "short").send(&endpoint).await;
    assert_eq!(stream.status, 200);
    while stream.event().await.is_some() {}
    assert!(is_in_time(since), "{:?}", since.elapsed());
}
