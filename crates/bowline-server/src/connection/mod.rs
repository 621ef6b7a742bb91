//! One connection over a byte stream: frames in, calls run, frames out.
//!
//! One task reads, starts the calls and writes. It handles everything that has arrived before it writes, so that replies
//! go out together, and polls each call once: a handler that answers at once costs no task of its own.

mod outbox;
mod pings;
mod writer;

use crate::{
    ServerHandle,
    transport::{Conversation, RawFrame, Sink, Started, poll_once},
};
use bowline_proto::{
    encode, envelope,
    lines::{Line, Lines},
    server::Ids,
    service::{BoxFuture, Extensions},
};
use bowline_types::RpcError;
use outbox::Outbox;
use pings::Pings;
use std::{io, sync::Arc};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
    task::JoinSet,
    time::timeout,
};
use writer::Writer;

/// Serves one client until it closes the stream.
pub(crate) async fn serve<R, W>(
    server: &ServerHandle,
    principal: Option<Arc<str>>,
    mut read: R,
    write: W,
) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin,
{
    let limits = server.core.limits;
    let outbox = Arc::new(Outbox::new(limits.backlog));
    let notify = {
        let outbox = Arc::clone(&outbox);
        move || outbox.notify_writer()
    };
    let conversation = Conversation::new(server, principal, Ids::Unique, notify);
    let sink: Arc<dyn Sink> = Arc::clone(&outbox) as _;
    let mut writer = Writer::new(write);
    let mut calls = JoinSet::new();
    let mut lines = Lines::new(limits.frame);
    let mut pings = Pings::new(limits.ping);
    let ended = loop {
        outbox.clear_waker();
        while outbox.has_space()
            && let Some(line) = lines.next_line()
        {
            take(line, limits.frame, &conversation, &sink, &mut calls).await;
        }
        while calls.try_join_next().is_some() {}
        let has_space = outbox.has_space();
        tokio::select! {
            biased;
            // The client stopped reading: nothing can reach it any more.
            error = writer.run(&conversation, &outbox) => return Err(error),
            count = read.read_buf(lines.space()), if has_space => match count {
                Ok(0) => break Ok(()),
                Ok(_) => pings.received(),
                Err(error) => break Err(error),
            },
            () = outbox.wait_for_space(), if !has_space => {}
            // While nothing is read, an answer would not be received.
            alive = pings.next(&conversation, &*outbox), if has_space => {
                if !alive {
                    break Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not answer pings"));
                }
            }
        }
    };
    if let Some(line) = lines.rest() {
        take(line, limits.frame, &conversation, &sink, &mut calls).await;
    }
    // Questions will not be answered any more; everything else may finish.
    conversation.abandon_questions();
    let finished = async { while calls.join_next().await.is_some() {} };
    let broken = tokio::select! {
        biased;
        error = writer.run(&conversation, &outbox) => Some(error),
        _ = timeout(limits.drain, finished) => None,
    };
    calls.shutdown().await;
    conversation.close(&*outbox);
    outbox.close();
    let written = match broken {
        Some(error) => Err(error),
        None => timeout(limits.drain, writer.finish(&conversation, &outbox)).await.unwrap_or(Ok(())),
    };
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ended.and(Err(error)),
        _ => ended,
    }
}

async fn take(
    line: Line,
    limit: usize,
    conversation: &Arc<Conversation>,
    sink: &Arc<dyn Sink>,
    calls: &mut JoinSet<()>,
) {
    let frame = match line {
        Line::Frame(frame) => frame,
        Line::TooLong => {
            let reason = format!("the message is longer than {limit} bytes");
            return sink.push(&encode::failure(None, &RpcError::invalid_request(reason)));
        }
    };
    let message = envelope::parse(&frame);
    let mut extensions = Extensions::new();
    if conversation.is_observed() {
        extensions.insert(RawFrame(frame));
    } else {
        // The message holds its own reference to the data.
        drop(frame);
    }
    match conversation.accept(message, sink, &extensions) {
        Started::Nothing => {}
        Started::Call(call) | Started::Notification(call) => start(call, calls).await,
        Started::Batch(batch) => {
            for call in batch {
                start(call, calls).await;
            }
        }
    }
}

/// Polls a call once, and gives it a task of its own only if that was not enough.
async fn start(mut call: BoxFuture<'static, ()>, calls: &mut JoinSet<()>) {
    if poll_once(&mut call).await.is_pending() {
        calls.spawn(call);
    }
}
