//! One connection over a byte stream: frames in, calls run, frames out.
//!
//! The task that reads also starts the calls, and polls each once: a handler that answers at once costs no task of its
//! own. One other task writes.

mod outbox;

use crate::{
    ServerHandle,
    transport::{Conversation, Sink, Started, poll_once},
};
use bowline_proto::{
    encode,
    lines::{Line, Lines},
    server::Ids,
    service::BoxFuture,
};
use bowline_types::RpcError;
use outbox::Outbox;
use std::{io, sync::Arc};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    task::JoinSet,
    time::timeout,
};

/// Serves one client until it closes the stream.
pub(crate) async fn serve<R, W>(
    server: &ServerHandle,
    principal: Option<Arc<str>>,
    mut read: R,
    write: W,
) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let limits = server.core.limits;
    let outbox = Arc::new(Outbox::new(limits.backlog));
    let news = {
        let outbox = Arc::clone(&outbox);
        move || outbox.nudge()
    };
    let conversation = Conversation::new(server, principal, Ids::Unique, news);
    let sink: Arc<dyn Sink> = Arc::clone(&outbox) as _;
    let mut writer = JoinSet::new();
    writer.spawn({
        let (conversation, outbox) = (Arc::clone(&conversation), Arc::clone(&outbox));
        async move {
            let written = write_out(&conversation, &outbox, write).await;
            // Whoever waits for room would wait for ever.
            outbox.close();
            written
        }
    });
    let mut calls = JoinSet::new();
    let mut lines = Lines::new(limits.frame);
    let ended = loop {
        tokio::select! {
            biased;
            line = next_line(&mut lines, &mut read) => match line {
                Ok(Some(Line::Frame(frame))) => match conversation.accept(&frame, &sink) {
                    Started::Nothing => {}
                    Started::Call(call) => start(call, &mut calls).await,
                    Started::Batch(batch) => for call in batch {
                        start(call, &mut calls).await;
                    },
                },
                Ok(Some(Line::TooLong)) => {
                    let error = RpcError::invalid_request(format!("the message is longer than {} bytes", limits.frame));
                    outbox.push(&encode::failure(None, &error));
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            },
            // The client stopped reading: nothing can reach it any more.
            Some(written) = writer.join_next() => return written.map_err(io::Error::other)?,
        }
        while calls.try_join_next().is_some() {}
        outbox.room().await;
    };
    // Questions will not be answered any more; everything else may come to its end.
    conversation.abandon_questions();
    let _ = timeout(limits.drain, async { while calls.join_next().await.is_some() {} }).await;
    calls.shutdown().await;
    conversation.close(&*outbox);
    outbox.close();
    let written = timeout(limits.drain, writer.join_next()).await;
    writer.shutdown().await;
    match written {
        Ok(Some(Ok(Err(error)))) if error.kind() != io::ErrorKind::BrokenPipe => ended.and(Err(error)),
        _ => ended,
    }
}

/// The next line; `None` when there is no more input. Dropping the future loses nothing.
async fn next_line(lines: &mut Lines, read: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Line>> {
    loop {
        if let Some(line) = lines.next_line() {
            return Ok(Some(line));
        }
        if read.read_buf(lines.space()).await? == 0 {
            return Ok(lines.rest());
        }
    }
}

/// Polls a call once, and gives it a task of its own only if that was not enough.
async fn start(mut call: BoxFuture<'static, ()>, calls: &mut JoinSet<()>) {
    if poll_once(&mut call).await.is_pending() {
        calls.spawn(call);
    }
}

async fn write_out<W: AsyncWrite + Unpin>(
    conversation: &Conversation,
    outbox: &Outbox,
    mut write: W,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        outbox.filled().await;
        // Asked before the frames are taken: those that come while the last ones are written are not left behind.
        let closed = outbox.is_closed();
        loop {
            conversation.write_news(outbox);
            outbox.take(&mut bytes);
            if bytes.is_empty() {
                break;
            }
            write.write_all(&bytes).await?;
        }
        write.flush().await?;
        if closed {
            return write.shutdown().await;
        }
    }
}
