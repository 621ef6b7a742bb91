//! Scopes: declared where things are declared, enforced before a handler runs.

use super::{METADATA, Script, Session, bearer, call, endpoint, plain_server, protect, text};
use crate::wire::{Ask, HttpReply};
use bowline_http::{HttpService, Protect};
use bowline_server::{BoxFuture, Call, Notifier, Outcome};
use bowline_server::{
    CompletionRequest, Ctx, Middleware, Next, Prompt, Registry, Resource, Result, Server, Tool,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

#[derive(Deserialize, JsonSchema)]
struct Id {
    id: String,
}

/// Counts how often a handler ran.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicUsize>);

impl Runs {
    fn run(&self) -> &'static str {
        self.0.fetch_add(1, Ordering::Relaxed);
        "ran"
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A server whose items all need `notes:write`.
fn scoped_server(runs: &Runs) -> Server {
    let (tool, fixed, template, prompt) = (runs.clone(), runs.clone(), runs.clone(), runs.clone());
    let (completes, suggests) = (runs.clone(), runs.clone());
    Server::new("notes")
        .tool(Tool::new("write").scopes(["notes:write", "notes:sync"]).handler(move || tool.run()))
        .resource(
            Resource::new("notes://secret", "secret").scopes(["notes:write"]).handler(move || fixed.run()),
        )
        .resource(
            Resource::new("notes://by/{id}", "one")
                .scopes(["notes:write"])
                .complete("id", move |_: CompletionRequest| vec![completes.run()])
                .handler(move |Id { id }: Id| format!("{} {id}", template.run())),
        )
        .prompt(
            Prompt::new("review")
                .scopes(["notes:write"])
                .complete("id", move |_: CompletionRequest| vec![suggests.run()])
                .handler(move |Id { id }: Id| format!("{} {id}", prompt.run())),
        )
        .resource(Resource::new("notes://open", "open").text("open"))
        .tool(Tool::new("list").handler(|| "none"))
        .on_subscriptions(|_, _| {})
        .dynamic()
}

pub(super) fn script() -> Script {
    Script::default()
        .accept("reader", "ada", "notes:read")
        .accept("writer", "ada", "notes:read notes:write notes:sync")
        .accept("nothing", "ada", "")
        .accept("admin", "root", "admin")
}

fn challenge(scopes: &str) -> String {
    format!("Bearer error=\"insufficient_scope\", resource_metadata=\"{METADATA}\", scope=\"{scopes}\"")
}

/// Requests of 2026-07-28 that need `notes:write`, with everything that their challenges have to name.
fn modern_requests() -> Vec<(Ask, &'static str)> {
    let write = "notes:read notes:write";
    let complete = |reference: Value| {
        Ask::modern(
            "completion/complete",
            json!({ "ref": reference, "argument": { "name": "id", "value": "" } }),
        )
    };
    let listen = |uri: &str| {
        let uris = json!(["notes://open", uri]);
        Ask::modern("subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": uris } }))
    };
    vec![
        (call("write"), "notes:read notes:write notes:sync"),
        (Ask::modern("resources/read", json!({ "uri": "notes://secret" })), write),
        (Ask::modern("resources/read", json!({ "uri": "notes://by/7" })), write),
        (Ask::modern("prompts/get", json!({ "name": "review", "arguments": { "id": "7" } })), write),
        (complete(json!({ "type": "ref/prompt", "name": "review" })), write),
        (complete(json!({ "type": "ref/resource", "uri": "notes://by/{id}" })), write),
        (listen("notes://secret"), write),
        (listen("notes://by/7"), write),
    ]
}

pub(super) async fn refused(endpoint: &HttpService, ask: Ask, scopes: &str) {
    let response = ask.send(endpoint).await;
    assert_eq!(response.status, 403);
    assert_eq!(response.headers["www-authenticate"], challenge(scopes).as_str());
    let error = response.json().await["error"].take();
    assert_eq!(error["data"]["requiredScopes"], json!(scopes.split(' ').collect::<Vec<_>>()), "{error}");
}

#[tokio::test]
async fn v62_a_token_without_the_scope_runs_no_handler() {
    // proves: AFLOW-05, AFLOW-30, AFLOW-31, AFLOW-32
    let runs = Runs::default();
    let endpoint = endpoint(scoped_server(&runs), protect(&script()));
    for (ask, scopes) in modern_requests() {
        refused(&endpoint, bearer(ask, "reader"), scopes).await;
    }
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = Session::open(&endpoint, revision, "reader").await;
        let requests = [
            ("tools/call", json!({ "name": "write" }), "notes:read notes:write notes:sync"),
            ("resources/read", json!({ "uri": "notes://secret" }), "notes:read notes:write"),
            ("resources/subscribe", json!({ "uri": "notes://by/7" }), "notes:read notes:write"),
            (
                "prompts/get",
                json!({ "name": "review", "arguments": { "id": "7" } }),
                "notes:read notes:write",
            ),
        ];
        for (method, params, scopes) in requests {
            refused(&endpoint, bearer(session.request(1, method, &params), "reader"), scopes).await;
        }
    }
    assert_eq!(runs.count(), 0);
    // The same requests with the scopes.
    for (ask, _) in modern_requests() {
        assert_eq!(bearer(ask, "writer").send(&endpoint).await.status, 200);
    }
    assert_eq!(runs.count(), 6);
}

#[tokio::test]
async fn v62_one_message_without_its_scope_refuses_the_batch() {
    let runs = Runs::default();
    let endpoint = endpoint(scoped_server(&runs), protect(&script()));
    let session = Session::open(&endpoint, "2025-03-26", "reader").await;
    let request = |id: u64, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let batch = json!([
        request(1, "tools/call", json!({ "name": "list" })),
        request(2, "resources/read", json!({ "uri": "notes://secret" })),
        request(3, "tools/call", json!({ "name": "write" })),
    ]);
    refused(&endpoint, bearer(session.post(&batch), "reader"), "notes:read notes:write notes:sync").await;
    assert_eq!(runs.count(), 0);
    let response = bearer(session.post(&batch), "writer").send(&endpoint).await.json().await;
    assert_eq!((response.as_array().unwrap().len(), runs.count()), (3, 2));
}

#[tokio::test]
async fn v62_items_that_are_added_later_count_too() {
    let runs = Runs::default();
    let server = plain_server().dynamic();
    let registry = server.registry();
    let endpoint = endpoint(server, protect(&script()));
    assert_eq!(bearer(call("later"), "reader").send(&endpoint).await.json().await["error"]["code"], -32602);
    let handler = runs.clone();
    registry.add_tool(Tool::new("later").scopes(["notes:write"]).handler(move || handler.run())).unwrap();
    refused(&endpoint, bearer(call("later"), "reader"), "notes:read notes:write").await;
    assert_eq!(runs.count(), 0);
    assert_eq!(text(&bearer(call("later"), "writer").send(&endpoint).await.json().await), "ran");
    // One that needs less now.
    registry.add_tool(Tool::new("later").handler(|| "free")).unwrap();
    assert_eq!(text(&bearer(call("later"), "reader").send(&endpoint).await.json().await), "free");
}

/// Sends every call to another tool.
struct Redirect;

impl Middleware for Redirect {
    fn call<'a>(&'a self, mut call: Call, notifier: Notifier, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let params = bowline_types::RawJson::parse(r#"{"name":"write"}"#).unwrap();
        call.params = bowline_proto::params::Params::parse(params).unwrap();
        next.run(call, notifier)
    }
}

#[tokio::test]
async fn v62_a_middleware_that_changes_the_tool_gains_nothing() {
    let runs = Runs::default();
    let endpoint = endpoint(scoped_server(&runs).layer(Redirect), protect(&script()));
    let response = bearer(call("list"), "reader").send(&endpoint).await;
    assert_eq!((response.status.as_u16(), runs.count()), (403, 0));
    assert_eq!(text(&bearer(call("list"), "writer").send(&endpoint).await.json().await), "ran");
}

/// Everything below `notes://all` is reported to its subscribers; `secret` and what is added later need `notes:write`.
fn nested_server() -> Server {
    Server::new("notes")
        .resource(Resource::new("notes://all", "all").text("all"))
        .resource(Resource::new("notes://all/visible", "visible").text("visible"))
        .resource(Resource::new("notes://all/secret", "secret").scopes(["notes:write"]).text("secret"))
        .on_subscriptions(|_, _| {})
        .dynamic()
}

/// Changes the resources of [`nested_server`], the visible one last.
fn change_all(registry: &Registry) {
    let later = Resource::new("notes://all/later", "later").scopes(["notes:write"]);
    registry.add_resource(later.text("later")).unwrap();
    for uri in ["notes://all/secret", "notes://all/later", "notes://all/visible"] {
        registry.resource_updated(uri);
    }
}

/// Reads the updates of a stream up to that of the visible resource, which comes last.
async fn updates(stream: &mut HttpReply) -> Vec<String> {
    let mut uris = Vec::new();
    while !uris.iter().any(|uri| uri == "notes://all/visible") {
        let message = stream.message().await.expect("the stream goes on").1;
        if message["method"] == "notifications/resources/updated" {
            uris.push(message["params"]["uri"].as_str().unwrap().to_owned());
        }
    }
    uris.sort();
    uris
}

#[tokio::test]
async fn v62_a_subscription_to_a_parent_reports_nothing_of_scoped_resources_below() {
    let all = ["notes://all/later", "notes://all/secret", "notes://all/visible"];
    for (token, expected) in [("reader", &all[2..]), ("writer", &all[..])] {
        let server = nested_server();
        let registry = server.registry();
        let endpoint = endpoint(server, protect(&script()));
        let filter = json!({ "notifications": { "resourceSubscriptions": ["notes://all"] } });
        let mut stream = bearer(Ask::modern("subscriptions/listen", filter), token).send(&endpoint).await;
        stream.message().await.unwrap();
        let session = Session::open(&endpoint, "2025-11-25", token).await;
        let subscribe = session.request(1, "resources/subscribe", &json!({ "uri": "notes://all" }));
        assert_eq!(bearer(subscribe, token).send(&endpoint).await.status, 200);
        let mut legacy = bearer(session.get(), token).send(&endpoint).await;
        change_all(&registry);
        assert_eq!(updates(&mut stream).await, expected, "2026-07-28, {token}");
        assert_eq!(updates(&mut legacy).await, expected, "2025-11-25, {token}");
    }
}

#[tokio::test]
async fn v62_a_legacy_subscription_has_the_scopes_of_the_last_token() {
    let server = nested_server();
    let registry = server.registry();
    let endpoint = endpoint(server, protect(&script()));
    let session = Session::open(&endpoint, "2025-11-25", "writer").await;
    let subscribe = session.request(1, "resources/subscribe", &json!({ "uri": "notes://all" }));
    assert_eq!(bearer(subscribe, "writer").send(&endpoint).await.status, 200);
    // The same user comes back with a token that has fewer scopes: with its stream, or with a request.
    let mut stream = bearer(session.get(), "reader").send(&endpoint).await;
    change_all(&registry);
    assert_eq!(updates(&mut stream).await, ["notes://all/visible"]);
    drop(stream);
    let mut stream = bearer(session.get(), "writer").send(&endpoint).await;
    let ping = session.request(2, "ping", &json!({}));
    assert_eq!(bearer(ping, "reader").send(&endpoint).await.status, 200);
    change_all(&registry);
    assert_eq!(updates(&mut stream).await, ["notes://all/visible"]);
}

#[tokio::test]
async fn a_token_without_the_base_scope_is_told_everything_at_once() {
    // proves: AFLOW-32, ADISC-29, SEC-41
    let endpoint = endpoint(scoped_server(&Runs::default()), protect(&script()));
    refused(&endpoint, bearer(call("write"), "nothing"), "notes:read notes:write notes:sync").await;
    for ask in [call("list"), call("unknown"), Ask::modern("tools/list", json!({}))] {
        refused(&endpoint, bearer(ask, "nothing"), "notes:read").await;
    }
    let session = Session::open(&endpoint, "2025-11-25", "reader").await;
    let response = bearer(session.get(), "nothing").send(&endpoint).await;
    assert_eq!(response.headers["www-authenticate"], challenge("notes:read").as_str());
}

#[tokio::test]
async fn what_nothing_is_called_gets_its_usual_error() {
    let endpoint = endpoint(scoped_server(&Runs::default()), protect(&script()));
    for (ask, code) in [
        (call("unknown"), -32602),
        (Ask::modern("resources/read", json!({ "uri": "notes://unknown" })), -32602),
        (Ask::modern("prompts/get", json!({ "name": "unknown" })), -32602),
    ] {
        let response = bearer(ask, "reader").send(&endpoint).await;
        assert_eq!(
            (response.status.as_u16(), response.json().await["error"]["code"].as_i64()),
            (200, Some(code))
        );
    }
}

#[tokio::test]
async fn a_scope_can_stand_for_others() {
    // proves: AFLOW-33
    let runs = Runs::default();
    let with = |protect: Protect| endpoint(scoped_server(&runs), protect);
    let all = ["notes:read", "notes:write"];
    let endpoint = with(protect(&script()).implies("admin", all).implies("notes:write", ["notes:sync"]));
    assert_eq!(text(&bearer(call("write"), "admin").send(&endpoint).await.json().await), "ran");
    // What a scope implies is not granted by what is implied.
    refused(&endpoint, bearer(call("write"), "reader"), "notes:read notes:write notes:sync").await;
    let endpoint = with(protect(&script()).implies("admin", ["notes:read"]));
    refused(&endpoint, bearer(call("write"), "admin"), "notes:read notes:write notes:sync").await;
}

fn requiring_server() -> Server {
    let delete = |ctx: Ctx| async move {
        ctx.require("notes:delete")?;
        Result::<_>::Ok("deleted")
    };
    let slow = |ctx: Ctx| async move {
        ctx.progress(1, 2);
        tokio::task::yield_now().await;
        ctx.require("notes:delete")?;
        Result::<_>::Ok("deleted")
    };
    let lenient = |ctx: Ctx| if ctx.require("notes:delete").is_ok() { "all" } else { "some" };
    Server::new("notes")
        .tool(Tool::new("delete").scopes(["notes:write"]).handler(delete))
        .tool(Tool::new("slow").handler(slow))
        .tool(Tool::new("lenient").handler(lenient))
        .tool(Tool::new("whoami").handler(|ctx: Ctx| Result::<_>::Ok(ctx.caller()?.subject().to_owned())))
}

#[tokio::test]
async fn a_handler_can_require_more() {
    // proves: AFLOW-30, AFLOW-32
    let script = script().accept("deleter", "ada", "notes:read notes:write notes:delete");
    let endpoint = endpoint(requiring_server(), protect(&script));
    let all = "notes:read notes:write notes:delete";
    refused(&endpoint, bearer(call("delete"), "writer"), all).await;
    assert_eq!(text(&bearer(call("delete"), "deleter").send(&endpoint).await.json().await), "deleted");
    let session = Session::open(&endpoint, "2025-11-25", "writer").await;
    let delete = session.request(1, "tools/call", &json!({ "name": "delete" }));
    refused(&endpoint, bearer(delete, "writer"), all).await;
    // A handler that goes on without the scope is not refused.
    assert_eq!(text(&bearer(call("lenient"), "writer").send(&endpoint).await.json().await), "some");
    // After the first event the status is sent.
    let params = json!({ "name": "slow", "_meta": { "progressToken": 1 } });
    let mut response = bearer(Ask::modern("tools/call", params), "writer").send(&endpoint).await;
    assert_eq!((response.status.as_u16(), response.is_stream()), (200, true));
    let progress = response.message().await.unwrap().1;
    assert_eq!(progress["method"], "notifications/progress");
    let error = response.message().await.unwrap().1["error"].take();
    assert_eq!(error["data"]["requiredScopes"], json!(["notes:delete"]), "{error}");
}

#[tokio::test]
async fn an_endpoint_that_verifies_nothing_grants_nothing() {
    let runs = Runs::default();
    let endpoint = HttpService::new(scoped_server(&runs)).unwrap();
    for ask in [call("write"), call("write").by("ada"), bearer(call("write"), "writer")] {
        let response = ask.send(&endpoint).await;
        assert_eq!(response.status, 403);
        let message = response.json().await["error"]["message"].take();
        assert!(message.as_str().unwrap().contains("this endpoint verifies no tokens"), "{message}");
    }
    assert_eq!(runs.count(), 0);
    assert_eq!(text(&call("list").send(&endpoint).await.json().await), "none");
    let endpoint = HttpService::new(requiring_server()).unwrap();
    assert_eq!(text(&call("lenient").send(&endpoint).await.json().await), "some");
    let response = call("whoami").send(&endpoint).await.json().await;
    assert_eq!(response["result"]["isError"], true, "{response}");
}
