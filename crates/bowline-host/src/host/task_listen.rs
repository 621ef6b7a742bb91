//! Subscriptions of callers to tasks: one subscription at each server that sends changes; tasks of the others are polled.

use super::{
    Inner,
    task_calls::{AllowedTask, finish, is_refused},
    task_ids::unknown_task,
    task_view::{shown, with_failure},
    upstream_task::Detail,
};
use crate::upstream::{Instance, ServerTasks};
use bowline_client::TaskWatch;
use bowline_proto::{
    params::Params,
    service::{BoxFuture, Call, Reply},
    subscribe::Listen,
};
use bowline_server::{BackendTasks, SendTask};
use bowline_types::{Method, TaskExt};
use futures_util::{StreamExt as _, future::join_all, stream};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

/// How many tasks of one subscription are looked up at once.
const LOOKED_UP_AT_ONCE: usize = 8;
/// How often a task is looked at although its server sends changes, in case one gets lost.
const BACKSTOP: Duration = Duration::from_secs(30);
/// How often a task is looked at if its server says nothing about it.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);
/// The limits of what a server may suggest.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(200);
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);

/// Serves subscriptions to tasks. It does not keep the host alive.
pub(super) struct TaskListens(pub(super) Weak<Inner>);

impl BackendTasks for TaskListens {
    fn visible<'a>(&'a self, listen: &'a Listen) -> BoxFuture<'a, Vec<String>> {
        Box::pin(async move {
            let Some(inner) = self.0.upgrade() else { return Vec::new() };
            let mut ids: Vec<String> = Vec::new();
            for id in listen.task_ids() {
                if !ids.contains(id) {
                    ids.push(id.clone());
                }
            }
            let looked_up = stream::iter(ids).map(|id| {
                let inner = &inner;
                async move { inner.may_listen(listen, &id).await.then_some(id) }
            });
            looked_up.buffered(LOOKED_UP_AT_ONCE).filter_map(std::future::ready).collect().await
        })
    }

    fn follow(&self, listen: &Listen, send: SendTask) -> BoxFuture<'static, ()> {
        let inner = self.0.clone();
        let calls: Vec<(String, Call)> =
            listen.tasks.iter().filter_map(|id| Some((id.clone(), get_call(listen, id)?))).collect();
        Box::pin(async move {
            let mut watches = watch_all(&inner, &calls).await;
            let followed = calls.iter().map(|(id, call)| {
                let watch = watches.remove(id);
                follow(&inner, call, id, watch, &send)
            });
            // Collected first, so that the closure does not borrow `watches` while the tasks are followed.
            let followed: Vec<_> = followed.collect();
            join_all(followed).await;
        })
    }
}

/// Returns the request for the state of a task, as the client of a subscription would send it.
fn get_call(listen: &Listen, id: &str) -> Option<Call> {
    let params = Params::parse(serde_json::json!({ "taskId": id }).into()).ok()?;
    let mut call = Call::new(Method::GetTask, params, Arc::clone(listen.client.as_ref()?));
    if let Some(caller) = listen.caller() {
        call.extensions.insert(Arc::clone(caller));
    }
    Some(call)
}

impl Inner {
    /// Returns whether a task exists and its changes may be sent to this client. A server that is not available does not
    /// say that there is no such task.
    async fn may_listen(&self, listen: &Listen, id: &str) -> bool {
        let Some(call) = get_call(listen, id) else { return false };
        let Ok(AllowedTask { reference, route, permit }) =
            self.allowed_task(&call, Method::Listen.as_str(), id).await
        else {
            return false;
        };
        let got = self.task_state(&call, (&reference, &route), id, Detail::Status).await;
        let exists = got.as_ref().map_or_else(|error| error.message != unknown_task().message, |_| true);
        finish(permit, &got.and_then(|task| shown(&call, task)).map(Reply::Raw));
        exists
    }
}

/// Subscribes to tasks at their servers, once at each, and returns those whose changes are sent, by the ids that callers know.
async fn watch_all(inner: &Weak<Inner>, calls: &[(String, Call)]) -> HashMap<String, Watched> {
    let Some(inner) = inner.upgrade() else { return HashMap::new() };
    // The ids that callers know by those of the server, for each server.
    let mut by_server: BTreeMap<u64, (Arc<Instance>, HashMap<String, String>)> = BTreeMap::new();
    for (id, call) in calls {
        let Ok((reference, route, _)) = inner.find_task(call, id).await else { continue };
        // Its server does not know it.
        if reference.is_hosted || reference.is_ended {
            continue;
        }
        let (_, ids) = by_server
            .entry(route.instance.id)
            .or_insert_with(|| (Arc::clone(&route.instance), HashMap::new()));
        ids.insert(reference.id, id.clone());
    }
    drop(inner);
    let subscribed = by_server.into_values().map(|(instance, ids)| async move {
        let client = instance.client().await.ok()?;
        if ServerTasks::of(&client) != ServerTasks::Extension {
            return None;
        }
        match client.watch_tasks(ids.keys().cloned().collect()).await {
            Ok(watches) => {
                let watches = watches.into_iter().filter_map(|watch| {
                    let id = ids.get(watch.task_id())?.clone();
                    Some((id, Watched::new(watch, &instance)))
                });
                Some(watches.collect::<Vec<_>>())
            }
            Err(error) => {
                tracing::debug!(server = &*instance.name, %error, "cannot subscribe to tasks; polling");
                None
            }
        }
    });
    join_all(subscribed).await.into_iter().flatten().flatten().collect()
}

/// A task whose server sends its changes. The server is not stopped as unused while it exists.
struct Watched {
    watch: TaskWatch,
    instance: Arc<Instance>,
}

impl Watched {
    fn new(watch: TaskWatch, instance: &Arc<Instance>) -> Self {
        instance.subscriptions.fetch_add(1, Ordering::Relaxed);
        Self { watch, instance: Arc::clone(instance) }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.instance.subscriptions.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Sends the state of a task at first and whenever it changes, until the task ends or the client may not see it any more.
async fn follow(inner: &Weak<Inner>, call: &Call, id: &str, mut watched: Option<Watched>, send: &SendTask) {
    let mut last: Option<TaskExt> = None;
    loop {
        let Some(strong) = inner.upgrade() else { return };
        let is_modern = call.client.revision.is_modern();
        let looked = strong.look_at_task(call, id, Detail::of(call)).await;
        let looked = looked.map(|task| if is_modern { task } else { with_failure(task) });
        // Waiting must not keep the host alive.
        drop(strong);
        let mut interval = DEFAULT_INTERVAL;
        match looked {
            Ok(task) => {
                if let Some(suggested) = task.poll_interval_ms {
                    interval = Duration::from_millis(suggested).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL);
                }
                let has_ended = task.status.is_terminal();
                // The interval changes with the age of a task.
                let mut state = task.clone();
                state.poll_interval_ms = None;
                if last.as_ref() != Some(&state) {
                    send(task);
                    last = Some(state);
                }
                if has_ended {
                    return;
                }
            }
            Err(error) if error.message == unknown_task().message || is_refused(&error) => return,
            Err(error) => {
                tracing::debug!(%error, "cannot look at a task that a client listens to; trying again");
                interval = LONGEST_INTERVAL.min(interval * 5);
            }
        }
        match watched.as_mut().filter(|watched| watched.watch.is_open()) {
            Some(watched) => {
                let _ = tokio::time::timeout(BACKSTOP, watched.watch.changed()).await;
            }
            None => tokio::time::sleep(interval).await,
        }
    }
}
