//! Tasks: the caller of a slow tool gets an id at once and the result later. The handler is an ordinary function.
//!
//! Try it: `cargo build -p bowline-examples`, then `target/debug/client tasks bake '{"loaves": 2}'`. A client without tasks waits.

use bowline::prelude::*;
use std::time::Duration;

#[data]
struct Slice {
    /// Slice the bread?
    slice: bool,
}

/// Bake bread.
#[tool(task, idempotent)]
async fn bake(ctx: Ctx, loaves: u32) -> Result<String> {
    // A step: recorded once, however often the handler runs.
    let order: String = ctx.once("order", async { Ok("order 7".to_owned()) }).await?;
    for loaf in 1..=loaves {
        ctx.sleep(Duration::from_millis(20)).await?;
        ctx.progress_with(loaf, loaves, format!("baked loaf {loaf}"));
    }
    Ok(format!("{order}: {loaves} loaves"))
}

/// Sell bread, sliced if the customer likes it.
#[tool(task = Task::later())]
async fn sell(ctx: Ctx) -> Result<&'static str> {
    let Slice { slice } = ctx.ask("Slice it?").await?.accepted()?;
    // From here on in the background, for callers that support tasks.
    ctx.task().await?;
    Ok(if slice { "sliced bread" } else { "bread" })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    Server::new("bakery").tool(bake::tool()).tool(sell::tool()).serve_stdio().await
}
