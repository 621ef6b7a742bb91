//! One user in the place of another.

use super::support::{Reply, Request, Watch, server};
use bowline_http::{HttpOptions, HttpService};
use serde_json::json;

fn service(watch: &Watch) -> HttpService {
    HttpService::with_options(server(watch).build().unwrap(), HttpOptions::new().sse_path("/sse"))
}

async fn open(service: &HttpService, principal: Option<&str>) -> String {
    let opened = Request::hello("2025-11-25").send_as(principal, service).await;
    let id = opened.header("mcp-session-id").unwrap().to_owned();
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let accepted = Request::post(&ready).set("Mcp-Session-Id", &id).send_as(principal, service).await;
    assert_eq!(accepted.status, 202);
    id
}

/// What a session is good for.
fn uses(session: &str) -> Vec<Request> {
    let post = |body| Request::post(&body).set("Mcp-Session-Id", session);
    vec![
        Request::in_session(session, &json!(1), "who", json!({})),
        post(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })),
        // An answer to a question, and a cancellation.
        post(
            json!({ "jsonrpc": "2.0", "id": 1, "result": { "action": "accept", "content": { "name": "x" } } }),
        ),
        post(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } })),
        Request::stream(session, None),
        Request::stream(session, Some("0-0")),
        Request::stream(session, Some("1-0")),
        Request::call("who", json!({})).target(&format!("/sse?sessionId={session}")),
        Request::new("DELETE").set("Mcp-Session-Id", session),
    ]
}

#[tokio::test]
async fn v30_a_session_works_only_for_its_principal() {
    // proves: SEC-23, SEC-25
    let watch = Watch::default();
    let service = service(&watch);
    let ada = "issuer ada client-1";
    let session = open(&service, Some(ada)).await;
    let anonymous = open(&service, None).await;
    let guess = "0".repeat(session.len());
    // Another user, no user, the same user of another client or issuer, and names that almost agree.
    for thief in [
        Some("issuer bob client-1"),
        None,
        Some("issuer ada client-2"),
        Some("other ada client-1"),
        Some("ISSUER ADA CLIENT-1"),
        Some("issuer ada client-1 "),
        Some(""),
    ] {
        for (stolen, guessed) in uses(&session).iter().zip(uses(&guess)) {
            let told: Reply = stolen.send_as(thief, &service).await;
            assert_eq!(told.status, 404, "{thief:?} {stolen:?}");
            // Nothing tells a session of somebody else from one that never was.
            assert_eq!(told, guessed.send_as(thief, &service).await, "{thief:?} {stolen:?}");
        }
    }
    for used in uses(&anonymous) {
        assert_eq!(used.send_as(Some(ada), &service).await.status, 404, "nobody's session is not hers");
    }
    assert_eq!((watch.ran(), service.sessions()), (0, 2));
    let own = Request::in_session(&session, &json!(1), "who", json!({})).send_as(Some(ada), &service).await;
    assert_eq!(own.json()["result"]["content"][0]["text"], ada);
}

#[tokio::test]
async fn v30_a_question_is_answered_by_whom_it_was_put_to() {
    let watch = Watch::default();
    let service = service(&watch);
    let (adas, bobs) = (open(&service, Some("ada")).await, open(&service, Some("bob")).await);
    let asking = {
        let (service, call) = (service.clone(), Request::in_session(&adas, &json!(1), "greet", json!({})));
        // A question comes on the stream of its call, which begins at once.
        call.send_as(Some("ada"), &service).await
    };
    assert_eq!(asking.header("content-type"), Some("text/event-stream"));
    // The ids of questions can be guessed; their session cannot be named by another.
    for id in (0..20).map(|id| json!(id)).chain((0..20).map(|id| json!(id.to_string()))) {
        let answer = json!({ "action": "accept", "content": { "name": "Mallory" } });
        let answer = Request::post(&json!({ "jsonrpc": "2.0", "id": id, "result": answer }));
        let foreign = answer.clone().set("Mcp-Session-Id", &adas).send_as(Some("bob"), &service).await;
        assert_eq!(foreign.status, 404);
        // In a session of his own the ids are his own.
        let own = answer.set("Mcp-Session-Id", &bobs).send_as(Some("bob"), &service).await;
        assert_eq!(own.status, 202);
    }
    let ping = json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" });
    let pong = Request::post(&ping).set("Mcp-Session-Id", &adas).send_as(Some("ada"), &service).await;
    assert_eq!((pong.status, watch.ran()), (200, 0), "the question is still open");
}

#[tokio::test]
async fn v36_a_handler_sees_the_user_of_its_own_request() {
    let watch = Watch::default();
    let service = service(&watch);
    let names = ["ada", "bob"];
    let sessions = [open(&service, Some("ada")).await, open(&service, Some("bob")).await];
    let call = async |number: usize| {
        let user = number % 2;
        let name = names[user];
        let request = if number % 4 < 2 {
            Request::call("who", json!({}))
        } else {
            Request::in_session(&sessions[user], &json!(number), "who", json!({}))
        };
        let told = request.send_as(Some(name), &service).await.json();
        assert_eq!(told["result"]["content"][0]["text"], name, "{number}: {told}");
    };
    for hundred in 0..40 {
        futures_util::future::join_all((0..100).map(|number| call(hundred * 100 + number))).await;
    }
    assert_eq!(watch.ran(), 4000);
    // Who was known a moment ago is not known now.
    let nobody = Request::call("who", json!({})).send_as(None, &service).await.json();
    assert_eq!(nobody["result"]["content"][0]["text"], "nobody");
}

#[tokio::test]
async fn v40_a_user_has_so_many_sessions_and_no_more() {
    let watch = Watch::default();
    let service = service(&watch);
    for _ in 0..100 {
        open(&service, Some("ada")).await;
    }
    let refused = Request::hello("2025-11-25").send_as(Some("ada"), &service).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")), "{refused:?}");
    assert_eq!(refused.header("mcp-session-id"), None);
    let sse = Request::new("GET").target("/sse").send_as(Some("ada"), &service).await;
    assert_eq!((sse.status, sse.header("retry-after")), (503, Some("5")));
    assert_eq!(service.sessions(), 100);
    open(&service, Some("bob")).await;
}
