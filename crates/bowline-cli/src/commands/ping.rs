//! `bowline ping`: checks whether a server responds, and how fast.

use crate::{context::Context, failure::Failure, session::Session, target::TargetArguments};
use clap::Args;
use serde_json::json;
use std::time::Instant;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: TargetArguments,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    Session::with(arguments.target.target(context)?, context, async |session| ping(session).await).await
}

pub(crate) async fn ping(session: &Session<'_>) -> Result<(), Failure> {
    let start = Instant::now();
    session.client.ping().await?;
    let milliseconds = start.elapsed().as_secs_f64() * 1000.0;
    let (screen, revision) = (session.context.screen, session.client.revision());
    if session.context.json() {
        screen.json(&json!({ "revision": revision, "milliseconds": milliseconds }))
    } else {
        screen.line(&format!("response after {milliseconds:.2} ms, revision {revision}"))
    }
}
