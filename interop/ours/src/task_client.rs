//! Our client, which checks the tasks of one server: see the contract for tasks in `interop/README.md`.
//!
//! Usage: `interop-task-client --revision REVISION (URL | PROGRAM ARGUMENTS…)`. Prints one line of JSON per feature.

#![expect(clippy::print_stdout, reason = "what was found is printed")]

use bowline::http::http;
use bowline::{
    client::{Answer, BoxFuture, Command, Connect, Started, TaskHandle},
    prelude::*,
};
use serde_json::Value;
use std::{fmt::Debug, time::Duration};
use tokio::time::timeout;

/// How long one feature may take before it counts as broken.
const PATIENCE: Duration = Duration::from_secs(15);

type Found = Result<(), Box<dyn std::error::Error + Send + Sync>>;
type Check = for<'a> fn(&'a Client) -> BoxFuture<'a, Found>;

const FEATURES: [(&str, Check); 10] = [
    ("create", |client| Box::pin(create(client))),
    ("result", |client| Box::pin(result(client))),
    ("call", |client| Box::pin(call(client))),
    ("error", |client| Box::pin(error(client))),
    ("failure", |client| Box::pin(failure(client))),
    ("cancel", |client| Box::pin(cancel(client))),
    ("question", |client| Box::pin(question(client))),
    ("questions", |client| Box::pin(questions(client))),
    ("unknown", |client| Box::pin(unknown(client))),
    ("tasks", |client| Box::pin(tasks(client))),
];

/// Starts a call that must become a task.
async fn start(
    client: &Client,
    tool: &str,
    arguments: Value,
) -> Result<TaskHandle, Box<dyn std::error::Error + Send + Sync>> {
    match client.call(tool, arguments).start().await? {
        Started::Task(task) => Ok(task),
        other => Err(format!("the call did not become a task: {other:?}").into()),
    }
}

async fn create(client: &Client) -> Found {
    let task = start(client, "slow_compute", json!({ "seconds": 600.0, "label": "a nap" })).await?;
    let state = task.status().await?;
    same(&state.task.task_id.as_str(), &task.id())?;
    same(&state.task.status.as_str(), &"working")
}

/// The id is enough to get the result, also a second time.
async fn result(client: &Client) -> Found {
    let task = start(client, "slow_compute", json!({ "seconds": 0.5, "label": "a nap" })).await?;
    same(&task.wait().await?.ok()?.text().as_str(), &"a nap took 0.5 s")?;
    same(&task.status().await?.task.status.as_str(), &"completed")?;
    same(&client.task(task.id()).wait().await?.text().as_str(), &"a nap took 0.5 s")
}

async fn call(client: &Client) -> Found {
    let called = client.call("slow_compute", json!({ "seconds": 0.5, "label": "a nap" })).await?;
    same(&called.ok()?.text().as_str(), &"a nap took 0.5 s")
}

async fn error(client: &Client) -> Found {
    let called = client.call("failing_job", ()).await?;
    same(&called.is_error(), &true)?;
    same(&called.text().contains("the job failed"), &true)
}

async fn failure(client: &Client) -> Found {
    let task = start(client, "protocol_error_job", json!({})).await?;
    let error = task.wait().await.err();
    same(&error.as_ref().and_then(|error| error.as_rpc()).map(|error| error.code), &Some(-32603))?;
    same(&task.status().await?.task.status.as_str(), &"failed")
}

async fn cancel(client: &Client) -> Found {
    let task = start(client, "slow_compute", json!({ "seconds": 600.0 })).await?;
    task.cancel().await?;
    let error = task.wait().await.err();
    same(&error.is_some_and(|error| error.is_task_cancelled()), &true)?;
    same(&task.status().await?.task.status.as_str(), &"cancelled")
}

async fn question(client: &Client) -> Found {
    let task = start(client, "confirm_delete", json!({ "filename": "a.txt" })).await?;
    same(&task.wait().await?.ok()?.text().as_str(), &"deleted a.txt")
}

async fn questions(client: &Client) -> Found {
    let task = start(client, "multi_input", json!({})).await?;
    same(&task.wait().await?.ok()?.text().as_str(), &"Ada is sure")
}

async fn unknown(client: &Client) -> Found {
    let error = client.task("nothing").status().await.err();
    same(&error.is_some_and(|error| error.is_task_gone()), &true)
}

async fn tasks(client: &Client) -> Found {
    let task = start(client, "slow_compute", json!({ "seconds": 0.0 })).await?;
    let listed = client.list_tasks().await?;
    same(&listed.iter().any(|listed| listed.task_id == task.id()), &true)
}

fn same<T: PartialEq + Debug>(found: &T, expected: &T) -> Found {
    if found == expected { Ok(()) } else { Err(format!("expected {expected:?}, got {found:?}").into()) }
}

async fn connect(revision: Revision, target: impl Connect) -> bowline::Result<Client> {
    let client = Client::builder()
        .name("interop")
        .revisions([revision])
        .tasks()
        .on_ask(|ask| async move {
            let is_name = ask.message.contains("name");
            Answer::accept(if is_name { json!({ "name": "Ada" }) } else { json!({ "confirm": true }) })
        })
        .connect(target)
        .await?;
    Ok(client)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> bowline::Result {
    let mut words = std::env::args().skip(1);
    let (Some("--revision"), Some(revision), Some(target)) =
        (words.next().as_deref(), words.next(), words.next())
    else {
        return Err(Error::internal(
            "usage: interop-task-client --revision REVISION (URL | PROGRAM ARGUMENTS…)",
        ));
    };
    let revision = revision.parse()?;
    let client = if target.starts_with("http:") {
        connect(revision, http(target)).await?
    } else {
        connect(revision, Command::new(target).args(words)).await?
    };
    println!("{}", json!({ "revision": client.revision().as_str() }));
    for (feature, check) in FEATURES {
        let found = timeout(PATIENCE, check(&client)).await;
        let found = found.unwrap_or_else(|_| Err(format!("nothing within {PATIENCE:?}").into()));
        println!(
            "{}",
            match found {
                Ok(()) => json!({ "feature": feature, "status": "ok" }),
                Err(error) => json!({ "feature": feature, "status": "fail", "detail": error.to_string() }),
            }
        );
    }
    client.close().await;
    Ok(())
}
