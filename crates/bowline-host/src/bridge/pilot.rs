//! The handle by which a running call is reached: where its notices go, and whom its server may ask.

use bowline_proto::service::{ClientView, Notice, Notifier};
use bowline_types::{InputRequest, LogMessageParams, ProgressParams, RawJson, RpcError};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Instant,
};
use tokio::sync::{mpsc, oneshot};

/// How many questions of one call may wait to be looked at.
const WAITING: usize = 16;

/// A question that a server put while a call was under way.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) request: InputRequest,
    pub(super) reply: oneshot::Sender<Result<RawJson, RpcError>>,
}

/// Reaches a running call. Clones reach the same one.
#[derive(Clone)]
pub(crate) struct Pilot(Arc<Shared>);

struct Shared {
    client: Arc<ClientView>,
    asking: mpsc::Sender<Asking>,
    seat: Mutex<Seat>,
}

struct Seat {
    notifier: Notifier,
    /// When something was last heard of the call.
    heard: Instant,
    /// How many wait for something that is not the server's to hurry: its start, its turn, a user.
    paused: usize,
}

impl Pilot {
    pub(super) fn new(client: Arc<ClientView>, notifier: Notifier) -> (Self, mpsc::Receiver<Asking>) {
        let (asking, asked) = mpsc::channel(WAITING);
        let seat = Mutex::new(Seat { notifier, heard: Instant::now(), paused: 0 });
        (Self(Arc::new(Shared { client, asking, seat })), asked)
    }

    fn seat<T>(&self, look: impl FnOnce(&mut Seat) -> T) -> T {
        look(&mut self.0.seat.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whose call it is.
    pub(crate) fn client(&self) -> &Arc<ClientView> {
        &self.0.client
    }

    /// From here on notices go to the notifier of another round.
    pub(super) fn board(&self, notifier: Notifier) {
        self.seat(|seat| (seat.notifier, seat.heard) = (notifier, Instant::now()));
    }

    pub(super) fn notifier(&self) -> Notifier {
        self.seat(|seat| seat.notifier.clone())
    }

    /// When something was last heard of the call: now, while it waits for something else than its server.
    pub(super) fn heard(&self) -> Instant {
        self.seat(|seat| if seat.paused > 0 { Instant::now() } else { seat.heard })
    }

    /// Stops the clock of the call until what is given is dropped.
    pub(crate) fn pause(&self) -> Paused {
        self.seat(|seat| seat.paused += 1);
        Paused(self.clone())
    }

    fn emit(&self, notice: Notice) {
        let notifier = self.seat(|seat| {
            seat.heard = Instant::now();
            seat.notifier.clone()
        });
        notifier.emit(notice);
    }

    /// Passes progress on.
    pub(super) fn progress(&self, progress: ProgressParams) {
        let ProgressParams { progress, total, message, .. } = progress;
        self.emit(Notice::Progress { progress, total, message });
    }

    /// Passes a log message on, with the name of the server it is from.
    pub(crate) fn log(&self, server: &str, message: LogMessageParams) {
        let LogMessageParams { level, logger, data, .. } = message;
        let logger = logger.map_or_else(|| server.to_owned(), |logger| format!("{server}/{logger}"));
        self.emit(Notice::Log { level, logger: Some(logger), data });
    }

    /// The call, for who does not keep it.
    pub(super) fn downgrade(&self) -> WeakPilot {
        WeakPilot(Arc::downgrade(&self.0))
    }

    /// Tells that the user has finished with a page.
    pub(crate) fn visited(&self, elicitation_id: String) {
        self.emit(Notice::ElicitationComplete { elicitation_id });
    }

    /// Puts a question to the caller, in the course of its call.
    pub(crate) async fn ask(&self, request: InputRequest) -> Result<RawJson, RpcError> {
        let over = || RpcError::internal("the call this belongs to is over");
        let (reply, answer) = oneshot::channel();
        self.0.asking.send(Asking { request, reply }).await.map_err(|_| over())?;
        answer.await.unwrap_or_else(|_| Err(over()))
    }
}

/// Reaches a call as long as there is one.
pub(super) struct WeakPilot(Weak<Shared>);

impl WeakPilot {
    pub(super) fn upgrade(&self) -> Option<Pilot> {
        self.0.upgrade().map(Pilot)
    }
}

/// While it lives, the silence of the server does not count.
pub(crate) struct Paused(Pilot);

impl Drop for Paused {
    fn drop(&mut self) {
        self.0.seat(|seat| (seat.paused, seat.heard) = (seat.paused.saturating_sub(1), Instant::now()));
    }
}

impl fmt::Debug for Pilot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pilot").field("client", &self.0.client).finish_non_exhaustive()
    }
}
