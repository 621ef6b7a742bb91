//! Middleware: something to do around every call, whatever it is. Here: refuse, sign, and limit.
//!
//! Try it: `cargo build -p bowline-examples`, then `target/debug/client middleware greet '{"name": "Ann"}'`, and then
//! `target/debug/client middleware reset`.

use bowline::prelude::*;
use bowline::server::middleware::{RateLimit, Timeout};
use bowline::server::{BoxFuture, Call, Middleware, Next, Notifier, Outcome, Reply};
use bowline::types::{Method, RpcError};
use std::time::Duration;

/// Greet somebody.
#[tool]
fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

/// Forget everybody.
#[tool(destructive)]
fn reset() {}

/// Lets no call of one tool pass.
struct Forbid(&'static str);

impl Middleware for Forbid {
    fn call<'a>(&'a self, call: Call, notifier: Notifier, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if call.method == Method::CallTool && call.params.name().is_ok_and(|name| name == self.0) {
            return Box::pin(async { Outcome::Failed(RpcError::invalid_params("not today")) });
        }
        next.run(call, notifier)
    }
}

/// Adds a line to what every tool says.
struct Signature(&'static str);

impl Middleware for Signature {
    fn call<'a>(&'a self, call: Call, notifier: Notifier, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let mut outcome = next.run(call, notifier).await;
            if let Outcome::Complete(Reply::Tool(result)) = &mut outcome {
                result.content.push(Content::text(self.0));
            }
            outcome
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    let server = Server::new("middleware").tool(greet::tool()).tool(reset::tool());
    // The first one is the outermost.
    let server =
        server.layer(RateLimit::new(100, Duration::from_secs(1))).layer(Timeout(Duration::from_secs(5)));
    server.layer(Forbid("reset")).layer(Signature("Yours, the server")).serve_stdio().await
}
