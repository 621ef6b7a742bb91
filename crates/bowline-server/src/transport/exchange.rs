//! Runs one call from its start to its response, for every transport: notifications, questions, cancellation.

use super::{Conversation, Observer, Sink, notification_rate::NotificationRate};
use crate::{Limits, ServerHandle};
use bowline_proto::{
    encode,
    server::{NotificationEncoder, Threshold, Ticket, encode_outcome},
    service::{BoxFuture, Call, CallNotification, NotificationSink, Notifier, Outcome, Reply},
};
use bowline_types::{Id, RawJson, RpcError};
use bytes::Bytes;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};
use tokio::{sync::Notify, time::Instant};

/// One running call.
pub(super) struct Exchange {
    /// `None` once the call is over: nothing may follow its response.
    notices: Mutex<Option<NotificationEncoder>>,
    /// Created when the call notifies for the first time. Locked after `notices`.
    rate: Mutex<Option<Box<NotificationRate>>>,
    progress_rate: u32,
    log_rate: u32,
    sink: Arc<dyn Sink>,
    /// Sends requests to the client, in the legacy era.
    back_channel: Weak<Conversation>,
    cancelled: AtomicBool,
    cancel: Notify,
}

impl Exchange {
    /// Creates a call whose notifications go to `sink`, no faster than `limits` allow.
    pub(super) fn new(notices: NotificationEncoder, sink: Arc<dyn Sink>, limits: &Limits) -> Self {
        Self {
            notices: Mutex::new(Some(notices)),
            rate: Mutex::new(None),
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

    /// Starts a call. Every transport runs its calls this way. `asker` sends the questions of the call to a client of the
    /// legacy era.
    pub(super) fn run<'a>(
        self: &'a Arc<Self>,
        server: &'a ServerHandle,
        call: Call,
        asker: Option<(&'a Conversation, &'a Ticket)>,
    ) -> RunningCall<'a> {
        let mut running =
            RunningCall { exchange: self, call: None, asker, cancellation: None, is_over: false };
        // A batch may have cancelled the call already.
        if !self.is_cancelled() {
            running.call = Some(server.service.call(call, Notifier::new(Arc::clone(self) as _)));
        }
        running
    }

    /// Returns the frames to send now for one notification.
    fn rate_limited(
        &self,
        notices: &mut NotificationEncoder,
        notice: CallNotification,
    ) -> [Option<Bytes>; 2] {
        let (is_progress, is_log) = (
            matches!(notice, CallNotification::Progress { .. }),
            matches!(notice, CallNotification::Log { .. }),
        );
        let Some(frame) = notices.encode(notice) else { return [None, None] };
        if !is_progress && !is_log {
            return [Some(frame), None];
        }
        let now = Instant::now();
        let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = rate
            .get_or_insert_with(|| Box::new(NotificationRate::new(self.progress_rate, self.log_rate, now)));
        if is_progress {
            return [rate.admit_progress(&frame, now).then_some(frame), None];
        }
        if !rate.admit_log(now) {
            return [None, None];
        }
        [rate.take_dropped().and_then(|notice| notices.encode(notice)), Some(frame)]
    }

    /// Sends what was held back, then nothing more.
    fn finish(&self) {
        let mut notices = self.notices();
        if let (Some(notices), Some(mut rate)) =
            (&mut *notices, self.rate.lock().unwrap_or_else(PoisonError::into_inner).take())
        {
            let dropped = rate.take_dropped().and_then(|notice| notices.encode(notice));
            for frame in rate.take_progress().into_iter().chain(dropped) {
                self.sink.offer(&frame);
            }
        }
        *notices = None;
    }

    fn notices(&self) -> MutexGuard<'_, Option<NotificationEncoder>> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels the call: nothing more is sent for it, and its future ends.
    pub(super) fn cancel(&self) {
        *self.notices() = None;
        self.cancelled.store(true, Ordering::Release);
        self.cancel.notify_waiters();
    }

    /// Completes when the call is cancelled.
    async fn cancellation(&self) {
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
            self.sink.close_stream();
        }
        let Some(notices) = notices.as_mut() else { return };
        for frame in self.rate_limited(notices, notice).into_iter().flatten() {
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

/// A call that runs. Yields its outcome, after which nothing more is sent for it, or `None` if the caller cancelled it.
/// Dropping it cancels the call.
pub(super) struct RunningCall<'a> {
    exchange: &'a Arc<Exchange>,
    call: Option<BoxFuture<'a, Outcome>>,
    asker: Option<(&'a Conversation, &'a Ticket)>,
    /// Created when the call does not complete at once, because most do.
    cancellation: Option<BoxFuture<'a, ()>>,
    is_over: bool,
}

impl Future for RunningCall<'_> {
    type Output = Option<Outcome>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Outcome>> {
        let running = &mut *self;
        let exchange = running.exchange;
        let outcome = loop {
            let Some(call) = &mut running.call else { break None };
            match call.as_mut().poll(context) {
                Poll::Ready(Outcome::NeedsInput(asked)) if running.asker.is_some() => {
                    let Some((conversation, ticket)) = running.asker.take() else { break None };
                    let notifier = Notifier::new(Arc::clone(exchange) as _);
                    running.call = Some(Box::pin(conversation.ask(ticket, *asked, notifier, &exchange.sink)));
                }
                Poll::Ready(outcome) => break Some(outcome),
                Poll::Pending => {
                    let cancellation =
                        running.cancellation.get_or_insert_with(|| Box::pin(exchange.cancellation()));
                    if cancellation.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    break None;
                }
            }
        };
        running.is_over = true;
        // Ends the handler before the response is sent.
        running.call = None;
        exchange.finish();
        Poll::Ready(outcome)
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.exchange.cancel();
        }
    }
}

/// The response to a call of a client without a conversation.
#[derive(Debug)]
pub enum Response {
    /// A message, and the error if the call failed.
    Message(Vec<u8>, Option<Box<RpcError>>),
    /// The result to the request with this id, encoded and possibly large.
    Result(Id, Bytes),
}

/// Runs a self-contained request: 2026-07-28 over HTTP. Its notifications go to `sink`. Dropping the future cancels the call.
pub fn respond(
    server: &ServerHandle,
    id: Id,
    call: Call,
    threshold: Threshold,
    sink: Arc<dyn Sink>,
) -> BoxFuture<'static, Response> {
    let observer = server.is_observed().then(|| call.extensions.get::<Observer>().cloned()).flatten();
    let sink = match &observer {
        Some(observer) => observer.sink(&sink, Some(id.clone()), Some(Arc::clone(&call.client))),
        None => sink,
    };
    let client = observer.as_ref().map(|_| Arc::clone(&call.client));
    let (mut ticket, notices) = Ticket::issue(id, &call, threshold);
    let exchange = Arc::new(Exchange::new(notices, sink, &server.core.limits));
    let server = server.clone();
    Box::pin(async move {
        let cancelled = || Outcome::Failed(RpcError::internal("the call was cancelled"));
        let outcome = exchange.run(&server, call, None).await.unwrap_or_else(cancelled);
        let error = match outcome {
            Outcome::Complete(Reply::Encoded(result)) => {
                if let Some(observer) = &observer {
                    let mut frame = Vec::with_capacity(result.len() + 64);
                    encode::write_response(&mut frame, &ticket.id, &result);
                    observer.sent(&frame, Some(&ticket.id), client.as_deref());
                }
                return Response::Result(ticket.id, result);
            }
            Outcome::Failed(ref error) => Some(Box::new(error.clone())),
            Outcome::Complete(_) | Outcome::NeedsInput(_) => None,
        };
        let mut message = Vec::with_capacity(512);
        encode_outcome(server.profile(), &mut ticket, outcome, &|| server.sealing(), &mut message);
        if let Some(observer) = &observer {
            observer.sent(&message, Some(&ticket.id), client.as_deref());
        }
        Response::Message(message, error)
    })
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("cancelled", &self.cancelled).finish_non_exhaustive()
    }
}
