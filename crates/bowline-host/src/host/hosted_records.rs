//! Records of the tasks that the host runs itself. The record of a task is the only truth about it: every change is one
//! compare-and-swap, so a task has one outcome whichever processes act on it.

use super::{
    task_ids::TaskRef,
    task_records::{
        MAX_CONFLICTS, MAX_RESULT, RETRY_AFTER, TaskNote, TaskRecords, key as record_key, unavailable,
    },
    task_view::ENDED_KEPT_AT_LEAST,
};
use bowline_proto::service::ClientView;
use bowline_store::{
    ClaimId, ClaimRequest, Key, Message, NodeId, Owner, Put, PutError, Queue, Record, Topic,
};
use bowline_text::{parse_rfc3339, rfc3339};
use bowline_types::{RawMap, RpcError, TaskExt, TaskStatus};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashSet,
    time::{Duration, SystemTime},
};

/// How long a task stays with a process that does not renew its claim.
pub(super) const LEASE: Duration = Duration::from_secs(15);
/// How many tasks of processes that have died are ended at once.
const ENDED_AT_ONCE: usize = 100;
/// Where these tasks wait for a process if theirs has died.
const QUEUE: &str = "host-calls";
/// What hints about them are about.
const TOPIC: &str = "host-calls";
/// The limits of the polling interval that callers are told, which grows with the age of the task.
const SHORTEST_POLL: Duration = Duration::from_millis(500);
const LONGEST_POLL: Duration = Duration::from_secs(5);

/// The state of a task that the host runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct HostedState {
    /// The task as `tasks/get` shows it, with the questions that are open.
    pub(super) task: TaskExt,
    /// Answers that the process that runs the call has not used yet.
    #[serde(default)]
    pub(super) answers: RawMap,
}

impl HostedState {
    pub(super) fn new(task: TaskExt) -> Self {
        Self { task, answers: RawMap::new() }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.task.status.is_terminal()
    }

    /// Ends the task, unless it has ended. It stays readable for a while.
    pub(super) fn end(&mut self, ending: Ending) -> Change {
        if self.has_ended() {
            return Change::None;
        }
        let task = &mut self.task;
        (task.input_requests, self.answers) = (None, RawMap::new());
        match ending {
            Ending::Completed(result) => {
                (task.status, task.status_message, task.result) = (TaskStatus::Completed, None, Some(result));
            }
            Ending::Failed(error) => {
                let message = error.message.to_string();
                (task.status, task.status_message, task.error) =
                    (TaskStatus::Failed, Some(message), Some(error));
            }
            Ending::Cancelled => {
                (task.status, task.status_message) =
                    (TaskStatus::Cancelled, Some("the task was cancelled".to_owned()));
            }
        }
        let readable = self.age() + ENDED_KEPT_AT_LEAST;
        let ttl = Duration::from_millis(self.task.ttl_ms.unwrap_or_default()).max(readable);
        self.task.ttl_ms = u64::try_from(ttl.as_millis()).ok();
        Change::End { kept: ttl.saturating_sub(self.age()).max(ENDED_KEPT_AT_LEAST) }
    }

    /// Returns the time since the creation of the task.
    pub(super) fn age(&self) -> Duration {
        let created = parse_rfc3339(&self.task.created_at).unwrap_or_else(SystemTime::now);
        created.elapsed().unwrap_or_default()
    }

    /// Returns how often to ask for the task.
    pub(super) fn poll_interval_ms(&self) -> Option<u64> {
        let interval = (self.age() / 20).clamp(SHORTEST_POLL, LONGEST_POLL);
        u64::try_from(interval.as_millis()).ok().filter(|_| !self.has_ended())
    }
}

/// How a task ends.
#[derive(Clone, Debug)]
pub(super) enum Ending {
    Completed(bowline_types::RawJson),
    Failed(RpcError),
    Cancelled,
}

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It stays as it is.
    None,
    /// It is written.
    Write,
    /// It is written, nobody runs the task any more, and it is kept for this time.
    End { kept: Duration },
}

impl TaskRecords {
    /// Adds a task that this process runs.
    pub(super) async fn add_hosted(
        &self,
        client: &ClientView,
        task: &TaskRef,
        state: &HostedState,
        (node, ttl): (NodeId, Duration),
    ) -> Result<Key, RpcError> {
        let key = record_key(client, task)?;
        let note = TaskNote { hosted: Some(state.clone()), ..TaskNote::new(&state.task.task_id) };
        let owner = Owner { node, claim: ClaimId::random() };
        // An expired task can be read for a while.
        let put = Put::create(key.clone(), write(&note)?, ttl + ENDED_KEPT_AT_LEAST)
            .group(self.group(client))
            .queue(queue()?)
            .take(owner, LEASE);
        match self.0.records().put(put).await {
            Ok(_) => Ok(key),
            Err(PutError::Store(error)) => Err(unavailable(&error)),
            Err(error) => Err(RpcError::internal(error.to_string())),
        }
    }

    /// Returns the state of a task; `None` if there is no such task any more.
    pub(super) async fn hosted(&self, key: &Key) -> Result<Option<HostedState>, RpcError> {
        Ok(self.hosted_record(key).await?.and_then(|(_, note)| note.hosted))
    }

    async fn hosted_record(&self, key: &Key) -> Result<Option<(Record, TaskNote)>, RpcError> {
        let found = self.0.records().get(std::slice::from_ref(key)).await;
        let found = found.map_err(|error| unavailable(&error))?.into_iter().flatten().next();
        Ok(found
            .and_then(|record| Some((serde_json::from_slice(&record.value).ok()?, record)))
            .map(|(note, record)| (record, note)))
    }

    /// Changes a task. Returns the state afterwards; `None` if there is no such task any more.
    pub(super) async fn change_hosted(
        &self,
        key: &Key,
        mut change: impl FnMut(&mut HostedState) -> Change + Send,
    ) -> Result<Option<HostedState>, RpcError> {
        for _ in 0..MAX_CONFLICTS {
            let Some((record, mut note)) = self.hosted_record(key).await? else { return Ok(None) };
            let Some(state) = &mut note.hosted else { return Ok(None) };
            let changed = change(state);
            if changed == Change::None {
                return Ok(note.hosted);
            }
            state.task.last_updated_at = rfc3339(SystemTime::now());
            let put = Put::update(key.clone(), write(&note)?, record.version);
            let put = match changed {
                Change::End { kept } => put.release().never_due().ttl(kept),
                Change::None | Change::Write => put,
            };
            match self.0.records().put(put).await {
                Ok(_) => return Ok(note.hosted),
                Err(PutError::Conflict) => {}
                Err(PutError::Store(error)) => return Err(unavailable(&error)),
                Err(error) => return Err(RpcError::internal(error.to_string())),
            }
        }
        Err(RpcError::unavailable("the task is changed by many at once; try again", RETRY_AFTER))
    }

    /// Tells other processes that a task has changed.
    pub(super) fn publish_hosted(&self, key: &Key) {
        let topic = Topic::new(TOPIC).ok();
        if let Some(message) =
            topic.and_then(|topic| Message::new(topic, key.as_str().to_owned().into_bytes()).ok())
        {
            self.0.bus().publish(message);
        }
    }

    /// Returns the key of the task that a hint is about.
    pub(super) fn hosted_hint(message: &Message) -> Option<&str> {
        (message.topic().as_str() == TOPIC).then(|| std::str::from_utf8(message.hint()).ok()).flatten()
    }

    /// Keeps the tasks of this process, and returns their keys.
    pub(super) async fn renew_hosted(&self, node: NodeId) -> Result<HashSet<String>, RpcError> {
        let held = self.0.records().renew(node, LEASE).await.map_err(|error| unavailable(&error))?;
        Ok(held.into_iter().map(|(key, _)| key.as_str().to_owned()).collect())
    }

    /// Ends the tasks of processes that have died. `takes_lapsed` is false until the store has been available for a while, so that
    /// living processes renew their claims first.
    pub(super) async fn end_lapsed(&self, node: NodeId, takes_lapsed: bool) -> Result<(), RpcError> {
        let request = ClaimRequest::new(node, [queue()?]).limit(ENDED_AT_ONCE).lease(LEASE);
        let claimed = self.0.records().claim(request.lapsed(takes_lapsed)).await;
        for record in claimed.map_err(|error| unavailable(&error))? {
            let error = RpcError::internal(
                "the gateway process that ran this call has ended; the call may have had effects, so it is not repeated",
            );
            self.change_hosted(&record.key, |state| state.end(Ending::Failed(error.clone()))).await?;
        }
        Ok(())
    }
}

fn queue() -> Result<Queue, RpcError> {
    Queue::new(QUEUE).map_err(|error| RpcError::internal(error.to_string()))
}

fn write(note: &TaskNote) -> Result<Vec<u8>, RpcError> {
    let value = serde_json::to_vec(note).map_err(|error| RpcError::internal(error.to_string()))?;
    if value.len() > MAX_RESULT {
        return Err(RpcError::internal(format!(
            "the result is too large for a task: {} bytes, and at most {MAX_RESULT} are kept",
            value.len()
        )));
    }
    Ok(value)
}
