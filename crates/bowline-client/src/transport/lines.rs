//! One message per line over a pair of byte streams: the transport of programs, sockets and memory.

use super::{CancelWay, Inbox, Outgoing, Transport, outbox::Outbox};
use crate::{Child, Error, Stderr};
use bowline_proto::{
    lines::{self, Line},
    service::BoxFuture,
};
use bowline_types::Id;
use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::Mutex as AsyncMutex,
    task::JoinHandle,
    time::timeout,
};

/// The time to write pending data when the connection is closed.
const FLUSH: Duration = Duration::from_secs(1);

/// The program behind the streams, if there is one.
pub(super) type Program = Option<Arc<AsyncMutex<Child>>>;

/// A connection over lines.
pub(super) struct Lines {
    outbox: Arc<Outbox>,
    reader: JoinHandle<()>,
    writer: Mutex<Option<JoinHandle<()>>>,
    program: Program,
    stderr: Option<Stderr>,
}

impl Lines {
    pub(super) fn start(
        inbox: Inbox,
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
        program: Program,
    ) -> Self {
        let outbox = Arc::new(Outbox::default());
        let writer = tokio::spawn(write_out(Arc::clone(&outbox), write, inbox.clone(), program.clone()));
        let reader = tokio::spawn(read_in(read, inbox, program.clone()));
        Self { outbox, reader, writer: Mutex::new(Some(writer)), program, stderr: None }
    }

    /// Sets the standard error of the program, for the error if the connection cannot be opened.
    pub(super) fn with_stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = Some(stderr);
        self
    }

    fn take_writer(&self) -> Option<JoinHandle<()>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

async fn read_in(mut read: impl AsyncRead + Send + Unpin, inbox: Inbox, program: Program) {
    let mut lines = lines::Lines::new(inbox.max_frame());
    let take = |line| match line {
        Line::Frame(frame) => inbox.accept(&frame),
        Line::TooLong => inbox.noise(b"a line longer than allowed"),
    };
    let reason = loop {
        while let Some(line) = lines.next_line() {
            take(line);
        }
        match read.read_buf(lines.space()).await {
            Ok(0) => {
                lines.rest().into_iter().for_each(take);
                break Error::closed("the server ended its output");
            }
            Ok(_) => {}
            Err(error) => break error.into(),
        }
    };
    inbox.close(explain(&program, reason).await);
}

async fn write_out(
    outbox: Arc<Outbox>,
    mut write: impl AsyncWrite + Send + Unpin,
    inbox: Inbox,
    program: Program,
) {
    while let Some(bytes) = outbox.take().await {
        let written = async {
            write.write_all(&bytes).await?;
            write.flush().await
        };
        if let Err(error) = written.await {
            outbox.close();
            drop(write);
            inbox.close(explain(&program, error.into()).await);
            return;
        }
    }
    // The other side sees the end in any case.
    let _: io::Result<()> = write.shutdown().await;
}

/// Returns the error of the program if it has exited, because it says more than the end of its output.
async fn explain(program: &Program, reason: Error) -> Error {
    match program {
        Some(child) => child.lock().await.failure().await.into(),
        None => reason,
    }
}

impl Transport for Lines {
    fn send(&self, outgoing: Outgoing) {
        self.outbox.push(&outgoing.frame);
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.outbox.wait_for_space())
    }

    fn cancel(&self, _id: &Id) -> CancelWay {
        CancelWay::Notify
    }

    fn stderr(&self) -> Option<&Stderr> {
        self.stderr.as_ref()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.outbox.close();
            if let Some(mut writer) = self.take_writer()
                && timeout(FLUSH, &mut writer).await.is_err()
            {
                writer.abort();
            }
            if let Some(child) = &self.program {
                child.lock().await.shutdown().await;
            }
            self.reader.abort();
        })
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.reader.abort();
        if let Some(writer) = self.take_writer() {
            writer.abort();
        }
    }
}
