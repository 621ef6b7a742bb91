//! Measures every engine next to memory, in turns, so that what disturbs one disturbs its neighbour.
//!
//! S-02: submitting a task, one at a time and sixteen at once. S-04: reading and claiming with many tasks waiting. S-06: what a
//! task of a thousand steps writes. On Redis also tasks over HTTP, next to FastMCP: see `tasks`.

mod http;
mod tasks;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_store::{ClaimRequest, Group, Key, NodeId, Put, Queue, Store};
use bowline_stores::{StoreOptions, key_ring};
use futures_util::StreamExt;
use futures_util::stream;

const HOUR: Duration = Duration::from_secs(3_600);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How much is measured.
#[derive(Clone, Copy)]
struct Size {
    rounds: usize,
    /// Operations per round.
    operations: usize,
    /// Tasks that wait while S-04 is measured.
    waiting: usize,
}

struct Engine {
    name: &'static str,
    store: Store,
    queue: Queue,
    count: u64,
    submit: Vec<Duration>,
    step: Vec<Duration>,
    parallel: Vec<f64>,
    read: Vec<Duration>,
    claim: Vec<Duration>,
}

impl Engine {
    async fn open(name: &'static str, url: &str) -> Result<Self, Failure> {
        let namespace = format!("bench-{:x}", fastrand::u64(..));
        let keys = key_ring(["07".repeat(32)])?;
        let store = StoreOptions::new(url).namespace(&namespace)?.keys(keys).open().await?;
        Ok(Self {
            name,
            store,
            queue: Queue::new("index@1")?,
            count: 0,
            submit: Vec::new(),
            step: Vec::new(),
            parallel: Vec::new(),
            read: Vec::new(),
            claim: Vec::new(),
        })
    }

    fn key(&mut self) -> Result<Key, Failure> {
        self.count += 1;
        // Ids of tasks are random; their order is not that of their creation.
        Ok(Key::new(format!("task/{:016x}{:x}", fastrand::u64(..), self.count))?)
    }

    /// A task with 600 bytes of arguments and state.
    fn task(&mut self) -> Result<Put, Failure> {
        let put = Put::create(self.key()?, vec![b'x'; 600], HOUR);
        let group = Group::new(format!("tasks/{}", self.count % 50))?;
        Ok(put.queue(self.queue.clone()).group(group).due_in(Duration::ZERO))
    }

    /// S-02: one task after the other, with its first step.
    async fn submit(&mut self, operations: usize) -> Result<(), Failure> {
        let node = NodeId::random();
        for _ in 0..operations {
            let put = self.task()?;
            let owner = bowline_store::Owner { node, claim: bowline_store::ClaimId::random() };
            let key = put.key.clone();
            let started = Instant::now();
            self.store.records().put(put.take(owner, HOUR)).await?;
            self.submit.push(started.elapsed());
            let step = Key::new(format!("{key}/step/1"))?;
            let started = Instant::now();
            let put = Put::create(step, vec![b'y'; 100], HOUR).under_claim(key, owner.claim);
            self.store.records().put(put).await?;
            self.step.push(started.elapsed());
        }
        Ok(())
    }

    /// S-02: sixteen at once.
    async fn submit_parallel(&mut self, operations: usize) -> Result<(), Failure> {
        let puts = (0..operations).map(|_| self.task()).collect::<Result<Vec<Put>, _>>()?;
        let started = Instant::now();
        self.put_all(puts, 16).await?;
        self.parallel.push(operations as f64 / started.elapsed().as_secs_f64());
        Ok(())
    }

    async fn put_all(&self, puts: Vec<Put>, at_once: usize) -> Result<(), Failure> {
        let results = stream::iter(puts)
            .map(|put| {
                let records = Arc::clone(self.store.records());
                async move { records.put(put).await }
            })
            .buffer_unordered(at_once);
        results.collect::<Vec<_>>().await.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(())
    }

    /// S-04: reads and claims among many tasks that wait.
    async fn among_many(&mut self, operations: usize, keys: &[Key]) -> Result<(), Failure> {
        let node = NodeId::random();
        for _ in 0..operations {
            let key = [keys[fastrand::usize(..keys.len())].clone()];
            let started = Instant::now();
            self.store.records().get(&key).await?;
            self.read.push(started.elapsed());
            let request = ClaimRequest::new(node, [self.queue.clone()]).limit(1);
            let started = Instant::now();
            let claimed = self.store.records().claim(request).await?;
            self.claim.push(started.elapsed());
            assert_eq!(claimed.len(), 1, "{}: a task was waiting", self.name);
        }
        Ok(())
    }

    async fn fill(&mut self, waiting: usize) -> Result<Vec<Key>, Failure> {
        let mut keys = Vec::new();
        while keys.len() < waiting {
            let puts =
                (0..1_000).map(|_| Ok(self.task()?.relaxed())).collect::<Result<Vec<Put>, Failure>>()?;
            keys.extend(puts.iter().map(|put| put.key.clone()));
            self.put_all(puts, 32).await?;
        }
        Ok(keys)
    }
}

fn quantile(times: &mut [Duration], share: f64) -> f64 {
    times.sort_unstable();
    let place = ((times.len() - 1) as f64 * share).round();
    times[place as usize].as_secs_f64() * 1_000.0
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// S-06, by calculation: the bytes of names and sealed values that a task of a thousand steps of 100 bytes writes.
fn step_bytes() -> usize {
    let record = bowline_proto::seal::sealed_len(600) + 60;
    let step = bowline_proto::seal::sealed_len(100) + "task/0123456789abcdef/step/0000".len();
    record * 2 + step * 1_000
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, port, url, kind] = &arguments[..]
        && first == "serve"
    {
        return tasks::serve(port.parse()?, url, kind == "front").await;
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let size = if quick {
        Size { rounds: 3, operations: 60, waiting: 5_000 }
    } else {
        Size { rounds: 5, operations: 400, waiting: 100_000 }
    };
    // The figures of tasks alone.
    if !arguments.iter().any(|argument| argument == "--tasks") {
        engines(size).await?;
    }
    match std::env::var("BOWLINE_STORE_REDIS") {
        Ok(url) => tasks::compare(&url, std::env::var("BENCH_FASTMCP").ok().as_deref(), size).await,
        Err(_) => Ok(()),
    }
}

async fn engines(size: Size) -> Result<(), Failure> {
    let file = std::env::temp_dir().join(format!("bowline-bench-{}.db", std::process::id()));
    let mut engines = vec![
        Engine::open("memory", "memory:").await?,
        Engine::open("sqlite", &format!("sqlite:{}", file.display())).await?,
    ];
    for (name, variable) in [("postgres", "BOWLINE_STORE_POSTGRES"), ("redis", "BOWLINE_STORE_REDIS")] {
        if let Ok(url) = std::env::var(variable) {
            engines.push(Engine::open(name, &url).await?);
        }
    }
    for _ in 0..size.rounds {
        for engine in &mut engines {
            engine.submit(size.operations).await?;
        }
        for engine in &mut engines {
            engine.submit_parallel(size.operations * 4).await?;
        }
    }
    let mut keys = Vec::new();
    for engine in &mut engines {
        keys.push(engine.fill(size.waiting).await?);
    }
    for _ in 0..size.rounds {
        for (engine, keys) in engines.iter_mut().zip(&keys) {
            engine.among_many(size.operations, keys).await?;
        }
    }
    println!("| engine | submit p50 | to memory | step p50 | 16 at once | get p99 | claim p99 |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let mut reference = None;
    for engine in &mut engines {
        let submit = quantile(&mut engine.submit, 0.5);
        let reference = *reference.get_or_insert(submit);
        println!(
            "| {} | {submit:.3} ms | {:.1} | {:.3} ms | {:.0}/s | {:.2} ms | {:.2} ms |",
            engine.name,
            submit / reference,
            quantile(&mut engine.step, 0.5),
            median(&mut engine.parallel),
            quantile(&mut engine.read, 0.99),
            quantile(&mut engine.claim, 0.99),
        );
    }
    println!(
        "\nget and claim with {} tasks waiting; a task of 1,000 steps writes {} KiB",
        size.waiting,
        step_bytes() / 1_024
    );
    drop(engines);
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", file.display()));
    }
    Ok(())
}
