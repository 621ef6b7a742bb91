//! Notifications about the tasks that a client of 2025-11-25 created.

use super::Conversation;
use crate::server_handle::TaskFollowing;
use bowline_proto::{
    encode,
    scope::Scopes,
    service::ClientView,
    subscribe::{Listen, Subscriber},
};
use bowline_types::{CreateTaskResultV2025, Method, RawJson, Task, TaskExt, TaskV2025};
use bytes::Bytes;
use std::{
    collections::VecDeque,
    sync::{Arc, PoisonError},
};

/// How many tasks of one client are followed.
const MAX_FOLLOWED: usize = 100;

/// How many notifications, and bytes of them, wait for a client that does not read.
const MAX_WAITING: (usize, usize) = (2 * MAX_FOLLOWED, 256 * 1024);

/// The tasks of a client of 2025-11-25, and the notifications about them that are not sent yet.
#[derive(Default)]
pub(super) struct TaskNotifications {
    following: Vec<TaskFollowing>,
    /// The last notification of each kind and task, the oldest first.
    waiting: VecDeque<Waiting>,
}

/// A notification that is not sent yet.
struct Waiting {
    task: String,
    method: Method,
    frame: Bytes,
    /// The scopes that the token of its stream needs.
    needed: Option<Arc<Scopes>>,
}

impl TaskNotifications {
    /// Adds a notification. It replaces the one of the same kind and task. If there are too many, the oldest are dropped.
    fn add(&mut self, added: Waiting) {
        self.waiting.retain(|waiting| waiting.task != added.task || waiting.method != added.method);
        self.waiting.push_back(added);
        let mut bytes: usize = self.waiting.iter().map(|waiting| waiting.frame.len()).sum();
        while self.waiting.len() > MAX_WAITING.0 || (bytes > MAX_WAITING.1 && self.waiting.len() > 1) {
            bytes -= self.waiting.pop_front().map_or(0, |dropped| dropped.frame.len());
        }
    }

    /// Takes all notifications, with the scopes that they need.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (Bytes, Option<Arc<Scopes>>)> + use<> {
        std::mem::take(&mut self.waiting).into_iter().map(|waiting| (waiting.frame, waiting.needed))
    }
}

impl Conversation {
    /// Notifies a client of 2025-11-25 of the changes of a task that it created. `subscriber` is the token of its request.
    pub(super) fn follow_status(
        self: &Arc<Self>,
        created: &RawJson,
        client: &Arc<ClientView>,
        subscriber: Subscriber,
    ) {
        let Ok(created) = created.decode::<CreateTaskResultV2025>() else { return };
        let Some(following) = self.following_of(created.task.task_id, client, subscriber) else { return };
        let mut task_notifications = self.task_notifications.lock().unwrap_or_else(PoisonError::into_inner);
        task_notifications.following.retain(|following| !following.is_over());
        // Clients may not rely on these notifications, so there may be an end to them.
        if task_notifications.following.len() < MAX_FOLLOWED {
            task_notifications.following.push(following);
        }
    }

    fn following_of(
        self: &Arc<Self>,
        id: String,
        client: &Arc<ClientView>,
        subscriber: Subscriber,
    ) -> Option<TaskFollowing> {
        let (core, to) = (&self.server.core, Arc::downgrade(self));
        let send = {
            let id = id.clone();
            move |method: Method, frame: Bytes, needed: Option<Arc<Scopes>>| {
                if let Some(conversation) = to.upgrade() {
                    conversation.add_task_notification(&id, method, frame, needed);
                }
            }
        };
        if let Some(tasks) = &core.backend_tasks {
            let (tasks_of_listen, client) = (vec![id], Some(Arc::clone(client)));
            let listen = Listen { tasks: tasks_of_listen, client, subscriber, ..Listen::default() };
            let send = move |task: TaskExt| {
                let frame = encode::notify(Method::TaskStatus, &TaskV2025::from(Task::from(task)));
                send(Method::TaskStatus, frame, None);
            };
            return Some(TaskFollowing::spawn(tasks.follow(&listen, Arc::new(send))));
        }
        #[cfg(feature = "tasks")]
        if let Some(table) = &core.tasks {
            let principal = client.principal.clone();
            // Each request of a session has its own token, so the scopes are checked when something is sent.
            let follower = crate::tasks::Follower::new(table, principal, Subscriber::WithoutTokens);
            return Some(TaskFollowing::spawn(follower.follow_2025(id, send)));
        }
        None
    }

    fn add_task_notification(&self, id: &str, method: Method, frame: Bytes, needed: Option<Arc<Scopes>>) {
        let mut task_notifications = self.task_notifications.lock().unwrap_or_else(PoisonError::into_inner);
        task_notifications.add(Waiting { task: id.to_owned(), method, frame, needed });
        drop(task_notifications);
        (self.on_notifications)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(task: usize, length: usize) -> Waiting {
        let frame = vec![b'x'; length].into();
        Waiting { task: task.to_string(), method: Method::TaskStatus, frame, needed: None }
    }

    #[test]
    fn what_nobody_reads_has_a_limit() {
        let mut notifications = TaskNotifications::default();
        for task in 0..1000 {
            notifications.add(waiting(task, 100));
            // The last one of a task counts.
            notifications.add(waiting(task, 200));
        }
        assert_eq!(notifications.waiting.len(), MAX_WAITING.0);
        assert_eq!(
            notifications.waiting.back().map(|last| (&*last.task, last.frame.len())),
            Some(("999", 200))
        );
        for task in 0..10 {
            notifications.add(waiting(task, MAX_WAITING.1 / 2));
        }
        let kept: Vec<_> = notifications.take().map(|(frame, _)| frame.len()).collect();
        assert_eq!(kept, [MAX_WAITING.1 / 2; 2]);
        assert!(notifications.waiting.is_empty());
    }
}
