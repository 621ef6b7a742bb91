//! Owns the other end of a connection: a serving task, a child process, or nothing.

use crate::{Error, Result};
use bowline_server::{Server, ServerHandle};
use std::{
    ffi::OsStr,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    io::{AsyncReadExt, DuplexStream, split},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    task::JoinSet,
};

/// The number of bytes of a child's standard error that are kept.
const STDERR: usize = 16 * 1024;

/// A server that a peer can connect to: a builder or a handle.
pub trait IntoHandle {
    /// Returns the handle. Fails if the server cannot be built.
    fn into_handle(self) -> Result<ServerHandle>;
}

impl IntoHandle for Server {
    fn into_handle(self) -> Result<ServerHandle> {
        self.build().map_err(|error| Error::unexpected(format!("the server cannot be built: {error}")))
    }
}

impl IntoHandle for ServerHandle {
    fn into_handle(self) -> Result<ServerHandle> {
        Ok(self)
    }
}

impl IntoHandle for &ServerHandle {
    fn into_handle(self) -> Result<ServerHandle> {
        Ok(self.clone())
    }
}

/// The other end of the connection. Dropping it stops it.
pub(super) enum Backend {
    Nothing,
    Task(JoinSet<Result<(), String>>),
    Child(Box<Process>),
    #[cfg(feature = "http")]
    Http(Box<super::http::Served>),
}

pub(super) struct Process {
    child: Child,
    stderr: Arc<Mutex<Vec<u8>>>,
    reader: JoinSet<()>,
}

impl Backend {
    pub(super) fn serve(handle: ServerHandle, stream: DuplexStream) -> Self {
        let (read, write) = split(stream);
        let mut task = JoinSet::new();
        task.spawn(async move { handle.serve(read, write).await.map_err(|error| error.to_string()) });
        Self::Task(task)
    }

    pub(super) fn spawn(
        program: &OsStr,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<(Self, ChildStdout, ChildStdin)> {
        let failed = |reason: String| {
            Error::unexpected(format!("cannot start `{}`: {reason}", program.to_string_lossy()))
        };
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(failed("cannot open its pipes".into()));
        };
        let kept = Arc::new(Mutex::new(Vec::new()));
        let mut reader = JoinSet::new();
        reader.spawn(keep_last(stderr, Arc::clone(&kept)));
        Ok((Self::Child(Box::new(Process { child, stderr: kept, reader })), stdout, stdin))
    }

    /// Waits for the end. Fails if the server failed.
    pub(super) async fn end(&mut self) -> Result<(), String> {
        match self {
            Self::Nothing => Ok(()),
            Self::Task(task) => match task.join_next().await {
                None | Some(Ok(Ok(()))) => Ok(()),
                Some(Ok(Err(reason))) => Err(format!("the server failed: {reason}")),
                Some(Err(error)) => Err(format!("the server failed: {error}")),
            },
            Self::Child(process) => {
                let status = process.child.wait().await.map_err(|error| error.to_string())?;
                process.reader.join_next().await;
                if status.success() { Ok(()) } else { Err(format!("the server failed: {status}")) }
            }
            #[cfg(feature = "http")]
            Self::Http(served) => served.end().await,
        }
    }

    /// Returns what a child process wrote to standard error.
    pub(super) fn stderr_report(&self) -> String {
        let Self::Child(process) = self else { return String::new() };
        let kept = process.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_empty() {
            return String::new();
        }
        format!("standard error:\n{}", String::from_utf8_lossy(&kept))
    }
}

async fn keep_last(mut stderr: ChildStderr, kept: Arc<Mutex<Vec<u8>>>) {
    let mut chunk = [0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(chunk.get(..read).unwrap_or_default());
        let excess = kept.len().saturating_sub(STDERR);
        kept.drain(..excess);
    }
}
