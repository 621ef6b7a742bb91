//! `served stdio` or `served ADDRESS`: a server as its author would start it, for tests that need a process of their own.

use bowline::prelude::*;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds since the epoch.
fn clock() -> String {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos()).to_string()
}

/// Answer at once.
#[tool]
fn now() -> &'static str {
    "now"
}

/// Panic, at once or later.
#[tool]
async fn panic(later: bool) -> String {
    if later {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("on purpose")
}

/// Say nothing for a while, then answer with the word that was given.
#[tool]
async fn quiet(milliseconds: u64, word: String) -> String {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    word
}

/// Report the time, and answer a while later.
#[tool]
async fn stamp(ctx: Ctx, milliseconds: u64) -> &'static str {
    ctx.progress_with(1.0, 2.0, clock());
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    ctx.progress_with(2.0, 2.0, "the second half");
    "stamped"
}

/// Report, send the client away, and answer when it has come back.
#[tool]
async fn leave(ctx: Ctx, milliseconds: u64) -> &'static str {
    ctx.progress(1.0, 2.0);
    ctx.close_stream();
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    "found again"
}

/// Answer with as many letters.
#[tool]
fn letters(count: usize) -> String {
    "x".repeat(count)
}

/// Something that changes when `change` says so.
#[resource("watched://{name}")]
fn watched(name: String) -> String {
    name
}

/// Say that a resource has changed; the answer is when.
#[tool]
fn change(ctx: Ctx, uri: String) -> String {
    let time = clock();
    ctx.resource_updated(uri);
    time
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    let server = Server::new("served")
        .tool(now::tool())
        .tool(panic::tool())
        .tool(quiet::tool())
        .tool(stamp::tool())
        .tool(leave::tool())
        .tool(letters::tool())
        .tool(change::tool())
        .resource(watched::resource());
    match std::env::args().nth(1).as_deref() {
        Some("stdio") => server.serve_stdio().await,
        Some(address) => server.serve_http(address).await,
        None => Err(bowline::BuildError::new("expected `stdio` or an address to serve on").into()),
    }
}
