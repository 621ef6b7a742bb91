//! Tasks that survive a crash of a real process: `kill -9`, and the next process on the same SQLite file continues.

use crate::tasks::{create, peer, until};
use bowline_server::{Ctx, Error, Job, JobStatus, Result, Server, ServerHandle, Task, Tasks, Tool};
use bowline_sqlite::Sqlite;
use bowline_store::{MemoryBus, Reach, Store};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

/// Where the process under test finds its file. Without it, [`a_process_that_is_killed`] does nothing.
const FILE: &str = "BOWLINE_TEST_TASKS_FILE";

/// A server on a SQLite file. Its second step ends in the first process and completes in the next one.
fn server(file: &Path, hangs: bool) -> ServerHandle {
    let store = Store::builder(
        "sqlite",
        Arc::new(Sqlite::open(file).expect("the file can be opened")),
        Arc::new(MemoryBus::new()),
        Reach::Machine,
    );
    let work = Tool::new("work").idempotent().task(Task::now()).handler(move |ctx: Ctx| async move {
        let first: u32 = ctx.once("first", async { Ok(std::process::id()) }).await?;
        let step = async {
            if hangs {
                writeln!(std::io::stdout(), "hangs in {}", ctx.task_id().unwrap_or_default())?;
                std::future::pending::<()>().await;
            }
            Ok(std::process::id())
        };
        let second: u32 = ctx.once("second", step).await?;
        Ok::<_, Error>(format!("{first} {second}"))
    });
    // A short lease, so that the next process does not wait long.
    let tasks = Tasks::new(store.build()).space("killed").lease(Duration::from_millis(500));
    Server::new("killed").tool(work).tasks(tasks).build().unwrap()
}

/// The process that is killed: this program, called by the test below.
#[tokio::test]
async fn a_process_that_is_killed() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let server = server(Path::new(&file), true);
    create(&mut peer(&server, None), "work").await;
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_killed_process_loses_no_task() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.db");
    let (killed, id) = kill("tasks_process::a_process_that_is_killed", FILE, &file, "hangs in ").await;
    let next = server(&file, false);
    let done = until(&mut peer(&next, None), &id.into(), "completed").await;
    let text = done["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    // The first step has the value of the process that died, the second one that of this process.
    assert_eq!(text, format!("{killed} {}", std::process::id()));
}

/// Runs a test of this program in a process of its own until it says something, and kills it. Returns its id and what it said.
async fn kill(test: &str, variable: &str, path: &Path, says: &str) -> (u32, String) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(variable, path)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let killed = child.id().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = loop {
        let line = lines.next_line().await.unwrap().expect("the process has not ended by itself");
        if let Some((_, said)) = line.split_once(says) {
            break said.to_owned();
        }
    };
    // SIGKILL: the process has no chance to clean up.
    child.kill().await.unwrap();
    (killed, said)
}

/// Where the process under test finds its folder. Without it, [`a_process_with_a_job`] does nothing.
const FOLDER: &str = "BOWLINE_TEST_JOBS_FOLDER";

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Work that another system does: the files of a folder.
struct Files(PathBuf);

impl Job for Files {
    type Arguments = Nothing;
    type Output = String;

    async fn start(&self, ctx: Ctx, Nothing {}: Nothing) -> Result<String> {
        let mut started = fs::File::options().append(true).create(true).open(self.0.join("started"))?;
        writeln!(started, "started by {}", std::process::id())?;
        fs::write(self.0.join("task"), ctx.task_id().unwrap_or_default())?;
        Ok("job 7".to_owned())
    }

    async fn status(&self, job: &str) -> Result<JobStatus<String>> {
        if self.0.join("done").exists() {
            return Ok(JobStatus::Done(format!("{job} is done")));
        }
        writeln!(std::io::stdout(), "looked at {job}")?;
        Ok(JobStatus::running())
    }

    async fn cancel(&self, _job: &str) -> Result<()> {
        Ok(())
    }

    fn poll_interval(&self) -> Duration {
        Duration::from_secs(1)
    }
}

fn server_with_job(folder: &Path) -> ServerHandle {
    let store = Store::builder(
        "sqlite",
        Arc::new(Sqlite::open(folder.join("state.db")).expect("the file can be opened")),
        Arc::new(MemoryBus::new()),
        Reach::Machine,
    );
    let tasks = Tasks::new(store.build()).space("jobs").lease(Duration::from_millis(500));
    Server::new("jobs").tool(Tool::new("work").job(Files(folder.to_owned()))).tasks(tasks).build().unwrap()
}

/// The process that is killed: this program, called by the test below.
#[tokio::test]
async fn a_process_with_a_job() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let server = server_with_job(Path::new(&folder));
    create(&mut peer(&server, None), "work").await;
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn the_job_of_a_killed_process_is_picked_up_from_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let (killed, job) =
        kill("tasks_process::a_process_with_a_job", FOLDER, folder.path(), "looked at ").await;
    assert_eq!(job, "job 7");
    let id = fs::read_to_string(folder.path().join("task")).unwrap();
    fs::write(folder.path().join("done"), "").unwrap();
    let next = server_with_job(folder.path());
    let done = until(&mut peer(&next, None), &id.into(), "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "job 7 is done");
    // It was started once, by the process that died.
    let started = fs::read_to_string(folder.path().join("started")).unwrap();
    assert_eq!(started, format!("started by {killed}\n"));
}
