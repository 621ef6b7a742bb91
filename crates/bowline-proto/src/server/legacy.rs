//! The rules of a session opened by `initialize`: 2024-11-05 to 2025-11-25.

use super::{Admitted, NotificationEncoder, Profile, SessionMemory, SessionState, Threshold};
use crate::{
    envelope::MethodName,
    params::{Params, RequestMeta},
    service::{Call, ClientView},
    subscribe::{Subscriber, SubscriptionAccess, Subscriptions},
    uri,
};
use bowline_types::{
    Adapt, Direction, InitializeParams, InitializeResult, LoggingLevel, Method, MethodKind, RawJson,
    Revision, RpcError, SetLevelParams,
};
use bytes::Bytes;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// A session opened by `initialize`.
#[derive(Debug)]
pub struct Legacy {
    pub(super) client: Arc<ClientView>,
    threshold: Threshold,
    /// Shared with calls that started earlier.
    initialized: Arc<AtomicBool>,
}

impl Legacy {
    pub(super) fn new(revision: Revision, principal: Option<Arc<str>>, params: &InitializeParams) -> Self {
        let capabilities = RawJson::of(&params.capabilities).unwrap_or_else(|_| RawJson::empty_object());
        let info = RawJson::of(&params.client_info).ok();
        // Kept for as long as the session.
        let info = info.map(|info| info.compact());
        let client = Arc::new(ClientView::new(revision, principal, capabilities.compact(), info));
        Self { client, threshold: Threshold::session(), initialized: Arc::default() }
    }

    /// Continues a session that another process opened.
    pub(super) fn restored(principal: Option<Arc<str>>, state: &SessionState) -> Self {
        let client =
            ClientView::new(state.revision, principal, state.capabilities.clone(), state.client_info.clone());
        Self { client: Arc::new(client), threshold: Threshold::session(), initialized: Arc::default() }
    }

    pub(super) fn level(&self) -> LoggingLevel {
        self.threshold.level().unwrap_or(LoggingLevel::Info)
    }

    pub(super) fn set_level(&self, level: LoggingLevel) {
        self.threshold.set(level);
    }

    pub(super) fn greeting(&self, profile: &Profile, memory: SessionMemory, is_identified: bool) -> Bytes {
        let revision = self.client.revision;
        let mut capabilities = profile.capabilities.clone();
        if memory == SessionMemory::None {
            // Nobody would remember who wants to be notified.
            if let Some(resources) = &mut capabilities.resources {
                (resources.subscribe, resources.list_changed) = (None, None);
            }
            if let Some(tools) = &mut capabilities.tools {
                tools.list_changed = None;
            }
            if let Some(prompts) = &mut capabilities.prompts {
                prompts.list_changed = None;
            }
        }
        let mut result = InitializeResult::new(revision.as_str(), capabilities, profile.info.clone());
        result.instructions = profile.instructions();
        if !is_identified && let Some(tasks) = &mut result.capabilities.tasks {
            // A list would show the tasks of others.
            tasks.list = None;
        }
        result.adapt(revision);
        serde_json::to_vec(&result).unwrap_or_default().into()
    }

    pub(super) fn is_initialized(&self) -> bool {
        self.initialized.load(Ordering::Acquire)
    }

    pub(super) fn initialized(&self) {
        self.initialized.store(true, Ordering::Release);
    }

    /// Before `notifications/initialized` a server sends no notifications but log messages.
    pub(super) fn hold_back(&self, notices: &mut NotificationEncoder) {
        if !self.is_initialized() {
            notices.hold_back_until(Arc::clone(&self.initialized));
        }
    }

    pub(super) fn admit(
        &mut self,
        profile: &Profile,
        (subscriptions, subscriber): (&mut Subscriptions, &Subscriber),
        method: &MethodName,
        params: Params,
        meta: RequestMeta,
    ) -> Result<Admitted, RpcError> {
        let revision = self.client.revision;
        let unknown = || RpcError::method_not_found(method.as_str());
        let known = match method {
            MethodName::Known(known) => *known,
            MethodName::Custom(name) => {
                profile.custom.check_request(name, &self.client)?;
                return Ok(self.call(method.clone(), params, meta));
            }
        };
        let is_request =
            known.kind() == MethodKind::Request && known.direction() != Direction::ServerToClient;
        if !is_request || !known.exists_in(revision) {
            return Err(unknown());
        }
        if known.capability().is_some_and(|capability| !profile.capabilities.has(capability)) {
            return Err(unknown());
        }
        let done = || Ok(Admitted::Answer(Bytes::from_static(b"{}")));
        match known {
            Method::Initialize => Err(RpcError::invalid_request("the session is already initialized")),
            Method::Ping => done(),
            Method::SetLevel => {
                self.threshold.set(params.decode::<SetLevelParams>()?.level);
                done()
            }
            Method::Subscribe => {
                let uri = params.uri()?;
                uri::validate_uri(&uri)
                    .map_err(|error| RpcError::invalid_params(format!("`uri`: {error}")))?;
                let access = SubscriptionAccess::of(profile, &self.client).with_scopes(profile, subscriber);
                access.check(&uri)?;
                if !subscriptions.subscribe(&uri, access) {
                    return Err(RpcError::internal("too many resource subscriptions"));
                }
                done()
            }
            Method::Unsubscribe => {
                subscriptions.unsubscribe(&params.uri()?);
                done()
            }
            known => Ok(self.call(known.into(), params, meta)),
        }
    }

    fn call(&self, method: MethodName, params: Params, meta: RequestMeta) -> Admitted {
        let mut call = Call::new(method, params, Arc::clone(&self.client));
        call.progress_token = meta.progress_token;
        call.log_level = self.threshold.level();
        Admitted::Call(call, self.threshold.clone())
    }
}
