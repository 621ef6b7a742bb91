//! `bowline tasks`: shows, waits for, answers and cancels tasks of a server.

use crate::{
    answers_file,
    commands::call,
    context::Context,
    failure::{Code, Failure},
    progress::WaitIndicator,
    session::Session,
    table,
    target::{ConnectionArguments, Interaction},
};
use bowline_client::{ClientBuilder, Error, TaskHandle};
use bowline_text::visible;
use bowline_types::{ElicitParams, InputRequest, Task, TaskStatus};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use std::{path::PathBuf, time::Duration};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List your tasks; only servers of 2025-11-25 have a list
    #[command(
        override_usage = "bowline tasks list [OPTIONS] TARGET\n       bowline tasks list [OPTIONS] -- PROGRAM..."
    )]
    List(All),
    /// Show the status of a task and its open questions
    #[command(
        override_usage = "bowline tasks show [OPTIONS] TARGET TASK\n       bowline tasks show [OPTIONS] TASK -- PROGRAM..."
    )]
    Show(One),
    /// Wait for a task, answer its questions, and print the result
    #[command(
        override_usage = "bowline tasks wait [OPTIONS] TARGET TASK\n       bowline tasks wait [OPTIONS] TASK -- PROGRAM...",
        after_help = answers_file::FORMAT,
    )]
    Wait(One),
    /// Print the result of a task that has ended
    #[command(
        override_usage = "bowline tasks result [OPTIONS] TARGET TASK\n       bowline tasks result [OPTIONS] TASK -- PROGRAM..."
    )]
    Result(One),
    /// Answer the open questions of a task
    #[command(
        override_usage = "bowline tasks answer [OPTIONS] TARGET TASK\n       bowline tasks answer [OPTIONS] TASK -- PROGRAM...",
        after_help = answers_file::FORMAT,
    )]
    Answer(One),
    /// Cancel a task
    #[command(
        override_usage = "bowline tasks cancel [OPTIONS] TARGET TASK\n       bowline tasks cancel [OPTIONS] TASK -- PROGRAM..."
    )]
    Cancel(One),
}

#[derive(Args, Debug)]
struct All {
    /// The server
    #[arg(value_name = "TARGET", num_args = 0..=1)]
    words: Vec<String>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

#[derive(Args, Debug)]
struct One {
    /// The server, and the id that `bowline call --detach` printed
    #[arg(value_name = "TARGET TASK", num_args = 0..=2)]
    words: Vec<String>,
    /// Save images, audio and other binary content of the result in this directory
    #[arg(long, short = 'o', value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    interaction: Interaction,
    #[command(flatten)]
    connection: ConnectionArguments,
}

/// What to do with one task.
#[derive(Clone, Copy)]
enum Verb {
    Show,
    Wait,
    Result,
    Answer,
    Cancel,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let (verb, one) = match arguments.command {
        Command::List(all) => {
            let (name, _) = all.connection.split(&all.words);
            let target = all.connection.target(name, context)?;
            return Session::listening(target, context, ClientBuilder::tasks, async |session| {
                list(session).await
            })
            .await;
        }
        Command::Show(one) => (Verb::Show, one),
        Command::Wait(one) => (Verb::Wait, one),
        Command::Result(one) => (Verb::Result, one),
        Command::Answer(one) => (Verb::Answer, one),
        Command::Cancel(one) => (Verb::Cancel, one),
    };
    let (name, words) = one.connection.split(&one.words);
    let [task] = words else {
        return Err(Failure::misused("missing task id")
            .advise("`bowline call --detach` prints the id of the task that it starts"));
    };
    let target = one.interaction.apply(one.connection.target(name, context)?)?;
    let waiting = WaitIndicator::new(context.screen);
    let prepare = |builder: ClientBuilder| builder.tasks().on_progress(waiting.reporter());
    let work = async |session: &Session<'_>| {
        let task = session.client.task(task);
        match verb {
            Verb::Show => show(session, &task).await,
            Verb::Wait => wait(session, &task, &waiting, &one).await,
            Verb::Result => result(session, &task, &one).await,
            Verb::Answer => answer(session, &task).await,
            Verb::Cancel => cancel(session, &task).await,
        }
    };
    Box::pin(Session::listening(target, context, prepare, work)).await
}

/// Prints the id of a task that was started.
pub(crate) fn started(session: &Session<'_>, task: &TaskHandle) -> Result<(), Failure> {
    let screen = session.context.screen;
    if session.context.json() {
        let task = task.known().map_or_else(|| json!({ "taskId": task.id() }), |state| as_json(&state.task));
        screen.json(&json!({ "task": task }))?;
    } else {
        screen.untrusted(task.id())?;
    }
    if session.ends_server() {
        screen
            .warn("the server ends with this command; the task goes on only if the server stores its tasks");
    }
    screen.note(&format!("run `{}` for the result", session.task_command("wait", task.id())));
    Ok(())
}

async fn list(session: &Session<'_>) -> Result<(), Failure> {
    let screen = session.context.screen;
    let tasks = session.client.list_tasks().await.map_err(|error| {
        let is_unsupported = error.is_unsupported();
        let failure = session.explain(error);
        if is_unsupported {
            failure.advise(
                "only servers of 2025-11-25 list tasks; use an id that `bowline call --detach` printed",
            )
        } else {
            failure
        }
    })?;
    if session.context.json() {
        return screen.json(&json!({ "tasks": tasks.iter().map(as_json).collect::<Vec<_>>() }));
    }
    if tasks.is_empty() {
        screen.note("there are no tasks");
    }
    table::rows(screen, tasks.iter().map(|task| (task.task_id.as_str(), summary(task))))
}

async fn show(session: &Session<'_>, task: &TaskHandle) -> Result<(), Failure> {
    let screen = session.context.screen;
    let state = task.status().await.map_err(|error| session.explain(error))?;
    if session.context.json() {
        let questions: Map<String, Value> =
            state.questions.iter().map(|(key, question)| (key.to_owned(), json!(question))).collect();
        return screen.json(&json!({ "task": as_json(&state.task), "questions": questions }));
    }
    let Task { task_id, created_at, last_updated_at, ttl_ms, .. } = &state.task;
    let kept = ttl_ms.map_or_else(
        || "without limit".to_owned(),
        |ttl| format!("for {} s after its creation", Duration::from_millis(ttl).as_secs()),
    );
    let rows = [
        ("task", task_id.clone()),
        ("status", summary(&state.task)),
        ("created", created_at.clone()),
        ("changed", last_updated_at.clone()),
        ("kept", kept),
    ];
    table::rows(screen, rows)?;
    for (key, question) in &state.questions {
        let text = match question {
            InputRequest::Elicit(ElicitParams::Form(form)) => &*form.message,
            InputRequest::Elicit(ElicitParams::Url(page)) => &*page.message,
            InputRequest::CreateMessage(_) => "a message of a model",
            InputRequest::ListRoots => "the roots",
        };
        screen.line(&format!("question {}: {}", visible(key), visible(&table::one_line(text))))?;
    }
    if !state.questions.is_empty() {
        screen.note(&format!("run `{}` to answer", session.task_command("answer", task.id())));
    }
    Ok(())
}

async fn wait(
    session: &Session<'_>,
    task: &TaskHandle,
    waiting: &WaitIndicator,
    one: &One,
) -> Result<(), Failure> {
    session.task_recorder()(task.id());
    waiting.for_task();
    let called = waiting.show(task.wait()).await;
    session.context.screen.clear();
    let called = called.map_err(|error| unanswered(session, error))?;
    call::print(session, None, &called, one.output.as_deref())
}

/// Explains an error, with a hint if a question could not be answered.
fn unanswered(session: &Session<'_>, error: Error) -> Failure {
    let is_unanswerable = error.is_unanswerable();
    let failure = session.explain(error);
    if !is_unanswerable {
        return failure;
    }
    failure.advise("the task asks for input: run the command in a terminal, or pass `--answers FILE`")
}

async fn result(session: &Session<'_>, task: &TaskHandle, one: &One) -> Result<(), Failure> {
    let state = task.status().await.map_err(|error| session.explain(error))?;
    if !state.is_done() {
        let reason = format!("the task has not ended: {}", visible(&summary(&state.task)));
        return Err(Failure::new(Code::Failed, reason)
            .advise(format!("run `{}` to wait for it", session.task_command("wait", task.id()))));
    }
    let called = task.wait().await.map_err(|error| session.explain(error))?;
    call::print(session, None, &called, one.output.as_deref())
}

async fn answer(session: &Session<'_>, task: &TaskHandle) -> Result<(), Failure> {
    let screen = session.context.screen;
    let count = task.answer_open().await.map_err(|error| unanswered(session, error))?;
    if session.context.json() {
        return screen.json(&json!({ "answered": count }));
    }
    if count > 0 {
        screen.note(&format!("answered {count} {}", if count == 1 { "question" } else { "questions" }));
        return Ok(());
    }
    screen.note("the task has no open questions");
    if task.known().is_some_and(|state| state.task.status == TaskStatus::InputRequired) {
        screen.note(&format!(
            "servers of 2025-11-25 ask while someone waits: run `{}`",
            session.task_command("wait", task.id())
        ));
    }
    Ok(())
}

async fn cancel(session: &Session<'_>, task: &TaskHandle) -> Result<(), Failure> {
    task.cancel().await.map_err(|error| session.explain(error))?;
    if session.context.json() {
        return session.context.screen.json(&json!({ "taskId": task.id() }));
    }
    session.context.screen.note("the server was asked to cancel the task");
    Ok(())
}

/// Returns status and message on one line.
fn summary(task: &Task) -> String {
    match &task.status_message {
        Some(message) => format!("{}: {}", task.status.as_str(), table::one_line(message)),
        None => task.status.as_str().to_owned(),
    }
}

/// Returns a task with the names of 2026-07-28, whatever revision the server has.
fn as_json(task: &Task) -> Value {
    json!({
        "taskId": task.task_id,
        "status": task.status,
        "statusMessage": task.status_message,
        "createdAt": task.created_at,
        "lastUpdatedAt": task.last_updated_at,
        "ttlMs": task.ttl_ms,
        "pollIntervalMs": task.poll_interval_ms,
    })
}
