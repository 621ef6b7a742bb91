//! One running call: its way to report, and the caller's way to give it up.

use super::outbox::Outbox;
use bowline_proto::{
    server::Notices,
    service::{BoxFuture, Emit, Notice},
};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::Notify;

/// One running call.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Gone when the call is over: nothing may follow its response.
    notices: Mutex<Option<Notices>>,
    outbox: Arc<Outbox>,
    backlog: usize,
    cancelled: AtomicBool,
    cancel: Notify,
}

impl Exchange {
    pub(crate) fn new(notices: Notices, outbox: Arc<Outbox>, backlog: usize) -> Self {
        let (cancelled, cancel) = (AtomicBool::new(false), Notify::new());
        Self { notices: Mutex::new(Some(notices)), outbox, backlog, cancelled, cancel }
    }

    fn notices(&self) -> MutexGuard<'_, Option<Notices>> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Silences the call. What was emitted before is in the outbox.
    pub(crate) fn end(&self) {
        *self.notices() = None;
    }

    /// The caller gives up.
    pub(crate) fn cancel(&self) {
        self.end();
        self.cancelled.store(true, Ordering::Release);
        self.cancel.notify_waiters();
    }

    pub(crate) async fn cancellation(&self) {
        loop {
            let cancel = self.cancel.notified();
            if self.cancelled.load(Ordering::Acquire) {
                return;
            }
            cancel.await;
        }
    }
}

impl Emit for Exchange {
    fn emit(&self, notice: Notice) {
        // Held until the frame is in the outbox, so that the response cannot overtake it.
        let mut notices = self.notices();
        if let Some(frame) = notices.as_mut().and_then(|notices| notices.encode(notice)) {
            self.outbox.offer(&frame, self.backlog);
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.cancellation())
    }
}
