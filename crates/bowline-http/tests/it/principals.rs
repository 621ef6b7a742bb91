//! Who sends a request: known from each request, not from an earlier one.

use crate::wire::{Ask, HttpReply};
use bowline_http::HttpService;
use bowline_server::{Ctx, Result, Server, Tool};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    sure: bool,
}

fn endpoint() -> HttpService {
    let whoami = Tool::new("whoami").handler(|ctx: Ctx| {
        let principal = ctx.client().principal.clone();
        principal.map_or_else(|| "nobody".to_owned(), |name| name.to_string())
    });
    let pay = Tool::new("pay").handler(|ctx: Ctx| async move {
        let Confirm { sure } = ctx.ask("Pay?").await?.accepted()?;
        Result::<_>::Ok(format!("{sure} by {}", ctx.client().principal.as_deref().unwrap_or("nobody")))
    });
    HttpService::new(Server::new("principals").tool(whoami).tool(pay)).unwrap()
}

/// Puts a principal into a request, or none.
fn by(ask: Ask, principal: Option<&str>) -> Ask {
    match principal {
        Some(principal) => ask.by(principal),
        None => ask,
    }
}

async fn text(response: HttpReply) -> Value {
    response.json().await["result"]["content"][0]["text"].take()
}

#[tokio::test]
async fn each_request_has_its_own_principal() {
    // proves: ELIF-40, ELIF-41
    // proves: SEC-43
    let endpoint = endpoint();
    let whoami = || Ask::modern("tools/call", json!({ "name": "whoami" }));
    for (principal, name) in [(Some("ada"), "ada"), (None, "nobody"), (Some("bob"), "bob"), (None, "nobody")]
    {
        assert_eq!(text(by(whoami(), principal).send(&endpoint).await).await, name);
    }
    // What a client says of its user is not believed.
    let claims = json!({ "name": "whoami", "_meta": { "principal": "ada", "user": "ada",
        "io.modelcontextprotocol/clientInfo": { "name": "ada", "version": "1" } } });
    let claims =
        Ask::modern("tools/call", claims).header("x-forwarded-user", "ada").header("mcp-user", "ada");
    assert_eq!(text(by(claims, Some("bob")).send(&endpoint).await).await, "bob");
}

#[tokio::test]
async fn a_session_id_does_not_authenticate() {
    // proves: ELIF-38
    // proves: SEC-23, SEC-25
    let endpoint = endpoint();
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "c", "version": "1" },
    } });
    let opened = Ask::post(&hello).by("ada").send(&endpoint).await;
    let id = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let within = |ask: Ask| ask.header("mcp-session-id", &id).header("mcp-protocol-version", "2025-11-25");
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(within(Ask::post(&initialized)).by("ada").send(&endpoint).await.status, StatusCode::ACCEPTED);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "whoami" } });
    for thief in [None, Some("bob")] {
        for ask in [
            Ask::post(&call),
            // An answer to a question of the server.
            Ask::post(&json!({ "jsonrpc": "2.0", "id": 1, "result": { "action": "accept", "content": {} } })),
            Ask::new(Method::GET).header("accept", "text/event-stream"),
            Ask::new(Method::DELETE),
        ] {
            let response = by(within(ask), thief).send(&endpoint).await;
            // As if there were no such session.
            assert_eq!(response.status, StatusCode::NOT_FOUND, "{thief:?}");
        }
    }
    let mine = within(Ask::post(&call)).by("ada").send(&endpoint).await;
    assert_eq!(text(mine).await, "ada");
    assert_eq!(endpoint.sessions(), 1);
}

#[tokio::test]
async fn a_state_does_not_authenticate() {
    // proves: SEC-26, SEC-27
    let endpoint = endpoint();
    let ask = Ask::modern("tools/call", json!({ "name": "pay" })).by("ada").send(&endpoint).await;
    let state = ask.json().await["result"]["requestState"].take();
    assert!(state.is_string(), "{state}");
    let retry = || {
        let responses = json!({ "q0": { "action": "accept", "content": { "sure": true } } });
        let params = json!({ "name": "pay", "requestState": state, "inputResponses": responses });
        Ask::modern("tools/call", params)
    };
    for thief in [None, Some("bob")] {
        let response = by(retry(), thief).send(&endpoint).await.json().await;
        assert_eq!(response["error"]["code"], -32602, "{response}");
    }
    assert_eq!(text(retry().by("ada").send(&endpoint).await).await, "true by ada");
}
