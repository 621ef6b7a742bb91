//! Who sent a request: the principal of its token, determined for each request.

use super::{ISSUER, Script, Session, bearer, call, caller, endpoint, protect, text};
use crate::wire::Ask;
use bowline_http::HttpService;
use bowline_server::{Ctx, Result, Server, Tool};
use http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    sure: bool,
}

/// Who the handler sees: subject, client, scopes, a claim.
#[expect(clippy::needless_pass_by_value, reason = "a handler takes the context by value")]
fn whoami(ctx: Ctx) -> Result<String> {
    let caller = ctx.caller()?;
    let principal = ctx.client().principal.as_deref().unwrap_or("none");
    assert_eq!(principal, &**caller.principal());
    let tenant = caller.claim::<u32>("tenant").map_or_else(String::new, |tenant| format!(" of {tenant}"));
    Ok(format!("{}{tenant} with {}", caller.subject(), caller.scopes()))
}

fn server() -> Server {
    let pay = |ctx: Ctx| async move {
        let Confirm { sure } = ctx.ask("Pay?").await?.accepted()?;
        Result::<_>::Ok(format!("{sure} by {}", ctx.caller()?.subject()))
    };
    let guarded = |name: &str| Tool::new(name).guard(|client| client.principal.is_some()).handler(|| "hello");
    Server::new("who")
        .page_size(1)
        .tool(Tool::new("whoami").handler(whoami))
        .tool(Tool::new("pay").handler(pay))
        .tool(guarded("hello"))
        .tool(guarded("hi"))
}

fn script() -> Script {
    let claims = bowline_types::RawJson::parse(r#"{"tenant":7}"#).unwrap();
    Script::default()
        .add("ada", Ok(Arc::new(caller("ada", "notes:read").with_claims(claims))))
        .accept("ada-again", "ada", "notes:read notes:write")
        .accept("bob", "bob", "notes:read")
        // The same subject with another client is another principal.
        .add("ada-elsewhere", Ok(Arc::new(caller("ada", "notes:read").with_client_id("other"))))
}

fn service() -> HttpService {
    endpoint(server(), protect(&script()))
}

const THIEVES: [&str; 2] = ["bob", "ada-elsewhere"];

#[tokio::test]
async fn v36_each_request_has_the_caller_of_its_own_token() {
    let endpoint = service();
    let session = Session::open(&endpoint, "2025-11-25", "ada").await;
    let whoami = || session.request(1, "tools/call", &json!({ "name": "whoami" }));
    for (token, expected) in [
        ("ada", "ada of 7 with notes:read"),
        ("ada-again", "ada with notes:read notes:write"),
        ("ada", "ada of 7 with notes:read"),
    ] {
        assert_eq!(text(&bearer(whoami(), token).send(&endpoint).await.json().await), expected);
        assert_eq!(text(&bearer(call("whoami"), token).send(&endpoint).await.json().await), expected);
    }
    assert_eq!(
        text(&bearer(call("whoami"), "bob").send(&endpoint).await.json().await),
        "bob with notes:read"
    );
}

#[tokio::test]
async fn v30_a_session_belongs_to_its_principal() {
    // proves: SEC-23, SEC-25
    let endpoint = service();
    let session = Session::open(&endpoint, "2025-11-25", "ada").await;
    for thief in THIEVES {
        for ask in [
            session.request(1, "tools/call", &json!({ "name": "whoami" })),
            session
                .post(&json!({ "jsonrpc": "2.0", "id": 1, "result": { "action": "accept", "content": {} } })),
            session.get(),
            session.get().header("last-event-id", "0-0"),
            session.with(Ask::new(Method::DELETE)),
        ] {
            assert_eq!(bearer(ask, thief).send(&endpoint).await.status, 404, "{thief}");
        }
    }
    assert_eq!(endpoint.sessions(), 1);
    // A new token of the same principal goes on with it.
    assert_eq!(bearer(session.get(), "ada-again").send(&endpoint).await.status, 200);
}

#[tokio::test]
async fn v30_a_sealed_state_belongs_to_its_principal() {
    // proves: SEC-26, SEC-27
    let endpoint = service();
    let asked = bearer(call("pay"), "ada").send(&endpoint).await.json().await;
    let state = &asked["result"]["requestState"];
    assert!(state.is_string(), "{asked}");
    let retry = || {
        let responses = json!({ "q0": { "action": "accept", "content": { "sure": true } } });
        Ask::modern(
            "tools/call",
            json!({ "name": "pay", "requestState": state, "inputResponses": responses }),
        )
    };
    for thief in THIEVES {
        let response = bearer(retry(), thief).send(&endpoint).await.json().await;
        assert_eq!(response["error"]["code"], -32602, "{response}");
    }
    assert_eq!(text(&bearer(retry(), "ada-again").send(&endpoint).await.json().await), "true by ada");
}

#[tokio::test]
async fn v30_a_cursor_of_a_list_that_depends_on_the_caller_belongs_to_its_principal() {
    let endpoint = service();
    let list = |cursor: Option<&serde_json::Value>| {
        Ask::modern("tools/list", cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor })))
    };
    let first = bearer(list(None), "ada").send(&endpoint).await.json().await;
    let cursor = &first["result"]["nextCursor"];
    assert!(cursor.is_string(), "{first}");
    for thief in THIEVES {
        let response = bearer(list(Some(cursor)), thief).send(&endpoint).await.json().await;
        assert_eq!(response["error"]["code"], -32602, "{response}");
    }
    let second = bearer(list(Some(cursor)), "ada-again").send(&endpoint).await.json().await;
    assert_eq!(second["result"]["tools"][0]["name"], "pay");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v36_interleaved_calls_keep_their_identity() {
    const CALLS: usize = 10_000;
    let endpoint = service();
    let sessions = [
        Arc::new(Session::open(&endpoint, "2025-11-25", "ada-again").await),
        Arc::new(Session::open(&endpoint, "2025-11-25", "bob").await),
    ];
    let expected = ["ada with notes:read notes:write", "bob with notes:read"];
    let worker = |number: usize| {
        let (endpoint, sessions) = (endpoint.clone(), sessions.clone());
        async move {
            for round in 0..CALLS / 8 {
                let who = (number + round) % 2;
                let token = ["ada-again", "bob"][who];
                let ask = if round % 4 < 2 {
                    call("whoami")
                } else {
                    sessions[who].request(
                        1_000_000 * number as u64 + round as u64,
                        "tools/call",
                        &json!({ "name": "whoami" }),
                    )
                };
                let response = bearer(ask, token).send(&endpoint).await.json().await;
                assert_eq!(text(&response), expected[who], "{response}");
                tokio::task::yield_now().await;
            }
        }
    };
    let workers: Vec<_> = (0..8).map(|number| tokio::spawn(worker(number))).collect();
    for worker in workers {
        worker.await.unwrap();
    }
}

#[tokio::test]
async fn a_layer_cannot_leave_an_old_caller_behind() {
    // The caller that something else put into the request does not count.
    let endpoint = service();
    let forged = Arc::new(bowline_auth::Caller::new(ISSUER, "root"));
    let ask = || call("whoami").extension(Arc::clone(&forged)).by("root");
    assert_eq!(ask().send(&endpoint).await.status, 401);
    assert_eq!(text(&bearer(ask(), "bob").send(&endpoint).await.json().await), "bob with notes:read");
}
