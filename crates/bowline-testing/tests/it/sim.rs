//! A small worker on a simulated store, over many seeds.
//!
//! The worker follows the rules that every runner of tasks must follow. Each seed is another order of delays, failures, late
//! writes, partitions, crashes and jumps of the clock; the history of each run is checked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_store::{
    ClaimId, ClaimRequest, Key, NodeId, Owner, Put, PutError, Queue, Record, Records, StoreError,
};
use bowline_testing::history::{Event, History, Rules, Status};
use bowline_testing::sim::{Faults, SimStore, World};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, sleep};

const LEASE: Duration = Duration::from_secs(15);
const RENEW: Duration = Duration::from_secs(5);
/// After this time without a renewal a node begins nothing new.
const FRESH: Duration = Duration::from_secs(10);
const STEPS: usize = 3;
const TASKS: usize = 4;
const TTL: Duration = Duration::from_secs(3_600);

fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

/// What all parts of a run share.
#[derive(Clone)]
struct Run {
    world: World,
    history: Arc<History>,
    start: Instant,
}

impl Run {
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap()
    }

    fn record(&self, event: Event) {
        self.history.record(self.now(), event);
    }

    /// A pause of up to `millis`.
    async fn pause(&self, millis: u64) {
        sleep(Duration::from_millis(1 + self.world.random(millis))).await;
    }
}

/// One process that works on tasks.
#[derive(Clone)]
struct Node {
    run: Run,
    store: SimStore,
    id: NodeId,
    /// The attempts that run, by claim.
    attempts: Arc<Mutex<HashMap<ClaimId, (String, AbortHandle)>>>,
    /// When the last successful renewal was sent.
    renewed: Arc<Mutex<Instant>>,
}

impl Node {
    fn new(run: &Run) -> Self {
        Self {
            run: run.clone(),
            store: run.world.node(),
            id: NodeId::from_bits(run.world.random(u64::MAX)),
            attempts: Arc::default(),
            renewed: Arc::new(Mutex::new(Instant::now())),
        }
    }

    async fn work(self) {
        let mut connected: Option<Instant> = Some(Instant::now());
        let mut last = Instant::now();
        loop {
            sleep(Duration::from_millis(700 + self.run.world.random(600))).await;
            if last.elapsed() >= RENEW {
                last = Instant::now();
                match self.store.renew(self.id, LEASE).await {
                    Ok(held) => {
                        *self.renewed.lock().unwrap() = last;
                        connected.get_or_insert(last);
                        self.keep(&held).await;
                    }
                    Err(_) => connected = None,
                }
            }
            let free = 2_usize.saturating_sub(self.attempts.lock().unwrap().len());
            // Living owners renew first after an outage.
            let lapsed = connected.is_some_and(|since| since.elapsed() >= LEASE);
            if free > 0 && self.is_fresh() {
                let request = ClaimRequest::new(self.id, [Queue::new("q").unwrap()])
                    .limit(free)
                    .lease(LEASE)
                    .lapsed(lapsed);
                for record in self.store.claim(request).await.unwrap_or_default() {
                    self.begin(record);
                }
            }
        }
    }

    fn is_fresh(&self) -> bool {
        self.renewed.lock().unwrap().elapsed() < FRESH
    }

    /// Stops attempts that lost their claim, and begins those of claims whose answer got lost.
    async fn keep(&self, held: &[(Key, Owner)]) {
        let lost: Vec<ClaimId> = {
            let attempts = self.attempts.lock().unwrap();
            let is_held = |claim: &ClaimId| held.iter().any(|(_, owner)| owner.claim == *claim);
            let mut lost: Vec<ClaimId> = attempts.keys().filter(|claim| !is_held(claim)).copied().collect();
            lost.sort_unstable();
            lost
        };
        for claim in lost {
            if let Some((task, attempt)) = self.attempts.lock().unwrap().remove(&claim) {
                attempt.abort();
                self.run.record(Event::AttemptEnded { task, claim: claim.to_string() });
            }
        }
        for (key, owner) in held {
            if self.attempts.lock().unwrap().contains_key(&owner.claim) {
                continue;
            }
            let Ok(records) = self.store.get(std::slice::from_ref(key)).await else { continue };
            for record in records.into_iter().flatten().filter(|record| record.owner == Some(*owner)) {
                self.begin(record);
            }
        }
    }

    fn begin(&self, record: Record) {
        let Some(owner) = record.owner else { return };
        let task = record.key.to_string();
        self.run.record(Event::AttemptStarted {
            task: task.clone(),
            node: self.id.to_string(),
            claim: owner.claim.to_string(),
            lapses: record.lapses,
        });
        let node = self.clone();
        let attempt = tokio::spawn(async move {
            let task = record.key.to_string();
            node.attempt(record, owner.claim).await;
            node.attempts.lock().unwrap().remove(&owner.claim);
            node.run.record(Event::AttemptEnded { task, claim: owner.claim.to_string() });
        });
        self.attempts.lock().unwrap().insert(owner.claim, (task, attempt.abort_handle()));
    }

    /// Waits until the lease is surely ours.
    async fn until_fresh(&self) {
        while !self.is_fresh() {
            self.run.pause(1_000).await;
        }
    }

    async fn attempt(&self, record: Record, claim: ClaimId) {
        let task = record.key.to_string();
        let mut outcome = Vec::new();
        for step in 0..STEPS {
            let Some(value) = self.step(&task, step, claim).await else { return };
            outcome.push(value);
        }
        let value = format!("done {}", outcome.join(" "));
        let mut version = record.version;
        loop {
            self.until_fresh().await;
            let put = Put::update(record.key.clone(), value.clone(), version)
                .under_claim(record.key.clone(), claim);
            match self.store.put(put.release().never_due()).await {
                Ok(_) | Err(PutError::ClaimLost) => return,
                Err(PutError::Conflict) => match self.read(&record.key).await {
                    Some(now) if now.owner.is_some_and(|owner| owner.claim == claim) => version = now.version,
                    _ => return,
                },
                Err(_) => self.run.pause(1_000).await,
            }
        }
    }

    /// Runs a step, or takes the value that it has. `None` if the claim is lost.
    async fn step(&self, task: &str, step: usize, claim: ClaimId) -> Option<String> {
        let name = key(&format!("{task}/{step}"));
        if let Some(record) = self.read(&name).await {
            return Some(self.used(task, step, &record));
        }
        self.until_fresh().await;
        self.run.record(Event::StepRan { task: task.to_owned(), step: step.to_string() });
        self.run.pause(3_000).await;
        let value = format!("{claim}-{step}");
        loop {
            let put = Put::create(name.clone(), value.clone(), TTL).under_claim(key(task), claim);
            match self.store.put(put).await {
                Err(PutError::ClaimLost) => return None,
                Err(PutError::Store(_)) => self.run.pause(1_000).await,
                // A conflict may be with an earlier write of our own, or with another attempt.
                Ok(_) | Err(_) => {
                    let record = self.read(&name).await?;
                    return Some(self.used(task, step, &record));
                }
            }
        }
    }

    fn used(&self, task: &str, step: usize, record: &Record) -> String {
        let value = String::from_utf8(record.value.to_vec()).unwrap();
        self.run.record(Event::StepUsed {
            task: task.to_owned(),
            step: step.to_string(),
            value: value.clone(),
        });
        value
    }

    async fn read(&self, key: &Key) -> Option<Record> {
        loop {
            match self.store.get(std::slice::from_ref(key)).await {
                Ok(mut records) => return records.pop().flatten(),
                Err(_) => self.run.pause(500).await,
            }
        }
    }
}

/// Creates a task and reads it until the end of the run.
async fn client(run: Run, number: usize) {
    let store = run.world.node();
    let (task, principal) = (format!("t{number}"), format!("p{number}"));
    run.pause(10_000).await;
    loop {
        let put = Put::create(key(&task), "new", TTL).queue(Queue::new("q").unwrap()).due_in(Duration::ZERO);
        match store.put(put).await {
            // The conflict is with an earlier write of our own: nobody else knows the name.
            Ok(_) | Err(PutError::Conflict) => break,
            Err(_) => run.pause(500).await,
        }
    }
    let ttl = u64::try_from(TTL.as_millis()).unwrap();
    run.record(Event::Created { task: task.clone(), principal: principal.clone(), ttl });
    loop {
        let asked = run.now();
        let answer: Result<Vec<Option<Record>>, StoreError> = store.get(&[key(&task)]).await;
        match answer.map(|mut records| records.pop().flatten()) {
            Err(_) => {}
            Ok(None) => {
                run.record(Event::Unknown { task: task.clone(), principal: principal.clone(), asked });
            }
            Ok(Some(record)) => {
                let value = String::from_utf8(record.value.to_vec()).unwrap();
                let outcome = value.strip_prefix("done ").map(str::to_owned);
                let status = if outcome.is_some() { Status::Ended } else { Status::Working };
                run.record(Event::Read {
                    task: task.clone(),
                    principal: principal.clone(),
                    asked,
                    status,
                    outcome,
                });
            }
        }
        sleep(Duration::from_secs(2)).await;
    }
}

fn start(node: &Node) -> JoinHandle<()> {
    tokio::spawn(node.clone().work())
}

/// Runs a minute of faults and then lets the nodes finish.
async fn simulate(seed: u64) -> Arc<History> {
    let run = Run {
        world: World::new(seed, Faults::default()),
        history: Arc::new(History::new()),
        start: Instant::now(),
    };
    let mut nodes: Vec<(Node, JoinHandle<()>)> = Vec::new();
    for _ in 0..3 {
        let node = Node::new(&run);
        let task = start(&node);
        nodes.push((node, task));
    }
    for number in 0..TASKS {
        tokio::spawn(client(run.clone(), number));
    }
    while run.start.elapsed() < Duration::from_secs(60) {
        run.pause(8_000).await;
        let index = usize::try_from(run.world.random(3)).unwrap();
        match run.world.random(4) {
            0 => run.world.cut(&nodes[index].0.store, Duration::from_secs(run.world.random(30))),
            1 => run.world.move_clock(i64::try_from(run.world.random(20_000)).unwrap() - 10_000),
            2 => {
                let (node, task) = &nodes[index];
                task.abort();
                for (_, attempt) in node.attempts.lock().unwrap().values() {
                    attempt.abort();
                }
                run.record(Event::NodeDied { node: node.id.to_string() });
                let node = Node::new(&run);
                let task = start(&node);
                nodes[index] = (node, task);
            }
            _ => {}
        }
    }
    run.world.heal();
    run.record(Event::Quiet);
    // Late writes arrive within 30 s, then leases end, and then tasks are claimed and run.
    for _ in 0..15 {
        sleep(Duration::from_secs(10)).await;
        if (0..TASKS).all(|number| has_ended(&run.history, number)) {
            break;
        }
    }
    run.history
}

fn has_ended(history: &History, number: usize) -> bool {
    let task = format!("t{number}");
    let ended = |event: &Event| matches!(event, Event::Read { task: read, status: Status::Ended, .. } if *read == task);
    history.entries().iter().any(|entry| ended(&entry.event))
}

/// Runs one seed on its own runtime with paused time.
fn history_of(seed: u64) -> Arc<History> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    fastrand::seed(seed);
    runtime.block_on(simulate(seed))
}

fn check(seed: u64) {
    let history = history_of(seed);
    let violations = history.check(&Rules::all());
    assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
    for number in 0..TASKS {
        assert!(has_ended(&history, number), "seed {seed}: task t{number} never ended");
    }
}

#[test]
fn a_thousand_seeds_follow_the_rules() {
    let threads: Vec<_> = (0..4_u64)
        .map(|part| std::thread::spawn(move || (0..250).for_each(|number| check(part * 250 + number))))
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [3, 77] {
        assert_eq!(history_of(seed).entries(), history_of(seed).entries(), "seed {seed}");
    }
}
