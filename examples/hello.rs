//! The smallest server: an ordinary function, offered as a tool over standard input and output.
//!
//! Try it: `cargo build -p bowline-examples`, then `target/debug/client hello add '{"a": 1, "b": 2}'`.

use bowline::prelude::*;

/// Add two numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    Server::new("hello").tool(add::tool()).serve_stdio().await
}
