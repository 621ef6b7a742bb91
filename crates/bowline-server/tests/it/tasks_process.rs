//! Tasks that survive the death of a real process: `kill -9`, and the next process on the same SQLite file goes on.

use crate::tasks::{create, peer, until};
use bowline_server::{Ctx, Error, Server, ServerHandle, Task, Tasks, Tool};
use bowline_sqlite::Sqlite;
use bowline_store::{MemoryBus, Reach, Store};
use std::{io::Write, path::Path, process::Stdio, sync::Arc, time::Duration};
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
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tasks_process::a_process_that_is_killed", "--nocapture"])
        .env(FILE, &file)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let killed = child.id().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let id = loop {
        let line = lines.next_line().await.unwrap().expect("the process has not ended by itself");
        if let Some((_, id)) = line.split_once("hangs in ") {
            break id.to_owned();
        }
    };
    // SIGKILL: the process has no chance to clean up.
    child.kill().await.unwrap();
    let next = server(&file, false);
    let done = until(&mut peer(&next, None), &id.into(), "completed").await;
    let text = done["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    // The first step has the value of the process that died, the second one that of this process.
    assert_eq!(text, format!("{killed} {}", std::process::id()));
}
