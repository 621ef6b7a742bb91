//! Load of both eras on several processes behind a balancer, while processes are killed, stopped or replaced and their store
//! fails: `replicas --store URL [OPTION…]`.
//!
//! The clients break connections, resume streams, create tasks and answer their questions. What they see, and what the
//! handlers did, is checked by the rules of `bowline_testing::history`. In addition, a call without state never fails because
//! of the store, a session is never lost, and acknowledged answers and cancellations count.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the results are its output")]

mod load;
mod nodes;
mod proxy;
mod tasks;
mod wire;

use bowline_testing::history::{Event, History, Rules};
use load::{Counts, Load};
use nodes::{Nodes, Settings};
use proxy::Link;
use std::{
    process::ExitCode,
    sync::{Arc, PoisonError},
    time::Duration,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep},
};

const USAGE: &str = "usage: replicas --store URL [--faults none,kill,stop,roll,store,slow,partition] [--seconds N] [--clients N]
                [--tasks N] [--lease MS] [--kill COMMAND --start COMMAND] [--break values,users,memory]
  --seconds  of each fault, 8 by default
  --clients  of both eras, each a user of its own, 24 by default
  --tasks    created per second, 10 by default
  --lease    after which another process takes over a task, 5000 by default
  --kill, --start  how to kill and start the store
  --break    what the processes do wrong: the run passes if the checker notices";

struct Arguments {
    nodes: Settings,
    faults: Vec<String>,
    seconds: u64,
    clients: usize,
    tasks: u32,
}

fn arguments() -> Option<Arguments> {
    let mut found = Arguments {
        nodes: Settings {
            store: String::new(),
            lease: Duration::from_secs(5),
            broken: "no".into(),
            kill_store: None,
            start_store: None,
        },
        faults: vec!["none".into()],
        seconds: 8,
        clients: 24,
        tasks: 10,
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let value = given.next()?;
        match name.as_str() {
            "--store" => found.nodes.store = value,
            "--faults" => found.faults = value.split(',').map(str::to_owned).collect(),
            "--seconds" => found.seconds = value.parse().ok()?,
            "--clients" => found.clients = value.parse().ok().filter(|clients| *clients >= 3)?,
            "--tasks" => found.tasks = value.parse().ok().filter(|tasks| *tasks > 0)?,
            "--lease" => found.nodes.lease = Duration::from_millis(value.parse().ok()?),
            "--break" => found.nodes.broken = value,
            "--kill" => found.nodes.kill_store = Some(value),
            "--start" => found.nodes.start_store = Some(value),
            _ => return None,
        }
    }
    (!found.nodes.store.is_empty()).then_some(found)
}

/// Whether calls without state must not notice a fault.
fn is_strict(fault: &str) -> bool {
    matches!(fault, "none" | "store" | "slow" | "partition")
}

/// What happens to the processes and their store.
async fn fault(name: &str, nodes: &Nodes, load: &Load, seconds: u64) -> Result<(), String> {
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut turn = 0;
    // Some load first.
    sleep(Duration::from_secs(1)).await;
    while Instant::now() < until {
        let node = turn % nodes.len();
        turn += 1;
        match name {
            "none" => sleep(Duration::from_secs(1)).await,
            "kill" => {
                if let Some(node) = nodes.kill(node).await? {
                    load.note(Event::NodeDied { node });
                }
                sleep(Duration::from_secs(1)).await;
                nodes.start(node).await?;
                sleep(Duration::from_secs(4)).await;
            }
            "stop" => {
                nodes.signal(node, "STOP")?;
                // Longer than a lease. With enough time, longer than a process counts as alive, so that others end its streams.
                sleep(Duration::from_secs(if seconds < 25 { 8 } else { 18 })).await;
                nodes.signal(node, "CONT")?;
                sleep(Duration::from_secs(2)).await;
            }
            "roll" => {
                nodes.terminate(node).await?;
                nodes.start(node).await?;
                sleep(Duration::from_secs(1)).await;
            }
            "store" => {
                nodes.kill_store().await?;
                sleep(Duration::from_secs(2)).await;
                nodes.start_store().await?;
                recovers(name, load).await;
                sleep(Duration::from_secs(4)).await;
            }
            "slow" => {
                // Longer than the deadline of an operation.
                nodes.link(None, Link::Passes(Duration::from_secs(3)))?;
                sleep(Duration::from_secs(4)).await;
                nodes.link(None, Link::Passes(Duration::ZERO))?;
                recovers(name, load).await;
                sleep(Duration::from_secs(4)).await;
            }
            "partition" => {
                nodes.link(Some(node), if turn % 2 == 1 { Link::Holds } else { Link::Cuts })?;
                sleep(nodes.lease() + Duration::from_secs(2)).await;
                nodes.link(Some(node), Link::Passes(Duration::ZERO))?;
                recovers(name, load).await;
                sleep(Duration::from_secs(2)).await;
            }
            other => return Err(format!("unknown fault `{other}`\n{USAGE}")),
        }
    }
    Ok(())
}

/// Waits until every process opens sessions again, which needs the store.
async fn recovers(fault: &str, load: &Load) {
    let started = Instant::now();
    let (mut in_a_row, mut last) = (0, None);
    // The balancer takes turns; other requests get in between.
    while in_a_row < 9 && started.elapsed() < wire::PATIENCE {
        match load.probe().await {
            Ok(()) => in_a_row += 1,
            Err(reason) => {
                in_a_row = 0;
                last = Some((started.elapsed(), reason));
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
    let Some((time, reason)) = last else {
        return println!("  {fault}: all processes reach the store as soon as it is back");
    };
    println!(
        "  {fault}: all processes reach the store {:.1} s after it is back; before: {reason}",
        time.as_secs_f64()
    );
}

/// Creates tasks at a steady rate, and waits for them.
async fn create_tasks(load: Arc<Load>, per_second: u32) {
    let mut waiting = JoinSet::new();
    let mut ticks = interval(Duration::from_secs(1) / per_second);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut number = 0;
    while !load.is_over() {
        ticks.tick().await;
        waiting.spawn(Arc::clone(&load).task(number));
        number += 1;
        while waiting.try_join_next().is_some() {}
    }
    waiting.join_all().await;
}

/// Reads every task once more, of all users, when there is no fault any more.
async fn look_at_all(load: &Arc<Load>) -> usize {
    let tasks = load.tasks.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let count = tasks.len();
    let mut looking = JoinSet::new();
    for (id, user) in tasks {
        if looking.len() >= 16 {
            looking.join_next().await;
        }
        let load = Arc::clone(load);
        looking.spawn(async move { load.look_again(&id, &user).await });
    }
    looking.join_all().await;
    count
}

fn print_counts(name: &str, before: &Counts, counts: &Counts) {
    println!(
        "{name}: {} responses, {} tasks created, {} completed, {} cancelled, {} failed, {} questions answered, {} resumed streams, \
         {} calls without state (slowest {} ms), {} error events, {} interrupted, {} refused",
        counts.responses - before.responses,
        counts.created - before.created,
        counts.completed - before.completed,
        counts.cancelled - before.cancelled,
        counts.failed - before.failed,
        counts.answered - before.answered,
        counts.resumed - before.resumed,
        counts.plain - before.plain,
        counts.slowest,
        counts.errors - before.errors,
        counts.interrupted - before.interrupted,
        counts.refused - before.refused,
    );
}

/// Whether the checker notices everything that is broken on purpose.
fn are_noticed(broken: &str, violations: &[String]) -> bool {
    let mut all = true;
    for broken in broken.split(',') {
        let rule = match broken {
            "values" => "H3",
            "users" => "H9",
            _ => "H1",
        };
        let is_noticed = violations.iter().any(|violation| violation.starts_with(rule));
        println!(
            "  `{broken}` is broken on purpose, and {rule} {}",
            if is_noticed { "shows it" } else { "does not show it" }
        );
        all &= is_noticed;
    }
    all
}

async fn run(arguments: Arguments) -> Result<bool, String> {
    let Arguments { nodes: settings, faults, seconds, clients, tasks } = arguments;
    let (broken, lease) = (settings.broken.clone(), settings.lease);
    let nodes = Nodes::new(3, settings).await?;
    let load = Arc::new(Load::new(nodes.port(), clients));
    let mut workers = JoinSet::new();
    for client in 0..clients {
        workers.spawn(Arc::clone(&load).work(client));
    }
    workers.spawn(Arc::clone(&load).call_plainly());
    workers.spawn(create_tasks(Arc::clone(&load), tasks));
    let mut is_quiet = true;
    for name in &faults {
        load.set_strict(is_strict(name) && broken == "no");
        let before = load.counts();
        fault(name, &nodes, &load, seconds).await?;
        let counts = load.counts();
        print_counts(name, &before, &counts);
        if name == "none" && (counts.errors > before.errors || counts.interrupted > before.interrupted) {
            println!("  something failed without a fault");
            is_quiet = false;
        }
    }
    load.set_strict(false);
    load.end();
    load.note(Event::Quiet);
    let _ = load.quiet.set(Instant::now());
    // What a dead process left behind is found after a lease, runs, and may be found twice. Nothing takes longer than this.
    let _ = load.deadline.set(Instant::now() + lease * 4 + Duration::from_secs(60));
    let ending = Instant::now();
    while let Some(ended) = workers.join_next().await {
        ended.map_err(|error| error.to_string())?;
    }
    println!("  all tasks have ended {:.1} s after the last fault", ending.elapsed().as_secs_f64());
    let looked_at = look_at_all(&load).await;
    // Lines of the processes first: at the same millisecond, they are the cause of what clients saw.
    let history = History::new();
    let lines = std::fs::read_to_string(nodes.history()).map_err(|error| error.to_string())?;
    history.read_lines(&lines).map_err(|error| error.to_string())?;
    for entry in load.history().entries() {
        history.record(entry.at, entry.event);
    }
    let mut violations = load.violations();
    violations.extend(history.check(&Rules::all()).iter().map(ToString::to_string));
    let entries = history.entries();
    let count = |is: fn(&Event) -> bool| entries.iter().filter(|entry| is(&entry.event)).count();
    let states = count(|event| matches!(event, Event::StateUsed { .. }));
    let steps = count(|event| matches!(event, Event::StepRan { .. }));
    let lapsed = count(|event| matches!(event, Event::AttemptStarted { lapses: 1.., .. }));
    print_counts("all", &Counts::default(), &load.counts());
    println!(
        "  history: {} events, {states} states used, {steps} steps, {lapsed} attempts after a lapse, {looked_at} tasks read at the end, \
         {} violations",
        entries.len(),
        violations.len()
    );
    for violation in violations.iter().take(20) {
        println!("  {violation}");
    }
    if broken != "no" {
        return Ok(are_noticed(&broken, &violations));
    }
    // A run without anything to look at proves nothing.
    let counts = load.counts();
    let is_load = counts.responses > 20
        && counts.resumed > 2
        && counts.completed > 10
        && counts.answered > 2
        && counts.refused > 2
        && counts.plain > 20
        && states > 2;
    if !is_load {
        println!("  too little happened");
    }
    Ok(violations.is_empty() && is_load && is_quiet)
}

#[tokio::main]
async fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return ExitCode::FAILURE;
    };
    // Dropped at a signal, so that no process and no folder stays behind.
    let result = tokio::select! {
        result = run(arguments) => result,
        _ = terminate.recv() => Err("ended by a signal".into()),
        _ = interrupt.recv() => Err("ended by a signal".into()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
