//! Tools that take and return data, look at their caller, and take their time.

use bowline::{prelude::*, types::meta::key};
use std::time::Duration;
use tokio::time::sleep;

pub(super) fn add(server: Server) -> Server {
    server.tool(echo).tool(sum).tool(caller).tool(wait)
}

/// Say the same again.
#[tool(title = "Echo", read_only, idempotent, open_world = false)]
fn echo(
    /// What to say.
    message: String,
) -> String {
    message
}

#[data]
struct Sum {
    /// How many numbers there were.
    count: usize,
    /// What they add up to.
    sum: f64,
}

/// Add numbers, and return the sum as data with a schema.
#[tool(title = "Sum", read_only, idempotent, open_world = false)]
fn sum(
    /// The numbers.
    #[schemars(length(min = 1, max = 1000))]
    numbers: Vec<f64>,
) -> Json<Sum> {
    Json(Sum { count: numbers.len(), sum: numbers.iter().sum() })
}

#[data]
struct Caller {
    /// The revision of the protocol it speaks.
    revision: String,
    /// The name it gave itself.
    name: Option<String>,
    /// Whether its user can be asked to fill in a form.
    can_fill_in_forms: bool,
    /// Whether its user can be sent to a page.
    can_visit_pages: bool,
    /// Whether its model can be borrowed.
    can_sample: bool,
    /// Where the call belongs in a trace, if the caller said so.
    trace: Option<String>,
}

/// Say who calls, and what the caller can be asked.
#[tool(title = "Who calls", read_only, open_world = false)]
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

/// Wait for some seconds and tell how many have passed. A call that is given up ends at once.
#[tool(title = "Wait", read_only, open_world = false)]
async fn wait(
    ctx: Ctx,
    /// How long, in seconds.
    #[schemars(range(min = 1, max = 3600))]
    seconds: u32,
) -> String {
    for passed in 1..=seconds {
        sleep(Duration::from_secs(1)).await;
        ctx.progress_with(passed.into(), f64::from(seconds), format!("{passed} s have passed"));
    }
    format!("waited for {seconds} s")
}
