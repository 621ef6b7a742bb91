//! `tasks/list` of 2025-11-25: the tasks that a caller created.

use super::{Inner, asker::CallerView, task_view::to_2025, upstream_task::Detail};
use bowline_proto::{pagination::Cursor, service::Call};
use bowline_types::{ListTasksResult, Method, RawJson, RpcError, TaskV2025};
use futures_util::{StreamExt as _, stream};

/// How many tasks a page has. Their servers are asked for each of them.
const PAGE: usize = 20;
/// How many servers are asked at once.
const AT_ONCE: usize = 8;

impl Inner {
    /// Lists the tasks of a caller that `tasks/get` would show.
    pub(super) async fn list_tasks(&self, call: &Call) -> Result<RawJson, RpcError> {
        let principal = call.client.principal.as_deref();
        if principal.is_none() && call.extensions.is_http() {
            // Callers that cannot be told apart would see each other's tasks.
            return Err(RpcError::method_not_found(Method::ListTasks.as_str()));
        }
        let listed = self.page_of_tasks(call, &format!("tasks of {}", principal.unwrap_or_default())).await;
        let outcome = match &listed {
            Ok(_) => "ok".to_owned(),
            Err(error) => format!("error {}: {}", error.code, error.message),
        };
        let caller = CallerView::of(call).describe();
        self.asker.guard.log_task_request(&caller, Method::ListTasks.as_str(), None, &outcome);
        RawJson::of(&listed?).map_err(|error| RpcError::internal(error.to_string()))
    }

    async fn page_of_tasks(&self, call: &Call, name: &str) -> Result<ListTasksResult, RpcError> {
        let keys = self.task_ids.keys().ok_or_else(|| RpcError::internal("the host is not open"))?;
        let cursor = call.params.cursor()?.map(|cursor| Cursor::decode(keys, name, &cursor)).transpose();
        let cursor = cursor.map_err(|error| RpcError::invalid_params(format!("`cursor`: {error}")))?;
        let after = cursor.as_ref().and_then(Cursor::key);
        let mut notes = self.task_records.list(&call.client, after, PAGE + 1).await?;
        let mut result = ListTasksResult::default();
        if notes.len() > PAGE {
            notes.truncate(PAGE);
            let last = notes.last().map(|(key, _)| key.as_str()).unwrap_or_default();
            result.next_cursor = Some(Cursor::new(0, last).encode(keys, name));
        }
        let states =
            stream::iter(notes).map(|(_, note)| async move { self.listed(call, &note?.task_id).await });
        result.tasks = states.buffered(AT_ONCE).filter_map(std::future::ready).collect().await;
        Ok(result)
    }

    /// Returns a task, unless its server does not know it any more or a rule denies its tool by now.
    async fn listed(&self, call: &Call, sealed: &str) -> Option<TaskV2025> {
        self.look_at_task(call, sealed, Detail::Status).await.ok().map(to_2025)
    }
}
