//! `orphans [UPSTREAMS REPETITIONS [SECONDS]]`: whether anything that a host started outlives it, however the host ends.
//!
//! The host is a process of its own, `orphans host`, and so is each of its servers, `orphans server`, below two shells. A
//! variable in their environments tells the processes of one run from all others.

mod census;
mod host;
mod server;

use census::Census;
use std::{
    error::Error,
    fmt,
    io::Write,
    os::unix::process::ExitStatusExt,
    process::{ExitCode, ExitStatus, Stdio},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// The variable that marks the processes of a run.
const MARK: &str = "BOWLINE_ORPHANS";
/// How many processes there are of each server: two shells, the server, and a program that it started.
const EACH: usize = 4;
/// How long all servers together may take to start.
const STARTUP: Duration = Duration::from_secs(60);
/// How long everything may take to be gone, unless told otherwise.
const LIMIT: Duration = Duration::from_secs(2);

/// How a host ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// It is killed and can do nothing.
    Kill,
    /// It is killed while it starts its servers.
    KillEarly,
    /// It is told to end, and closes.
    Terminate,
    /// It panics, and everything is dropped.
    Panic,
    /// It panics beside everything else, in a program that then aborts.
    Abort,
}

impl End {
    const ALL: [Self; 5] = [Self::Kill, Self::KillEarly, Self::Terminate, Self::Panic, Self::Abort];

    /// Brings it about.
    async fn bring(self, host: &mut Child) -> Result<()> {
        let word = match self {
            Self::Kill | Self::KillEarly => return Ok(host.start_kill()?),
            Self::Terminate => {
                let id = host.id().ok_or("the host has ended before")?.to_string();
                let sent = Command::new("kill").args(["-TERM", &id]).status().await?;
                return if sent.success() { Ok(()) } else { Err("cannot send SIGTERM to the host".into()) };
            }
            Self::Panic => "panic\n",
            Self::Abort => "abort\n",
        };
        let input = host.stdin.as_mut().ok_or("the host has no input")?;
        Ok(input.write_all(word.as_bytes()).await?)
    }

    /// Whether the host ended in this way and no other.
    fn is_end_of(self, status: ExitStatus) -> bool {
        match self {
            Self::Kill | Self::KillEarly => status.signal() == Some(9),
            Self::Terminate => status.success(),
            Self::Panic => status.code() == Some(101),
            Self::Abort => status.signal() == Some(6),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "SIGKILL",
            Self::KillEarly => "SIGKILL at the start",
            Self::Terminate => "SIGTERM",
            Self::Panic => "panic",
            Self::Abort => "abort",
        })
    }
}

/// What there was, and when it was gone.
struct Gone {
    processes: usize,
    took: Duration,
}

/// One host, and when it is ended.
#[derive(Clone, Copy)]
struct Run<'a> {
    end: End,
    mark: &'a str,
    upstreams: usize,
    limit: Duration,
    /// With how many processes a host is old enough to be ended early.
    early: usize,
}

/// Starts a host, ends it, and waits until nothing is left of it.
async fn end_one(run: Run<'_>) -> Result<Gone> {
    let Run { end, mark, upstreams, limit, early } = run;
    let mut host = Command::new(std::env::current_exe()?)
        .args(["host", &upstreams.to_string()])
        .env(MARK, mark)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // A panic tells of itself, and is expected here.
        .stderr(if matches!(end, End::Panic | End::Abort) { Stdio::null() } else { Stdio::inherit() })
        .kill_on_drop(true)
        .spawn()?;
    let id = host.id().ok_or("the host has ended before")?;
    let census = if matches!(end, End::KillEarly) {
        begun_starting(mark, id, early).await?
    } else {
        all_started(&mut host, mark, upstreams).await?
    };
    let processes = census.marked.len();
    let Some(watchdog) = census.watchdog else { return Err("the host has no watchdog".into()) };

    let begun = Instant::now();
    end.bring(&mut host).await?;
    let status = timeout(STARTUP, host.wait()).await.map_err(|_| "the host does not end")??;
    if !end.is_end_of(status) {
        return Err(format!("the host ended otherwise: {status}").into());
    }
    loop {
        let left = Census::take(mark, id)?.marked.len() + usize::from(census::is_watchdog(watchdog));
        let took = begun.elapsed();
        match left {
            0 => return Ok(Gone { processes, took }),
            left if took > limit => {
                return Err(format!("{left} of {processes} processes are left after {took:.1?}").into());
            }
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// The processes of a host all of whose servers run.
async fn all_started(host: &mut Child, mark: &str, upstreams: usize) -> Result<Census> {
    let id = host.id().ok_or("the host has ended before")?;
    let said = host.stdout.take().ok_or("the host has no output")?;
    let mut lines = BufReader::new(said).lines();
    let line = timeout(STARTUP, lines.next_line()).await.map_err(|_| "the servers do not start")??;
    let servers = line.ok_or("the host ended before its servers ran")?;
    let (servers, census) = (servers.split_whitespace().count(), Census::take(mark, id)?);
    let processes = census.marked.len();
    if servers != upstreams || processes != upstreams * EACH + 1 {
        return Err(format!("{upstreams} servers were to run, {servers} do, in {processes} processes").into());
    }
    Ok(census)
}

/// The processes of a host as soon as there are so many.
async fn begun_starting(mark: &str, host: u32, count: usize) -> Result<Census> {
    let deadline = Instant::now() + STARTUP;
    loop {
        let census = Census::take(mark, host)?;
        if census.marked.len() >= count && census.watchdog.is_some() {
            return Ok(census);
        }
        if Instant::now() > deadline {
            return Err(format!("there are {} processes, not {count}", census.marked.len()).into());
        }
        tokio::task::yield_now().await;
    }
}

/// Ends hosts in one way; how many of them left something behind.
async fn end_many(end: End, upstreams: usize, repetitions: usize, limit: Duration) -> Result<usize> {
    let (mut processes, mut longest, mut failed) = (0, Duration::ZERO, 0);
    for repetition in 0..repetitions {
        let mark = format!("{}-{end}-{repetition}", std::process::id());
        // Each host gets further than the one before: from its first process to all but a few.
        let early = 1 + repetition * upstreams * EACH / repetitions;
        match end_one(Run { end, mark: &mark, upstreams, limit, early }).await {
            Ok(gone) => {
                processes += gone.processes;
                longest = longest.max(gone.took);
            }
            Err(error) => {
                failed += 1;
                writeln!(std::io::stdout(), "{end}, repetition {repetition}: {error}")?;
                Census::take(&mark, 0)?.end_all().await?;
            }
        }
    }
    writeln!(
        std::io::stdout(),
        "{end}: {repetitions} hosts of {upstreams} servers, {processes} processes gone, the last after {longest:.2?}; \
         {failed} hosts left some"
    )?;
    Ok(failed)
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let (upstreams, repetitions, limit) = match arguments[..] {
        ["host", upstreams] => return host::run(upstreams.parse()?).await,
        ["server", temper] => return server::run(temper.parse()?).await,
        [] => (50, 20, LIMIT),
        [upstreams, repetitions] => (upstreams.parse()?, repetitions.parse()?, LIMIT),
        [upstreams, repetitions, seconds] => {
            (upstreams.parse()?, repetitions.parse()?, Duration::from_secs(seconds.parse()?))
        }
        _ => return Err("usage: orphans [UPSTREAMS REPETITIONS [SECONDS]]".into()),
    };
    let mut failed = 0;
    for end in End::ALL {
        failed += end_many(end, upstreams, repetitions, limit).await?;
    }
    let passed = End::ALL.len() * repetitions - failed;
    writeln!(std::io::stdout(), "{passed} passed, {failed} failed")?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
