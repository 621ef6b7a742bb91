//! A connection of its own for one call, which speaks one revision.

use super::{CallHandle, Instance, InstanceOwner, NEXT_ID};
use crate::tap::{Tap, TapEvent};
use bowline_client::{BoxFuture, Notification};
use bowline_types::{InputRequest, RawJson, Revision, RpcError};
use std::sync::{Arc, atomic::Ordering};

/// Stops the connection of a call when the call has ended.
pub(crate) struct OwnConnection(Arc<Instance>);

impl Drop for OwnConnection {
    fn drop(&mut self) {
        let instance = Arc::clone(&self.0);
        // Without a runtime the program ends, and so do its servers.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { instance.stop().await });
        }
    }
}

impl Instance {
    /// Returns another instance of the same server that speaks only this revision, and what stops it.
    pub(crate) fn at_revision(&self, revision: Revision) -> (Arc<Self>, OwnConnection) {
        let owner = Arc::new(Quiet(Arc::clone(&self.owner)));
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let spec = self.spec.clone().revision(revision);
        let (name, metrics) = (Arc::clone(&self.name), Arc::clone(&self.metrics));
        let instance = Self::new(id, name, spec, owner, metrics, self.tenant.clone());
        (Arc::clone(&instance), OwnConnection(instance))
    }
}

/// Answers what the server asks, and announces nothing: clients do not see this instance.
struct Quiet(Arc<dyn InstanceOwner>);

impl InstanceOwner for Quiet {
    fn ask(
        &self,
        instance: Arc<Instance>,
        call: CallHandle,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<RawJson, RpcError>> {
        self.0.ask(instance, call, request)
    }

    fn ask_outside_call(
        &self,
        instance: Arc<Instance>,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<RawJson, RpcError>> {
        self.0.ask_outside_call(instance, request)
    }

    fn notified(&self, _: &Arc<Instance>, _: Notification) {}

    fn state_changed(&self, instance: &Arc<Instance>) {
        if let (Some(tap), Some(client)) = (self.tap(), instance.running()) {
            let (connection, revision) = (instance.connection(), client.revision());
            tap.event(&TapEvent::Connected { connection, server: &instance.name, revision });
        }
    }

    fn tap(&self) -> Option<Arc<dyn Tap>> {
        self.0.tap()
    }
}
