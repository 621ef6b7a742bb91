//! Progress and cancellation: tell how far the work has come, and stop when nobody waits for it any more.
//!
//! Try it: `cargo build -p bowline-examples`, then `target/debug/client progress copy '{"files": 3}'`.

use bowline::prelude::*;
use std::time::Duration;

/// Copy some files.
#[tool]
async fn copy(ctx: Ctx, files: u32) -> String {
    for file in 1..=files {
        // A call that is given up is dropped where it waits, with all it holds.
        tokio::time::sleep(Duration::from_millis(20)).await;
        ctx.progress_with(file, files, format!("copied file {file}"));
    }
    format!("copied {files} files")
}

/// Count to a number.
#[tool(blocking)]
fn count(ctx: Ctx, to: u32) -> String {
    for number in 1..=to {
        // Code that never waits has a thread of its own, and asks whether to go on.
        if ctx.is_cancelled() {
            return format!("gave up at {number}");
        }
        if number % 1000 == 0 {
            ctx.progress(number, to);
        }
    }
    format!("counted to {to}")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    Server::new("progress").tool(copy::tool()).tool(count::tool()).serve_stdio().await
}
