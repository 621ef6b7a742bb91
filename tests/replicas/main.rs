//! Load of both eras on several processes behind a balancer, while processes are killed, stopped or replaced:
//! `replicas FAULT SECONDS STORE`, where FAULT is `none`, `kill`, `stop` or `roll`.
//!
//! The clients break connections and resume streams. What they see, and what the handlers did, is checked:
//!
//! - the events of a stream have no gap and no duplicate, or the stream ends with an error;
//! - nothing crosses users;
//! - every request settles: a response, an error, or a broken connection;
//! - a `requestState` is used once.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the results are its output")]

mod load;
mod nodes;
mod wire;

use load::{Counts, Load};
use nodes::Nodes;
use std::{collections::HashMap, process::ExitCode, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

/// What happens to the processes.
async fn fault(name: &str, nodes: &Nodes, until: Instant) -> Result<(), String> {
    let mut turn = 0;
    // Some load first.
    sleep(Duration::from_secs(2)).await;
    while Instant::now() < until {
        let node = turn % nodes.len();
        turn += 1;
        match name {
            "none" => sleep(Duration::from_secs(1)).await,
            "kill" => {
                nodes.kill(node).await?;
                sleep(Duration::from_secs(1)).await;
                nodes.start(node).await?;
                sleep(Duration::from_secs(4)).await;
            }
            "stop" => {
                nodes.signal(node, "STOP")?;
                // Longer than a process counts as alive, so that others end its streams.
                sleep(Duration::from_secs(18)).await;
                nodes.signal(node, "CONT")?;
                sleep(Duration::from_secs(2)).await;
            }
            "roll" => {
                nodes.terminate(node).await?;
                nodes.start(node).await?;
                sleep(Duration::from_secs(1)).await;
            }
            other => return Err(format!("unknown fault `{other}`; use none, kill, stop or roll")),
        }
    }
    Ok(())
}

/// Each label is confirmed at most once, by its user.
fn check_history(text: &str, violations: &mut Vec<String>) -> usize {
    let mut confirmed: HashMap<String, String> = HashMap::new();
    for line in text.lines() {
        let Ok(entry) = serde_json::from_str::<serde_json::Value>(line) else {
            violations.push(format!("a line of the history cannot be read: {line}"));
            continue;
        };
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let (label, user) = (text("confirmed"), text("user"));
        if !label.starts_with(&format!("{user}.")) {
            violations.push(format!("`{label}` was confirmed by `{user}`"));
        }
        if confirmed.insert(label.clone(), user).is_some() {
            violations.push(format!("`{label}` was confirmed twice"));
        }
    }
    confirmed.len()
}

async fn run(name: &str, seconds: u64, store: &str) -> Result<bool, String> {
    let nodes = Nodes::new(3, store).await?;
    let until = Instant::now() + Duration::from_secs(seconds);
    let load = Arc::new(Load::new(nodes.port(), until));
    let workers: Vec<_> = (0..6).map(|worker| tokio::spawn(Arc::clone(&load).work(worker))).collect();
    fault(name, &nodes, until).await?;
    for worker in workers {
        worker.await.map_err(|error| error.to_string())?;
    }
    let mut violations = load.violations();
    let history = std::fs::read_to_string(nodes.history()).map_err(|error| error.to_string())?;
    let confirmed = check_history(&history, &mut violations);
    let Counts { responses, interrupted, resumed, errors, refused } = load.counts();
    println!(
        "{name}: {responses} responses, {resumed} resumed streams, {confirmed} confirmed, {errors} error events, \
         {interrupted} interrupted, {refused} refused, {} violations",
        violations.len()
    );
    for violation in violations.iter().take(20) {
        println!("  {violation}");
    }
    // A run without anything to look at proves nothing.
    let is_load = responses > 20 && resumed > 2 && confirmed > 2;
    if !is_load {
        println!("  too little happened");
    }
    if name == "none" && errors + interrupted > 0 {
        println!("  something failed without a fault");
        return Ok(false);
    }
    Ok(violations.is_empty() && is_load)
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, seconds, store] = &arguments[..] else {
        eprintln!("usage: replicas none|kill|stop|roll SECONDS STORE");
        return ExitCode::from(2);
    };
    match run(name, seconds.parse().unwrap_or(20), store).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
