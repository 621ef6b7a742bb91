//! `bowline tasks`: shows, waits for, answers and cancels tasks of a server.

use crate::{
    answers_file,
    commands::call,
    context::Context,
    failure::{Code, Failure},
    progress,
    screen::Screen,
    session::Session,
    table,
    target::{ConnectionArguments, Interaction},
};
use bowline_client::{ClientBuilder, Error, TaskHandle};
use bowline_text::visible;
use bowline_types::{ElicitParams, InputRequest, ProgressParams, Task, TaskStatus};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How often the line about a waiting command is updated at a terminal.
const INTERVAL: Duration = Duration::from_secs(1);
/// How much of a status message that line shows.
const MAX_SHOWN: usize = 48;

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
    let waiting = Waiting::new(context.screen);
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

async fn wait(session: &Session<'_>, task: &TaskHandle, waiting: &Waiting, one: &One) -> Result<(), Failure> {
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

/// Shows at a terminal that the command waits, for how long, and the last message of the server.
#[derive(Clone)]
pub(crate) struct Waiting {
    screen: Screen,
    shown: Arc<Mutex<Shown>>,
}

#[derive(Default)]
struct Shown {
    /// Whether a task is waited for. Other calls show only their progress.
    is_task: bool,
    /// Whether a progress bar is shown instead.
    has_bar: bool,
    message: Option<String>,
}

impl Waiting {
    pub(crate) fn new(screen: Screen) -> Self {
        Self { screen, shown: Arc::default() }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a task is waited for.
    pub(crate) fn for_task(&self) {
        self.shown().is_task = true;
    }

    /// Returns the handler for progress.
    pub(crate) fn reporter(&self) -> impl Fn(ProgressParams) + Send + Sync + 'static {
        let (waiting, report) = (self.clone(), progress::reporter(self.screen));
        move |update| {
            let mut shown = waiting.shown();
            shown.has_bar = update.total.is_some();
            if let Some(text) = &update.message {
                shown.message = Some(visible(text));
            }
            drop(shown);
            report(update);
        }
    }

    /// Waits for `work`.
    pub(crate) async fn show<T>(&self, work: impl Future<Output = T>) -> T {
        if !self.screen.stderr_is_terminal() {
            return work.await;
        }
        let mut work = std::pin::pin!(work);
        let start = Instant::now();
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = tokio::time::sleep(INTERVAL) => {
                    let shown = self.shown();
                    if !shown.is_task || shown.has_bar {
                        continue;
                    }
                    let message = shown.message.as_ref().map(|text| format!(": {}", table::cut(text, MAX_SHOWN)));
                    drop(shown);
                    let (seconds, message) = (start.elapsed().as_secs(), message.unwrap_or_default());
                    self.screen.transient(&format!("waiting ({seconds} s), Ctrl-C to stop{message}"));
                }
            }
        }
    }
}
