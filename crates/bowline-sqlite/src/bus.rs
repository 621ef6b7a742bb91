//! Hints between the processes that share a file.
//!
//! SQLite cannot notify, so a thread looks whether the file has changed: often after something happened, and twice a
//! second when nothing does, because an idle server must not keep the machine awake.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use bowline_store::{Bus, BusEvent, Hints, Message, StoreError, Topic};
use futures_core::stream::BoxStream;
use rusqlite::{Connection, params};

use crate::file;

/// How many hints wait to be written. More are lost.
const WAITING: usize = 1024;

/// How many hints the file keeps for processes that have not read them yet.
const KEPT: i64 = 1024;

/// The shortest and the longest time between two looks.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

const TABLE: &str = "
    BEGIN IMMEDIATE;
    CREATE TABLE IF NOT EXISTS hints (
        number INTEGER PRIMARY KEY AUTOINCREMENT, namespace TEXT NOT NULL, origin INTEGER NOT NULL, topic TEXT NOT NULL,
        hint BLOB NOT NULL
    ) STRICT;
    COMMIT;
";

/// Carries hints through a file.
#[derive(Debug)]
pub struct SqliteBus {
    hints: Hints,
    waiting: SyncSender<Message>,
}

impl SqliteBus {
    /// Starts a thread, which ends when the bus is dropped.
    pub(crate) fn open(path: &Path, namespace: &str, origin: i64) -> Result<Self, StoreError> {
        // A hint may get lost, so it never waits for the disk.
        let connection = file::open(path, false)?;
        let failed = |error: rusqlite::Error| {
            StoreError::unavailable(format!("{}: {error}", path.display())).with_source(error)
        };
        connection.execute_batch(TABLE).map_err(failed)?;
        let last = connection
            .query_row("SELECT coalesce(max(number), 0) FROM hints", (), |row| row.get(0))
            .map_err(failed)?;
        let (waiting, messages) = sync_channel(WAITING);
        let hints = Hints::new();
        let thread = Link {
            connection,
            namespace: namespace.to_owned(),
            origin,
            hints: hints.clone(),
            last,
            version: 0,
        };
        thread::Builder::new()
            .name("bowline-sqlite-hints".to_owned())
            .spawn(move || thread.run(&messages))
            .map_err(|error| {
            StoreError::unavailable(format!("no thread for hints: {error}")).with_source(error)
        })?;
        Ok(Self { hints, waiting })
    }
}

impl Bus for SqliteBus {
    fn publish(&self, message: Message) {
        self.hints.send(BusEvent::Message(message.clone()));
        if self.waiting.try_send(message).is_err() {
            tracing::debug!("dropped a hint, because {WAITING} are waiting to be written");
        }
    }

    fn subscribe(&self) -> BoxStream<'static, BusEvent> {
        self.hints.subscribe()
    }
}

struct Link {
    connection: Connection,
    namespace: String,
    /// Marks what this bus wrote; its own subscribers have it already.
    origin: i64,
    hints: Hints,
    /// The last hint that was read.
    last: i64,
    /// Changes when another connection writes.
    version: i64,
}

impl Link {
    fn run(mut self, messages: &Receiver<Message>) {
        let mut pause = PAUSES.0;
        loop {
            let mut batch = match messages.recv_timeout(pause) {
                Ok(message) => vec![message],
                Err(RecvTimeoutError::Timeout) => Vec::new(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            batch.extend(messages.try_iter().take(WAITING));
            let written = !batch.is_empty();
            if written && let Err(error) = self.write(&batch) {
                tracing::debug!(%error, "hints are lost");
            }
            match self.read() {
                Ok(changed) if changed || written => pause = PAUSES.0,
                Ok(_) => pause = (pause * 2).min(PAUSES.1),
                Err(error) => {
                    tracing::debug!(%error, "hints cannot be read");
                    pause = PAUSES.1;
                }
            }
        }
    }

    fn write(&self, batch: &[Message]) -> rusqlite::Result<()> {
        let transaction = self.connection.unchecked_transaction()?;
        let mut insert = transaction
            .prepare_cached("INSERT INTO hints (namespace, origin, topic, hint) VALUES (?1, ?2, ?3, ?4)")?;
        for message in batch {
            insert.execute(params![
                self.namespace,
                self.origin,
                message.topic().as_str(),
                message.hint().as_ref()
            ])?;
        }
        drop(insert);
        transaction
            .execute("DELETE FROM hints WHERE number <= (SELECT max(number) FROM hints) - ?1", [KEPT])?;
        transaction.commit()
    }

    /// Reads new hints. True if anything in the file has changed.
    fn read(&mut self) -> rusqlite::Result<bool> {
        let version = self.connection.query_row("PRAGMA data_version", (), |row| row.get(0))?;
        let changed = version != self.version;
        self.version = version;
        if !changed && self.last > 0 {
            return Ok(false);
        }
        let mut select = self.connection.prepare_cached(
            "SELECT number, namespace = ?2 AND origin <> ?3, topic, hint FROM hints WHERE number > ?1 ORDER BY number",
        )?;
        let mut rows = select.query(params![self.last, self.namespace, self.origin])?;
        while let Some(row) = rows.next()? {
            let number: i64 = row.get(0)?;
            // Others wrote more than the file keeps.
            if number > self.last + 1 {
                self.hints.send(BusEvent::Gap);
            }
            self.last = number;
            if row.get(1)? {
                let topic = Topic::new(row.get::<_, String>(2)?).ok();
                let message =
                    topic.and_then(|topic| Message::new(topic, row.get::<_, Vec<u8>>(3).ok()?).ok());
                self.hints.send(message.map_or(BusEvent::Gap, BusEvent::Message));
            }
        }
        Ok(changed)
    }
}
