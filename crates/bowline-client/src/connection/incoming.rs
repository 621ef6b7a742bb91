//! Handles received messages: responses, requests and notifications.

use super::{Connection, ENDLESS, WaiterKind};
use crate::{
    CallKey, Error, TaskState,
    answering::{self, MAX_QUESTIONS, Refusal},
    handlers::{Direction, Notification, guarded},
    rate::Rated,
    shared::{lock, now},
    transport::OutgoingKind,
};
use bowline_proto::{
    client::{self, Inbound},
    encode,
    envelope::{MethodName, Rejected},
    subscribe::Change,
};
use bowline_types::{
    CancelledParams, ElicitationCompleteParams, Id, LogMessageParams, Meta, Method, ProgressParams, RawJson,
    RelatedTaskMetadata, ResourceUpdatedParams, Revision, RpcError, SubscriptionsAcknowledgedParams,
};
use bytes::Bytes;
use serde::Deserialize;
use std::sync::Arc;

impl Connection {
    /// Handles a frame. `request` is the request on whose stream it arrived, if known.
    pub(crate) fn accept(self: &Arc<Self>, frame: &Bytes, request: Option<&Id>) {
        self.shared.handlers.show(Direction::Received, frame);
        if frame.first() == Some(&b'[')
            && self.revision().is_some_and(|revision| revision >= Revision::V2025_06_18)
        {
            return self.refuse_batch(frame);
        }
        for inbound in client::accept(frame) {
            match inbound {
                Inbound::Response { id, result } => {
                    if !self.complete(&id, result.map_err(Error::from)) {
                        tracing::debug!(%id, "ignored a response to an unknown request");
                    }
                }
                Inbound::Request { id, method, params } => {
                    self.handle_request(id, method, params, self.call_of(request));
                }
                Inbound::Notification { method, params } => {
                    self.handle_notification(&method, params, request);
                }
                Inbound::Complaint(error) => tracing::warn!(%error, "the server could not read a message"),
                Inbound::Noise(rejected) => self.handle_invalid_frame(frame, &rejected),
            }
        }
    }

    /// Refuses a batch, which revisions from 2025-06-18 on do not have.
    fn refuse_batch(&self, frame: &Bytes) {
        self.note_noise(frame);
        if !self.is_modern() {
            let error = RpcError::invalid_request("batches are not supported");
            self.send(encode::failure(None, &error), OutgoingKind::Response { id: None });
        }
    }

    fn handle_invalid_frame(&self, frame: &Bytes, rejected: &Rejected) {
        self.note_noise(frame);
        let Some(id) = &rejected.id else { return };
        if !rejected.answer {
            // An invalid response: no better one will follow.
            self.fail(id, Error::malformed("the response", &rejected.error.message));
        } else if !self.is_modern() {
            // A request with a readable id. A line that is not a message at all gets no response, because whoever
            // printed it does not read responses.
            self.reply(id, Err(rejected.error.clone()));
        }
    }

    /// Handles a request of the server.
    fn handle_request(
        self: &Arc<Self>,
        id: Id,
        method: MethodName,
        params: Option<RawJson>,
        call: Option<CallKey>,
    ) {
        if self.is_modern() {
            tracing::warn!(
                method = method.as_str(),
                "ignored a request: 2026-07-28 servers must not send requests"
            );
            return;
        }
        if method == MethodName::Known(Method::Ping) {
            return self.reply(&id, Ok(RawJson::empty_object()));
        }
        let connection = Arc::downgrade(self);
        let mut answering = lock(&self.answering);
        while answering.tasks.try_join_next().is_some() {}
        if answering.running.len() >= MAX_QUESTIONS {
            drop(answering);
            return self.reply(
                &id,
                Err(RpcError::internal(format!(
                    "too many concurrent requests; at most {MAX_QUESTIONS} are answered"
                ))),
            );
        }
        let related_task = self.related_task(params.as_ref());
        let task = answering.tasks.spawn({
            let id = id.clone();
            async move {
                let Some(strong) = connection.upgrade() else { return };
                let Some(negotiated) = strong.opened().await else { return };
                let shared = Arc::clone(&strong.shared);
                drop(strong);
                let answer = answering::answer_request(&shared, &negotiated, &method, params, call).await;
                let Some(connection) = connection.upgrade() else { return };
                // If the request was cancelled, no response may be sent.
                if lock(&connection.answering).running.remove(&id).is_none() {
                    return;
                }
                if let Ok((_, Some(elicitation_id))) = &answer {
                    connection.note_opened_url(elicitation_id);
                }
                let answer = answer.map(|(result, _)| of_task(result, related_task));
                connection.reply(&id, answer.map_err(Refusal::into_rpc));
            }
        });
        answering.running.insert(id, task);
    }

    /// Returns the task that a request of a 2025-11-25 server belongs to.
    fn related_task(&self, params: Option<&RawJson>) -> Option<RelatedTaskMetadata> {
        self.revision().filter(|revision| *revision == Revision::V2025_11_25)?;
        meta_of(params)?.related_task().ok()?
    }

    fn reply(&self, id: &Id, answer: Result<RawJson, RpcError>) {
        let frame = match answer {
            Ok(result) => encode::response(id, result.as_bytes()),
            Err(error) => encode::failure(Some(id), &error),
        };
        self.send(frame, OutgoingKind::Response { id: Some(id.clone()) });
    }

    /// Handles a notification of the server.
    fn handle_notification(&self, method: &MethodName, params: Option<RawJson>, request: Option<&Id>) {
        let known = match method {
            MethodName::Known(known) => known,
            MethodName::Custom(name) => {
                let Some(handler) = self.shared.handlers.notifications.get(name) else {
                    return self.pass_on(other(method, params));
                };
                match answering::own_params(params) {
                    Ok(params) => guarded(|| handler(params)),
                    Err(error) => tracing::debug!(%error, "ignored a malformed notification"),
                }
                return;
            }
        };
        match known {
            Method::Cancelled => self.cancelled(decode(params.as_ref())),
            Method::Progress => self.progress(decode(params.as_ref())),
            Method::Message => self.logged(params.as_ref(), request),
            Method::ToolsListChanged => {
                self.changed(&Change::Tools, Notification::ToolsChanged, params.as_ref());
            }
            Method::PromptsListChanged => {
                self.changed(&Change::Prompts, Notification::PromptsChanged, params.as_ref());
            }
            Method::ResourcesListChanged => {
                self.changed(&Change::Resources, Notification::ResourcesChanged, params.as_ref());
            }
            Method::ResourceUpdated => {
                if let Some(updated) = decode::<ResourceUpdatedParams>(params.as_ref()) {
                    let change = Change::Resource(updated.uri.clone());
                    self.changed(&change, Notification::ResourceUpdated(updated), params.as_ref());
                }
            }
            Method::TaskChanged | Method::TaskStatus => {
                self.task_changed(*known, params.as_ref());
                self.pass_on(other(method, params));
            }
            Method::SubscriptionsAcknowledged => self.acknowledged(params.as_ref()),
            Method::ElicitationComplete => {
                let Some(complete) = decode::<ElicitationCompleteParams>(params.as_ref()) else { return };
                // With a relay, the user who was asked to open the URL is not known here.
                if self.shared.handlers.relay.is_some()
                    || lock(&self.opened_urls).remove(&complete.elicitation_id)
                {
                    self.pass_on(Notification::ElicitationComplete(complete));
                }
            }
            _ => self.pass_on(other(method, params)),
        }
    }

    /// Handles the state of a task. 2025-11-25 may send it on any stream, 2026-07-28 only for a subscription.
    fn task_changed(&self, method: Method, params: Option<&RawJson>) {
        let Some(revision) = self.revision().filter(|revision| method.exists_in(*revision)) else { return };
        if revision.is_modern() {
            let ours = subscription_id(params).is_some_and(|id| lock(&self.routes).contains_key(&id));
            if !ours {
                tracing::debug!("ignored the state of a task for an unknown subscription");
                return;
            }
        }
        match params.map(|params| TaskState::read(revision, params)) {
            Some(Ok(state)) => {
                self.shared.tasks.publish(state);
            }
            Some(Err(error)) => tracing::debug!(%error, "ignored a malformed task"),
            None => {}
        }
    }

    fn logged(&self, params: Option<&RawJson>, request: Option<&Id>) {
        let handlers = &self.shared.handlers;
        if handlers.log.is_none() && handlers.relay.is_none() {
            return;
        }
        match self.log_rate.take() {
            Rated::Pass { dropped: 0 } => {}
            Rated::Pass { dropped } => {
                tracing::warn!(dropped, "dropped log messages of a server that sends too many");
            }
            Rated::Drop { is_first } => {
                if is_first {
                    tracing::warn!("a server sends too many log messages; dropping some");
                }
                return;
            }
        }
        let Some(message) = decode::<LogMessageParams>(params) else { return };
        if let Some(relay) = &handlers.relay {
            let call = self.call_of(request);
            guarded(|| relay.log(call, message));
        } else if let Some(handler) = &handlers.log {
            guarded(|| handler(message));
        }
    }

    fn pass_on(&self, notification: Notification) {
        let handlers = &self.shared.handlers;
        if let Some(relay) = &handlers.relay {
            guarded(|| relay.notify(notification));
        } else if let Some(handler) = &handlers.notification {
            guarded(|| handler(notification));
        }
    }

    /// Handles a cancellation. A legacy server cancels its own request; a modern one ends a subscription.
    fn cancelled(&self, params: Option<CancelledParams>) {
        let Some(CancelledParams { request_id: Some(id), reason, .. }) = params else { return };
        tracing::debug!(%id, reason, "the server cancelled a request");
        if !self.is_modern() {
            if let Some(task) = lock(&self.answering).running.remove(&id) {
                task.abort();
            }
            return;
        }
        if lock(&self.routes).contains_key(&id) {
            self.complete(&id, Ok(RawJson::empty_object()));
        }
    }

    fn progress(&self, params: Option<ProgressParams>) {
        let Some(params) = params else { return };
        let handler = {
            let mut pending = lock(&self.pending);
            let handler = match pending.peek(&params.progress_token).map(|waiter| &waiter.kind) {
                Some(WaiterKind::Call { progress: Some(progress), .. }) => Arc::clone(progress),
                Some(WaiterKind::Call { progress: None, .. } | WaiterKind::Listen(_)) | None => {
                    // The token of a task is valid after the response that created the task.
                    let Some(handler) = self.shared.tasks.progress_handler(&params.progress_token) else {
                        tracing::debug!(token = %params.progress_token, "ignored progress of an unknown request");
                        return;
                    };
                    handler
                }
            };
            pending.touch(&params.progress_token, now());
            handler
        };
        // It still resets the timeout, but is not passed on.
        if let Rated::Drop { is_first } = self.progress_rate.take() {
            if is_first {
                tracing::debug!("a server reports progress too often; dropping some");
            }
            return;
        }
        guarded(|| handler(params));
    }

    /// Handles a change: removes stale results from the cache and notifies listeners.
    fn changed(&self, change: &Change, notification: Notification, params: Option<&RawJson>) {
        if !self.is_modern() {
            self.shared.forget(change);
            self.shared.views.on_change(change);
            return self.pass_on(notification);
        }
        // One channel carries all subscriptions; ignore those that are not ours.
        let route = subscription_id(params).and_then(|id| lock(&self.routes).get(&id).cloned());
        let Some(route) = route else {
            tracing::debug!(?change, "ignored a change for an unknown subscription");
            return;
        };
        self.shared.forget(change);
        if route.on_change(change) {
            self.pass_on(notification);
        }
    }

    /// Drops all cached and pending results.
    pub(crate) fn drop_cache(&self) {
        self.shared.cache.forget(|_| true);
    }

    /// Notifications may have been lost: drops the cache, and notifies listeners that anything may have changed.
    pub(crate) fn notifications_lost(&self) {
        self.shared.cache.forget(|_| true);
        self.shared.views.report_all_changed();
    }

    fn acknowledged(&self, params: Option<&RawJson>) {
        let Some(id) = subscription_id(params) else { return };
        let Some(acknowledged) = decode::<SubscriptionsAcknowledgedParams>(params) else { return };
        let Some(route) = lock(&self.routes).get(&id).cloned() else { return };
        if route.grant(acknowledged.notifications) {
            // From now on it lasts until one side ends it.
            let mut pending = lock(&self.pending);
            if let Some(waiter) = pending.take(&id) {
                pending.insert(id, waiter, ENDLESS, now());
            }
        }
    }
}

fn other(method: &MethodName, params: Option<RawJson>) -> Notification {
    Notification::Other { method: method.as_str().into(), params }
}

/// Deserializes parameters. Invalid ones are ignored, because notifications have no response.
fn decode<'a, T: Deserialize<'a>>(params: Option<&'a RawJson>) -> Option<T> {
    static NOTHING: RawJson = RawJson::empty_object();
    params
        .unwrap_or(&NOTHING)
        .decode()
        .inspect_err(|error| tracing::debug!(%error, "ignored a malformed notification"))
        .ok()
}

fn subscription_id(params: Option<&RawJson>) -> Option<Id> {
    meta_of(params)?.subscription_id().ok()?
}

fn meta_of(params: Option<&RawJson>) -> Option<Meta> {
    #[derive(Deserialize)]
    struct Tagged {
        #[serde(rename = "_meta")]
        meta: Option<Meta>,
    }
    decode::<Tagged>(params)?.meta
}

/// Marks an answer as belonging to the task of its question.
fn of_task(answer: RawJson, task: Option<RelatedTaskMetadata>) -> RawJson {
    let Some(task) = task else { return answer };
    let marked = answer.members().and_then(|mut members| {
        let mut meta: Meta = members.decode("_meta")?.unwrap_or_default();
        meta.set_related_task(&task);
        members.insert("_meta", RawJson::of(&meta)?);
        RawJson::of(&members)
    });
    marked.unwrap_or(answer)
}
