//! Passes the requests, logs and notifications of a server to the call that they belong to, or to the owner of the instance.

use super::Instance;
use crate::{tap::TapEvent, upstream::running_calls::Attribution};
use bowline_client::{BoxFuture, CallKey, Notification, Relay};
use bowline_types::{InputRequest, LogMessageParams, RawJson, RpcError};
use std::sync::{Arc, Weak};

/// Receives the messages of a server.
pub(super) struct InstanceRelay(pub(super) Weak<Instance>);

impl Relay for InstanceRelay {
    fn ask(
        &self,
        call: Option<CallKey>,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<RawJson, RpcError>> {
        let Some(instance) = self.0.upgrade() else {
            return Box::pin(std::future::ready(Err(RpcError::internal("the host has shut down"))));
        };
        let owner = Arc::clone(&instance.owner);
        let found = instance.running_calls.find(call);
        if let (Attribution::Call(_, handle), Some(tap)) = (&found, owner.tap())
            && let Some(origin) = handle.origin()
        {
            let (connection, method) = (instance.connection(), request.method().as_str());
            tap.event(&TapEvent::Attributed { connection, method, call: origin });
        }
        match found {
            Attribution::Call(_, handle) if call.is_some() => owner.ask(instance, handle, request),
            Attribution::Call(key, handle) => {
                instance.running_calls.note_asking();
                let answer = owner.ask(Arc::clone(&instance), handle.clone(), request);
                Box::pin(async move {
                    // Waiting for other calls must not count as the server's time.
                    let answer = async { (answer.await, handle.pause_timeout()) };
                    instance.running_calls.answered(key, answer).await.0
                })
            }
            Attribution::NoCall => owner.ask_outside_call(instance, request),
            Attribution::Ambiguous => {
                instance.running_calls.note_asking();
                let reason = "several clients have running calls, so it is unknown which of them to ask; set `share = \"per-client\"`";
                Box::pin(std::future::ready(Err(RpcError::internal(reason))))
            }
        }
    }

    fn log(&self, call: Option<CallKey>, message: LogMessageParams) {
        let Some(instance) = self.0.upgrade() else { return };
        match instance.running_calls.find(call) {
            Attribution::Call(_, handle) => handle.log(&instance.name, message),
            Attribution::NoCall | Attribution::Ambiguous => {
                tracing::debug!(server = &*instance.name, "dropped a log message that belongs to no call");
            }
        }
    }

    fn notify(&self, notification: Notification) {
        if let Some(instance) = self.0.upgrade() {
            instance.owner.notified(&instance, notification);
        }
    }
}
