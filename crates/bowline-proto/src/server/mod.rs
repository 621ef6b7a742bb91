//! The server side of a connection: frames in, calls and replies out.
//!
//! A [`ServerSession`] is a value. It classifies each message once, answers what the protocol itself answers, and yields
//! a [`Call`] for the rest; [`ServerSession::finish`] encodes the outcome. It reads no clock and
//! spawns no tasks; the owner of the connection does.

mod classify;
mod finish;
mod input_capability;
mod legacy;
mod modern;
mod notifications;
mod opening;
mod profile;
mod session_state;
#[cfg(test)]
mod tests;

pub use classify::{Handling, HeaderVersion, MessageKind, Transport, classify};
pub use finish::{Sealing, encode as encode_outcome};
pub use input_capability::missing_capability;
pub use legacy::Legacy;
pub use modern::{
    Admitted, admit as admit_modern, admit_notification as admit_modern_notification, require_extension,
    supported as supported_revision,
};
pub use notifications::{NotificationEncoder, Threshold};
pub use profile::{CacheHint, Profile, RevisionSet};
pub use session_state::SessionState;

use crate::{
    encode,
    envelope::{Frame, Message, MethodName, Rejected},
    params::{Params, RequestMeta},
    replay::Replay,
    service::{Call, ClientView, Extensions, Outcome},
    subscribe::{Change, Channel, Listen, MAX_LISTENS, Subscriber, SubscriptionAccess, Subscriptions},
};
use bowline_types::{
    CancelledParams, Id, LoggingLevel, Method, ProgressParams, ProgressToken, RawJson, Revision, RpcError,
};
use bytes::Bytes;
use std::{collections::BTreeSet, sync::Arc};

/// Maximum number of requests of one connection that run at once.
pub const MAX_IN_FLIGHT: usize = 1000;

/// Maximum length of the reason for a cancellation in the log, in characters.
const MAX_REASON: usize = 200;

/// What the owner of the connection has to do for a frame. `C` is what it attaches to running calls.
#[derive(Debug)]
pub enum Inbound<C = ()> {
    /// Run this call, then [`ServerSession::finish`] it.
    Call(Ticket, Call, NotificationEncoder),
    /// Send this.
    Reply(Bytes),
    /// Find out which of the tasks the client may see, then [`ServerSession::listen`].
    Listen(Id, Box<Listen>),
    /// A request of the server was answered.
    Answer {
        /// Its id.
        id: Id,
        /// The result.
        result: Result<RawJson, RpcError>,
    },
    /// The client reported progress of a request of the server.
    Alive(Id),
    /// Stop a call and send nothing more for it.
    Cancel {
        /// Serial number of the call.
        serial: u64,
        /// What was attached to the call; see [`ServerSession::attach`].
        attached: Option<C>,
        /// Reason that the client gave, shortened; for the log.
        reason: Option<Box<str>>,
    },
    /// The handshake is complete; the server may now send messages of its own.
    Initialized,
    /// The client's roots changed.
    RootsChanged,
    /// A batch of 2025-03-26: handle each item and send the replies together.
    Batch(Vec<Self>),
    /// A notification that is not part of the protocol. Run it; nothing is sent for it.
    Custom(Box<Call>),
    /// Nothing to do.
    Ignored,
}

/// Identifies a running call.
#[derive(Clone, Debug)]
pub struct Ticket {
    /// Id of the request.
    pub id: Id,
    /// Method of the request.
    pub method: MethodName,
    /// The client that sent it.
    pub client: Arc<ClientView>,
    /// Parameters of the call, kept as long as the call may be repeated.
    params: Option<Params>,
    progress_token: Option<ProgressToken>,
    log_level: Option<LoggingLevel>,
    extensions: Extensions,
    /// Distinguishes calls with the same id; the id of a cancelled request may be reused.
    serial: u64,
}

/// Whether several running requests may have the same id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ids {
    /// No: a request with an id in use is rejected. For connections with one channel.
    #[default]
    Unique,
    /// Yes: each request has an exchange of its own, so its response reaches it whatever the id. Some clients use the same
    /// id for all requests.
    PerExchange,
}

impl Ticket {
    /// Creates the ticket of a call that is about to run, and the encoder for its notifications.
    pub fn issue(id: Id, call: &Call, threshold: Threshold) -> (Self, NotificationEncoder) {
        let ticket = Self {
            id,
            method: call.method.clone(),
            client: Arc::clone(&call.client),
            params: Some(call.params.clone()),
            progress_token: call.progress_token.clone(),
            log_level: call.log_level,
            extensions: Extensions::new(),
            serial: 0,
        };
        let notices = NotificationEncoder::new(call.client.revision, call.progress_token.clone(), threshold);
        (ticket, notices)
    }

    /// Sets the extensions of the calls that [`Self::again`] returns.
    pub fn set_extensions(&mut self, extensions: &Extensions) {
        self.extensions.clone_from(extensions);
    }

    /// Returns the serial number of the call in its session.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Returns the same call again, with the answers of earlier rounds.
    pub fn again(&self, replay: Replay) -> Call {
        let params = self.params.clone().unwrap_or_else(Params::empty);
        let mut call = Call::new(self.method.clone(), params, Arc::clone(&self.client));
        call.progress_token.clone_from(&self.progress_token);
        call.log_level = self.log_level;
        call.replay = replay;
        call.extensions = self.extensions.clone();
        call
    }
}

/// The server side of one connection or legacy session, and the only list of its running calls. `C` is what the owner of
/// the connection attaches to a call, to stop it.
#[derive(Debug)]
pub struct ServerSession<C = ()> {
    profile: Arc<Profile>,
    principal: Option<Arc<str>>,
    legacy: Option<Legacy>,
    /// There are few, so a linear search is fastest.
    running: Vec<RunningCall<C>>,
    ids: Ids,
    next_serial: u64,
    subscriptions: Subscriptions,
    subscriber: Subscriber,
    memory: SessionMemory,
    /// Rises with every change of what the session remembers.
    changes: u64,
    /// Subscriptions to tasks that are being looked up.
    opening: Vec<Id>,
}

/// Whether a legacy session remembers something between its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionMemory {
    /// Log level and subscriptions.
    #[default]
    Kept,
    /// Nothing but its client: every request may reach another process. Subscriptions and notifications of changes are not
    /// offered.
    None,
}

#[derive(Debug)]
struct RunningCall<C> {
    id: Id,
    serial: u64,
    attached: Option<C>,
}

impl<C> ServerSession<C> {
    /// Creates a session. `principal` is the authenticated user, if the transport knows one.
    pub fn new(profile: Arc<Profile>, principal: Option<Arc<str>>) -> Self {
        Self {
            profile,
            principal,
            legacy: None,
            running: Vec::new(),
            ids: Ids::default(),
            next_serial: 0,
            subscriptions: Subscriptions::default(),
            subscriber: Subscriber::default(),
            memory: SessionMemory::Kept,
            changes: 0,
            opening: Vec::new(),
        }
    }

    /// Sets whether the session remembers something between its requests.
    #[must_use]
    pub fn with_memory(mut self, memory: SessionMemory) -> Self {
        self.memory = memory;
        self
    }

    /// Returns a number that rises with every change of [`Self::state`].
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns what the session remembers; `None` before the handshake.
    pub fn state(&self) -> Option<SessionState> {
        let legacy = self.legacy.as_ref()?;
        let mut state = SessionState::new(
            legacy.client.revision,
            legacy.client.raw_capabilities.clone(),
            legacy.client.raw_info.clone(),
        );
        state.initialized = legacy.is_initialized();
        state.level = legacy.level();
        state.uris = self.subscriptions.uris();
        Some(state)
    }

    /// Continues a session of another process, or takes over what changed there. Subscriptions require the scopes of
    /// resources from the current subscriber. Returns whether the handshake was completed elsewhere.
    pub fn restore(&mut self, state: &SessionState) -> bool {
        let principal = self.principal.clone();
        let legacy = self.legacy.get_or_insert_with(|| Legacy::restored(principal, state));
        legacy.set_level(state.level);
        let completed = state.initialized && !legacy.is_initialized();
        if completed {
            legacy.initialized();
            if self.memory == SessionMemory::Kept {
                self.subscriptions.open_legacy(&self.profile.capabilities);
            }
        }
        let access = SubscriptionAccess::of(&self.profile, &legacy.client);
        self.subscriptions.restore(&state.uris, access.with_scopes(&self.profile, &self.subscriber));
        completed
    }

    /// Forgets the recorded changes, because another process notifies the client.
    pub fn forget_changes(&mut self) {
        self.subscriptions.drain();
    }

    /// Sets the token of the frames that follow. Subscriptions that they make, and earlier ones of a legacy client, require
    /// the scopes of resources from it.
    pub fn set_subscriber(&mut self, subscriber: Subscriber) {
        self.subscriptions.set_subscriber(&self.profile, &subscriber);
        self.subscriber = subscriber;
    }

    /// Returns the token of the last frame.
    pub fn subscriber(&self) -> &Subscriber {
        &self.subscriber
    }

    /// Sets whether several running requests may have the same id.
    #[must_use]
    pub fn with_ids(mut self, ids: Ids) -> Self {
        self.ids = ids;
        self
    }

    /// Returns the negotiated legacy revision, if there was a handshake.
    pub fn revision(&self) -> Option<Revision> {
        self.legacy.as_ref().map(|legacy| legacy.client.revision)
    }

    /// Returns whether the client completed the handshake.
    pub fn is_initialized(&self) -> bool {
        self.legacy.as_ref().is_some_and(Legacy::is_initialized)
    }

    /// Returns the client of the handshake, if there was one.
    pub fn client(&self) -> Option<&Arc<ClientView>> {
        self.legacy.as_ref().map(|legacy| &legacy.client)
    }

    /// Handles one frame. `now` returns the time in seconds since the epoch; it is called only if needed.
    pub fn accept(&mut self, frame: Frame, now: fn() -> u64) -> Inbound<C> {
        match frame {
            Frame::Single(message) => self.accept_message(message, now),
            Frame::Batch(items) => self.accept_batch(items, now),
        }
    }

    fn accept_batch(&mut self, items: Vec<Result<Message, Rejected>>, now: fn() -> u64) -> Inbound<C> {
        let refuse =
            |reason: &'static str| Inbound::Reply(encode::failure(None, &RpcError::invalid_request(reason)));
        // Only 2025-03-26 has batches, and its handshake is never inside one.
        if self.revision() != Some(Revision::V2025_03_26) {
            return refuse("batches are not supported in this revision");
        }
        if items.is_empty() {
            return refuse("the batch is empty");
        }
        Inbound::Batch(items.into_iter().map(|item| self.accept_message(item, now)).collect())
    }

    fn accept_message(&mut self, message: Result<Message, Rejected>, now: fn() -> u64) -> Inbound<C> {
        match message {
            Ok(Message::Request { id, method, params }) => {
                match self.accept_request(&id, &method, params, now) {
                    Ok(inbound) => inbound,
                    Err(error) => Inbound::Reply(encode::failure(Some(&id), &error)),
                }
            }
            Ok(Message::Notification { method, params }) => self.accept_notification(&method, params),
            Ok(Message::Response { id, result }) => Inbound::Answer { id, result: Ok(result) },
            Ok(Message::Failure { id: Some(id), error }) => Inbound::Answer { id, result: Err(error) },
            Ok(Message::Failure { id: None, .. }) => Inbound::Ignored,
            Err(rejected) => rejected.reply().map_or(Inbound::Ignored, Inbound::Reply),
        }
    }

    fn accept_request(
        &mut self,
        id: &Id,
        method: &MethodName,
        params: Option<Params>,
        now: fn() -> u64,
    ) -> Result<Inbound<C>, RpcError> {
        let taken = self.running.iter().any(|call| call.id == *id)
            || self.subscriptions.is_listening(id)
            || self.opening.contains(id);
        if taken && self.ids == Ids::Unique {
            return Err(RpcError::invalid_request(format!("a request with id {id} is already running")));
        }
        if self.running() >= MAX_IN_FLIGHT {
            return Err(RpcError::internal(format!("{MAX_IN_FLIGHT} requests are running already")));
        }
        let params = params.unwrap_or_else(Params::empty);
        let meta = RequestMeta::of(&params)?;
        let transport = Transport::Stream { has_session: self.legacy.is_some() };
        let message = MessageKind::request(method, Ok(&meta));
        let admitted = match (classify(self.profile.revisions, transport, message), &mut self.legacy) {
            (Handling::Modern, _) => {
                let revision = modern::supported(&self.profile, &meta)?;
                modern::admit(&self.profile, self.principal.as_ref(), revision, method, params, meta, now)?
            }
            (Handling::Session, Some(legacy)) => {
                if self.memory == SessionMemory::None && *method == MethodName::Known(Method::Subscribe) {
                    let reason = "this server keeps no subscriptions: its sessions are set to `sealed`";
                    return Err(RpcError::new(bowline_types::error_code::METHOD_NOT_FOUND, reason));
                }
                if let MethodName::Known(Method::SetLevel | Method::Subscribe | Method::Unsubscribe) = method
                {
                    self.changes += 1;
                }
                let subscriptions = (&mut self.subscriptions, &self.subscriber);
                legacy.admit(&self.profile, subscriptions, method, params, meta)?
            }
            (Handling::Session | Handling::Opening, opened) => {
                let (admitted, legacy) = opening::admit(
                    &self.profile,
                    self.principal.as_ref(),
                    &self.subscriber,
                    method,
                    &params,
                    self.memory,
                )?;
                *opened = legacy;
                self.changes += 1;
                admitted
            }
        };
        Ok(match admitted {
            Admitted::Answer(result) => Inbound::Reply(encode::response(id, &result)),
            Admitted::Listen(mut listen) => {
                listen.require_scopes(&self.profile, &self.subscriber);
                if self.opening.len() >= MAX_LISTENS {
                    return Err(RpcError::internal("too many subscriptions are open"));
                }
                if listen.names_tasks(&self.profile) {
                    self.opening.push(id.clone());
                    return Ok(Inbound::Listen(id.clone(), listen));
                }
                let granted = self.subscriptions.listen(id.clone(), &listen, &self.profile.capabilities);
                Inbound::Reply(granted.ok_or_else(|| RpcError::internal("too many subscriptions are open"))?)
            }
            Admitted::Call(call, threshold) => {
                let (mut ticket, mut notices) = Ticket::issue(id.clone(), &call, threshold);
                if let Some(legacy) = self.legacy.as_ref().filter(|_| !call.client.revision.is_modern()) {
                    legacy.hold_back(&mut notices);
                }
                ticket.serial = self.next_serial;
                self.next_serial += 1;
                self.running.push(RunningCall { id: id.clone(), serial: ticket.serial, attached: None });
                Inbound::Call(ticket, call, notices)
            }
        })
    }

    fn accept_notification(&mut self, method: &MethodName, params: Option<Params>) -> Inbound<C> {
        let MethodName::Known(known) = method else { return self.accept_custom(method, params) };
        let (method, params) = (*known, params.as_ref().map(Params::raw));
        // What cannot be read is ignored: a notification is never answered.
        if method == Method::Cancelled {
            let cancelled = params.and_then(|params| params.decode::<CancelledParams>().ok());
            let Some(CancelledParams { request_id: Some(id), reason, .. }) = cancelled else {
                return Inbound::Ignored;
            };
            return self.cancel(&id, reason);
        }
        let Some(legacy) = &mut self.legacy else { return Inbound::Ignored };
        if !method.exists_in(legacy.client.revision) {
            return Inbound::Ignored;
        }
        match method {
            Method::Initialized if !legacy.is_initialized() => {
                legacy.initialized();
                if self.memory == SessionMemory::Kept {
                    self.subscriptions.open_legacy(&self.profile.capabilities);
                }
                self.changes += 1;
                Inbound::Initialized
            }
            Method::RootsListChanged => Inbound::RootsChanged,
            Method::Progress => {
                let progress = params.and_then(|params| params.decode::<ProgressParams>().ok());
                progress.map_or(Inbound::Ignored, |progress| Inbound::Alive(progress.progress_token))
            }
            _ => Inbound::Ignored,
        }
    }

    fn accept_custom(&self, method: &MethodName, params: Option<Params>) -> Inbound<C> {
        let params = params.unwrap_or_else(Params::empty);
        let is_modern = || RequestMeta::of(&params).is_ok_and(|meta| meta.is_modern);
        let call = match &self.legacy {
            Some(legacy) if !is_modern() => {
                let known = self.profile.custom.has_notification(method.as_str());
                known.then(|| {
                    let mut call = Call::new(method.clone(), params, Arc::clone(&legacy.client));
                    call.is_notification = true;
                    call
                })
            }
            _ if self.profile.revisions.has_modern() => {
                modern::admit_notification(&self.profile, self.principal.as_ref(), method, params)
            }
            _ => None,
        };
        call.map_or(Inbound::Ignored, |call| Inbound::Custom(Box::new(call)))
    }

    fn cancel(&mut self, id: &Id, reason: Option<String>) -> Inbound<C> {
        let mut running = self.running.iter().filter(|call| call.id == *id).map(|call| call.serial);
        match (running.next(), running.next()) {
            (Some(serial), None) => {
                let attached = self.forget(serial).and_then(|call| call.attached);
                let reason = reason.map(|reason| reason.chars().take(MAX_REASON).collect());
                Inbound::Cancel { serial, attached, reason }
            }
            // It is unknown which of several is meant, and the others must not be affected.
            (Some(_), Some(_)) => Inbound::Ignored,
            (None, _) => {
                self.opening.retain(|opening| opening != id);
                self.subscriptions.cancel(id);
                Inbound::Ignored
            }
        }
    }

    /// Opens a subscription to tasks, once [`Listen::tasks`] is known. Returns the acknowledgment; `None` if the client cancelled
    /// the subscription meanwhile.
    pub fn listen(&mut self, id: &Id, listen: &Listen) -> Option<Bytes> {
        let place = self.opening.iter().position(|opening| opening == id)?;
        self.opening.swap_remove(place);
        let refused = || encode::failure(Some(id), &RpcError::internal("too many subscriptions are open"));
        let granted = self.subscriptions.listen(id.clone(), listen, &self.profile.capabilities);
        Some(granted.unwrap_or_else(refused))
    }

    /// Returns whether a subscription is open.
    pub fn is_listening(&self, id: &Id) -> bool {
        self.subscriptions.is_listening(id)
    }

    /// Attaches what stops a call; [`Inbound::Cancel`] returns it. False if the call was cancelled, which happens if its
    /// batch also cancels it.
    pub fn attach(&mut self, ticket: &Ticket, attached: C) -> bool {
        // The call is usually the newest.
        let call = self.running.iter_mut().rev().find(|call| call.serial == ticket.serial);
        let is_running = call.is_some();
        if let Some(call) = call {
            call.attached = Some(attached);
        }
        is_running
    }

    /// Removes a running call; `None` if it is not running.
    fn forget(&mut self, serial: u64) -> Option<RunningCall<C>> {
        let place = self.running.iter().position(|call| call.serial == serial)?;
        Some(self.running.swap_remove(place))
    }

    /// Ends a call whose response is encoded elsewhere; false if it was cancelled and no response may be sent.
    pub fn end(&mut self, ticket: &Ticket) -> bool {
        self.forget(ticket.serial).is_some()
    }

    /// Ends a call and appends its response to `out`; false, and nothing is appended, if it was cancelled.
    pub fn finish(
        &mut self,
        ticket: &mut Ticket,
        outcome: Outcome,
        sealing: &dyn Fn() -> Sealing,
        out: &mut Vec<u8>,
    ) -> bool {
        let is_running = self.end(ticket);
        if is_running {
            finish::encode(&self.profile, ticket, outcome, sealing, out);
        }
        is_running
    }

    /// Returns the number of running calls.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Returns the resources that the client subscribes to, if they may have changed since the last call.
    pub fn take_wanted(&mut self) -> Option<BTreeSet<String>> {
        self.subscriptions.take_wanted()
    }

    /// Records a change at the server. Returns whether [`Self::take_notifications`] has something to send.
    pub fn mark(&mut self, change: &Change) -> bool {
        self.subscriptions.mark(change)
    }

    /// Returns the notifications for the recorded changes.
    pub fn take_notifications(&mut self) -> Vec<Bytes> {
        self.subscriptions.drain()
    }

    /// Ends all subscriptions and returns the last frames of the connection.
    pub fn close(&mut self) -> Vec<Bytes> {
        self.subscriptions.close(&self.profile, Channel::Shared)
    }
}
