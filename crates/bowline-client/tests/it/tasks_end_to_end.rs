//! Tasks of the client against the server, over memory, in both generations.

use crate::support::{V2025_11_25, V2026_07_28};
use bowline_client::{Answer, Client, ClientBuilder, Started, TaskHandle, memory};
use bowline_server::{Ctx, Error, Result, Server, Task, Tool};
use bowline_types::{Revision, TaskStatus};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

#[derive(Deserialize, JsonSchema)]
struct Who {
    name: String,
}

fn server() -> Server {
    Server::new("tasks")
        .tool(Tool::new("quick").task(Task::now()).handler(async || "done"))
        .tool(Tool::new("required").task(Task::now().required()).handler(async || "done"))
        .tool(Tool::new("endless").task(Task::now()).handler(async || std::future::pending::<String>().await))
        .tool(Tool::new("wrong").task(Task::now()).handler(async || Err::<String, _>(Error::tool("no luck"))))
        .tool(Tool::new("asks").task(Task::now()).handler(async |ctx: Ctx| -> Result<String> {
            let Who { name } = ctx.ask("Who?").await?.accepted()?;
            let again: Who = ctx.ask("Who again?").await?.accepted()?;
            Ok(format!("{name} and {}", again.name))
        }))
        .tool(Tool::new("later").task(Task::later()).handler(async |ctx: Ctx| -> Result<String> {
            let Who { name } = ctx.ask("Who?").await?.accepted()?;
            ctx.task().await?;
            let again: Who = ctx.ask("Who again?").await?.accepted()?;
            Ok(format!("{name} and {}", again.name))
        }))
}

/// Connects a client whose user counts the questions.
async fn connected(revision: Revision) -> (Client, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let builder: ClientBuilder = Client::builder().tasks().revisions([revision]).on_ask(move |_| {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        async move { Answer::accept(json!({ "name": format!("answer {number}") })) }
    });
    let (near, far) = memory();
    tokio::spawn(server().serve(far.read, far.write));
    (builder.connect(near).await.unwrap(), asked)
}

async fn started(client: &Client, tool: &str) -> TaskHandle {
    match client.call(tool, ()).start().await.unwrap() {
        Started::Task(task) => task,
        other => panic!("expected a task, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_their_tasks() {
    for revision in [V2025_11_25, V2026_07_28] {
        let (client, asked) = connected(revision).await;
        for tool in ["quick", "required"] {
            assert_eq!(client.call(tool, ()).await.unwrap().text(), "done", "{revision} {tool}");
        }
        assert_eq!(client.call("asks", ()).await.unwrap().text(), "answer 0 and answer 1", "{revision}");
        assert_eq!(asked.load(Ordering::Relaxed), 2, "{revision}: every question is asked once");
        let failed = client.call("wrong", ()).await.unwrap();
        assert!(failed.is_error() && failed.text() == "no luck", "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn questions_before_and_in_a_task_reach_the_same_handler() {
    let (client, asked) = connected(V2026_07_28).await;
    assert_eq!(client.call("later", ()).await.unwrap().text(), "answer 0 and answer 1");
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_started_task_is_followed_answered_and_cancelled() {
    for revision in [V2025_11_25, V2026_07_28] {
        let (client, asked) = connected(revision).await;
        let task = started(&client, "asks").await;
        // Another handle with nothing but the id.
        let result = client.task(task.id()).wait().await.unwrap();
        assert_eq!(result.text(), "answer 0 and answer 1", "{revision}");
        assert_eq!(asked.load(Ordering::Relaxed), 2, "{revision}");
        assert_eq!(task.status().await.unwrap().task.status, TaskStatus::Completed);
        assert_eq!(task.wait().await.unwrap().text(), "answer 0 and answer 1", "{revision}");
        let wrong = started(&client, "wrong").await.wait().await.unwrap();
        assert!(wrong.is_error() && wrong.text() == "no luck", "{revision}");

        let endless = started(&client, "endless").await;
        assert_eq!(endless.status().await.unwrap().task.status, TaskStatus::Working);
        endless.cancel().await.unwrap();
        assert_eq!(endless.status().await.unwrap().task.status, TaskStatus::Cancelled);
        assert!(endless.wait().await.unwrap_err().is_task_cancelled(), "{revision}");
        assert!(client.task("nobody").status().await.unwrap_err().is_task_gone(), "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn updates_end_with_the_task() {
    for revision in [V2025_11_25, V2026_07_28] {
        let (client, _) = connected(revision).await;
        let task = started(&client, "quick").await;
        let mut updates = task.updates();
        let mut last = None;
        while let Some(state) = updates.next().await {
            last = Some(state.unwrap());
        }
        assert_eq!(last.unwrap().task.status, TaskStatus::Completed, "{revision}");
    }
}
