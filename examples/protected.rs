//! A server that accepts only requests with an access token, and a tool that needs a scope.
//!
//! Try it: `cargo run -p bowline-examples --bin protected`. It serves, and calls itself with different tokens.

#![expect(clippy::print_stdout, reason = "the program shows what it does")]

use bowline::auth::{Caller, Refusal, Scopes, Verify, verify::Expected, verify::Verification};
use bowline::http::{HttpOptions, HttpService, Protect, http};
use bowline::prelude::*;
use std::sync::Arc;

/// Write a note.
#[tool(scopes = "notes:write")]
fn write(ctx: Ctx, text: String) -> Result<String> {
    Ok(format!("noted for {}: {text}", ctx.caller()?.subject()))
}

/// Knows two tokens. A real verifier checks a signature.
#[derive(Debug)]
struct Tokens;

impl Verify for Tokens {
    fn verify<'a>(&'a self, token: &'a str, _expected: Expected<'a>) -> Verification<'a> {
        let caller = |subject, scopes| {
            Ok(Arc::new(Caller::new("https://login.example.com", subject).with_scopes(Scopes::parse(scopes))))
        };
        match token {
            "reader" => caller("ann", "notes:read"),
            "writer" => caller("bo", "notes:read notes:write"),
            _ => Err(Refusal::invalid("unknown token")),
        }
        .into()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> bowline::Result {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let protect = Protect::with(Tokens, ["https://login.example.com"]).scopes(["notes:read"]);
    let options = HttpOptions::new().protect(protect).listening_on(address);
    let service = HttpService::with_options(Server::new("notes").tool(write::tool()).build()?, options);
    let serving = tokio::spawn(async move { service.serve(listener, std::future::pending()).await });
    for token in ["writer", "reader", "stranger"] {
        let target = http(format!("http://{address}/mcp")).header("Authorization", format!("Bearer {token}"));
        let called = async { Client::connect(target).await?.call("write", json!({ "text": "milk" })).await };
        match called.await {
            Ok(result) => println!("{token}: {}", result.text()),
            Err(error) => println!("{token}: {error}"),
        }
    }
    serving.abort();
    Ok(())
}
