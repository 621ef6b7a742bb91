//! What operators see of calls: numbers, and one trace from the caller to the server.

use super::{Far, call, client, config, environment, gateway, open_file, text};
use crate::collector::Collector;
use bowline_host::Gateway;
use bowline_telemetry::Traces;
use serde_json::{Value, json};

const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[tokio::test]
async fn calls_are_counted_by_server_method_and_end() {
    let far = Far::start().await;
    let denies = "[[rules]]\neffect = \"deny\"\ntool = \"trace\"\n";
    let gateway = gateway(&format!("{denies}{}", open_file(&far)));
    let mut peer = client(gateway.open().unwrap()).await;
    call(&mut peer, "far__fast", json!({})).await;
    call(&mut peer, "far__fast", json!({})).await;
    call(&mut peer, "far__trace", json!({})).await;
    let id = peer.start("tools/call", json!({ "name": "far__slow" })).await.unwrap();
    far.started.notified().await;
    peer.notify("notifications/cancelled", json!({ "requestId": id })).await.unwrap();
    let cancelled = r#"bowline_calls_total{upstream="far",method="tools/call",outcome="cancelled"} 1"#;
    while !gateway.host().metrics().contains(cancelled) {
        tokio::task::yield_now().await;
    }
    let page = gateway.host().metrics();
    for line in [
        r#"bowline_calls_total{upstream="far",method="tools/call",outcome="ok"} 2"#,
        r#"bowline_calls_total{upstream="far",method="tools/call",outcome="denied"} 1"#,
        r#"bowline_calls_total{upstream="far",method="tools/call",outcome="cancelled"} 1"#,
    ] {
        assert!(page.contains(line), "{line} in\n{page}");
    }
    // A server that is gone is not counted any more.
    gateway.apply(config("")).unwrap();
    assert!(!gateway.host().metrics().contains("far"), "{}", gateway.host().metrics());
    gateway.close().await;
}

#[tokio::test]
async fn the_trace_of_the_caller_continues_to_the_server() {
    let far = Far::start().await;
    let gateway = gateway(&open_file(&far));
    let mut peer = client(gateway.open().unwrap()).await;
    let params = json!({ "name": "far__trace", "_meta": { "traceparent": CALLER } });
    let result = peer.request("tools/call", params).await.unwrap();
    assert_eq!(text(&result["result"]), CALLER);
    gateway.close().await;
}

#[tokio::test]
async fn spans_of_both_sides_are_sent_in_the_trace_of_the_caller() {
    let (far, collector) = (Far::start().await, Collector::start([]).await);
    let gateway = Gateway::builder(config(&open_file(&far)))
        .environment(environment())
        .traces(Traces::to(collector.url()))
        .build()
        .unwrap();
    let mut peer = client(gateway.open().unwrap()).await;
    let params = json!({ "name": "far__trace", "_meta": { "traceparent": CALLER } });
    let result = peer.request("tools/call", params).await.unwrap();
    let seen = text(&result["result"]).to_owned();
    gateway.close().await;

    let requests = collector.requests();
    let body: Value = serde_json::from_slice(&requests[0].body).unwrap();
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
    let find =
        |name: &str| spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("{spans:?}"));
    let (server, client) = (find("tools/call far__trace"), find("tools/call trace"));
    assert_eq!(server["parentSpanId"], "b7ad6b7169203331");
    assert_eq!(client["parentSpanId"], server["spanId"]);
    for span in [server, client] {
        assert_eq!(span["traceId"], "0af7651916cd43dd8448eb211c80319c");
    }
    let expected = format!("00-0af7651916cd43dd8448eb211c80319c-{}-01", client["spanId"].as_str().unwrap());
    assert_eq!(seen, expected);
}
