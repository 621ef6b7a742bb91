//! One connection over a byte stream: frames in, calls run, frames out.
//!
//! The task that reads also starts the calls, and polls each once: a handler that answers at once costs no task of its
//! own. One other task writes. Both share a [`Link`], whose session is locked only to accept a frame or finish a call.

mod exchange;
mod frames;
mod outbox;

use crate::{ServerHandle, hub::Listener, limits::Limits, random};
use bowline_proto::{
    encode,
    pending::{Patience, Pending},
    replay::{Answer, Asked, Question},
    server::{Inbound, ServerSession, Ticket},
    service::{Call, Outcome, Outlet},
    subscribe::Change,
};
use bowline_types::{Adapt, CancelledParams, Era, Id, InputRequest, Method, RawJson, RpcError};
use bytes::Bytes;
use exchange::Exchange;
use frames::{Frames, Line};
use outbox::Outbox;
use std::{
    collections::HashMap,
    future::{Future, poll_fn},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::{Instant, SystemTime, UNIX_EPOCH},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::oneshot,
    task::JoinSet,
    time::{sleep_until, timeout},
};

/// What the tasks of one connection share.
struct Link {
    server: ServerHandle,
    session: Mutex<ServerSession>,
    outbox: Arc<Outbox>,
    running: Mutex<HashMap<Id, Arc<Exchange>>>,
    questions: Mutex<Pending<oneshot::Sender<Answer>>>,
}

/// Serves one client until it closes the stream.
pub(crate) async fn serve<R, W>(
    server: &ServerHandle,
    principal: Option<Arc<str>>,
    read: R,
    write: W,
) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let limits = server.core.limits;
    let link = Arc::new(Link {
        server: server.clone(),
        session: Mutex::new(ServerSession::new(Arc::clone(&server.core.profile), principal)),
        outbox: Arc::default(),
        running: Mutex::default(),
        questions: Mutex::default(),
    });
    let listener: Arc<dyn Listener> = Arc::clone(&link) as _;
    server.core.registry.hub().join(&listener);
    let mut writer = JoinSet::new();
    writer.spawn(write_out(Arc::clone(&link), write));
    let mut calls = JoinSet::new();
    let mut frames = Frames::new(read, limits.frame);
    let read = loop {
        tokio::select! {
            biased;
            line = frames.next() => match line {
                Ok(Line::Frame(frame)) => link.accept(&frame, &mut calls).await,
                Ok(Line::TooLong) => link.refuse_long_line(&limits),
                Ok(Line::End) => break Ok(()),
                Err(error) => break Err(error),
            },
            // The client stopped reading: nothing can reach it any more.
            Some(written) = writer.join_next() => return written.map_err(io::Error::other)?,
        }
        while calls.try_join_next().is_some() {}
        link.outbox.room(limits.backlog).await;
    };
    // Questions will not be answered any more; everything else may come to its end.
    link.lock_questions().drain();
    let _ = timeout(limits.drain, async { while calls.join_next().await.is_some() {} }).await;
    calls.shutdown().await;
    let farewell = link.lock_session().close();
    for frame in &farewell {
        link.outbox.push(frame);
    }
    link.outbox.close();
    let written = timeout(limits.drain, writer.join_next()).await;
    writer.shutdown().await;
    match written {
        Ok(Some(Ok(Err(error)))) if error.kind() != io::ErrorKind::BrokenPipe => read.and(Err(error)),
        _ => read,
    }
}

async fn write_out<W: AsyncWrite + Unpin>(link: Arc<Link>, mut write: W) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        link.outbox.filled().await;
        loop {
            {
                // Under the session's lock, so that news never overtake the acknowledgment of who listens for them.
                let mut session = link.lock_session();
                for frame in &session.news() {
                    link.outbox.push(frame);
                }
            }
            link.outbox.take(&mut bytes);
            if bytes.is_empty() {
                break;
            }
            write.write_all(&bytes).await?;
        }
        write.flush().await?;
        if link.outbox.is_closed() {
            return write.shutdown().await;
        }
    }
}

impl Link {
    fn lock_session(&self) -> MutexGuard<'_, ServerSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_running(&self) -> MutexGuard<'_, HashMap<Id, Arc<Exchange>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_questions(&self) -> MutexGuard<'_, Pending<oneshot::Sender<Answer>>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refuse_long_line(&self, limits: &Limits) {
        let error = RpcError::invalid_request(format!("the message is longer than {} bytes", limits.frame));
        self.outbox.push(&encode::failure(None, &error));
    }

    async fn accept(self: &Arc<Self>, frame: &Bytes, calls: &mut JoinSet<()>) {
        let inbound = {
            let mut session = self.lock_session();
            let inbound = session.accept(frame, now());
            // Still under the lock: see `write_out`.
            if let Inbound::Reply(reply) = &inbound {
                self.outbox.push(reply);
            }
            inbound
        };
        match inbound {
            Inbound::Reply(_) => {}
            Inbound::Batch(items) => self.start_batch(items, calls).await,
            other => self.start(other, None, calls).await,
        }
    }

    async fn start_batch(self: &Arc<Self>, items: Vec<Inbound>, calls: &mut JoinSet<()>) {
        let due = items.iter().filter(|item| matches!(item, Inbound::Call(..) | Inbound::Reply(_))).count();
        let batch =
            Arc::new(Batch { replies: Mutex::new((due, Vec::new())), outbox: Arc::clone(&self.outbox) });
        for item in items {
            self.start(item, Some(Arc::clone(&batch)), calls).await;
        }
    }

    async fn start(self: &Arc<Self>, inbound: Inbound, batch: Option<Arc<Batch>>, calls: &mut JoinSet<()>) {
        match inbound {
            Inbound::Call(ticket, call, notices) => {
                let exchange = Arc::new(Exchange::new(
                    notices,
                    Arc::clone(&self.outbox),
                    self.server.core.limits.backlog,
                ));
                self.lock_running().insert(ticket.id.clone(), Arc::clone(&exchange));
                let mut run = Box::pin(Arc::clone(self).run(ticket, call, exchange, batch));
                if poll_fn(|context| Poll::Ready(run.as_mut().poll(context))).await.is_pending() {
                    calls.spawn(run);
                }
            }
            Inbound::Reply(reply) => match batch {
                Some(batch) => batch.settle(Some(reply)),
                None => self.outbox.push(&reply),
            },
            Inbound::Answer { id, result } => {
                if let Some(waiter) = self.lock_questions().take(&id) {
                    // Whoever asked may have been cancelled meanwhile.
                    drop(waiter.send(result));
                }
            }
            Inbound::Alive(id) => self.lock_questions().touch(&id, Instant::now()),
            Inbound::Cancel(id) => {
                if let Some(exchange) = self.lock_running().remove(&id) {
                    exchange.cancel();
                }
            }
            Inbound::Initialized | Inbound::RootsChanged | Inbound::Ignored | Inbound::Batch(_) => {}
        }
    }

    async fn run(
        self: Arc<Self>,
        ticket: Ticket,
        call: Call,
        exchange: Arc<Exchange>,
        batch: Option<Arc<Batch>>,
    ) {
        let outlet = Outlet::new(Arc::clone(&exchange) as _);
        let outcome = tokio::select! {
            biased;
            () = exchange.cancellation() => None,
            outcome = self.answer(&ticket, call, outlet) => Some(outcome),
        };
        exchange.end();
        self.lock_running().remove(&ticket.id);
        let Some(outcome) = outcome else {
            if let Some(batch) = batch {
                batch.settle(None);
            }
            return;
        };
        let expires = now() + self.server.core.limits.question.as_secs();
        let random = if matches!(outcome, Outcome::NeedsInput(_)) { random::bytes() } else { [0; 32] };
        // The session's lock comes before the outbox's, here as everywhere.
        let mut session = self.lock_session();
        let finish = |out: &mut Vec<u8>| session.finish(&ticket, outcome, &random, expires, out);
        match batch {
            Some(batch) => {
                let mut reply = Vec::new();
                let written = finish(&mut reply);
                batch.settle(written.then(|| reply.into()));
            }
            None => self.outbox.write(finish),
        }
    }

    /// Runs the rounds of a call. In the legacy eras the questions between them are asked here.
    async fn answer(&self, ticket: &Ticket, call: Call, outlet: Outlet) -> Outcome {
        let mut outcome = self.server.service.call(call, outlet.clone()).await;
        while let Outcome::NeedsInput(asked) = outcome {
            if ticket.client.revision.era() == Era::Modern {
                return Outcome::NeedsInput(asked);
            }
            let Asked { questions, mut replay } = *asked;
            for (question, answer) in self.ask_all(ticket, questions).await {
                replay.record(&question, answer);
            }
            outcome = self.server.service.call(ticket.again(replay), outlet.clone()).await;
        }
        outcome
    }

    /// Puts all questions of a round to the client at once, then waits for each.
    async fn ask_all(&self, ticket: &Ticket, questions: Vec<Question>) -> Vec<(Question, Answer)> {
        let waiting: Vec<_> =
            questions.into_iter().map(|question| (self.ask(ticket, &question), question)).collect();
        let mut answers = Vec::new();
        for (open, question) in waiting {
            answers.push((question, open.answer(self).await));
        }
        answers
    }

    fn ask(&self, ticket: &Ticket, question: &Question) -> OpenQuestion {
        let mut request: InputRequest = question.request.clone();
        request.adapt(ticket.client.revision);
        let limit = self.server.core.limits.question;
        let patience = Patience { silence: limit, total: limit };
        let (sender, receiver) = oneshot::channel();
        let mut questions = self.lock_questions();
        let id = questions.next_id();
        questions.insert(id.clone(), sender, patience, Instant::now());
        drop(questions);
        let params = match &request {
            InputRequest::Elicit(params) => RawJson::of(params).ok(),
            InputRequest::CreateMessage(params) => RawJson::of(params).ok(),
            InputRequest::ListRoots => None,
        };
        self.outbox.push(&encode::request(&id, request.method(), params.as_ref()));
        OpenQuestion { id, receiver, outbox: Arc::clone(&self.outbox), settled: false }
    }
}

impl Listener for Link {
    fn hear(&self, change: &Change) {
        if self.lock_session().mark(change) {
            self.outbox.nudge();
        }
    }
}

/// A question put to the client. Dropping it unanswered tells the client to stop working on it.
struct OpenQuestion {
    id: Id,
    receiver: oneshot::Receiver<Answer>,
    outbox: Arc<Outbox>,
    settled: bool,
}

impl OpenQuestion {
    async fn answer(mut self, link: &Link) -> Answer {
        loop {
            let Some(deadline) = link.lock_questions().deadline_of(&self.id) else { break };
            tokio::select! {
                biased;
                answer = &mut self.receiver => {
                    self.settled = true;
                    return answer.unwrap_or_else(|_| Err(gone()));
                }
                () = sleep_until(deadline.into()) => {
                    // Signs of life may have moved the deadline meanwhile.
                    let due = link.lock_questions().deadline_of(&self.id).is_none_or(|deadline| deadline <= Instant::now());
                    if due && link.lock_questions().take(&self.id).is_some() {
                        return Err(RpcError::internal("the client did not answer in time"));
                    }
                }
            }
        }
        // Settled between two looks: the answer is in the channel, or the connection is gone.
        self.settled = true;
        self.receiver.try_recv().unwrap_or_else(|_| Err(gone()))
    }
}

fn gone() -> RpcError {
    RpcError::internal("the client went away without answering")
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        if !self.settled {
            let params = CancelledParams { request_id: Some(self.id.clone()), ..CancelledParams::default() };
            self.outbox.push(&encode::notify(Method::Cancelled, &params));
        }
    }
}

/// The replies of a batch, sent together as 2025-03-26 wants it.
struct Batch {
    /// How many are still due, and those that are there.
    replies: Mutex<(usize, Vec<Bytes>)>,
    outbox: Arc<Outbox>,
}

impl Batch {
    fn settle(&self, reply: Option<Bytes>) {
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        replies.0 = replies.0.saturating_sub(1);
        replies.1.extend(reply);
        if replies.0 > 0 || replies.1.is_empty() {
            return;
        }
        let replies = std::mem::take(&mut replies.1);
        let mut frame = Vec::with_capacity(replies.iter().map(|reply| reply.len() + 1).sum::<usize>() + 1);
        for (position, reply) in replies.iter().enumerate() {
            frame.push(if position == 0 { b'[' } else { b',' });
            frame.extend_from_slice(reply);
        }
        frame.push(b']');
        self.outbox.push(&frame);
    }
}

/// Seconds since the epoch.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
