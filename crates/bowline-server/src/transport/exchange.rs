//! One running call: its way to report, and the caller's way to give it up.

use super::{Conversation, Sink, pace::Pace};
use crate::Limits;
use bowline_proto::{
    server::NotificationEncoder,
    service::{BoxFuture, CallNotification, NotificationSink},
};
use bowline_types::{RawJson, RpcError};
use bytes::Bytes;
use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::{sync::Notify, time::Instant};

/// One running call.
pub struct Exchange {
    /// Gone when the call is over: nothing may follow its response.
    notices: Mutex<Option<NotificationEncoder>>,
    /// Made when the call notifies for the first time. Locked after `notices`.
    pace: Mutex<Option<Box<Pace>>>,
    progress_rate: u32,
    log_rate: u32,
    sink: Arc<dyn Sink>,
    /// Takes requests to the client, in the legacy eras.
    back_channel: Weak<Conversation>,
    cancelled: AtomicBool,
    cancel: Notify,
}

impl Exchange {
    /// A call whose notices go to `sink`, no faster than `limits` allow.
    pub fn new(notices: NotificationEncoder, sink: Arc<dyn Sink>, limits: &Limits) -> Self {
        Self {
            notices: Mutex::new(Some(notices)),
            pace: Mutex::new(None),
            progress_rate: limits.progress_rate,
            log_rate: limits.log_rate,
            sink,
            back_channel: Weak::new(),
            cancelled: AtomicBool::new(false),
            cancel: Notify::new(),
        }
    }

    /// Lets the call send requests to the client of `conversation`.
    pub(super) fn set_back_channel(&mut self, conversation: Weak<Conversation>) {
        self.back_channel = conversation;
    }

    pub(super) fn sink(&self) -> &Arc<dyn Sink> {
        &self.sink
    }

    /// The frames that may be sent now because of one notice.
    fn paced(&self, notices: &mut NotificationEncoder, notice: CallNotification) -> [Option<Bytes>; 2] {
        let (is_progress, is_log) = (
            matches!(notice, CallNotification::Progress { .. }),
            matches!(notice, CallNotification::Log { .. }),
        );
        let Some(frame) = notices.encode(notice) else { return [None, None] };
        if !is_progress && !is_log {
            return [Some(frame), None];
        }
        let now = Instant::now();
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let pace = pace.get_or_insert_with(|| Box::new(Pace::new(self.progress_rate, self.log_rate, now)));
        if is_progress {
            return [pace.admit_progress(&frame, now).then_some(frame), None];
        }
        if !pace.admit_log(now) {
            return [None, None];
        }
        [pace.take_dropped().and_then(|notice| notices.encode(notice)), Some(frame)]
    }

    /// Ends the call well: sends what was held back, then nothing more.
    pub fn finish(&self) {
        let mut notices = self.notices();
        if let (Some(notices), Some(mut pace)) =
            (&mut *notices, self.pace.lock().unwrap_or_else(PoisonError::into_inner).take())
        {
            let dropped = pace.take_dropped().and_then(|notice| notices.encode(notice));
            for frame in pace.take_progress().into_iter().chain(dropped) {
                self.sink.offer(&frame);
            }
        }
        *notices = None;
    }

    fn notices(&self) -> MutexGuard<'_, Option<NotificationEncoder>> {
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

impl NotificationSink for Exchange {
    fn emit(&self, notice: CallNotification) {
        // Held until the frame is in the sink, so that the response cannot overtake it.
        let mut notices = self.notices();
        if notice == CallNotification::CloseStream && notices.is_some() {
            self.sink.hang_up();
        }
        let Some(notices) = notices.as_mut() else { return };
        for frame in self.paced(notices, notice).into_iter().flatten() {
            self.sink.offer(&frame);
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.cancellation())
    }

    fn request(&self, method: &str, params: Option<RawJson>) -> BoxFuture<'_, Result<RawJson, RpcError>> {
        let method = method.to_owned();
        Box::pin(async move {
            let Some(conversation) = self.back_channel.upgrade() else {
                let reason = format!("cannot send `{method}`: a server of 2026-07-28 sends no requests");
                return Err(RpcError::internal(reason));
            };
            conversation.request(&method, params, &self.sink).await
        })
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("cancelled", &self.cancelled).finish_non_exhaustive()
    }
}
