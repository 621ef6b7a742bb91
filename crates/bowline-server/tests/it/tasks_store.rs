//! Tasks whose process or store fails.

mod watching;

use crate::tasks::{create, get, peer, until};
use bowline_server::{BoxFuture, Ctx, Error, Result, Server, ServerHandle, Task, Tasks, Tool};
use bowline_store::{
    Bus, ClaimRequest, Group, Key, Memory, MemoryBus, NodeId, Owner, Put, PutError, Reach, Record, Records,
    Store, StoreError, Version,
};
use serde_json::json;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// A store that fails on request and at random.
#[derive(Debug)]
struct Faulty {
    inner: Arc<Memory>,
    down: AtomicBool,
    /// Goes down when it has given out a task.
    down_after_claim: AtomicBool,
    /// The next write is not confirmed, and kept here.
    delays_next: AtomicBool,
    delayed: Mutex<Option<Put>>,
    /// The reply to the next claim that finds something is lost.
    loses_claim: AtomicBool,
    operations: AtomicUsize,
    /// One of so many writes is not confirmed; half of those are applied. 0 for none.
    unconfirmed: AtomicU64,
    seed: AtomicU64,
}

impl Faulty {
    fn new(inner: &Arc<Memory>, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::clone(inner),
            down: AtomicBool::new(false),
            down_after_claim: AtomicBool::new(false),
            delays_next: AtomicBool::new(false),
            delayed: Mutex::default(),
            loses_claim: AtomicBool::new(false),
            operations: AtomicUsize::new(0),
            unconfirmed: AtomicU64::new(0),
            seed: AtomicU64::new(seed),
        })
    }

    fn random(&self, below: u64) -> u64 {
        // xorshift64*: the same faults for the same seed.
        let mut state = self.seed.load(Ordering::Relaxed) | 1;
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.seed.store(state, Ordering::Relaxed);
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below
    }

    fn check(&self) -> Result<(), StoreError> {
        self.operations.fetch_add(1, Ordering::Relaxed);
        if self.down.load(Ordering::Relaxed) {
            return Err(StoreError::unavailable("it is down"));
        }
        Ok(())
    }

    fn fault(&self) -> bool {
        let one_in = self.unconfirmed.load(Ordering::Relaxed);
        one_in > 0 && self.random(one_in) == 0
    }
}

impl Records for Faulty {
    fn get<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        Box::pin(async move {
            self.check()?;
            self.inner.get(keys).await
        })
    }

    fn put(&self, put: Put) -> BoxFuture<'_, Result<Version, PutError>> {
        Box::pin(async move {
            self.check()?;
            if self.delays_next.swap(false, Ordering::Relaxed) {
                *self.delayed.lock().unwrap() = Some(put);
                return Err(StoreError::unknown("no answer arrived in time").into());
            }
            if self.fault() {
                if self.random(2) == 0 {
                    self.inner.put(put).await?;
                }
                return Err(StoreError::unknown("the connection ended").into());
            }
            self.inner.put(put).await
        })
    }

    fn remove<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.remove(keys)
    }

    fn list<'a>(
        &'a self,
        group: &'a Group,
        after: Option<&'a Key>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        Box::pin(async move {
            self.check()?;
            self.inner.list(group, after, limit).await
        })
    }

    fn count<'a>(&'a self, group: &'a Group) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            self.check()?;
            self.inner.count(group).await
        })
    }

    fn claim(&self, claim: ClaimRequest) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        Box::pin(async move {
            self.check()?;
            let claimed = self.inner.claim(claim).await?;
            if !claimed.is_empty() && self.down_after_claim.swap(false, Ordering::Relaxed) {
                self.down.store(true, Ordering::Relaxed);
            }
            if !claimed.is_empty() && self.loses_claim.swap(false, Ordering::Relaxed) {
                return Err(StoreError::unknown("no answer arrived in time"));
            }
            Ok(claimed)
        })
    }

    fn renew(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Vec<(Key, Owner)>, StoreError>> {
        Box::pin(async move {
            self.check()?;
            self.inner.renew(node, lease).await
        })
    }

    fn touch<'a>(&'a self, keys: &'a [Key], ttl: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.touch(keys, ttl)
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.inner.sweep(limit)
    }
}

/// A store that outlives the servers that use it.
fn shared(records: Arc<dyn Records>, bus: &Arc<MemoryBus>) -> Store {
    Store::builder("faulty", records, Arc::clone(bus) as Arc<dyn Bus>, Reach::Network).build()
}

/// What handlers did, in all processes.
#[derive(Default)]
struct World {
    effects: Mutex<Vec<String>>,
    /// The next attempt to reach this step hangs there until its process ends.
    hang_at: Mutex<Option<&'static str>>,
}

impl World {
    async fn effect(&self, name: &'static str) -> Result<String> {
        self.effects.lock().unwrap().push(name.to_owned());
        if self.hang_at.lock().unwrap().take_if(|at| *at == name).is_some() {
            std::future::pending::<()>().await;
        }
        Ok(name.to_uppercase())
    }

    fn count(&self, name: &str) -> usize {
        self.effects.lock().unwrap().iter().filter(|effect| *effect == name).count()
    }
}

/// One process: three steps, a question, a long pause.
fn node(store: Store, world: &Arc<World>, task: Task) -> ServerHandle {
    let world = Arc::clone(world);
    let work = Tool::new("work").task(task).handler(move |ctx: Ctx| {
        let world = Arc::clone(&world);
        async move {
            let a: String = ctx.once("a", world.effect("a")).await?;
            let b: String = ctx.once("b", world.effect("b")).await?;
            ctx.sleep(Duration::from_secs(600)).await?;
            let c: String = ctx.once("c", world.effect("c")).await?;
            Ok::<_, Error>(format!("{a}{b}{c} {}", ctx.step_id("x").len() > 20))
        }
    });
    Server::new("node").tool(work).tasks(Tasks::new(store).space("test")).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn another_process_goes_on_where_a_dead_one_stopped() {
    // proves: TASKX-12
    let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
    let world = Arc::new(World::default());
    *world.hang_at.lock().unwrap() = Some("b");
    let first = Faulty::new(&memory, 1);
    let dying = node(shared(Arc::clone(&first) as _, &bus), &world, Task::now().resume(true));
    let id = create(&mut peer(&dying, None), "work").await["taskId"].clone();
    while world.count("b") == 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // The process is cut off from the store, which is what others see of its death.
    first.down.store(true, Ordering::Relaxed);
    let living = node(shared(memory.clone(), &bus), &world, Task::now().resume(true));
    let mut peer = peer(&living, None);
    assert_eq!(get(&mut peer, &id).await["status"], "working");
    for _ in 0..1000 {
        if get(&mut peer, &id).await["status"] == "completed" {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let done = get(&mut peer, &id).await;
    assert_eq!(done["result"]["content"][0]["text"], "ABC true", "{done}");
    // The recorded step did not run again; the one that was interrupted did.
    assert_eq!((world.count("a"), world.count("b"), world.count("c")), (1, 2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_must_not_run_twice_fails_when_its_process_dies() {
    let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
    let world = Arc::new(World::default());
    *world.hang_at.lock().unwrap() = Some("a");
    let first = Faulty::new(&memory, 1);
    let dying = node(shared(Arc::clone(&first) as _, &bus), &world, Task::now());
    let id = create(&mut peer(&dying, None), "work").await["taskId"].clone();
    tokio::time::sleep(Duration::from_secs(1)).await;
    first.down.store(true, Ordering::Relaxed);
    let living = node(shared(memory.clone(), &bus), &world, Task::now());
    let mut peer = peer(&living, None);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let failed = get(&mut peer, &id).await;
    assert_eq!(failed["status"], "failed");
    assert_eq!(
        failed["error"]["message"],
        "the task was interrupted: the process that ran it has ended; it may have had effects"
    );
    assert_eq!(world.count("a"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_outage_after_a_claim_does_not_end_claiming() {
    let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
    let world = Arc::new(World::default());
    *world.hang_at.lock().unwrap() = Some("a");
    let first = Faulty::new(&memory, 1);
    let dying = node(shared(Arc::clone(&first) as _, &bus), &world, Task::now());
    let id = create(&mut peer(&dying, None), "work").await["taskId"].clone();
    tokio::time::sleep(Duration::from_secs(1)).await;
    first.down.store(true, Ordering::Relaxed);
    let second = Faulty::new(&memory, 1);
    second.down_after_claim.store(true, Ordering::Relaxed);
    let living = node(shared(Arc::clone(&second) as _, &bus), &world, Task::now());
    while !second.down.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    // Longer than the claim is certain.
    tokio::time::sleep(Duration::from_secs(14)).await;
    second.down.store(false, Ordering::Relaxed);
    let failed = until_failed(&living, &id).await;
    assert_eq!(failed["status"], "failed", "{failed}");
    // It still takes tasks that others have created.
    let front = Server::new("node")
        .tool(Tool::new("work").task(Task::now()).handler(async || "never runs here"))
        .tasks(Tasks::new(shared(memory.clone(), &bus)).space("test").run(false))
        .build()
        .unwrap();
    let id = create(&mut peer(&front, None), "work").await["taskId"].clone();
    tokio::time::sleep(Duration::from_secs(700)).await;
    assert_eq!(get(&mut peer(&front, None), &id).await["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_lost_its_task_while_it_ended_gives_its_place_back() {
    let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
    let go_on = Arc::new(tokio::sync::Notify::new());
    let node = |records: Arc<dyn Records>, text: &'static str| {
        let go_on = Arc::clone(&go_on);
        let work = Tool::new("work").task(Task::now().resume(true)).handler(move || {
            let go_on = Arc::clone(&go_on);
            async move {
                if text == "first" {
                    go_on.notified().await;
                }
                text
            }
        });
        let tasks = Tasks::new(shared(records, &bus)).space("test").concurrency(1);
        Server::new("node").tool(work).tasks(tasks).build().unwrap()
    };
    let stores = [Faulty::new(&memory, 1), Faulty::new(&memory, 2)];
    let first = node(Arc::clone(&stores[0]) as _, "first");
    let mut reader = peer(&first, None);
    let lost = create(&mut reader, "work").await["taskId"].clone();
    // The handler ends while its process is cut off, and another process takes the task.
    stores[0].down.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(12)).await;
    go_on.notify_one();
    let second = node(Arc::clone(&stores[1]) as _, "second");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let done = get(&mut peer(&second, None), &lost).await;
    assert_eq!(done["result"]["content"][0]["text"], "second", "{done}");
    stores[1].down.store(true, Ordering::Relaxed);
    stores[0].down.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let next = create(&mut reader, "work").await["taskId"].clone();
    go_on.notify_one();
    let done = until(&mut reader, &next, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "first");
}

#[tokio::test(start_paused = true)]
async fn a_busy_process_does_not_take_tasks_of_living_ones_after_an_outage() {
    let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
    let node = |records: Arc<dyn Records>, go_on: &Arc<tokio::sync::Notify>| {
        let go_on = Arc::clone(go_on);
        let work = Tool::new("work").task(Task::now()).handler(move || {
            let go_on = Arc::clone(&go_on);
            async move {
                go_on.notified().await;
                "done"
            }
        });
        let tasks = Tasks::new(shared(records, &bus)).space("test").concurrency(1);
        Server::new("node").tool(work).tasks(tasks).build().unwrap()
    };
    let stores = [Faulty::new(&memory, 1), Faulty::new(&memory, 2)];
    let go_on = [Arc::default(), Arc::default()];
    let nodes = [0, 1].map(|number| node(Arc::clone(&stores[number]) as _, &go_on[number]));
    let mut ids = Vec::new();
    for node in &nodes {
        ids.push(create(&mut peer(node, None), "work").await["taskId"].clone());
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    for store in &stores {
        store.down.store(true, Ordering::Relaxed);
    }
    tokio::time::sleep(Duration::from_secs(20)).await;
    // The second process is back first, and its place is free at once.
    go_on[1].notify_one();
    stores[1].down.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(9)).await;
    stores[0].down.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(60)).await;
    go_on[0].notify_one();
    let mut reader = peer(&nodes[0], None);
    for id in &ids {
        let done = until(&mut reader, id, "completed").await;
        assert_eq!(done["result"]["content"][0]["text"], "done");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_kills_its_processes_is_given_up() {
    let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
    let world = Arc::new(World::default());
    let mut id = json!(null);
    for round in 0..3 {
        *world.hang_at.lock().unwrap() = Some("a");
        let store = Faulty::new(&memory, 1);
        let dying = node(shared(Arc::clone(&store) as _, &bus), &world, Task::now().resume(true));
        if round == 0 {
            id = create(&mut peer(&dying, None), "work").await["taskId"].clone();
        }
        while world.count("a") <= round {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        store.down.store(true, Ordering::Relaxed);
    }
    let last = node(shared(memory.clone(), &bus), &world, Task::now().resume(true));
    let failed = until_failed(&last, &id).await;
    assert_eq!(failed["error"]["message"], "the task was given up: 3 processes ended while they ran it");
    assert_eq!(world.count("a"), 3);
}

async fn until_failed(server: &ServerHandle, id: &serde_json::Value) -> serde_json::Value {
    let mut peer = peer(server, None);
    tokio::time::sleep(Duration::from_secs(60)).await;
    get(&mut peer, id).await
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_gives_its_tasks_back() {
    let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
    let world = Arc::new(World::default());
    *world.hang_at.lock().unwrap() = Some("b");
    let first = node(shared(memory.clone(), &bus), &world, Task::now().resume(true));
    let id = create(&mut peer(&first, None), "work").await["taskId"].clone();
    while world.count("b") == 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    first.stop_tasks(Duration::from_secs(1)).await;
    let second = node(shared(memory.clone(), &bus), &world, Task::now().resume(true));
    let mut peer = peer(&second, None);
    tokio::time::sleep(Duration::from_secs(700)).await;
    assert_eq!(get(&mut peer, &id).await["result"]["content"][0]["text"], "ABC true");
    assert_eq!(world.count("a"), 1);
}

#[tokio::test(start_paused = true)]
async fn old_code_does_not_run_new_tasks() {
    let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
    let world = Arc::new(World::default());
    let front = Server::new("node")
        .tool(Tool::new("work").task(Task::now().version(2)).handler(async || "new"))
        .tasks(Tasks::new(shared(memory.clone(), &bus)).space("test").run(false))
        .build()
        .unwrap();
    let _old = node(shared(memory.clone(), &bus), &world, Task::now());
    let mut peer = peer(&front, None);
    let id = create(&mut peer, "work").await["taskId"].clone();
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(get(&mut peer, &id).await["status"], "working");
    assert_eq!(world.count("a"), 0);
    let _new = Server::new("node")
        .tool(Tool::new("work").task(Task::now().version(2)).handler(async || "new"))
        .tasks(Tasks::new(shared(memory.clone(), &bus)).space("test"))
        .build()
        .unwrap();
    assert_eq!(until(&mut peer, &id, "completed").await["result"]["content"][0]["text"], "new");
}

#[tokio::test(start_paused = true)]
async fn old_processes_finish_old_tasks_and_new_ones_leave_them_alone() {
    for old_stays in [true, false] {
        let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
        let world = Arc::new(World::default());
        let old = node(shared(memory.clone(), &bus), &world, Task::now().resume(true));
        let id = create(&mut peer(&old, None), "work").await["taskId"].clone();
        while world.count("b") == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // The next version is deployed while the task waits.
        let later = Arc::new(World::default());
        let new = node(shared(memory.clone(), &bus), &later, Task::now().resume(true).version(2));
        if !old_stays {
            old.stop_tasks(Duration::from_secs(1)).await;
        }
        let mut peer = peer(&new, None);
        tokio::time::sleep(Duration::from_secs(700)).await;
        let task = get(&mut peer, &id).await;
        if old_stays {
            assert_eq!(task["result"]["content"][0]["text"], "ABC true", "{task}");
        } else {
            // Nobody has its version any more. It ends with its `ttl`.
            assert_eq!(task["status"], "working", "{task}");
            tokio::time::sleep(Duration::from_secs(3600)).await;
            let task = get(&mut peer, &id).await;
            assert_eq!(
                (&task["status"], &task["error"]["code"]),
                (&json!("failed"), &json!(-32603)),
                "{task}"
            );
        }
        assert_eq!(later.count("a") + later.count("c"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_store_is_not_an_unknown_task() {
    let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
    let world = Arc::new(World::default());
    let store = Faulty::new(&memory, 1);
    let server = node(shared(Arc::clone(&store) as _, &bus), &world, Task::now());
    let mut peer = peer(&server, None);
    let id = create(&mut peer, "work").await["taskId"].clone();
    store.down.store(true, Ordering::Relaxed);
    for (method, params) in [
        ("tasks/get", json!({ "taskId": id })),
        ("tasks/cancel", json!({ "taskId": id })),
        ("tools/call", json!({ "name": "work" })),
    ] {
        let refused = peer.modern(method, params).await;
        assert_eq!(refused["error"]["code"], -32603, "{method}: {refused}");
        assert_eq!(refused["error"]["data"]["retryAfterMs"], 5000, "{method}");
    }
    store.down.store(false, Ordering::Relaxed);
    assert_eq!(get(&mut peer, &id).await["status"], "working");
}

#[tokio::test(start_paused = true)]
async fn tasks_that_end_elsewhere_or_expire_make_room_for_others() {
    let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
    let node = |runs: bool| {
        let tasks = Tasks::new(shared(memory.clone(), &bus)).space("test").open(1).per_principal(1);
        Server::new("node")
            .tool(Tool::new("work").task(Task::now()).handler(async || "done"))
            .tasks(tasks.run(runs))
            .build()
            .unwrap()
    };
    let front = node(false);
    let mut peer = peer(&front, Some("ada"));
    create(&mut peer, "work").await;
    let refused = peer.modern("tools/call", json!({ "name": "work" })).await;
    assert_eq!(refused["error"]["message"], "this server has 1 unfinished tasks; wait for one to end");
    // Nobody runs it: it expires, and its record stays for a while.
    tokio::time::sleep(Duration::from_secs(3605)).await;
    let second = create(&mut peer, "work").await["taskId"].clone();
    let _worker = node(true);
    until(&mut peer, &second, "completed").await;
    // The count of a caller is up to 5 s old.
    tokio::time::sleep(Duration::from_secs(6)).await;
    create(&mut peer, "work").await;
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_creation_arrives_late_never_runs() {
    let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
    let world = Arc::new(World::default());
    let store = Faulty::new(&memory, 1);
    let server = node(shared(Arc::clone(&store) as _, &bus), &world, Task::now().resume(true));
    let mut peer = peer(&server, None);
    store.delays_next.store(true, Ordering::Relaxed);
    let refused = peer.modern("tools/call", json!({ "name": "work" })).await;
    assert_eq!(refused["error"]["data"]["retryAfterMs"], 5000, "{refused}");
    // The store is down for a while, too.
    store.down.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(60)).await;
    store.down.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let late = store.delayed.lock().unwrap().take().unwrap();
    let written = memory.put(late).await;
    assert!(matches!(written, Err(PutError::Conflict)), "{written:?}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.count("a"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_claim_got_lost_is_claimed_again() {
    let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
    let node = |records: Arc<dyn Records>, runs: bool| {
        Server::new("node")
            .tool(Tool::new("work").task(Task::now().resume(true)).handler(async || "done"))
            .tool(Tool::new("endless").task(Task::now()).handler(async || {
                std::future::pending::<()>().await;
                "never"
            }))
            .tasks(Tasks::new(shared(records, &bus)).space("test").run(runs))
            .build()
            .unwrap()
    };
    let store = Faulty::new(&memory, 1);
    let (worker, front) = (node(Arc::clone(&store) as _, true), node(memory.clone(), false));
    // The worker has something to renew.
    let endless = create(&mut peer(&worker, None), "endless").await["taskId"].clone();
    store.loses_claim.store(true, Ordering::Relaxed);
    let mut peer = peer(&front, None);
    let id = create(&mut peer, "work").await["taskId"].clone();
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(!store.loses_claim.load(Ordering::Relaxed));
    assert_eq!(get(&mut peer, &id).await["status"], "completed");
    // What runs keeps its claim.
    assert_eq!(get(&mut peer, &endless).await["status"], "working");
}

#[tokio::test(start_paused = true)]
async fn a_call_without_state_does_not_touch_the_store() {
    let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
    let store = Faulty::new(&memory, 1);
    let server = Server::new("s")
        .tool(Tool::new("plain").handler(async || "plain"))
        .tool(Tool::new("task").task(Task::now()).handler(async || "task"))
        .tasks(Tasks::new(shared(Arc::clone(&store) as _, &bus)).run(false))
        .build()
        .unwrap();
    let mut peer = peer(&server, None);
    for _ in 0..1000 {
        assert_eq!(
            peer.modern("tools/call", json!({ "name": "plain" })).await["result"]["content"][0]["text"],
            "plain"
        );
    }
    assert_eq!(store.operations.load(Ordering::Relaxed), 0);
}

/// Two processes share a store that loses confirmations and is down for a while. Whatever happens, a task has one outcome, each
/// step one value, and everything ends.
#[tokio::test(start_paused = true)]
async fn seeded_faults_lose_no_task_and_no_step() {
    for seed in 1..=40_u64 {
        let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
        let world = Arc::new(World::default());
        let stores = [Faulty::new(&memory, seed), Faulty::new(&memory, seed * 7919)];
        let nodes: Vec<_> = stores
            .iter()
            .map(|store| node(shared(Arc::clone(store) as _, &bus), &world, Task::now().resume(true)))
            .collect();
        let mut ids = Vec::new();
        for number in 0..6 {
            ids.push(create(&mut peer(&nodes[number % 2], None), "work").await["taskId"].clone());
        }
        for store in &stores {
            store.unconfirmed.store(3, Ordering::Relaxed);
        }
        for turn in 0..20 {
            let store = &stores[turn % 2];
            let outage = stores[0].random(40);
            store.down.store(outage.is_multiple_of(3), Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(outage)).await;
            store.down.store(false, Ordering::Relaxed);
        }
        for store in &stores {
            store.unconfirmed.store(0, Ordering::Relaxed);
        }
        tokio::time::sleep(Duration::from_secs(900)).await;
        let mut reader = peer(&nodes[0], None);
        for id in &ids {
            let task = get(&mut reader, id).await;
            match task["status"].as_str() {
                Some("completed") => {
                    assert_eq!(task["result"]["content"][0]["text"], "ABC true", "seed {seed}");
                }
                // Given up after three processes seemed to have died.
                Some("failed") => assert_eq!(
                    task["error"]["message"], "the task was given up: 3 processes ended while they ran it",
                    "seed {seed}"
                ),
                other => panic!("seed {seed}: the task is {other:?}: {task}"),
            }
            let again = get(&mut peer(&nodes[1], None), id).await;
            assert_eq!(again["result"], task["result"], "seed {seed}");
        }
    }
}
