//! The endpoint as a resource server: tokens, challenges, metadata, scopes, identity.

mod allocations;
mod challenges;
mod dpop;
mod identity;
mod introspection;
mod jwt;
mod metadata;
mod scopes;
mod streams;
mod tasks;
mod verdicts;

use crate::wire::Ask;
use bowline_auth::{
    Caller, Refusal, Scopes, Verdict, Verify,
    verify::{Expected, Verification},
};
use bowline_http::{HttpOptions, HttpService, Protect};
use bowline_server::{Resource, Server, Tool};
use serde_json::{Value, json};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

pub(crate) const ISSUER: &str = "https://login.example.com";
pub(crate) const RESOURCE: &str = "https://notes.example.com/mcp";
pub(crate) const METADATA: &str = "https://notes.example.com/.well-known/oauth-protected-resource/mcp";

/// The time of all tests, in seconds since the Unix epoch.
pub(crate) const NOW: u64 = 1_800_000_000;

/// A verifier that follows a script: it accepts the tokens that it was given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    verdicts: Mutex<Vec<(String, Verdict)>>,
    /// How many tokens were verified.
    asked: AtomicUsize,
    generation: AtomicU64,
    /// The audiences that the endpoint expects.
    audiences: Mutex<Vec<String>>,
}

impl Script {
    /// Accepts `token` as `subject` with these scopes.
    pub(crate) fn accept(self, token: &str, subject: &str, scopes: &str) -> Self {
        self.add(token, Ok(Arc::new(caller(subject, scopes))))
    }

    pub(crate) fn add(self, token: &str, verdict: Verdict) -> Self {
        self.0.verdicts.lock().unwrap().push((token.to_owned(), verdict));
        self
    }

    pub(crate) fn asked(&self) -> usize {
        self.0.asked.load(Ordering::Relaxed)
    }

    pub(crate) fn change_keys(&self) {
        self.0.generation.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn audiences(&self) -> Vec<String> {
        self.0.audiences.lock().unwrap().clone()
    }
}

impl Verify for Script {
    fn verify<'a>(&'a self, token: &'a str, expected: Expected<'a>) -> Verification<'a> {
        self.0.asked.fetch_add(1, Ordering::Relaxed);
        *self.0.audiences.lock().unwrap() = expected.audiences.to_vec();
        assert_eq!(expected.now / 1000, NOW / 1000);
        let verdicts = self.0.verdicts.lock().unwrap();
        let known = verdicts.iter().find(|(known, _)| known == token).map(|(_, verdict)| verdict.clone());
        // As a verifier that has to fetch keys first.
        Verification::Pending(Box::pin(async move {
            tokio::task::yield_now().await;
            known.unwrap_or_else(|| Err(Refusal::invalid("unknown token")))
        }))
    }

    fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::Relaxed)
    }
}

pub(crate) fn caller(subject: &str, scopes: &str) -> Caller {
    Caller::new(ISSUER, subject)
        .with_client_id("app")
        .with_scopes(Scopes::parse(scopes))
        .with_expiry(NOW + 3600)
}

pub(crate) fn protect(script: &Script) -> Protect {
    Protect::with(script.clone(), [ISSUER]).resource(RESOURCE).scopes(["notes:read"]).clock(|| NOW)
}

pub(crate) fn endpoint(server: Server, protect: Protect) -> HttpService {
    HttpService::with_options(server.build().unwrap(), HttpOptions::new().protect(protect))
}

/// A server without scopes of its own.
pub(crate) fn plain_server() -> Server {
    Server::new("notes")
        .tool(Tool::new("list").handler(|| "none"))
        .resource(Resource::new("notes://all", "all").text("none"))
}

pub(crate) fn call(tool: &str) -> Ask {
    Ask::modern("tools/call", json!({ "name": tool }))
}

pub(crate) fn bearer(ask: Ask, token: &str) -> Ask {
    ask.header("authorization", &format!("Bearer {token}"))
}

pub(crate) fn text(result: &Value) -> &str {
    result["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

/// A session of a legacy revision, opened with `token`.
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) revision: &'static str,
}

impl Session {
    pub(crate) async fn open(endpoint: &HttpService, revision: &'static str, token: &str) -> Self {
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": revision,
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "c", "version": "1" },
        } });
        let opened = bearer(Ask::post(&hello), token).send(endpoint).await;
        let id = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let session = Self { id, revision };
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(bearer(session.post(&initialized), token).send(endpoint).await.status, 202);
        session
    }

    pub(crate) fn with(&self, ask: Ask) -> Ask {
        let ask = ask.header("mcp-session-id", &self.id);
        if self.revision >= "2025-06-18" { ask.header("mcp-protocol-version", self.revision) } else { ask }
    }

    pub(crate) fn post(&self, body: &Value) -> Ask {
        self.with(Ask::post(body))
    }

    pub(crate) fn request(&self, id: u64, method: &str, params: &Value) -> Ask {
        self.post(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }

    pub(crate) fn get(&self) -> Ask {
        self.with(Ask::new(http::Method::GET).header("accept", "text/event-stream"))
    }
}
