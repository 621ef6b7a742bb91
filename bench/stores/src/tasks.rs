//! Tasks over HTTP, of our server and of FastMCP on the same Redis, in turns.
//!
//! Throughput: sixteen clients create tasks and ask for their results until they have them. S-03: from the reply of a submission
//! to the first line of the handler, in the same process and in another one; from an answer to the next round.

use std::net::Ipv4Addr;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bowline::http::HttpService;
use bowline::prelude::*;
use bowline::server::{Key, KeyRing};
use bowline::store::StoreOptions;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::time::sleep;

use crate::http::Caller;
use crate::{Failure, Size, median, quantile};

const CLIENTS: usize = 16;

fn micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[data]
struct Sure {
    sure: bool,
}

/// When its first line ran, in microseconds.
#[tool(task, idempotent)]
async fn stamp() -> String {
    micros().to_string()
}

/// When it ran after its question was answered, in microseconds.
#[tool(task, idempotent)]
async fn stamp_answer(ctx: Ctx) -> bowline::Result<String> {
    let Sure { .. } = ctx.ask("Go on?").await?.accepted()?;
    Ok(micros().to_string())
}

/// Serves the tools above. A process that is a front runs no tasks.
pub(crate) async fn serve(port: u16, url: &str, is_front: bool) -> Result<(), Failure> {
    let keys = KeyRing::new(Key::new([7; 32]));
    let store = StoreOptions::new(url).keys(keys.clone()).open().await?;
    let tasks = Tasks::new(store).space("bench").run(!is_front).per_principal(1_000_000);
    let server = Server::new("bench").keys(keys).tasks(tasks).tool(stamp::tool()).tool(stamp_answer::tool());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    HttpService::new(server)?.serve(listener, std::future::pending()).await?;
    Ok(())
}

/// A server in a process of its own, which ends with this value.
struct Peer {
    name: &'static str,
    port: u16,
    _child: Child,
    submit: Vec<Duration>,
    rates: Vec<f64>,
}

impl Peer {
    async fn start(name: &'static str, program: &str, arguments: &[&str]) -> Result<Self, Failure> {
        let port = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let arguments = arguments.iter().map(|text| text.replace("PORT", &port.to_string()));
        let child =
            Command::new(program).args(arguments).stdin(Stdio::null()).kill_on_drop(true).spawn()?;
        for _ in 0..600 {
            if Caller::connect(port).await.is_ok() {
                return Ok(Self { name, port, _child: child, submit: Vec::new(), rates: Vec::new() });
            }
            sleep(Duration::from_millis(100)).await;
        }
        Err(format!("{name} does not answer").into())
    }

    /// One round of tasks from all clients at once.
    async fn round(&mut self, operations: usize) -> Result<(), Failure> {
        let port = self.port;
        let client = move || async move {
            let mut caller = Caller::connect(port).await?;
            let mut times = Vec::new();
            for _ in 0..operations.div_ceil(CLIENTS) {
                let started = Instant::now();
                let task = create(&mut caller, "stamp").await?;
                times.push(started.elapsed());
                result(&mut caller, &task).await?;
            }
            Ok::<_, Failure>(times)
        };
        let started = Instant::now();
        let clients: Vec<_> = (0..CLIENTS).map(|_| tokio::spawn(client())).collect();
        let mut done = 0;
        for client in clients {
            let times = client.await??;
            done += times.len();
            self.submit.extend(times);
        }
        self.rates.push(done as f64 / started.elapsed().as_secs_f64());
        Ok(())
    }
}

async fn create(caller: &mut Caller, tool: &str) -> Result<String, Failure> {
    let reply = caller.call("tools/call", tool, json!({ "name": tool, "arguments": {} })).await?;
    Ok(reply["taskId"].as_str().ok_or_else(|| format!("not a task: {reply}"))?.to_owned())
}

/// Asks until the task has the status, without regard to the pause that the server suggests.
async fn until(caller: &mut Caller, task: &str, status: &str) -> Result<Value, Failure> {
    loop {
        let reply = caller.call("tasks/get", task, json!({ "taskId": task })).await?;
        if reply["status"] == status {
            return Ok(reply);
        }
        if matches!(reply["status"].as_str(), Some("failed" | "cancelled")) {
            return Err(format!("a task failed: {reply}").into());
        }
        sleep(Duration::from_millis(2)).await;
    }
}

async fn result(caller: &mut Caller, task: &str) -> Result<u64, Failure> {
    let reply = until(caller, task, "completed").await?;
    let text = reply["result"]["content"][0]["text"].as_str().unwrap_or_default();
    Ok(text.parse().map_err(|_| format!("not a time: {reply}"))?)
}

/// How long after the reply the first line ran; nothing, if it ran before.
async fn delays(port: u16, operations: usize) -> Result<(f64, f64), Failure> {
    let mut caller = Caller::connect(port).await?;
    let (mut first, mut next) = (Vec::new(), Vec::new());
    for _ in 0..operations {
        let task = create(&mut caller, "stamp").await?;
        let replied = micros();
        let ran = result(&mut caller, &task).await?;
        first.push(Duration::from_micros(ran.saturating_sub(replied)));
        let task = create(&mut caller, "stamp_answer").await?;
        let asking = until(&mut caller, &task, "input_required").await?;
        let key = asking["inputRequests"].as_object().and_then(|asked| asked.keys().next().cloned());
        let answer = json!({ "action": "accept", "content": { "sure": true } });
        let answers = json!({ "taskId": task, "inputResponses": { key.unwrap_or_default(): answer } });
        caller.call("tasks/update", &task, answers).await?;
        let replied = micros();
        let ran = result(&mut caller, &task).await?;
        next.push(Duration::from_micros(ran.saturating_sub(replied)));
    }
    Ok((quantile(&mut first, 0.5), quantile(&mut next, 0.5)))
}

/// Measures both servers on the Redis of `url`. `python` has FastMCP with its tasks, if there is one.
pub(crate) async fn compare(url: &str, python: Option<&str>, size: Size) -> Result<(), Failure> {
    let program = std::env::current_exe()?;
    let program = program.to_str().ok_or("the path of this program is not text")?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/fastmcp_server.py");
    let mut peers = vec![Peer::start("bowline", program, &["serve", "PORT", url, "both"]).await?];
    if let Some(python) = python {
        peers.push(Peer::start("fastmcp", python, &[script, "PORT", url]).await?);
    }
    for peer in &mut peers {
        // Not measured: the first calls of a process.
        peer.round(CLIENTS * 2).await?;
        peer.submit.clear();
        peer.rates.clear();
    }
    for _ in 0..size.rounds {
        for peer in &mut peers {
            peer.round(size.operations).await?;
        }
    }
    println!("\ntasks over HTTP on Redis, one process, {CLIENTS} clients at once, in turns\n");
    println!("| server | tasks per second | to bowline | submit p50 |\n| --- | --- | --- | --- |");
    let mut reference = None;
    for peer in &mut peers {
        let rate = median(&mut peer.rates);
        let reference = *reference.get_or_insert(rate);
        println!("| {} | {rate:.0} | {:.2} | {:.2} ms |", peer.name, rate / reference, quantile(&mut peer.submit, 0.5));
    }
    let (same_first, same_next) = delays(peers[0].port, size.operations / 4).await?;
    drop(peers);
    let front = Peer::start("front", program, &["serve", "PORT", url, "front"]).await?;
    let _worker = Peer::start("worker", program, &["serve", "PORT", url, "both"]).await?;
    let (other_first, other_next) = delays(front.port, size.operations / 4).await?;
    println!("\n| S-03, p50 | same process | another process |\n| --- | --- | --- |");
    println!("| reply of the submission to the first line | {same_first:.2} ms | {other_first:.2} ms |");
    println!("| reply of the answer to the next round | {same_next:.2} ms | {other_next:.2} ms |");
    Ok(())
}
