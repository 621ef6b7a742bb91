//! Tasks that crash at each step: what is right passes, and what is wrong is found.

use bowline_server::{Ctx, Error, Result, Server, Task, Tool};
use bowline_testing::crash::{CrashPoint, crash_each_step};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

#[derive(Deserialize, JsonSchema)]
struct Publish {
    public: bool,
}

/// Steps, a wait and a question.
async fn index(ctx: Ctx, effects: Arc<AtomicUsize>) -> Result<String> {
    let commit: String = ctx.once("clone", async { Ok("c0ffee".to_owned()) }).await?;
    ctx.sleep(Duration::from_secs(600)).await?;
    let files: usize = ctx
        .once("index", async {
            effects.fetch_add(1, Ordering::Relaxed);
            Ok(3)
        })
        .await?;
    let Publish { public } = ctx.ask("Publish the index?").await?.accepted()?;
    Ok(format!("{commit}: {files} files, public: {public}"))
}

fn server(tool: Tool, effects: &Arc<AtomicUsize>) -> Server {
    let effects = Arc::clone(effects);
    Server::new("ci").tool(tool.handler(move |ctx: Ctx| index(ctx, Arc::clone(&effects))))
}

#[tokio::test]
async fn a_handler_of_steps_survives_every_crash() {
    let effects = Arc::new(AtomicUsize::new(0));
    let shared = Arc::clone(&effects);
    let server = move || server(Tool::new("index").idempotent().task(Task::now()), &shared);
    let report = crash_each_step("index", server).accept(json!({ "public": true })).run().await.unwrap();
    assert_eq!(report.result()["content"][0]["text"], "c0ffee: 3 files, public: true");
    let step = |name: &str| {
        [CrashPoint::BeforeRecording(name.to_owned()), CrashPoint::AfterRecording(name.to_owned())]
    };
    let mut expected = vec![CrashPoint::Start];
    expected.extend(step("clone").into_iter().chain(step("bowline/sleep/1")).chain(step("index")));
    expected.extend([CrashPoint::AfterAsking(1), CrashPoint::BeforeEnd]);
    assert_eq!(report.points(), expected);
    // Once in each of the ten runs, and once more where the value was not recorded.
    assert_eq!(effects.load(Ordering::Relaxed), 11);
}

#[tokio::test]
async fn what_a_crash_changes_is_found() {
    // What the step leaves in memory is gone after a crash, and the step does not run again.
    let server = || {
        let loaded = Arc::new(AtomicUsize::new(0));
        let tool = Tool::new("forgets").task(Task::now().resume(true)).handler(move |ctx: Ctx| {
            let loaded = Arc::clone(&loaded);
            async move {
                let load = async {
                    loaded.store(3, Ordering::Relaxed);
                    Ok(())
                };
                ctx.once("load", load).await?;
                Ok::<_, Error>(format!("loaded {}", loaded.load(Ordering::Relaxed)))
            }
        });
        Server::new("forgets").tool(tool)
    };
    let error = crash_each_step("forgets", server).run().await.unwrap_err().to_string();
    let result = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    let other = format!("the task ended with {}", result("loaded 0"));
    let expected = [
        "a task of `forgets` does not survive every crash:".to_owned(),
        format!("- a crash after step `load` was recorded: {other}"),
        format!("- a crash before the result was recorded: {other}"),
        format!("without a crash it ends with {}", result("loaded 3")),
    ];
    assert_eq!(error, expected.join("\n"));
}

#[tokio::test]
async fn results_that_differ_in_each_run_can_be_compared() {
    let runs = Arc::new(AtomicUsize::new(0));
    let server = move || {
        let runs = Arc::clone(&runs);
        let tool = Tool::new("number").read_only().task(Task::now()).handler(move |ctx: Ctx| {
            let runs = Arc::clone(&runs);
            async move { ctx.once("number", async { Ok(runs.fetch_add(1, Ordering::Relaxed)) }).await }
        });
        Server::new("numbers").tool(tool)
    };
    let test = crash_each_step("number", server);
    let report = test.same(|expected, actual| actual["isError"] == expected["isError"]).run().await.unwrap();
    assert_eq!(report.points().len(), 4);
}

#[tokio::test]
async fn mistakes_are_explained() {
    let effects = Arc::default();
    let index = move |task: Task| server(Tool::new("index").task(task), &effects);
    let once = index.clone();
    let error = crash_each_step("index", move || once(Task::now())).run().await.unwrap_err().to_string();
    assert!(error.contains("declare it `idempotent` or `read_only`, or use `Task::resume(true)`"), "{error}");
    let resumed = move || index(Task::now().resume(true));
    let error = crash_each_step("index", resumed).run().await.unwrap_err().to_string();
    assert!(error.starts_with("the test has no answer to {"), "{error}");
    let plain = || Server::new("plain").tool(Tool::new("plain").handler(|| "done"));
    let error = crash_each_step("plain", plain).run().await.unwrap_err().to_string();
    assert!(error.starts_with("a call of `plain` ended before it became a task: {"), "{error}");
    let error = crash_each_step("none", || Server::new("empty")).run().await.unwrap_err();
    assert!(error.to_string().starts_with("the call of `none` failed: "), "{error}");
}

#[tokio::test]
async fn questions_before_the_task_are_answered_too() {
    let server = || {
        let tool = Tool::new("train").task(Task::later().required().resume(true));
        Server::new("later").tool(tool.handler(async |ctx: Ctx| -> Result<String> {
            let Publish { public } = ctx.ask("Publish?").await?.accepted()?;
            ctx.task().await?;
            let id: String = ctx.once("submit", async { Ok("job 1".to_owned()) }).await?;
            let Publish { public: sure } = ctx.ask("Really?").await?.accepted()?;
            Ok(format!("{id} {public} {sure}"))
        }))
    };
    let test =
        crash_each_step("train", server).accept(json!({ "public": true })).accept(json!({ "public": false }));
    let report = test.run().await.unwrap();
    assert_eq!(report.result()["content"][0]["text"], "job 1 true false");
}
