//! Makes a running call a task of the host: its server made no task of it, and its caller can handle tasks.

use super::{
    Inner,
    call_record::{CallRecord, RecordedCall},
    hosted_records::{Ending, HostedState},
    hosted_run::HostedCall,
    hosted_tasks::Place,
    route::Route,
    route_call::{CallContext, asks, finish},
    task_calls::{tasks_of_caller, wanted_task},
    task_ids::{Creation, KEYS_KEPT, TaskRef},
    task_records::key as record_key,
    task_view::created_reply,
};
use crate::{
    bridge::{UpstreamCall, UpstreamReply},
    tap::{current_call, within},
};
use bowline_proto::service::{BoxFuture, Call, CallNotification, NotificationSink, Notifier, Outcome};
use bowline_server::transport::random_id;
use bowline_store::Key;
use bowline_text::rfc3339;
use bowline_types::{Method, RpcError, TaskExt, TaskStatus};
use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
    time::{Duration, SystemTime},
};
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, timeout_at},
};

/// How long the result of a call is waited for before the call becomes a task, if its caller asked for a task.
const AT_ONCE: Duration = Duration::from_millis(500);
/// The longest status message, in characters.
const MAX_STATUS: usize = 500;

/// A call in the middle of a round.
pub(super) struct RunningCall {
    pub(super) call: Call,
    pub(super) upstream: UpstreamCall,
    pub(super) context: CallContext,
    pub(super) rounds: u32,
    /// Questions of the followed task that were answered.
    pub(super) answered: BTreeSet<String>,
    /// What the server has said that is not handled yet.
    pub(super) reply: Option<UpstreamReply>,
}

/// A call that did not become a task.
pub(super) type NotHosted = Box<(RpcError, RunningCall)>;

/// Returns after which time a call becomes a task of the host; `None` if it never does.
pub(super) fn hosted_after(route: &Route, call: &Call) -> Option<Duration> {
    let after = route.instance.spec.task_after.filter(|_| call.method == Method::CallTool)?;
    if wanted_task(call).is_ok_and(|wish| wish.is_some()) {
        return Some(after.min(AT_ONCE));
    }
    tasks_of_caller(call).then_some(after)
}

impl Inner {
    /// Makes a running call a task. Returns the call if that is not possible.
    pub(super) async fn host_call(
        &self,
        running: RunningCall,
        record: &mut CallRecord<'_>,
    ) -> Result<Outcome, NotHosted> {
        let (created, outcome) = oneshot::channel();
        let (inner, recorded) = (self.this.clone(), record.hand_over());
        // In its own task, so that a caller that leaves now does not leave a record without a call.
        let hosted = start(inner, running, recorded, created);
        match current_call() {
            Some(origin) => self.tasks.spawn(within(origin, hosted)),
            None => self.tasks.spawn(hosted),
        }
        match outcome.await {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(back)) => {
                let (not_hosted, recorded) = *back;
                record.take_back(recorded);
                Err(not_hosted)
            }
            Err(_) => Ok(Outcome::Failed(RpcError::internal("the gateway is shutting down"))),
        }
    }
}

type Created = oneshot::Sender<Result<Outcome, Box<(NotHosted, RecordedCall)>>>;

/// Creates the task, tells the caller, and runs the call to its end.
async fn start(inner: Weak<Inner>, mut running: RunningCall, recorded: RecordedCall, created: Created) {
    let Some(strong) = inner.upgrade() else { return };
    let (status, status_changed) = watch::channel(None);
    let prepared = strong.create_hosted(&running.call, &running.context.route.instance.name).await;
    let (key, digest, place, expires, reply) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            let _ = created.send(Err(Box::new((Box::new((error, running)), recorded))));
            return;
        }
    };
    let notifier = Notifier::new(Arc::new(StatusSink(status)));
    running.upstream.run_in_background(notifier.clone());
    let permit = running.context.permit.take().map(|permit| permit.for_task(digest.clone()));
    finish(permit, &reply, 0);
    let mut hosted = HostedCall {
        inner,
        running,
        recorded,
        key,
        digest,
        place,
        expires,
        notifier,
        status: status_changed,
        status_is_due: false,
        status_at: Instant::now(),
        look_at: None,
        asked: 0,
        asking: None,
    };
    let ended = if created.send(Ok(reply)).is_ok() {
        drop(strong);
        hosted.run().await
    } else {
        // Nobody knows the id.
        drop(strong);
        Some((Ending::Cancelled, None))
    };
    match ended {
        Some((ending, outcome)) => hosted.end(ending, outcome).await,
        None => hosted.was_ended(),
    }
}

type Prepared = (Key, String, Place, Instant, Outcome);

impl Inner {
    async fn create_hosted(&self, call: &Call, server: &str) -> Result<Prepared, RpcError> {
        let client = &call.client;
        let reference = TaskRef {
            server: server.to_owned(),
            tool: call.params.name()?.into_owned(),
            id: random_id(),
            is_legacy: !client.revision.is_modern(),
            is_ended: false,
            is_hosted: true,
            creation: Creation::by(client),
        };
        let sealed = self.task_ids.seal(client, &reference)?;
        self.task_records.check_room(client).await?;
        let place = self.hosted_tasks.reserve(record_key(client, &reference)?.as_str(), client)?;
        let wish = wanted_task(call)?.and_then(|wish| wish.ttl).map(Duration::from_millis);
        let ttl = wish.unwrap_or(self.hosted_tasks.ttl).min(KEYS_KEPT);
        let now = rfc3339(SystemTime::now());
        let mut task = TaskExt::new(sealed, TaskStatus::Working, now.clone(), now);
        task.ttl_ms = u64::try_from(ttl.as_millis()).ok();
        let state = HostedState::new(task);
        let claim = (self.hosted_tasks.node, ttl);
        let key = self.task_records.add_hosted(client, &reference, &state, claim).await?;
        let mut shown = state.task.clone();
        shown.poll_interval_ms = state.poll_interval_ms();
        let reply = created_reply(call, shown)?;
        Ok((key, reference.digest(), place, Instant::now() + ttl, reply))
    }
}

/// Waits for a reply of the server until a call becomes a task. Returns whether that is now: the reply takes too long, or the
/// server asks during a call whose caller asked for a task, which expects questions of the task.
pub(super) async fn first_reply(
    upstream_call: &mut UpstreamCall,
    hosted_at: Option<std::time::Instant>,
    call: &Call,
) -> (Option<UpstreamReply>, bool) {
    let Some(hosted_at) = hosted_at else { return (Some(upstream_call.next().await), false) };
    match timeout_at(hosted_at.into(), upstream_call.next()).await {
        Ok(reply) => {
            let becomes_task = asks(&reply) && wanted_task(call).is_ok_and(|wish| wish.is_some());
            (Some(reply), becomes_task)
        }
        Err(_) => (None, true),
    }
}

/// Makes progress of the server the status message of a task.
struct StatusSink(watch::Sender<Option<String>>);

impl NotificationSink for StatusSink {
    fn emit(&self, notice: CallNotification) {
        let CallNotification::Progress { progress, total, message } = notice else { return };
        let message = message.unwrap_or_else(|| match total {
            Some(total) => format!("{progress} of {total}"),
            None => progress.to_string(),
        });
        self.0.send_replace(Some(message.chars().take(MAX_STATUS).collect()));
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}
