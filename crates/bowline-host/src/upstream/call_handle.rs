//! A handle to a running call: where its notifications go, and who answers its questions.

use crate::tap::current_call;
use bowline_proto::{
    caller::Caller,
    service::{Call, CallNotification, ClientView, Notifier},
};
use bowline_server::CallOrigin;
use bowline_types::{InputRequest, LogMessageParams, ProgressParams, RawJson, RpcError};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Instant,
};
use tokio::sync::{mpsc, oneshot};

/// How many questions of one call may be queued.
const MAX_QUEUED_QUESTIONS: usize = 16;

/// A question that a server asked during a call.
#[derive(Debug)]
pub(crate) struct PendingQuestion {
    pub(crate) request: InputRequest,
    pub(crate) reply: oneshot::Sender<Result<RawJson, RpcError>>,
}

/// A handle to a running call. Clones refer to the same call.
#[derive(Clone)]
pub(crate) struct CallHandle(Arc<Shared>);

struct Shared {
    client: Arc<ClientView>,
    /// What the access token of the call says.
    caller: Option<Arc<Caller>>,
    /// Where the call came from, if somebody watches.
    origin: Option<CallOrigin>,
    questions: mpsc::Sender<PendingQuestion>,
    state: Mutex<State>,
}

struct State {
    notifier: Notifier,
    /// When the server last sent something for this call.
    last_activity: Instant,
    /// The last progress.
    progress: Option<CallNotification>,
    /// How many things pause the timeout because the server is not to blame: its start, its turn, a user who decides.
    pauses: usize,
}

impl CallHandle {
    pub(crate) fn new(call: &Call, notifier: Notifier) -> (Self, mpsc::Receiver<PendingQuestion>) {
        let (client, caller) = (Arc::clone(&call.client), call.caller().cloned());
        let (questions, receiver) = mpsc::channel(MAX_QUEUED_QUESTIONS);
        let state = Mutex::new(State { notifier, last_activity: Instant::now(), progress: None, pauses: 0 });
        (Self(Arc::new(Shared { client, caller, origin: current_call(), questions, state })), receiver)
    }

    fn with_state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the client that made the call.
    pub(crate) fn client(&self) -> &Arc<ClientView> {
        &self.0.client
    }

    /// Returns what the access token of the call says, if it has one.
    pub(crate) fn caller(&self) -> Option<&Arc<Caller>> {
        self.0.caller.as_ref()
    }

    /// Returns where the call came from, if somebody watches.
    pub(crate) fn origin(&self) -> Option<&CallOrigin> {
        self.0.origin.as_ref()
    }

    /// Sends further notifications to the caller of another round.
    pub(crate) fn set_notifier(&self, notifier: Notifier) {
        self.with_state(|state| (state.notifier, state.last_activity) = (notifier, Instant::now()));
    }

    pub(crate) fn notifier(&self) -> Notifier {
        self.with_state(|state| state.notifier.clone())
    }

    /// Returns when the server last sent something; the present time while the timeout is paused.
    pub(crate) fn last_activity(&self) -> Instant {
        self.with_state(|state| if state.pauses > 0 { Instant::now() } else { state.last_activity })
    }

    /// Pauses the timeout of the call until the guard is dropped.
    pub(crate) fn pause_timeout(&self) -> TimeoutPause {
        self.with_state(|state| state.pauses += 1);
        TimeoutPause(self.clone())
    }

    fn emit(&self, notice: CallNotification) {
        let notifier = self.with_state(|state| {
            state.last_activity = Instant::now();
            state.notifier.clone()
        });
        notifier.emit(notice);
    }

    /// Forwards progress to the caller.
    pub(crate) fn progress(&self, progress: ProgressParams) {
        let ProgressParams { progress, total, message, .. } = progress;
        let progress = CallNotification::Progress { progress, total, message };
        self.with_state(|state| state.progress = Some(progress.clone()));
        self.emit(progress);
    }

    /// Sends the last progress again, to a caller that does not know it.
    pub(crate) fn repeat_progress(&self) {
        if let Some(progress) = self.with_state(|state| state.progress.clone()) {
            self.notifier().emit(progress);
        }
    }

    /// Forwards a log message to the caller, prefixed with the name of the server.
    pub(crate) fn log(&self, server: &str, message: LogMessageParams) {
        let LogMessageParams { level, logger, data, .. } = message;
        let logger = logger.map_or_else(|| server.to_owned(), |logger| format!("{server}/{logger}"));
        self.emit(CallNotification::Log { level, logger: Some(logger), data });
    }

    /// Notifies the caller that a URL elicitation is complete.
    pub(crate) fn elicitation_complete(&self, elicitation_id: String) {
        self.emit(CallNotification::ElicitationComplete { elicitation_id });
    }

    /// Asks the caller during its call.
    pub(crate) async fn ask(&self, request: InputRequest) -> Result<RawJson, RpcError> {
        let ended = || RpcError::internal("the call that this question belongs to has ended");
        let (reply, answer) = oneshot::channel();
        self.0.questions.send(PendingQuestion { request, reply }).await.map_err(|_| ended())?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Returns a handle that does not keep the call alive.
    pub(super) fn downgrade(&self) -> WeakCallHandle {
        WeakCallHandle(Arc::downgrade(&self.0))
    }
}

/// A handle that does not keep its call alive.
pub(super) struct WeakCallHandle(Weak<Shared>);

impl WeakCallHandle {
    pub(super) fn upgrade(&self) -> Option<CallHandle> {
        self.0.upgrade().map(CallHandle)
    }
}

/// Pauses the timeout of a call until it is dropped.
pub(crate) struct TimeoutPause(CallHandle);

impl Drop for TimeoutPause {
    fn drop(&mut self) {
        self.0.with_state(|state| {
            (state.pauses, state.last_activity) = (state.pauses.saturating_sub(1), Instant::now());
        });
    }
}

impl fmt::Debug for CallHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallHandle").field("client", &self.0.client).finish_non_exhaustive()
    }
}
