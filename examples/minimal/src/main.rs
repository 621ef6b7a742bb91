//! A stdio server with one tool and nothing else.
use bowline::prelude::*;

/// Add two numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    Server::new("demo").tool(add::tool()).serve_stdio().await
}
