//! `crowd [SESSIONS LISTENS]`: whether a server is as small after a crowd has gone as it was before it came.
//!
//! The server is a process of its own, `crowd serve`. Clients open sessions, then a stream in each, then streams of changes,
//! and go: half with a good-bye, half without.

mod census;
mod clients;
mod serve;

use census::Census;
use std::{
    error::Error,
    io::Write,
    process::{ExitCode, Stdio},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// How much more memory than at the start may stay behind, in KiB.
const LEFT_OVER: u64 = 32 * 1024;
/// How long it may take until everything is gone. Sessions without a good-bye expire after 20 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks until nobody is there: the one task is that of the connection that asks.
async fn empty(address: &str) -> Result<Census> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let now = Census::ask(address).await?;
        if now.sessions == 0 && now.tasks == 1 || Instant::now() > deadline {
            return Ok(now);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Asks until all is as it was at the start, or patience ends.
async fn settle(address: &str, start: &Census) -> Result<Census> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let now = Census::ask(address).await?;
        if now.is_as_full_as(start) && now.memory <= start.memory + LEFT_OVER || Instant::now() > deadline {
            return Ok(now);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts and sizes are far below 2^52")]
fn each(before: &Census, after: &Census, count: usize) -> f64 {
    (after.memory as f64 - before.memory as f64) / count as f64
}

/// Comes and goes once, and tells what that cost; what is left then.
async fn visit(address: &str, start: &Census, sessions: usize, listens: usize) -> Result<Census> {
    let mut out = std::io::stdout();
    let ids = clients::open_sessions(address, sessions).await?;
    let opened = Census::ask(address).await?;
    writeln!(out, "{sessions} sessions: {opened}; {:.1} KiB each", each(start, &opened, sessions))?;
    let streams = clients::open_streams(address, &ids).await?;
    let streaming = Census::ask(address).await?;
    writeln!(out, "with open streams: {streaming}; {:.1} KiB each", each(start, &streaming, sessions))?;
    if streaming.sessions != u64::try_from(sessions)? {
        return Err(format!("expected {sessions} sessions, got {}", streaming.sessions).into());
    }
    drop(streams);
    clients::end_sessions(address, &ids[..sessions / 2]).await?;
    let left = settle(address, start).await?;
    writeln!(out, "when they have gone: {left}")?;

    let streams = clients::open_listens(address, listens).await?;
    let listening = Census::ask(address).await?;
    writeln!(out, "{listens} listens: {listening}; {:.1} KiB each", each(&left, &listening, listens))?;
    drop(streams);
    let left = settle(address, start).await?;
    writeln!(out, "when they have gone: {left}")?;
    Ok(left)
}

/// Whether a crowd leaves nothing, and a second one no more.
async fn leaves_nothing(address: &str, sessions: usize, listens: usize) -> Result<bool> {
    let start = empty(address).await?;
    writeln!(std::io::stdout(), "at the start: {start}")?;
    let first = visit(address, &start, sessions, listens).await?;
    writeln!(std::io::stdout(), "and once more")?;
    let second = visit(address, &start, sessions, listens).await?;
    let is_back = |left: &Census| left.is_as_full_as(&start) && left.memory <= start.memory + LEFT_OVER;
    Ok(is_back(&first) && is_back(&second))
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let (sessions, listens) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => return serve::serve().await,
        [] => (10_000, 5_000),
        [sessions, listens] => (sessions.parse()?, listens.parse()?),
        _ => return Err("usage: crowd [SESSIONS LISTENS]".into()),
    };
    let mut server = Command::new(std::env::current_exe()?)
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let said = server.stdout.take().ok_or("the server has no output")?;
    let address = BufReader::new(said).lines().next_line().await?.ok_or("the server does not serve")?;
    let passed = leaves_nothing(&address, sessions, listens).await?;
    drop(server.stdin.take());
    server.wait().await?;
    writeln!(std::io::stdout(), "{}", if passed { "1 passed, 0 failed" } else { "0 passed, 1 failed" })?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
