//! What the client programs have in common: arguments, tasks that call in a closed loop, and what is printed.

use std::{
    cell::{Cell, RefCell},
    fs,
    rc::Rc,
    time::{Duration, Instant},
};
use tokio::task::LocalSet;

/// `PROGRAM --revision R --tasks N --seconds S (URL | COMMAND…)`
#[derive(Debug)]
pub struct Arguments {
    /// The revision to speak.
    pub revision: String,
    /// How many tasks call at once.
    pub tasks: usize,
    /// For how long it is measured, after a fifth of that to warm up.
    pub seconds: f64,
    /// A URL, or a command and its arguments.
    pub target: Vec<String>,
}

impl Arguments {
    /// Those of this process.
    pub fn read() -> Self {
        let mut arguments =
            Self { revision: "2026-07-28".into(), tasks: 1, seconds: 1.0, target: Vec::new() };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_else(|| panic!("{word} takes a value"));
            match word.as_str() {
                "--revision" => arguments.revision = value(),
                "--tasks" => arguments.tasks = value().parse().expect("a number of tasks"),
                "--seconds" => arguments.seconds = value().parse().expect("a number of seconds"),
                _ => {
                    arguments.target = std::iter::once(word).chain(words).collect();
                    break;
                }
            }
        }
        assert!(!arguments.target.is_empty(), "a URL or a command is needed");
        arguments
    }

    /// The message to echo, as long as the one of the load generator.
    pub fn message() -> String {
        "the quick brown fox jumps over the lazy dog and then reads a long protocol note; the quick brown fox j".into()
    }
}

/// User and system time of this process so far, in seconds.
fn cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat[stat.rfind(')').expect("a name") + 2..].split(' ').collect();
    // Clock ticks, of which Linux shows a hundred per second on every architecture.
    (fields[11].parse::<f64>().expect("utime") + fields[12].parse::<f64>().expect("stime")) / 100.0
}

/// Runs `call` in a closed loop in each task and prints calls per second, CPU time per call and the slowest call.
/// A call that fails ends the program.
pub async fn drive<C, F>(arguments: &Arguments, call: C)
where
    C: Fn() -> F + 'static,
    F: Future<Output = Result<(), String>> + 'static,
{
    let call = Rc::new(call);
    let (done, slowest) = (Rc::new(Cell::new(0_u64)), Rc::new(Cell::new(Duration::ZERO)));
    let stop = Rc::new(Cell::new(false));
    let failed = Rc::new(RefCell::new(None));
    let tasks = LocalSet::new();
    for _ in 0..arguments.tasks {
        let (call, done, slowest) = (call.clone(), done.clone(), slowest.clone());
        let (stop, failed) = (stop.clone(), failed.clone());
        tasks.spawn_local(async move {
            while !stop.get() {
                let start = Instant::now();
                if let Err(why) = call().await {
                    *failed.borrow_mut() = Some(why);
                    return;
                }
                done.set(done.get() + 1);
                slowest.set(slowest.get().max(start.elapsed()));
            }
        });
    }
    let seconds = arguments.seconds;
    let (wall, cpu, calls) = tasks
        .run_until(async {
            tokio::time::sleep(Duration::from_secs_f64(seconds / 5.0)).await;
            slowest.set(Duration::ZERO);
            let (start, before, first) = (Instant::now(), cpu(), done.get());
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            (start.elapsed().as_secs_f64(), cpu() - before, done.get() - first)
        })
        .await;
    stop.set(true);
    tasks.await;
    if let Some(why) = failed.borrow().as_ref() {
        panic!("a call failed: {why}");
    }
    println!(
        "{{\"calls_per_s\": {:.1}, \"n\": {calls}, \"cpu_us\": {:.2}, \"max_us\": {}, \"wall_s\": {wall:.3}, \"cli_busy\": {:.3}}}",
        calls as f64 / wall,
        cpu / calls as f64 * 1e6,
        slowest.get().as_micros(),
        cpu / wall,
    );
}
