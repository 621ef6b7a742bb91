//! Asking the user in the middle of a call: the same source for every revision that can ask, and an error that says
//! why for those that cannot.
//!
//! Try it: `cargo build -p bowline-examples`, then `target/debug/client asking delete_project '{"name": "demo"}'`, and
//! answer `{"sure": true}`.

use bowline::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

#[data]
struct Confirm {
    /// Delete it permanently?
    sure: bool,
}

static TICKETS: AtomicU32 = AtomicU32::new(0);

/// Delete a project after asking its owner.
#[tool(destructive)]
async fn delete_project(ctx: Ctx, name: String) -> Result<String> {
    // When the answer is there, the function runs again from its start. What must happen only once says so.
    let ticket = ctx.once("ticket", async { Ok(TICKETS.fetch_add(1, Ordering::Relaxed) + 1) }).await?;
    Ok(match ctx.ask::<Confirm>(format!("Delete {name}?")).await? {
        Answer::Accept(Confirm { sure: true }) => {
            format!("ticket {ticket}: deleted {name}")
        }
        Answer::Accept(_) | Answer::Decline => format!("ticket {ticket}: kept {name}"),
        Answer::Cancel => format!("ticket {ticket}: nobody answered"),
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    Server::new("asking").tool(delete_project::tool()).serve_stdio().await
}
