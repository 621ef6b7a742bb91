//! Our client, which takes one server through everything the contract names: see the table in `interop/README.md`.
//!
//! Usage: `interop-client --revision REVISION (URL | PROGRAM ARGUMENTS…)`. With `any` as revision it is for both sides to
//! find the newest they share. Prints one line of JSON per feature.

#![expect(clippy::print_stdout, reason = "what was found is printed")]

mod features;

use bowline::http::http;
use bowline::{
    client::{Answer, Command, Connect, Notification},
    prelude::*,
    types::{CreateMessageResult, Root},
};
use features::{Demo, FEATURES};
use std::time::Duration;
use tokio::{sync::mpsc, time::timeout};

/// How long one feature may take before it counts as broken.
const PATIENCE: Duration = Duration::from_secs(10);

async fn connect(revisions: Vec<Revision>, target: impl Connect) -> bowline::Result<Demo> {
    let (log, logged) = mpsc::channel(16);
    let (update, updated) = mpsc::channel(16);
    let client = Client::builder()
        .name("interop")
        .revisions(revisions)
        .log_level(LoggingLevel::Info)
        .roots([Root::new("file:///tmp")])
        .on_ask(|_| async { Answer::accept(json!({ "name": "Ada" })) })
        .on_sample(|_| async {
            CreateMessageResult::new(Role::Assistant, Content::text("42"), "deep-thought")
        })
        // A full channel means that nobody waits for what it holds.
        .on_log(move |message| _ = log.try_send(message.data))
        .on_notification(move |notification| {
            if let Notification::ResourceUpdated(params) = notification {
                _ = update.try_send(params.uri);
            }
        })
        .connect(target)
        .await?;
    Ok(Demo { client, logged, updated })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> bowline::Result {
    let mut words = std::env::args().skip(1);
    let (Some("--revision"), Some(revision), Some(target)) =
        (words.next().as_deref(), words.next(), words.next())
    else {
        return Err(Error::internal("usage: interop-client --revision REVISION (URL | PROGRAM ARGUMENTS…)"));
    };
    let revisions = match revision.as_str() {
        "any" => Revision::ALL.to_vec(),
        one => vec![one.parse()?],
    };
    let mut demo = if target.starts_with("http:") {
        connect(revisions, http(target)).await?
    } else {
        connect(revisions, Command::new(target).args(words)).await?
    };
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
