//! Records of the tasks that callers of 2025-11-25 created: that revision has a list of tasks, results of calls that ended at once,
//! and cancellations that take effect at once. Tasks that the host runs itself have records, too.
//!
//! Without a configured store they end with the process. Requests of callers of 2026-07-28 about tasks of servers use no store.

use super::{
    hosted_records::HostedState,
    task_ids::{TaskRef, principal_digest},
};
use bowline_proto::service::ClientView;
use bowline_store::{Group, Key, Put, PutError, Store, StoreError};
use bowline_text::hex;
use bowline_types::{RpcError, TaskExt};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How many tasks one caller may have.
const MAX_TASKS: u64 = 1000;
/// The largest result that is kept.
pub(super) const MAX_RESULT: usize = 4 << 20;
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

    /// Fails if the caller has too many tasks.
    pub(super) async fn check_room(&self, client: &ClientView) -> Result<(), RpcError> {
        let count = self.0.records().count(&self.group(client)).await.map_err(|error| unavailable(&error))?;
        if count < MAX_TASKS {
            return Ok(());
        }
        let reason = format!(
            "you have {count} tasks, and at most {MAX_TASKS} are allowed; try again when some have expired"
        );
        Err(RpcError::unavailable(reason, Duration::from_secs(60)))
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
                "the result of `{}` is too large for a task: {} bytes, and at most {MAX_RESULT} are kept; call it without `task`",
                task.tool,
                value.len()
            )));
        }
        let put = Put::create(key(client, task)?, value, ttl).group(self.group(client));
        match self.0.records().put(put).await {
            // A server that uses an id twice has one task.
            Ok(_) | Err(PutError::Conflict) => Ok(()),
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

pub(super) fn unavailable(error: &StoreError) -> RpcError {
    tracing::warn!(%error, "the store of tasks failed");
    RpcError::unavailable("the tasks are not available now; try again", RETRY_AFTER)
}
