//! Tasks whose work another system does.

use crate::{
    tasks::{create, get, peer, until},
    wire::Peer,
};
use bowline_server::{Ctx, Error, Job, JobStatus, Result, Server, ServerHandle, Task, Tasks, Tool};
use bowline_store::{Bus, Memory, MemoryBus, Reach, Records, Store};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::sync::Notify;

/// The other system: it outlives the servers.
#[derive(Default)]
struct Farm {
    runs: Mutex<Runs>,
    /// If set, a start waits for it.
    gate: Mutex<Option<Arc<Notify>>>,
}

#[derive(Default)]
struct Runs {
    started: Vec<String>,
    looks: usize,
    cancelled: Vec<String>,
    /// How many cancellations are refused.
    refuses: usize,
    /// How many cancellations panic before that.
    panics: usize,
    status: Status,
}

#[derive(Clone, Default)]
enum Status {
    #[default]
    Running,
    Unknown,
    Done,
    Failed,
    Cancelled,
}

impl Farm {
    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap()
    }

    fn set(&self, status: Status) {
        self.runs().status = status;
    }

    /// Waits until something is the case. Time is paused, so waiting takes none.
    async fn until(&self, is_so: impl Fn(&Runs) -> bool) {
        for _ in 0..1000 {
            if is_so(&self.runs()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("it did not happen");
    }
}

#[derive(Deserialize, JsonSchema)]
struct Render {
    #[serde(default)]
    frames: u32,
}

struct Rendering {
    farm: Arc<Farm>,
    every: Duration,
}

impl Job for Rendering {
    type Arguments = Render;
    type Output = String;

    async fn start(&self, ctx: Ctx, render: Render) -> Result<String> {
        let gate = self.farm.gate.lock().unwrap().clone();
        if let Some(gate) = gate {
            gate.notified().await;
        }
        assert!(ctx.step_id("submit").len() > 20);
        let mut runs = self.farm.runs();
        let name = format!("run {} of {} frames", runs.started.len() + 1, render.frames);
        runs.started.push(name.clone());
        Ok(name)
    }

    async fn status(&self, run: &str) -> Result<JobStatus<String>> {
        let mut runs = self.farm.runs();
        runs.looks += 1;
        let looks = runs.looks;
        match runs.status {
            Status::Running => Ok(JobStatus::running()
                .message(format!("look {looks}"))
                .progress(u32::try_from(looks).unwrap(), 100)),
            Status::Unknown => Err(Error::internal("no route to the farm")),
            Status::Done => Ok(JobStatus::Done(format!("{run}: rendered"))),
            Status::Failed => Ok(JobStatus::Failed("out of memory".to_owned())),
            Status::Cancelled => Ok(JobStatus::Cancelled),
        }
    }

    async fn cancel(&self, run: &str) -> Result<()> {
        let mut runs = self.farm.runs();
        if runs.panics > 0 {
            runs.panics -= 1;
            drop(runs);
            panic!("a bug of the author");
        }
        if runs.refuses > 0 {
            runs.refuses -= 1;
            return Err(Error::internal("the farm is busy"));
        }
        runs.cancelled.push(run.to_owned());
        Ok(())
    }

    fn poll_interval(&self) -> Duration {
        self.every
    }
}

fn server(farm: &Arc<Farm>, every: u64, store: Store) -> ServerHandle {
    let job = Rendering { farm: Arc::clone(farm), every: Duration::from_secs(every) };
    let tasks = Tasks::new(store).space("farm");
    Server::new("farm").tool(Tool::new("render").job(job)).tasks(tasks).build().unwrap()
}

/// A store that outlives the servers that use it.
fn shared(memory: &Arc<Memory>, bus: &Arc<MemoryBus>) -> Store {
    let records = Arc::clone(memory) as Arc<dyn Records>;
    Store::builder("memory", records, Arc::clone(bus) as Arc<dyn Bus>, Reach::Network).build()
}

async fn create_2025(peer: &mut Peer) -> Value {
    let reply = peer.request("tools/call", json!({ "name": "render", "task": {} })).await;
    reply["result"]["task"]["taskId"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_job_is_looked_at_until_it_is_done() {
    let farm = Arc::new(Farm::default());
    let server = server(&farm, 60, Store::memory());
    let mut peer = peer(&server, None);
    let params = json!({ "name": "render", "arguments": { "frames": 7 } });
    let id = peer.modern("tools/call", params).await["result"]["taskId"].clone();
    farm.until(|runs| runs.looks == 1).await;
    // Nobody asks for the task: it is looked at once in each interval.
    tokio::time::sleep(Duration::from_secs(605)).await;
    let looks = farm.runs().looks;
    assert!((10..=12).contains(&looks), "{looks}");
    farm.set(Status::Done);
    tokio::time::sleep(Duration::from_secs(65)).await;
    let task = get(&mut peer, &id).await;
    assert_eq!(task["status"], "completed", "{task}");
    assert_eq!(task["result"]["content"][0]["text"], "run 1 of 7 frames: rendered");
    assert_eq!(farm.runs().started.len(), 1);
    // What has ended is not looked at.
    let looks = farm.runs().looks;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(farm.runs().looks, looks);
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Sure {
    sure: bool,
}

/// Asks before it starts.
struct Careful(Rendering);

impl Job for Careful {
    type Arguments = Render;
    type Output = String;

    async fn start(&self, ctx: Ctx, render: Render) -> Result<String> {
        let Sure { sure } = ctx.ask("Render it?").await?.accepted()?;
        if !sure {
            return Err(Error::tool("not rendered"));
        }
        self.0.start(ctx, render).await
    }

    async fn status(&self, run: &str) -> Result<JobStatus<String>> {
        self.0.status(run).await
    }

    async fn cancel(&self, run: &str) -> Result<()> {
        self.0.cancel(run).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_may_ask_before_it_starts() {
    let farm = Arc::new(Farm::default());
    farm.set(Status::Done);
    for sure in [true, false] {
        let job = Careful(Rendering { farm: Arc::clone(&farm), every: Duration::from_secs(1) });
        let server = Server::new("farm").tool(Tool::new("render").job(job)).build().unwrap();
        let mut peer = peer(&server, None);
        let id = create(&mut peer, "render").await["taskId"].clone();
        let asking = until(&mut peer, &id, "input_required").await;
        let (key, _) = asking["inputRequests"].as_object().unwrap().iter().next().unwrap();
        let answer = json!({ "action": "accept", "content": { "sure": sure } });
        peer.modern("tasks/update", json!({ "taskId": id, "inputResponses": { key: answer } })).await;
        let task = until(&mut peer, &id, "completed").await;
        assert_eq!(task["result"]["isError"].as_bool().unwrap_or(false), !sure, "{task}");
        assert_eq!(farm.runs().started.len(), 1, "it is started once, and not at all without consent");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_asks_sees_the_state_of_the_job() {
    let farm = Arc::new(Farm::default());
    let server = server(&farm, 3600, Store::memory());
    let mut peer = peer(&server, None);
    let id = create(&mut peer, "render").await["taskId"].clone();
    farm.until(|runs| runs.looks == 1).await;
    assert_eq!(get(&mut peer, &id).await["statusMessage"], "look 1");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(get(&mut peer, &id).await["statusMessage"], "look 2");
    // Not more than once per second, however often clients ask.
    for _ in 0..20 {
        assert_eq!(get(&mut peer, &id).await["statusMessage"], "look 2");
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    farm.set(Status::Failed);
    let failed = get(&mut peer, &id).await;
    assert_eq!(failed["result"]["isError"], true, "{failed}");
    assert_eq!(failed["result"]["content"][0]["text"], "out of memory");
}

#[tokio::test(start_paused = true)]
async fn both_generations_have_jobs() {
    let farm = Arc::new(Farm::default());
    let server = server(&farm, 10, Store::memory());
    let mut peer = Peer::of(&server, None);
    peer.initialize("2025-11-25").await;
    let id = create_2025(&mut peer).await;
    farm.until(|runs| runs.looks == 1).await;
    let task = peer.request("tasks/get", json!({ "taskId": id })).await["result"].clone();
    assert_eq!((&task["status"], &task["statusMessage"]), (&json!("working"), &json!("look 1")));
    let waiting = peer.start("tasks/result", json!({ "taskId": id })).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    farm.set(Status::Done);
    let result = peer.response(waiting).await["result"].clone();
    assert_eq!(result["content"][0]["text"], "run 1 of 0 frames: rendered");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], id);

    farm.set(Status::Running);
    let id = create_2025(&mut peer).await;
    farm.until(|runs| runs.started.len() == 2).await;
    let cancelled = peer.request("tasks/cancel", json!({ "taskId": id })).await["result"].clone();
    assert_eq!(cancelled["status"], "cancelled");
    farm.until(|runs| runs.cancelled == ["run 2 of 0 frames"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_cancels_its_job_until_the_other_system_knows() {
    let farm = Arc::new(Farm::default());
    (farm.runs().refuses, farm.runs().panics) = (2, 1);
    let server = server(&farm, 60, Store::memory());
    let mut peer = peer(&server, None);
    let id = create(&mut peer, "render").await["taskId"].clone();
    farm.until(|runs| runs.looks == 1).await;
    peer.modern("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(get(&mut peer, &id).await["status"], "cancelled");
    farm.until(|runs| runs.cancelled == ["run 1 of 0 frames"]).await;
    assert_eq!(farm.runs().refuses, 0);
    // Once is enough.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(farm.runs().cancelled.len(), 1);
    assert_eq!(get(&mut peer, &id).await["status"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_being_started_when_its_task_is_cancelled_is_cancelled() {
    let farm = Arc::new(Farm::default());
    let gate = Arc::new(Notify::new());
    *farm.gate.lock().unwrap() = Some(Arc::clone(&gate));
    let server = server(&farm, 60, Store::memory());
    let mut peer = peer(&server, None);
    let id = create(&mut peer, "render").await["taskId"].clone();
    tokio::time::sleep(Duration::from_secs(1)).await;
    peer.modern("tasks/cancel", json!({ "taskId": id })).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(farm.runs().started.is_empty());
    (farm.runs().refuses, farm.runs().panics) = (2, 1);
    gate.notify_one();
    farm.until(|runs| runs.cancelled == ["run 1 of 0 frames"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_ends_in_the_other_system_ends_its_task() {
    let farm = Arc::new(Farm::default());
    let server = server(&farm, 5, Store::memory());
    let mut peer = peer(&server, None);
    let id = create(&mut peer, "render").await["taskId"].clone();
    farm.until(|runs| runs.looks == 1).await;
    // An outage of the other system does not fail the task.
    farm.set(Status::Unknown);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let task = get(&mut peer, &id).await;
    assert_eq!(task["status"], "working");
    assert_eq!(task["statusMessage"], "the state of the job is not known at the moment");
    farm.set(Status::Cancelled);
    let task = until(&mut peer, &id, "cancelled").await;
    assert_eq!(task["statusMessage"], "the task was cancelled");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(farm.runs().cancelled.is_empty(), "the other system knows already");
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_tasks_waits_for_the_job() {
    let farm = Arc::new(Farm::default());
    let server = server(&farm, 5, Store::memory());
    let mut peer = Peer::of(&server, None);
    peer.initialize("2025-06-18").await;
    let call = peer.start("tools/call", json!({ "name": "render", "arguments": {} })).await;
    farm.until(|runs| runs.looks == 3).await;
    farm.set(Status::Done);
    let text = peer.response(call).await["result"]["content"][0]["text"].clone();
    assert_eq!(text, "run 1 of 0 frames: rendered");
    assert!(farm.runs().cancelled.is_empty());
    // A caller that gives up cancels the job.
    farm.set(Status::Running);
    let call = peer.start("tools/call", json!({ "name": "render", "arguments": {} })).await;
    farm.until(|runs| runs.started.len() == 2).await;
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": call } });
    peer.send(cancelled).await;
    farm.until(|runs| runs.cancelled == ["run 2 of 0 frames"]).await;
}

#[tokio::test(start_paused = true)]
async fn another_server_looks_after_the_job() {
    let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
    let farm = Arc::new(Farm::default());
    let first = server(&farm, 30, shared(&memory, &bus));
    let mut reader = peer(&first, None);
    let id = create(&mut reader, "render").await["taskId"].clone();
    farm.until(|runs| runs.looks == 1).await;
    first.stop_tasks(Duration::ZERO).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(farm.runs().looks, 1, "the first server runs no tasks any more");
    let second = server(&farm, 30, shared(&memory, &bus));
    farm.until(|runs| runs.looks > 1).await;
    farm.set(Status::Done);
    let done = until(&mut peer(&second, None), &id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "run 1 of 0 frames: rendered");
    assert_eq!(farm.runs().started.len(), 1);
    // A server that runs no tasks lets others cancel.
    farm.set(Status::Running);
    let id = create(&mut reader, "render").await["taskId"].clone();
    farm.until(|runs| runs.started.len() == 2).await;
    reader.modern("tasks/cancel", json!({ "taskId": id })).await;
    farm.until(|runs| runs.cancelled == ["run 2 of 0 frames"]).await;
}

#[test]
fn a_job_is_a_tool_with_schemas_and_a_task() {
    let job = Rendering { farm: Arc::default(), every: Duration::from_secs(1) };
    let tool = Tool::new("render").job(job).task(Task::now().required()).definition();
    assert_eq!(serde_json::to_value(tool.execution).unwrap(), json!({ "taskSupport": "required" }));
    assert!(tool.input_schema.as_str().contains("frames"));
}
