//! Calls of someone else, passed on one round at a time.

use crate::support::*;
use bowline_client::{BoxFuture, Client, RelayWith, Relayed, Result};
use bowline_types::{
    ClientCapabilities, Implementation, LoggingLevel, Meta, Method, ProgressParams, RawJson, RawMap, Revision,
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const INFO: &str = "io.modelcontextprotocol/clientInfo";
const LEVEL: &str = "io.modelcontextprotocol/logLevel";

fn tool(client: &Client, with: RelayWith) -> BoxFuture<'static, Result<Relayed>> {
    client.relay(Method::CallTool, json!({ "name": "t" }).into(), with)
}

fn complete(relayed: Result<Relayed>) -> RawJson {
    match relayed.unwrap() {
        Relayed::Complete(result) => result,
        Relayed::InputRequired { .. } => panic!("expected a result, got questions"),
        Relayed::Task(_) => panic!("expected a result, got a task"),
    }
}

#[tokio::test(start_paused = true)]
async fn calls_are_forwarded_with_all_their_members() {
    // proves: META-08, META-27
    for revision in Revision::ALL {
        let (client, mut peer) = connect(Client::builder(), revision, everything()).await;
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let passed =
            json!({ "traceparent": trace, "tracestate": "a=b", "baggage": "c=d", "com.example/k": [1] });
        let mut meta = passed.clone();
        meta["progressToken"] = json!("theirs");
        meta[VERSION] = json!("2025-06-18");
        meta[CAPABILITIES] = json!({ "sampling": {} });
        meta[INFO] = json!({ "name": "forged", "version": "1" });
        meta[LEVEL] = json!("debug");
        meta["io.modelcontextprotocol/subscriptionId"] = json!(1);
        let steps: Arc<Mutex<Vec<Value>>> = Arc::default();
        let mut with = RelayWith::default();
        with.meta = serde_json::from_value(meta).unwrap();
        with.progress = Some({
            let steps = Arc::clone(&steps);
            Arc::new(move |step: ProgressParams| {
                steps.lock().unwrap().push(serde_json::to_value(&step).unwrap());
            })
        });
        let params = json!({ "name": "t", "arguments": { "a": 1 }, "later": 1 });
        let (result, token) = both(client.relay(Method::CallTool, params.clone().into(), with), async {
            let request = peer.expect("tools/call").await;
            let mut seen = request["params"].clone();
            let meta = seen.as_object_mut().unwrap().remove("_meta").unwrap();
            assert_eq!(seen, params);
            for (key, value) in passed.as_object().unwrap() {
                assert_eq!(&meta[key], value, "{revision}");
            }
            // The token is this client's own, for its requests have ids of their own.
            let token = meta["progressToken"].clone();
            assert!(token.is_i64());
            assert!(meta.get(LEVEL).is_none());
            assert!(meta.get("io.modelcontextprotocol/subscriptionId").is_none());
            if revision.is_modern() {
                assert_eq!(meta[VERSION], "2026-07-28");
                assert_eq!(meta[CAPABILITIES], json!({}));
                assert_eq!(meta[INFO]["name"], "bowline");
            } else {
                assert!([VERSION, CAPABILITIES, INFO].iter().all(|key| meta.get(key).is_none()));
            }
            let step =
                json!({ "progressToken": token, "progress": 1, "total": 2, "message": "m", "later": 1 });
            peer.notify("notifications/progress", step).await;
            let mut result = text_result("done");
            result["unknown"] = json!({ "kept": true });
            peer.reply(&request, result).await;
            token
        })
        .await;
        assert!(complete(result).as_str().contains(r#""unknown":{"kept":true}"#));
        let step = json!({ "progressToken": token, "progress": 1, "total": 2, "message": "m", "later": 1 });
        assert_eq!(*steps.lock().unwrap(), [step]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_receives_the_client_info_and_capabilities_of_the_caller() {
    let builder = Client::builder().name("gateway").log_level(LoggingLevel::Error);
    let (client, mut peer) = connect(builder, V2026_07_28, everything()).await;
    let mut with = RelayWith::default();
    let capabilities = json!({ "elicitation": { "form": {} }, "roots": {}, "later": { "a": 1 } });
    with.capabilities = Some(serde_json::from_value(capabilities.clone()).unwrap());
    with.client_info = Some(Implementation::new("caller", "3").title("The caller"));
    with.log_level = Some(LoggingLevel::Debug);
    assert!(format!("{with:?}").contains("caller"));
    let (result, ()) = both(tool(&client, with), async {
        let request = peer.expect("tools/call").await;
        let meta = &request["params"]["_meta"];
        assert_eq!(meta[CAPABILITIES], capabilities);
        assert_eq!(meta[INFO], json!({ "name": "caller", "title": "The caller", "version": "3" }));
        assert_eq!(meta[LEVEL], "debug");
        assert!(meta.get("progressToken").is_none());
        peer.reply(&request, text_result("done")).await;
    })
    .await;
    complete(result);
    // One of them alone; the next call has the client's own again.
    let mut with = RelayWith::default();
    with.capabilities = Some(ClientCapabilities::default());
    let calls = async { (tool(&client, with).await, tool(&client, RelayWith::default()).await) };
    let (results, ()) = both(calls, async {
        for _ in 0..2 {
            let request = peer.expect("tools/call").await;
            let meta = &request["params"]["_meta"];
            assert_eq!((&meta[CAPABILITIES], &meta[INFO]["name"]), (&json!({}), &json!("gateway")));
            assert_eq!(meta[LEVEL], "error");
            peer.reply(&request, text_result("done")).await;
        }
    })
    .await;
    assert!(results.0.is_ok() && results.1.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_does_not_receive_the_client_info_of_callers() {
    for revision in LEGACY {
        let (client, mut peer) = connect(Client::builder(), revision, everything()).await;
        let mut with = RelayWith::default();
        with.capabilities = Some(ClientCapabilities::default());
        with.client_info = Some(Implementation::new("caller", "3"));
        with.log_level = Some(LoggingLevel::Debug);
        let (result, ()) = both(tool(&client, with), async {
            let request = peer.expect("tools/call").await;
            assert_eq!(request["params"], json!({ "name": "t" }));
            peer.reply(&request, text_result("done")).await;
        })
        .await;
        complete(result);
    }
}

#[tokio::test(start_paused = true)]
async fn questions_of_a_modern_server_are_returned_and_the_retry_completes() {
    for method in [Method::CallTool, Method::ReadResource, Method::GetPrompt] {
        let (client, mut peer) = connect(Client::builder(), V2026_07_28, everything()).await;
        let properties = json!({ "name": { "type": "string", "later": 1 } });
        let form = json!({ "message": "?", "requestedSchema": { "type": "object", "properties": properties }, "later": 1 });
        let requests = json!({
            "b": { "method": "elicitation/create", "params": form }, "a": { "method": "roots/list" },
        });
        let object = json!({ "name": "t", "uri": "a:b" });
        let (relayed, ()) = both(client.relay(method, object.into(), RelayWith::default()), async {
            let request = peer.expect(method.as_str()).await;
            let result = json!({ "resultType": "input_required", "inputRequests": requests, "requestState": "st\u{e4}te" });
            peer.reply(&request, result).await;
        })
        .await;
        let Relayed::InputRequired { requests: came, state } = relayed.unwrap() else {
            panic!("expected questions")
        };
        assert_eq!(serde_json::to_value(&came).unwrap(), requests);
        assert_eq!(came.keys().collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(state.as_deref(), Some("st\u{e4}te"));
        let answers = json!({ "b": { "action": "decline", "later": 1 }, "a": { "roots": [] } });
        let object = json!({ "name": "t", "uri": "a:b", "inputResponses": answers, "requestState": state });
        let (relayed, ()) = both(client.relay(method, object.into(), RelayWith::default()), async {
            let request = peer.expect(method.as_str()).await;
            assert_eq!(request["params"]["inputResponses"], answers);
            assert_eq!(request["params"]["requestState"], "st\u{e4}te");
            peer.reply(&request, text_result("done")).await;
        })
        .await;
        complete(relayed);
    }
}

/// What becomes of a modern server's result.
async fn outcome(method: Method, with: RelayWith, result: Value) -> Result<Relayed> {
    let capabilities = json!({ "tools": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let (client, mut peer) = connect(Client::builder(), V2026_07_28, capabilities).await;
    let (relayed, ()) = both(client.relay(method, RawJson::empty_object(), with), async {
        let request = peer.expect(method.as_str()).await;
        peer.reply(&request, result).await;
    })
    .await;
    relayed
}

#[tokio::test(start_paused = true)]
async fn results_are_sorted_as_the_protocol_has_them() {
    let plain = RelayWith::default;
    let waiting =
        outcome(Method::CallTool, plain(), json!({ "resultType": "input_required", "requestState": "s" }));
    let Relayed::InputRequired { requests, state } = waiting.await.unwrap() else {
        panic!("expected to be sent back")
    };
    assert!(requests.is_empty() && state.as_deref() == Some("s"));
    let empty = json!({ "resultType": "input_required" });
    assert!(outcome(Method::CallTool, plain(), empty).await.unwrap_err().is_malformed());
    let asking = json!({ "resultType": "input_required", "requestState": "s" });
    let error = outcome(Method::ListTools, plain(), asking).await.unwrap_err();
    assert!(error.to_string().contains("the result of `tools/list` must not request input"), "{error}");
    // A task is a result for whoever has declared that it knows them.
    let task = json!({ "resultType": "task", "taskId": "1", "later": 1 });
    assert!(outcome(Method::CallTool, plain(), task.clone()).await.unwrap_err().is_malformed());
    let mut with = plain();
    let mut extensions = RawMap::new();
    extensions.insert(bowline_types::TASKS_EXTENSION, RawJson::empty_object());
    with.capabilities = Some(ClientCapabilities::new().extensions(extensions));
    let Relayed::Task(created) = outcome(Method::CallTool, with, task.clone()).await.unwrap() else {
        panic!("expected a task")
    };
    assert_eq!(created.to_value().unwrap(), task);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_delayed_cached_or_checked() {
    let (client, mut peer) = connect(Client::builder(), V2026_07_28, json!({})).await;
    let page = json!({
        "resultType": "complete", "ttlMs": 60_000, "cacheScope": "private", "nextCursor": "n", "later": 1,
        "tools": [{ "name": "t", "inputSchema": { "type": "object" }, "outputSchema": { "type": "object", "required": ["a"] } }],
    });
    for cursor in ["c", "c"] {
        let params = json!({ "cursor": cursor });
        let (listed, ()) =
            both(client.relay(Method::ListTools, params.into(), RelayWith::default()), async {
                let request = peer.expect("tools/list").await;
                assert_eq!(request["params"]["cursor"], "c");
                peer.reply(&request, page.clone()).await;
            })
            .await;
        assert_eq!(complete(listed).to_value().unwrap(), page);
    }
    let (called, ()) = both(tool(&client, RelayWith::default()), async {
        let request = peer.expect("tools/call").await;
        peer.reply(&request, json!({ "resultType": "complete", "structuredContent": 7 })).await;
    })
    .await;
    assert_eq!(complete(called).to_value().unwrap()["structuredContent"], 7);
    let error = client.relay(Method::CallTool, json!([1]).into(), RelayWith::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "expected the parameters to be an object");
    peer.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn errors_are_returned_unchanged() {
    let (client, mut peer) = connect(Client::builder(), V2025_11_25, everything()).await;
    let (read, ()) = both(
        client.relay(Method::ReadResource, json!({ "uri": "a:b" }).into(), RelayWith::default()),
        async {
            let request = peer.expect("resources/read").await;
            let error = json!({ "code": -32002, "message": "not here", "data": { "uri": "a:b" } });
            peer.send(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
        },
    )
    .await;
    let error = read.unwrap_err();
    let error = error.as_rpc().unwrap();
    assert_eq!((error.code, &*error.message), (-32002, "not here"));
    assert_eq!(error.data.as_ref().unwrap().to_value().unwrap(), json!({ "uri": "a:b" }));
    let (called, ()) = both(tool(&client, RelayWith::default()), async {
        peer.expect("tools/call").await;
        peer.hang_up();
    })
    .await;
    assert!(called.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn dropping_a_relayed_call_cancels_it_at_the_server() {
    for revision in Revision::ALL {
        let (client, mut peer) = connect(Client::builder(), revision, everything()).await;
        // Nothing is sent before someone waits.
        drop(tool(&client, RelayWith::default()));
        let mut running = tool(&client, RelayWith::default());
        let request = tokio::select! {
            _ = &mut running => panic!("nobody has answered"),
            request = peer.expect("tools/call") => request,
        };
        drop(running);
        let cancelled = peer.expect("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], request["id"], "{revision}");
        peer.quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn relayed_calls_have_their_own_timeouts() {
    for revision in Revision::ALL {
        let (client, mut peer) = connect(Client::builder(), revision, everything()).await;
        let mut with = RelayWith::default();
        with.timeout = Some(Duration::from_secs(600));
        let begun = tokio::time::Instant::now();
        let (result, ()) = both(tool(&client, with.clone()), async {
            let request = peer.expect("tools/call").await;
            let cancelled = peer.expect("notifications/cancelled").await;
            assert_eq!(cancelled["params"]["requestId"], request["id"]);
        })
        .await;
        assert!(result.unwrap_err().is_timeout());
        assert_eq!(begun.elapsed().as_secs(), 600);
        // Progress keeps a call alive, but not beyond its total.
        with.timeout = Some(Duration::from_secs(10));
        with.max_total = Some(Duration::from_secs(25));
        with.progress = Some(Arc::new(|_| {}));
        let begun = tokio::time::Instant::now();
        let (result, ()) = both(tool(&client, with), async {
            let request = peer.expect("tools/call").await;
            for step in 1..=4 {
                tokio::time::sleep(Duration::from_secs(8)).await;
                let token = &request["params"]["_meta"]["progressToken"];
                peer.notify("notifications/progress", json!({ "progressToken": token, "progress": step }))
                    .await;
            }
        })
        .await;
        assert!(result.unwrap_err().is_timeout());
        // Until the last step was reported.
        assert_eq!(begun.elapsed().as_secs(), 32);
        peer.expect("notifications/cancelled").await;
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_has_the_form_of_the_revision_of_the_server() {
    for revision in Revision::ALL {
        let (client, mut peer) = connect(Client::builder(), revision, everything()).await;
        let mut with = RelayWith::default();
        with.meta = Meta::new().with("io.modelcontextprotocol/related-task", json!({ "taskId": "1" }));
        let (result, ()) = both(tool(&client, with), async {
            let request = peer.expect("tools/call").await;
            let related = request["params"]["_meta"].get("io.modelcontextprotocol/related-task");
            assert_eq!(related.is_some(), revision == V2025_11_25);
            peer.reply(&request, text_result("done")).await;
        })
        .await;
        complete(result);
    }
}
