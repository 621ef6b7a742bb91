//! `bowline ping`: whether a server answers, and how fast.

use crate::{context::Context, failure::Failure, target::TargetArguments};
use clap::Args;
use serde_json::json;
use std::time::Instant;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: TargetArguments,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let client = arguments.target.target(context)?.connect(context, context.client()).await?;
    let start = Instant::now();
    let answered = client.ping().await;
    let took = start.elapsed();
    let revision = client.revision();
    client.close().await;
    answered?;
    let milliseconds = took.as_secs_f64() * 1000.0;
    if context.json() {
        context.screen.json(&json!({ "revision": revision, "milliseconds": milliseconds }))
    } else {
        context.screen.line(&format!("answered after {milliseconds:.2} ms, in revision {revision}"))
    }
}
