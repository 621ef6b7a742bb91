//! `crowd [SESSIONS LISTENS]`: whether a server is as small after a crowd has gone as it was before it came.
//!
//! The server is a process of its own, `crowd serve`. Clients open sessions, then a stream in each, then streams of changes,
//! and go: half with a good-bye, half without.
//!
//! `crowd program ADDRESS PID SESSIONS` does the same to a program that runs already, and ends every session. Its memory is
//! read from outside.

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

/// Whether a program returns the memory of its sessions to the system.
async fn returns_memory(address: &str, pid: u32, sessions: usize) -> Result<bool> {
    let mut out = std::io::stdout();
    // The first session loads what every later one shares.
    let first = clients::open_sessions(address, 1).await?;
    clients::end_sessions(address, &first).await?;
    let start = census::memory_of(pid)?;
    let ids = clients::open_sessions(address, sessions).await?;
    let streams = clients::open_streams(address, &ids).await?;
    let peak = census::memory_of(pid)?;
    drop(streams);
    clients::end_sessions(address, &ids).await?;
    let began = Instant::now();
    let left = loop {
        let left = census::memory_of(pid)?;
        if left <= start + LEFT_OVER || began.elapsed() > PATIENCE {
            break left;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let [start_mib, peak_mib, left_mib] = [start, peak, left].map(|kib| kib / 1024);
    writeln!(
        out,
        "program: {start_mib} MiB at the start, {peak_mib} MiB with {sessions} sessions and streams, {left_mib} MiB {} s after the last one ended",
        began.elapsed().as_secs()
    )?;
    Ok(left <= start + LEFT_OVER)
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let (sessions, listens) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => return serve::serve().await,
        [] => (10_000, 5_000),
        [sessions, listens] => (sessions.parse()?, listens.parse()?),
        ["program", address, pid, sessions] => {
            return Ok(verdict(returns_memory(address, pid.parse()?, sessions.parse()?).await?));
        }
        _ => return Err("usage: crowd [SESSIONS LISTENS] | crowd program ADDRESS PID SESSIONS".into()),
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
    Ok(verdict(passed))
}

#[expect(clippy::print_stdout, reason = "the result of the program")]
fn verdict(passed: bool) -> ExitCode {
    println!("{}", if passed { "1 passed, 0 failed" } else { "0 passed, 1 failed" });
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
