//! Notifications about the tasks that a client of 2025-11-25 created.

use super::Conversation;
use crate::server_handle::TaskFollowing;
use bowline_proto::{scope::Scopes, subscribe::Subscriber};
use bowline_types::{CreateTaskResultV2025, Method, RawJson};
use bytes::Bytes;
use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError},
};

/// How many tasks of one client are followed.
const MAX_FOLLOWED: usize = 100;

/// The tasks of a client of 2025-11-25, and the notifications about them that are not sent yet.
#[derive(Default)]
pub(super) struct TaskNotifications {
    following: Vec<TaskFollowing>,
    /// The last notification of each kind, by task, with the scopes that its tool declares.
    pub(super) waiting: BTreeMap<(String, &'static str), ScopedFrame>,
}

/// A notification, and the scopes that the token of its stream needs.
type ScopedFrame = (Bytes, Option<Arc<Scopes>>);

impl Conversation {
    /// Notifies a client of 2025-11-25 of the changes of a task that it created.
    pub(super) fn follow_status(self: &Arc<Self>, created: &RawJson, principal: Option<Arc<str>>) {
        let Ok(created) = created.decode::<CreateTaskResultV2025>() else { return };
        let Some(table) = &self.server.core.tasks else { return };
        let (id, to) = (created.task.task_id, Arc::downgrade(self));
        let send = {
            let id = id.clone();
            move |method: Method, frame: Bytes, needed: Option<Arc<Scopes>>| {
                if let Some(conversation) = to.upgrade() {
                    conversation.add_task_notification(&id, method, frame, needed);
                }
            }
        };
        // Each request of a session has its own token, so the scopes are checked when something is sent.
        let follower = crate::tasks::Follower::new(table, principal, Subscriber::WithoutTokens);
        let following = TaskFollowing::spawn(follower.follow_2025(id, send));
        let mut task_notifications = self.task_notifications.lock().unwrap_or_else(PoisonError::into_inner);
        task_notifications.following.retain(|following| !following.is_over());
        // Clients may not rely on these notifications, so there may be an end to them.
        if task_notifications.following.len() < MAX_FOLLOWED {
            task_notifications.following.push(following);
        }
    }

    fn add_task_notification(&self, id: &str, method: Method, frame: Bytes, needed: Option<Arc<Scopes>>) {
        let mut task_notifications = self.task_notifications.lock().unwrap_or_else(PoisonError::into_inner);
        task_notifications.waiting.insert((id.to_owned(), method.as_str()), (frame, needed));
        drop(task_notifications);
        (self.on_notifications)();
    }
}
