//! One running call: its way to report, and the caller's way to give it up.

use super::Sink;
use bowline_proto::{
    server::Notices,
    service::{BoxFuture, Emit, Notice},
};
use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::Notify;

/// One running call.
pub struct Exchange {
    /// Gone when the call is over: nothing may follow its response.
    notices: Mutex<Option<Notices>>,
    sink: Arc<dyn Sink>,
    cancelled: AtomicBool,
    cancel: Notify,
}

impl Exchange {
    /// A call whose notices go to `sink`.
    pub fn new(notices: Notices, sink: Arc<dyn Sink>) -> Self {
        let (cancelled, cancel) = (AtomicBool::new(false), Notify::new());
        Self { notices: Mutex::new(Some(notices)), sink, cancelled, cancel }
    }

    fn notices(&self) -> MutexGuard<'_, Option<Notices>> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Silences the call. What was emitted before is in the sink.
    pub fn end(&self) {
        *self.notices() = None;
    }

    /// The caller gives up.
    pub fn cancel(&self) {
        self.end();
        self.cancelled.store(true, Ordering::Release);
        self.cancel.notify_waiters();
    }

    /// Completes when the caller gives up.
    pub async fn cancellation(&self) {
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
        // Held until the frame is in the sink, so that the response cannot overtake it.
        let mut notices = self.notices();
        if notice == Notice::HangUp && notices.is_some() {
            self.sink.hang_up();
        }
        if let Some(frame) = notices.as_mut().and_then(|notices| notices.encode(notice)) {
            self.sink.offer(&frame);
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.cancellation())
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("cancelled", &self.cancelled).finish_non_exhaustive()
    }
}
