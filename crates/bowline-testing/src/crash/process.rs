//! One simulated process: a runtime with a server, and a client that waits for the end of the task.

use super::{CrashPoint, Plan, records::World};
use crate::{Error, Peer, Result};
use bowline_server::Tasks;
use bowline_store::{MemoryBus, Reach, Store};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The extension that the client declares.
const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// How a process ended.
pub(super) struct ProcessReport {
    /// The end of the task. `None` if the process crashed.
    pub(super) end: Option<Value>,
    /// How many answers were given before the task existed.
    pub(super) plain_answers: usize,
}

pub(super) struct Process<'a> {
    plan: &'a Plan,
    world: &'a Arc<World>,
    crash: Option<CrashPoint>,
    plain_answers: usize,
}

impl<'a> Process<'a> {
    pub(super) fn new(plan: &'a Plan, world: &'a Arc<World>, crash: Option<CrashPoint>) -> Self {
        Self { plan, world, crash, plain_answers: 0 }
    }

    /// The task exists already; so many answers were given before that.
    pub(super) fn continuing(mut self, plain_answers: usize) -> Self {
        self.plain_answers = plain_answers;
        self
    }

    /// Runs until the task ends or the process crashes.
    pub(super) fn run(mut self) -> Result<ProcessReport> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::unexpected(format!("cannot start a runtime: {error}")))?;
        let records = World::connect(self.world, self.crash.take());
        let crashed = records.crashed();
        let store = Store::builder("memory", records, Arc::new(MemoryBus::new()), Reach::Machine).build();
        let time = self.plan.time;
        let end = runtime.block_on(async {
            let tasks = Tasks::new(store).space("crash_each_step");
            let server = (self.plan.server)().tasks(tasks);
            let drive = tokio::time::timeout(time, self.drive(server));
            tokio::select! {
                biased;
                () = crashed.notified() => Ok(None),
                end = drive => match end {
                    Ok(end) => end.map(Some),
                    Err(_) => Err(Error::timeout(format!("the task did not end within {time:?}"))),
                },
            }
        });
        // Everything that runs in it ends here, without a chance to clean up in the store.
        runtime.shutdown_background();
        Ok(ProcessReport { end: end?, plain_answers: self.plain_answers })
    }

    async fn drive(&mut self, server: bowline_server::Server) -> Result<Value> {
        let capabilities = json!({
            "elicitation": { "form": {}, "url": {} },
            "sampling": { "tools": {}, "context": {} },
            "roots": {},
            "extensions": { EXTENSION: {} },
        });
        let mut peer = Peer::memory(server)?.capabilities(capabilities).deadline(self.plan.time);
        let id = match self.world.task() {
            Some(id) => id,
            None => self.create(&mut peer).await?,
        };
        if self.world.task_ends_with_its_process() {
            return Err(Error::unexpected(format!(
                "a task of `{}` fails when its process ends; if the tool may run again, declare it `idempotent` or \
                 `read_only`, or use `Task::resume(true)`",
                self.plan.tool
            )));
        }
        loop {
            let changed = self.world.changed();
            let reply = peer.modern("tasks/get", json!({ "taskId": id })).await?;
            let task = &reply["result"];
            match task["status"].as_str() {
                Some("working") => changed.await,
                Some("input_required") => {
                    let responses = self.responses(&task["inputRequests"], |key| {
                        let number: usize = key.strip_prefix('q')?.parse().ok()?;
                        (self.plain_answers + number).checked_sub(1)
                    })?;
                    let params = json!({ "taskId": id, "inputResponses": responses });
                    let reply = peer.modern("tasks/update", params).await?;
                    if reply.get("error").is_some() {
                        return Err(Error::unexpected(format!("an answer was refused: {}", reply["error"])));
                    }
                }
                Some("completed") => return Ok(task["result"].clone()),
                Some("failed") => return Ok(json!({ "error": task["error"] })),
                _ => return Err(Error::unexpected(format!("the task cannot be read: {reply}"))),
            }
        }
    }

    /// Makes the call, answers what it asks before it becomes a task, and returns the id of the task.
    async fn create(&mut self, peer: &mut Peer) -> Result<Value> {
        let tool = &self.plan.tool;
        let mut params = json!({ "name": tool, "arguments": self.plan.arguments });
        loop {
            let reply = peer.modern("tools/call", params.clone()).await?;
            let result = &reply["result"];
            match result["resultType"].as_str() {
                Some("task") => return Ok(result["taskId"].clone()),
                Some("input_required") => {
                    let first = self.plain_answers;
                    let mut asked = 0;
                    let responses = self.responses(&result["inputRequests"], |_| {
                        asked += 1;
                        Some(first + asked - 1)
                    })?;
                    self.plain_answers += asked;
                    params["inputResponses"] = responses;
                    params["requestState"] = result["requestState"].clone();
                }
                Some(_) => {
                    return Err(Error::unexpected(format!(
                        "a call of `{tool}` ended before it became a task: {result}; use `Task::now()` in the test"
                    )));
                }
                None => {
                    return Err(Error::unexpected(format!(
                        "the call of `{tool}` failed: {}",
                        reply["error"]
                    )));
                }
            }
        }
    }

    /// Answers questions. `place` says which answer of the script belongs to a key.
    fn responses(&self, requests: &Value, mut place: impl FnMut(&str) -> Option<usize>) -> Result<Value> {
        let mut responses = Map::new();
        for (key, request) in requests.as_object().into_iter().flatten() {
            let answer = place(key).and_then(|place| self.plan.answers.get(place));
            let missing = || Error::unexpected(format!("the test has no answer to {request}"));
            responses.insert(key.clone(), answer.ok_or_else(missing)?.clone());
        }
        Ok(responses.into())
    }
}
