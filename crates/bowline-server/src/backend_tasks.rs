//! Tasks of a backend: which of them a client may see, and where their changes go.

use crate::{server_handle::TaskFollowing, transport::Sink};
use bowline_proto::{
    encode,
    service::BoxFuture,
    subscribe::{Listen, subscription_meta},
};
use bowline_types::{Id, Meta, Method, TaskExt};
use std::sync::Arc;

/// Sends the state of a task to a subscriber: what `tasks/get` would return at that moment, without the marks of a result.
pub type SendTask = Arc<dyn Fn(TaskExt) + Send + Sync>;

/// Lets clients subscribe to the tasks of a [backend](crate::Server::backend). See [`Server::backend_tasks`](crate::Server::backend_tasks).
pub trait BackendTasks: Send + Sync + 'static {
    /// Returns the tasks among [`Listen::task_ids`] that the client of the subscription may see. Tasks of others must be treated
    /// like tasks that do not exist.
    fn visible<'a>(&'a self, listen: &'a Listen) -> BoxFuture<'a, Vec<String>>;

    /// Sends the state of each task of [`Listen::tasks`], at first and whenever it changes, until all have ended. Dropping the
    /// future ends it. It is also called for each task that a client of 2025-11-25 creates, which then gets
    /// `notifications/tasks/status`.
    fn follow(&self, listen: &Listen, send: SendTask) -> BoxFuture<'static, ()>;
}

/// Sends the changes of the tasks of the subscription `id` to `sink`.
pub(crate) fn follow(
    tasks: &dyn BackendTasks,
    listen: &Listen,
    id: &Id,
    sink: Arc<dyn Sink>,
) -> TaskFollowing {
    let meta: Option<Meta> = serde_json::from_str(&subscription_meta(id)).ok();
    let send = move |mut task: TaskExt| {
        task.result_type = None;
        task.meta.clone_from(&meta);
        sink.offer(&encode::notify(Method::TaskChanged, &task));
    };
    TaskFollowing::spawn(tasks.follow(listen, Arc::new(send)))
}
