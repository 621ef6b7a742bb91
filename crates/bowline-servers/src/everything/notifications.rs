//! Tools that send notifications: log messages, progress, and a stream that is closed and resumed.

use bowline::prelude::*;
use std::time::Duration;
use tokio::time::sleep;

pub(super) fn add(server: Server) -> Server {
    server
        .tool(test_tool_with_logging::tool())
        .tool(test_tool_with_progress::tool())
        .tool(test_logging_tool::tool())
        .tool(test_streaming_elicitation::tool())
        .tool(test_reconnection::tool())
}

const STEP: Duration = Duration::from_millis(50);

/// Log three messages.
#[tool(read_only)]
async fn test_tool_with_logging(ctx: Ctx) -> &'static str {
    ctx.log(LoggingLevel::Info, "Tool execution started");
    sleep(STEP).await;
    ctx.log(LoggingLevel::Info, "Tool processing data");
    sleep(STEP).await;
    ctx.log(LoggingLevel::Info, "Tool execution completed");
    "logged"
}

/// Report progress three times.
#[tool(read_only)]
async fn test_tool_with_progress(ctx: Ctx) -> &'static str {
    for done in [0.0, 50.0, 100.0] {
        ctx.progress(done, 100.0);
        sleep(STEP).await;
    }
    "done"
}

/// Log a message. Only callers that enabled logging receive it.
#[tool(read_only)]
fn test_logging_tool(ctx: Ctx) -> &'static str {
    ctx.log(LoggingLevel::Info, "logged for clients that enabled logging");
    "logged"
}

/// Work in steps without sending a request to the client.
#[tool(read_only)]
async fn test_streaming_elicitation(ctx: Ctx) -> &'static str {
    ctx.progress(1.0, 2.0);
    sleep(STEP).await;
    ctx.progress(2.0, 2.0);
    "streamed"
}

/// Close the stream and return the result when the client reconnects.
#[tool(read_only)]
async fn test_reconnection(ctx: Ctx) -> &'static str {
    ctx.close_stream();
    sleep(2 * STEP).await;
    "Reconnection test completed"
}
