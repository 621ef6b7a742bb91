//! Our client, which takes one server through everything the contract names: see the table in `interop/README.md`.
//!
//! Usage: `interop-client --revision REVISION program arguments…`. Prints one line of JSON per feature.

#![expect(clippy::print_stdout, reason = "what was found is printed")]

mod features;

use bowline::{
    client::{Answer, Command, Notification},
    prelude::*,
    types::{CreateMessageResult, Root},
};
use features::{Demo, FEATURES};
use std::time::Duration;
use tokio::{sync::mpsc, time::timeout};

/// How long one feature may take before it counts as broken.
const PATIENCE: Duration = Duration::from_secs(10);

async fn connect(revision: Revision, program: Command) -> bowline::Result<Demo> {
    let (log, logged) = mpsc::channel(16);
    let (update, updated) = mpsc::channel(16);
    let client = Client::builder()
        .name("interop")
        .revisions([revision])
        .log_level(LoggingLevel::Info)
        .roots([Root::new("file:///tmp")])
        .on_ask(|_| async { Answer::accept(json!({ "name": "Ada" })) })
        .on_sample(|_| async {
            Ok(CreateMessageResult::new(Role::Assistant, Content::text("42"), "deep-thought"))
        })
        // A full channel means that nobody waits for what it holds.
        .on_log(move |message| _ = log.try_send(message.data))
        .on_notification(move |notification| {
            if let Notification::ResourceUpdated(params) = notification {
                _ = update.try_send(params.uri);
            }
        })
        .connect(program)
        .await?;
    Ok(Demo { client, logged, updated })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> bowline::Result {
    let mut words = std::env::args().skip(1);
    let (Some("--revision"), Some(revision), Some(program)) =
        (words.next().as_deref(), words.next(), words.next())
    else {
        return Err(Error::internal("usage: interop-client --revision REVISION program arguments…"));
    };
    let revision: Revision = revision.parse()?;
    let mut demo = connect(revision, Command::new(program).args(words)).await?;
    println!("{}", json!({ "revision": demo.client.revision().as_str() }));
    for (feature, check) in FEATURES {
        let found = timeout(PATIENCE, check(&mut demo)).await;
        let found = found.unwrap_or_else(|_| Err(format!("nothing within {PATIENCE:?}").into()));
        println!(
            "{}",
            match found {
                Ok(()) => json!({ "feature": feature, "status": "ok" }),
                Err(error) => json!({ "feature": feature, "status": "fail", "detail": error.to_string() }),
            }
        );
    }
    demo.client.close().await;
    Ok(())
}
