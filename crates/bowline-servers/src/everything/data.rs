//! Tools with structured data, caller information and long-running calls.

use bowline::{prelude::*, types::meta::key};
use std::time::Duration;
use tokio::time::sleep;

pub(super) fn add(server: Server) -> Server {
    server.tool(echo::tool()).tool(sum::tool()).tool(caller::tool()).tool(wait::tool())
}

/// Return the message.
#[tool(title = "Echo", read_only, idempotent, open_world = false)]
fn echo(
    /// The message to return.
    message: String,
) -> String {
    message
}

#[data]
struct Sum {
    /// How many numbers were added.
    count: usize,
    /// The sum.
    sum: f64,
}

/// Add numbers and return the sum as structured content.
#[tool(title = "Sum", read_only, idempotent, open_world = false)]
fn sum(
    /// The numbers to add.
    #[schemars(length(min = 1, max = 1000))]
    numbers: Vec<f64>,
) -> Json<Sum> {
    Json(Sum { count: numbers.len(), sum: numbers.iter().sum() })
}

#[data]
struct Caller {
    /// The protocol revision.
    revision: String,
    /// The name of the client.
    name: Option<String>,
    /// Whether the client supports form elicitation.
    can_fill_in_forms: bool,
    /// Whether the client supports URL elicitation.
    can_visit_pages: bool,
    /// Whether the client supports sampling.
    can_sample: bool,
    /// The trace context, if the caller sent one.
    trace: Option<String>,
}

/// Show the caller and its capabilities.
#[tool(title = "Caller", read_only, open_world = false)]
fn caller(ctx: Ctx) -> Json<Caller> {
    let client = ctx.client();
    let capabilities = client.capabilities();
    Json(Caller {
        revision: client.revision.to_string(),
        name: client.info().map(|info| info.name.clone()),
        can_fill_in_forms: capabilities.has_form_elicitation(),
        can_visit_pages: capabilities.has_url_elicitation(),
        can_sample: capabilities.sampling.is_some(),
        trace: ctx.meta().decode(key::TRACEPARENT).ok().flatten(),
    })
}

/// Wait for some seconds and report progress. Can be cancelled.
#[tool(title = "Wait", read_only, open_world = false)]
async fn wait(
    ctx: Ctx,
    /// How long to wait, in seconds.
    #[schemars(range(min = 1, max = 3600))]
    seconds: u32,
) -> String {
    for passed in 1..=seconds {
        sleep(Duration::from_secs(1)).await;
        ctx.progress_with(passed, seconds, format!("{passed} s elapsed"));
    }
    format!("waited {seconds} s")
}
