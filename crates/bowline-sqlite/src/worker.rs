//! A thread that owns a connection.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use bowline_store::StoreError;
use rusqlite::{Connection, ErrorCode};
use tokio::sync::oneshot;

/// How many operations wait for a thread.
const WAITING: usize = 1024;

/// How many writes share a commit.
const BATCH: usize = 128;

/// One operation: runs and keeps its result, then answers when the commit is known.
trait Job: Send {
    /// Runs the operation. False if it failed and its writes must be undone.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Sends the result, or the failure of the commit.
    fn answer(self: Box<Self>, commit: Result<(), CommitError>);
}

#[derive(Debug, Clone)]
struct CommitError {
    message: String,
    /// The transaction may be in the file.
    unknown: bool,
}

struct Operation<F, T> {
    run: Option<F>,
    result: Option<rusqlite::Result<T>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: FnOnce(&Connection) -> rusqlite::Result<T> + Send> Job for Operation<F, T> {
    fn run(&mut self, connection: &Connection) -> bool {
        let Some(operation) = self.run.take() else { return false };
        self.result.insert(operation(connection)).is_ok()
    }

    fn answer(self: Box<Self>, commit: Result<(), CommitError>) {
        let result = match (self.result, commit) {
            (Some(Err(error)), _) => Err(store_error(error)),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (_, Err(CommitError { message, unknown: true })) => Err(StoreError::unknown(message)),
            (_, Err(CommitError { message, .. })) => Err(StoreError::unavailable(message)),
            (None, Ok(())) => Err(StoreError::unavailable("the operation did not run")),
        };
        // The caller may have stopped waiting.
        let _ = self.reply.send(result);
    }
}

/// A statement failed and was undone, so nothing of it is in the file.
fn store_error(error: rusqlite::Error) -> StoreError {
    let message = error.to_string();
    if matches!(error, rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::InvalidColumnType(..))
    {
        return StoreError::invalid(message).with_source(error);
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::TypeMismatch) => {
            StoreError::invalid(message).with_source(error)
        }
        _ => StoreError::unavailable(message).with_source(error),
    }
}

/// Hands operations to its thread. The thread ends when the worker is dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    jobs: SyncSender<Box<dyn Job>>,
}

impl std::fmt::Debug for dyn Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Job")
    }
}

impl Worker {
    /// Starts a thread. A writing thread runs operations in transactions that they share.
    pub(crate) fn start(name: &str, connection: Connection, writes: bool) -> Result<Self, StoreError> {
        let (jobs, waiting) = sync_channel(WAITING);
        let run =
            move || if writes { write_all(&connection, &waiting) } else { read_all(&connection, &waiting) };
        thread::Builder::new().name(name.to_owned()).spawn(run).map_err(|error| {
            StoreError::unavailable(format!("no thread for the database: {error}")).with_source(error)
        })?;
        Ok(Self { jobs })
    }

    /// Runs an operation on the thread.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, result) = oneshot::channel();
        let job = Operation { run: Some(operation), result: None, reply };
        self.jobs.try_send(Box::new(job)).map_err(|error| match error {
            TrySendError::Full(_) => {
                StoreError::unavailable(format!("{WAITING} operations wait for the database"))
            }
            TrySendError::Disconnected(_) => StoreError::unavailable("the database thread has stopped"),
        })?;
        // The thread answers every job that it takes, unless it panics in the middle of one.
        result.await.unwrap_or_else(|_| Err(StoreError::unknown("the database thread has stopped")))
    }
}

fn read_all(connection: &Connection, jobs: &Receiver<Box<dyn Job>>) {
    for mut job in jobs {
        job.run(connection);
        job.answer(Ok(()));
    }
}

fn write_all(connection: &Connection, jobs: &Receiver<Box<dyn Job>>) {
    while let Ok(first) = jobs.recv() {
        let mut batch = vec![first];
        batch.extend(jobs.try_iter().take(BATCH - 1));
        let commit = run_batch(connection, &mut batch);
        for job in batch {
            job.answer(commit.clone());
        }
    }
}

/// Runs operations in one transaction. One that fails is undone alone.
fn run_batch(connection: &Connection, batch: &mut [Box<dyn Job>]) -> Result<(), CommitError> {
    let before_commit = |error: rusqlite::Error| CommitError { message: error.to_string(), unknown: false };
    // A transaction that begins as a reader cannot become a writer after another process wrote.
    connection.execute_batch("BEGIN IMMEDIATE").map_err(before_commit)?;
    for job in batch.iter_mut() {
        let run = connection.execute_batch("SAVEPOINT job").and_then(|()| {
            let end = if job.run(connection) { "RELEASE job" } else { "ROLLBACK TO job; RELEASE job" };
            connection.execute_batch(end)
        });
        if let Err(error) = run {
            let _ = connection.execute_batch("ROLLBACK");
            return Err(before_commit(error));
        }
    }
    connection.execute_batch("COMMIT").map_err(|error| {
        let undone = connection.execute_batch("ROLLBACK").is_ok();
        CommitError { message: error.to_string(), unknown: !undone }
    })
}
