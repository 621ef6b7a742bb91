//! Records of the tasks that callers of 2025-11-25 created: that revision has a list of tasks, results of calls that ended at once,
//! and cancellations that take effect at once. Tasks that the host runs itself have records, too.
//!
//! Without a configured store they end with the process. Requests of callers of 2026-07-28 about tasks of servers use no store.

use super::{
    hosted_records::HostedState,
    task_ids::{TaskRef, principal_digest},
};
use bowline_proto::service::ClientView;
use bowline_store::{Group, Key, Put, PutError, Store, StoreError, Version};
use bowline_text::hex;
use bowline_types::{RpcError, TaskExt};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How many tasks one caller may have.
const MAX_TASKS: u64 = 1000;
/// The largest result that is kept.
pub(super) const MAX_RESULT: usize = 4 << 20;
/// How many bytes of results one caller may keep, so that one caller does not fill the store.
const MAX_KEPT: u64 = 32 << 20;
/// How often a result is counted again if other results are counted at the same time.
const MAX_KEPT_CONFLICTS: u32 = 20;
/// How often a cancellation is tried again if somebody else changes the record.
pub(super) const MAX_CONFLICTS: usize = 5;
/// When to try again if the store is not available.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(2);

/// What is known about a task in addition to what its server knows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TaskNote {
    /// The id that the caller knows.
    pub(super) task_id: String,
    /// Whether the caller cancelled it. Its server may still work on it.
    #[serde(default)]
    pub(super) is_cancelled: bool,
    /// The task with its result, if its server returned the result at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<TaskExt>,
    /// The state of a task that the host runs itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hosted: Option<HostedState>,
}

impl TaskNote {
    pub(super) fn new(task_id: &str) -> Self {
        Self { task_id: task_id.to_owned(), is_cancelled: false, ended: None, hosted: None }
    }
}

/// The records.
#[derive(Debug)]
pub(super) struct TaskRecords(pub(super) Store);

impl TaskRecords {
    pub(super) fn new(store: Store) -> Self {
        Self(store)
    }

    pub(super) fn group(&self, client: &ClientView) -> Group {
        self.0.group_of("host-tasks", &hex(&principal_digest(client)))
    }

    /// Fails if the caller has too many tasks, or too large results.
    pub(super) async fn check_room(&self, client: &ClientView) -> Result<(), RpcError> {
        let count = self.0.records().count(&self.group(client)).await.map_err(|error| unavailable(&error))?;
        if count >= MAX_TASKS {
            let reason = format!(
                "you have {count} tasks, and at most {MAX_TASKS} are allowed; try again when some have expired"
            );
            return Err(RpcError::unavailable(reason, Duration::from_secs(60)));
        }
        match self.kept(&kept_key(client)?).await?.0.bytes() {
            bytes if bytes >= MAX_KEPT => Err(too_much_kept(bytes)),
            _ => Ok(()),
        }
    }

    /// Returns what a caller keeps, and the version of that record.
    async fn kept(&self, key: &Key) -> Result<(Kept, Option<Version>), RpcError> {
        let found = self.0.records().get(std::slice::from_ref(key)).await;
        let found = found.map_err(|error| unavailable(&error))?.into_iter().flatten().next();
        let Some(record) = found else { return Ok((Kept::default(), None)) };
        let mut kept: Kept = serde_json::from_slice(&record.value).unwrap_or_default();
        kept.results.retain(|(until, _)| *until > now());
        Ok((kept, Some(record.version)))
    }

    /// Counts a result to what its caller keeps. Returns an error to show if that is too much.
    pub(super) async fn count_kept(
        &self,
        client: &ClientView,
        bytes: usize,
        ttl: Duration,
    ) -> Result<Option<RpcError>, RpcError> {
        let key = kept_key(client)?;
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let until = now().saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        for attempt in 0..MAX_KEPT_CONFLICTS {
            let (mut kept, version) = self.kept(&key).await?;
            // A call that began when there was room has a place, unless many began at once.
            let total = kept.bytes().saturating_add(bytes);
            if total > MAX_KEPT + MAX_RESULT as u64 {
                return Ok(Some(too_much_kept(total)));
            }
            kept.results.push((until, bytes));
            let value = serde_json::to_vec(&kept).map_err(|error| RpcError::internal(error.to_string()))?;
            let put = match version {
                Some(version) => Put::update(key.clone(), value, version).ttl(super::task_ids::KEYS_KEPT),
                None => Put::create(key.clone(), value, super::task_ids::KEYS_KEPT),
            };
            match self.0.records().put(put).await {
                Ok(_) => return Ok(None),
                Err(PutError::Conflict) => {}
                Err(PutError::Store(error)) => return Err(unavailable(&error)),
                Err(error) => return Err(RpcError::internal(error.to_string())),
            }
            tokio::time::sleep(Duration::from_millis(1 << attempt.min(6))).await;
        }
        Err(RpcError::unavailable("many calls of yours end at once; try again", RETRY_AFTER))
    }

    /// Adds a task of a caller that has ended, with its result.
    pub(super) async fn add_ended(
        &self,
        client: &ClientView,
        task: &TaskRef,
        note: &TaskNote,
        ttl: Duration,
    ) -> Result<(), RpcError> {
        let bytes = note.ended.as_ref().and_then(|task| Some(task.result.as_ref()?.as_bytes().len()));
        self.add(client, task, note, ttl).await?;
        let counted = self.count_kept(client, bytes.unwrap_or_default(), ttl).await;
        let counted = counted.and_then(|too_much| too_much.map_or(Ok(()), Err));
        if counted.is_err() {
            // It is not counted, so it must not stay.
            let _ = self.0.records().remove(&[key(client, task)?]).await;
        }
        counted
    }

    /// Adds a task of a caller.
    pub(super) async fn add(
        &self,
        client: &ClientView,
        task: &TaskRef,
        note: &TaskNote,
        ttl: Duration,
    ) -> Result<(), RpcError> {
        let value = serde_json::to_vec(note).map_err(|error| RpcError::internal(error.to_string()))?;
        if value.len() > MAX_RESULT {
            return Err(RpcError::internal(format!(
                "the result is too large for a task: {} bytes, and at most {MAX_RESULT} are kept",
                value.len()
            )));
        }
        let put = Put::create(key(client, task)?, value, ttl).group(self.group(client));
        match self.0.records().put(put).await {
            Ok(_) => Ok(()),
            Err(PutError::Store(error)) => Err(unavailable(&error)),
            Err(error) => Err(RpcError::internal(error.to_string())),
        }
    }

    /// Returns what is known about a task.
    pub(super) async fn get(
        &self,
        client: &ClientView,
        task: &TaskRef,
    ) -> Result<Option<TaskNote>, RpcError> {
        let found = self.0.records().get(&[key(client, task)?]).await.map_err(|error| unavailable(&error))?;
        Ok(found.into_iter().flatten().next().and_then(|record| serde_json::from_slice(&record.value).ok()))
    }

    /// Records that the caller cancelled a task.
    pub(super) async fn cancel(
        &self,
        client: &ClientView,
        task: &TaskRef,
        task_id: &str,
    ) -> Result<(), RpcError> {
        let key = key(client, task)?;
        let write =
            |note: &TaskNote| serde_json::to_vec(note).map_err(|error| RpcError::internal(error.to_string()));
        for _ in 0..MAX_CONFLICTS {
            let found = self.0.records().get(std::slice::from_ref(&key)).await;
            let found = found.map_err(|error| unavailable(&error))?.into_iter().flatten().next();
            let put = if let Some(record) = found {
                let note = serde_json::from_slice(&record.value).unwrap_or_else(|_| TaskNote::new(task_id));
                Put::update(key.clone(), write(&TaskNote { is_cancelled: true, ..note })?, record.version)
            } else {
                // Another process created the task, and this one does not share its records.
                let note = TaskNote { is_cancelled: true, ..TaskNote::new(task_id) };
                Put::create(key.clone(), write(&note)?, super::task_ids::KEYS_KEPT).group(self.group(client))
            };
            match self.0.records().put(put).await {
                Ok(_) => return Ok(()),
                Err(PutError::Conflict) => {}
                Err(PutError::Store(error)) => return Err(unavailable(&error)),
                Err(error) => return Err(RpcError::internal(error.to_string())),
            }
        }
        Err(RpcError::unavailable("the task is changed by many at once; try again", RETRY_AFTER))
    }

    /// Returns at most `limit` tasks of a caller after a key, with their keys. `None` is a task that cannot be read.
    pub(super) async fn list(
        &self,
        client: &ClientView,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Option<TaskNote>)>, RpcError> {
        let after = after.map(Key::new).transpose();
        let after = after.map_err(|error| RpcError::invalid_params(format!("`cursor`: {error}")))?;
        let listed = self.0.records().list(&self.group(client), after.as_ref(), limit).await;
        let listed = listed.map_err(|error| unavailable(&error))?;
        let note = |value: &[u8]| serde_json::from_slice::<TaskNote>(value).ok();
        Ok(listed.into_iter().map(|row| (row.key.as_str().to_owned(), note(&row.value))).collect())
    }

    /// Removes records that have expired.
    pub(super) async fn sweep(&self) {
        let _ = self.0.records().sweep(500).await;
    }
}

pub(super) fn key(client: &ClientView, task: &TaskRef) -> Result<Key, RpcError> {
    Key::new(format!("host-task/{}", hex(&task.key(client))))
        .map_err(|error| RpcError::internal(error.to_string()))
}

/// The results that a caller keeps.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    /// The time at which each expires, in milliseconds since 1970, and its size.
    results: Vec<(u64, u64)>,
}

impl Kept {
    fn bytes(&self) -> u64 {
        self.results.iter().fold(0, |total, (_, bytes)| total.saturating_add(*bytes))
    }
}

fn kept_key(client: &ClientView) -> Result<Key, RpcError> {
    Key::new(format!("host-tasks-kept/{}", hex(&principal_digest(client))))
        .map_err(|error| RpcError::internal(error.to_string()))
}

/// Returns the time in milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn too_much_kept(bytes: u64) -> RpcError {
    let reason = format!(
        "the results of your tasks have {bytes} bytes, and at most {MAX_KEPT} are kept; try again when some have expired, or call without `task`"
    );
    RpcError::unavailable(reason, Duration::from_secs(60))
}

pub(super) fn unavailable(error: &StoreError) -> RpcError {
    tracing::warn!(%error, "the store of tasks failed");
    RpcError::unavailable("the tasks are not available now; try again", RETRY_AFTER)
}
