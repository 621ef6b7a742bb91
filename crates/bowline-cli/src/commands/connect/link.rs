//! The connection of `bowline connect` to the gateway, and what it receives.

use super::{MAX_FRAME, Output};
use crate::{running_gateway::RunningGateway, target};
use bowline_client::{Connect as _, Error, Inbox, Negotiated, Outgoing, Receive, Transport};
use bowline_proto::{
    encode,
    envelope::{self, Message},
};
use bowline_types::{Era, Id, RawJson, Revision, RpcError, ServerCapabilities, error_code};
use bytes::Bytes;
use std::{
    collections::HashMap,
    fs::File,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::{Notify, oneshot};

/// Whether the process of a gateway has exited. Another process could take over its port and must not get the token.
#[derive(Default)]
pub(super) struct ProcessExit {
    is_ended: AtomicBool,
    noticed: Notify,
}

impl ProcessExit {
    /// Waits in the background for the lock that the process holds.
    pub(super) fn watch(lock: File) -> Arc<Self> {
        let ended = Arc::new(Self::default());
        let exit = Arc::clone(&ended);
        // The thread ends when the gateway or this program exits.
        tokio::task::spawn_blocking(move || {
            let _: std::io::Result<()> = lock.lock_shared();
            exit.is_ended.store(true, Ordering::Release);
            exit.noticed.notify_waiters();
        });
        ended
    }

    pub(super) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Acquire)
    }
}

/// A connection to the gateway, with one transport per era.
pub(super) struct Link {
    pub(super) received: Arc<Received>,
    pub(super) legacy: Arc<dyn Transport>,
    pub(super) modern: Arc<dyn Transport>,
    ended: Arc<ProcessExit>,
}

impl Link {
    pub(super) async fn open(
        running: &RunningGateway,
        received: Arc<Received>,
        ended: Arc<ProcessExit>,
    ) -> Result<Self, Error> {
        let page = target::http_target(&running.url, running.token.as_deref()).max_message(MAX_FRAME);
        let legacy: Arc<dyn Transport> = page.connect(Inbox::to(&received, MAX_FRAME)).await?.into();
        let modern: Arc<dyn Transport> = page.clone().connect(Inbox::to(&received, MAX_FRAME)).await?.into();
        modern.opened(&negotiated(Revision::V2026_07_28));
        let _ = received.legacy.set(Arc::clone(&legacy));
        Ok(Self { received, legacy, modern, ended })
    }

    pub(super) fn transport(&self, era: Era) -> &Arc<dyn Transport> {
        match era {
            Era::Legacy => &self.legacy,
            Era::Modern => &self.modern,
        }
    }

    /// Sends a request of our own. The result is `None` if the response is an error.
    pub(super) async fn ask(
        &self,
        id: &Id,
        outgoing: &Outgoing,
    ) -> Result<Option<RawJson>, oneshot::error::RecvError> {
        let (sender, receiver) = oneshot::channel();
        self.received.state().pending.insert(id.clone(), Waiting::Bridge(sender));
        self.legacy.send(outgoing.clone());
        tokio::select! {
            result = receiver => result,
            () = Self::over(Some(self)) => Ok(None),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.received.state().is_over || self.ended.is_ended()
    }

    /// Completes when the connection is lost; never without one.
    pub(super) async fn over(link: Option<&Self>) {
        match link {
            Some(link) => {
                let mut closed = std::pin::pin!(link.received.over.notified());
                let mut ended = std::pin::pin!(link.ended.noticed.notified());
                closed.as_mut().enable();
                ended.as_mut().enable();
                if !link.is_over() {
                    tokio::select! {
                        () = closed => {}
                        () = ended => {}
                    }
                }
            }
            None => std::future::pending().await,
        }
    }
}

fn negotiated(revision: Revision) -> Negotiated {
    let capabilities = ServerCapabilities::default();
    Negotiated { revision, server_info: None, capabilities, instructions: None }
}

/// Who waits for a response.
pub(super) enum Waiting {
    Client(Era),
    Bridge(oneshot::Sender<Option<RawJson>>),
}

/// Receives messages from the gateway.
pub(super) struct Received {
    output: Arc<Output>,
    legacy: OnceLock<Arc<dyn Transport>>,
    state: Mutex<State>,
    over: Notify,
    all_answered: Notify,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) pending: HashMap<Id, Waiting>,
    /// The id of the `initialize` request.
    pub(super) initialize: Option<Id>,
    pub(super) revision: Option<Revision>,
    is_over: bool,
}

impl Received {
    pub(super) fn new(output: Arc<Output>) -> Self {
        let (over, all_answered) = (Notify::new(), Notify::new());
        Self { output, legacy: OnceLock::new(), state: Mutex::default(), over, all_answered }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        // Dropping the senders ends our own requests without a response.
        state.pending.retain(|_, waiting| matches!(waiting, Waiting::Client(_)));
        drop(state);
        self.over.notify_waiters();
    }

    pub(super) fn fail_all(&self, error: &RpcError) {
        let pending = std::mem::take(&mut self.state().pending);
        for (id, _) in pending.iter().filter(|(_, waiting)| matches!(waiting, Waiting::Client(_))) {
            self.output.write(&encode::failure(Some(id), error));
        }
    }

    /// Completes when no request is pending.
    pub(super) async fn all_answered(&self) {
        loop {
            let mut noticed = std::pin::pin!(self.all_answered.notified());
            noticed.as_mut().enable();
            if self.state().pending.is_empty() {
                return;
            }
            noticed.await;
        }
    }

    /// Delivers a response to its waiter.
    pub(super) fn answer(&self, id: &Id, frame: &Bytes, result: Option<&RawJson>) {
        let (waiting, revision) = {
            let mut state = self.state();
            let Some(waiting) = state.pending.remove(id) else { return };
            let mut agreed_on = None;
            if state.initialize.as_ref() == Some(id) {
                state.initialize = None;
                agreed_on = result.and_then(agreed);
                state.revision = agreed_on;
            }
            (waiting, agreed_on)
        };
        // Later messages carry the negotiated revision in a header.
        if let (Some(revision), Some(legacy)) = (revision, self.legacy.get()) {
            legacy.opened(&negotiated(revision));
        }
        match waiting {
            Waiting::Client(_) => self.output.write(frame),
            Waiting::Bridge(sender) => drop(sender.send(result.cloned())),
        }
        self.all_answered.notify_waiters();
    }
}

/// Returns the revision in the response to `initialize`.
fn agreed(result: &RawJson) -> Option<Revision> {
    result.to_value().ok()?.get("protocolVersion")?.as_str()?.parse().ok()
}

impl Receive for Received {
    fn awaits(&self, id: &Id) -> bool {
        self.state().pending.contains_key(id)
    }

    fn accept(&self, frame: &Bytes, request: Option<&Id>) {
        match envelope::parse(frame) {
            envelope::Frame::Single(Ok(Message::Response { id, result })) => {
                self.answer(&id, frame, Some(&result));
            }
            envelope::Frame::Single(Ok(Message::Failure { id, error })) => match id.as_ref().or(request) {
                Some(id) => self.answer(id, &encode::failure(Some(id), &error), None),
                None => self.output.write(frame),
            },
            _ => self.output.write(frame),
        }
    }

    fn fail(&self, id: &Id, error: Error) {
        let error = error.as_rpc().cloned().unwrap_or_else(|| {
            RpcError::new(error_code::INTERNAL_ERROR, format!("the gateway did not respond: {error}"))
        });
        self.answer(id, &encode::failure(Some(id), &error), None);
    }

    fn close(&self, _: Error) {
        self.end();
    }
}
