//! Handles what instances of servers ask and announce.

use super::{
    Inner,
    asker::{Answerer, CallerView, with_origin},
};
use crate::{
    aggregate::without_prefix,
    bridge::or_cancelled,
    tap::{self, Tap, TapEvent},
    upstream::{CallHandle, CallerKey, Instance, InstanceOwner},
};
use bowline_client::{BoxFuture, Notification};
use bowline_policy::Gate;
use bowline_proto::{service::ClientView, subscribe::Change};
use bowline_types::{ElicitParams, InputRequest, RawJson, RpcError};
use std::sync::{Arc, Weak};

/// Connects instances to the host that owns them.
pub(super) struct InstanceEvents(pub(super) Weak<Inner>);

impl InstanceOwner for InstanceEvents {
    fn ask(
        &self,
        instance: Arc<Instance>,
        call: CallHandle,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<RawJson, RpcError>> {
        let inner = self.0.clone();
        let origin = call.origin().cloned();
        let answer = async move {
            let asker = Arc::clone(&inner.upgrade().ok_or_else(shut_down)?.asker);
            match asker.answerer(&instance, CallerView::of_handle(&call), &request) {
                Answerer::Caller => {
                    let upstream_id = elicitation_id(&request).map(str::to_owned);
                    let request = with_origin(&instance, request);
                    if let (Some(upstream_id), Some(caller_id)) = (upstream_id, elicitation_id(&request)) {
                        instance.url_elicitations.insert(upstream_id, caller_id.to_owned(), &call);
                    }
                    call.ask(request).await
                }
                Answerer::Host => {
                    let _pause = call.pause_timeout();
                    let is_elicitation = matches!(request, InputRequest::Elicit(_));
                    let gate = asker.running_call_gate(&call);
                    let gate = gate.as_ref().map(|gate| gate as &dyn Gate);
                    let answer = asker.answer(&instance, CallerView::of_handle(&call), request, gate).await;
                    if is_elicitation { answer.or_else(or_cancelled) } else { answer }
                }
                Answerer::Nobody(error) => match request {
                    InputRequest::Elicit(_) => or_cancelled(error),
                    InputRequest::CreateMessage(_) | InputRequest::ListRoots => Err(error),
                },
            }
        };
        match origin {
            Some(origin) => Box::pin(tap::within(origin, answer)),
            None => Box::pin(answer),
        }
    }

    fn ask_outside_call(
        &self,
        instance: Arc<Instance>,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<RawJson, RpcError>> {
        let inner = self.0.clone();
        Box::pin(async move {
            match request {
                // Many servers ask for their roots as soon as they have started.
                InputRequest::ListRoots => {
                    let asker = Arc::clone(&inner.upgrade().ok_or_else(shut_down)?.asker);
                    asker.list_roots(&instance, &asker.server_facts(&instance)).await
                }
                InputRequest::Elicit(_) | InputRequest::CreateMessage(_) => {
                    Err(RpcError::internal("no call is running that this request could belong to"))
                }
            }
        })
    }

    fn notified(&self, instance: &Arc<Instance>, notification: Notification) {
        if let Some(inner) = self.0.upgrade() {
            inner.notified(instance, notification);
        }
    }

    fn state_changed(&self, instance: &Arc<Instance>) {
        if let Some(inner) = self.0.upgrade() {
            instance.lists.invalidate();
            inner.router.invalidate();
            inner.announcements.set_instructions(&inner.router.members());
            inner.announcements.publish_lists();
            inner.announcements.servers_changed.notify_waiters();
            let Some(tap) = &inner.tap else { return };
            let status = instance.status();
            let connection = status.revision.map(|revision| (instance.connection(), revision));
            tap.event(&TapEvent::State { server: &instance.name, health: &status.health, connection });
            tap.event(&TapEvent::ListsChanged);
        }
    }

    fn tap(&self) -> Option<Arc<dyn Tap>> {
        self.0.upgrade()?.tap.clone()
    }
}

impl Inner {
    /// Handles a notification of a server.
    fn notified(&self, instance: &Arc<Instance>, notification: Notification) {
        let lists = &instance.lists;
        let changed = match notification {
            Notification::ToolsChanged => {
                lists.tools.invalidate();
                Change::Tools
            }
            Notification::PromptsChanged => {
                lists.prompts.invalidate();
                Change::Prompts
            }
            Notification::ResourcesChanged => {
                lists.resources.invalidate();
                lists.templates.invalidate();
                Change::Resources
            }
            Notification::ResourceUpdated(params) => {
                for uri in self.router.shown_uris(instance, &params.uri) {
                    self.announcements.publish(&Change::Resource(uri));
                }
                return;
            }
            Notification::ElicitationComplete(params) => {
                // Only the caller that was sent to the URL is notified.
                if let Some((call, id)) = instance.url_elicitations.take(&params.elicitation_id) {
                    call.elicitation_complete(id);
                }
                return;
            }
            other => {
                tracing::debug!(server = &*instance.name, ?other, "dropped a notification");
                return;
            }
        };
        self.router.invalidate();
        self.announcements.publish_list(changed);
        self.tell(&TapEvent::ListsChanged);
    }

    /// Checks whether a client may subscribe to a resource: not if a rule denies reading it. If the owner is not known yet, no
    /// server may deny it.
    pub(super) fn may_subscribe(&self, client: &Arc<ClientView>, uri: &str) -> Result<(), RpcError> {
        let tenants = [Some(CallerKey::of_client(client)), None];
        let owner = tenants.iter().find_map(|tenant| self.router.cached_catalog(tenant.as_ref())?.owner(uri));
        let denied = match owner {
            Some((instance, original)) => self.asker.denied_reading(client, &instance.name, &original),
            None => self.router.members().iter().find_map(|member| {
                let uri = without_prefix(&member.name, uri).unwrap_or(uri);
                self.asker.denied_reading(client, &member.name, uri)
            }),
        };
        denied.map_or(Ok(()), Err)
    }
}

fn shut_down() -> RpcError {
    RpcError::internal("the host has shut down")
}

fn elicitation_id(request: &InputRequest) -> Option<&str> {
    match request {
        InputRequest::Elicit(ElicitParams::Url(params)) => params.elicitation_id.as_deref(),
        InputRequest::Elicit(ElicitParams::Form(_))
        | InputRequest::CreateMessage(_)
        | InputRequest::ListRoots => None,
    }
}
