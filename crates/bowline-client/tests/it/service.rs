//! A client as a service: calls of someone else, passed on.

use crate::support::*;
use bowline_client::{Answer, BoxFuture, Client};
use bowline_proto::{
    params::Params,
    replay::Replay,
    service::{Call, ClientView, Emit, Notice, Outcome, Outlet, Reply, Service},
};
use bowline_types::{Method, RawJson, Revision};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// A call as a server got it from a client of 2025-06-18.
fn call(method: Method, params: Value) -> Call {
    let client = ClientView::new(Revision::V2025_06_18, None, RawJson::empty_object(), None);
    Call {
        method,
        params: Params::parse(params.into()).unwrap(),
        client: Arc::new(client),
        progress_token: Some("theirs".into()),
        replay: Replay::default(),
    }
}

#[derive(Default)]
struct Notices(Mutex<Vec<Notice>>);

impl Emit for Notices {
    fn emit(&self, notice: Notice) {
        self.0.lock().unwrap().push(notice);
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn calls_are_passed_on_with_all_their_members() {
    // proves: META-08, META-27
    for revision in Revision::ALL {
        let (client, mut peer) = connect(Client::builder(), revision, everything()).await;
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let passed =
            json!({ "traceparent": trace, "tracestate": "a=b", "baggage": "c=d", "com.example/k": [1] });
        let mut meta = passed.clone();
        meta["progressToken"] = json!("theirs");
        meta["io.modelcontextprotocol/protocolVersion"] = json!("2025-06-18");
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "sampling": {} });
        meta["io.modelcontextprotocol/logLevel"] = json!("debug");
        let params = json!({ "name": "t", "arguments": { "a": 1 }, "later": 1, "requestState": "not yours", "_meta": meta });
        let notices = Arc::new(Notices::default());
        let outlet = Outlet::new(Arc::clone(&notices) as _);
        let (outcome, ()) = both(Service::call(&client, call(Method::CallTool, params), outlet), async {
            let request = peer.expect("tools/call").await;
            let mut params = request["params"].clone();
            let meta = params.as_object_mut().unwrap().remove("_meta").unwrap();
            assert_eq!(params, json!({ "name": "t", "arguments": { "a": 1 }, "later": 1 }));
            for (key, value) in passed.as_object().unwrap() {
                assert_eq!(&meta[key], value, "{revision}");
            }
            // The token is this client's own, for its requests have ids of their own.
            let token = &meta["progressToken"];
            assert!(token.is_i64());
            assert!(meta.get("io.modelcontextprotocol/logLevel").is_none());
            if revision.is_modern() {
                assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
            } else {
                assert!(meta.get("io.modelcontextprotocol/protocolVersion").is_none());
            }
            let progress = json!({ "progressToken": token, "progress": 1, "total": 2, "message": "m" });
            peer.notify("notifications/progress", progress).await;
            let mut result = text_result("done");
            result["unknown"] = json!({ "kept": true });
            peer.reply(&request, result).await;
        })
        .await;
        let Outcome::Complete(Reply::Raw(result)) = outcome else {
            panic!("expected a result, got {outcome:?}")
        };
        assert!(result.as_str().contains(r#""unknown":{"kept":true}"#));
        let step = Notice::Progress { progress: 1.0, total: Some(2.0), message: Some("m".into()) };
        assert_eq!(*notices.0.lock().unwrap(), [step]);
    }
}

#[tokio::test(start_paused = true)]
async fn failures_become_errors_of_the_call() {
    let (client, mut peer) = connect(Client::builder(), V2025_11_25, everything()).await;
    let read = || call(Method::ReadResource, json!({ "uri": "a:b" }));
    let (outcome, ()) = both(Service::call(&client, read(), Outlet::closed()), async {
        let request = peer.expect("resources/read").await;
        peer.fail(&request, -32002, "not here").await;
    })
    .await;
    assert!(matches!(outcome, Outcome::Failed(error) if error.code == -32002 && error.message == "not here"));
    let (outcome, ()) = both(Service::call(&client, read(), Outlet::closed()), async {
        peer.expect("resources/read").await;
        peer.hang_up();
    })
    .await;
    assert!(
        matches!(outcome, Outcome::Failed(error) if error.code == -32603 && error.message.contains("closed"))
    );
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_cancels_it_at_the_server() {
    let (client, mut peer) = connect(Client::builder(), V2026_07_28, everything()).await;
    let mut running =
        Service::call(&client, call(Method::CallTool, json!({ "name": "slow" })), Outlet::closed());
    let request = tokio::select! {
        _ = &mut running => panic!("nobody has answered"),
        request = peer.expect("tools/call") => request,
    };
    drop(running);
    let cancelled = peer.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_asks_back_is_answered_here() {
    let builder = Client::builder().on_ask(|_| async { Answer::Decline });
    let (client, mut peer) = connect(builder, V2026_07_28, everything()).await;
    let calling = Service::call(&client, call(Method::CallTool, json!({ "name": "t" })), Outlet::closed());
    let (outcome, ()) = both(calling, async {
        let request = peer.expect("tools/call").await;
        let form = json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } });
        let requests = json!({ "q": { "method": "elicitation/create", "params": form } });
        peer.reply(&request, json!({ "resultType": "input_required", "inputRequests": requests })).await;
        let request = peer.expect("tools/call").await;
        assert_eq!(request["params"]["inputResponses"]["q"], json!({ "action": "decline" }));
        peer.reply(&request, text_result("done")).await;
    })
    .await;
    assert!(matches!(outcome, Outcome::Complete(Reply::Raw(_))));
}
