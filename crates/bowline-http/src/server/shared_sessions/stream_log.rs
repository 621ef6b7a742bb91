//! The events of a stream as records, so that a client can resume the stream at any process.
//!
//! A record has the events of one write, under the number of the first of them. It is written only if it does not exist: a
//! process that finds the process of a stream gone writes the end of the stream under the next number, and one of the two
//! writes wins.

use super::{node::Node, stored::failure};
use crate::server::legacy::{Batch, MAX_BATCH, Stream, encode_logged};
use bowline_proto::envelope::{self, Frame, Message};
use bowline_store::{ErrorKind, Group, Key, Put, PutError, StoreError};
use bowline_types::{Id, RawJson};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// How long, and how many bytes of, events wait for a store that does not answer.
const MAX_UNSTORED: (Duration, usize) = (Duration::from_secs(2), 1024 * 1024);

/// How many records are read at once.
const PAGE: usize = 32;

const GONE: &str = "the process that ran this call has exited";
const LOST: &str = "events were lost; repeat the call";

/// The log of one stream.
#[derive(Debug)]
pub(super) struct StreamLog {
    node: Arc<Node>,
    /// The name of the group, and the beginning of its keys.
    group: Group,
    /// The process that runs the call.
    writer: String,
    ttl: Duration,
}

/// What is known of a stream from its beginning.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    requests: Vec<Id>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    first: u64,
    events: Vec<RawJson>,
    #[serde(default)]
    is_last: bool,
    /// Events after this one were sent without being stored.
    #[serde(default)]
    is_broken: bool,
}

/// How an attempt to store events ended.
enum Appended {
    Stored,
    /// Another process ended the stream with these events.
    Fenced(Entry),
    /// The store does not answer.
    Failed,
}

impl StreamLog {
    /// `None` if a stream cannot have this name.
    pub(super) fn new(node: &Arc<Node>, session: &str, name: &str, ttl: Duration) -> Option<Self> {
        let writer = name.split('.').next()?.to_owned();
        let group = Group::new(format!("stream/{session}/{name}")).ok()?;
        Some(Self { node: Arc::clone(node), group, writer, ttl })
    }

    fn key(&self, number: u64) -> Result<Key, StoreError> {
        Key::new(format!("{}/{number:020}", self.group))
            .map_err(|error| StoreError::invalid(error.to_string()))
    }

    /// Stores the beginning of the stream. False if the store does not answer.
    pub(super) async fn open(&self, requests: &[Id]) -> bool {
        let header = Header { requests: requests.to_vec() };
        let value = serde_json::to_vec(&header).unwrap_or_default();
        let Ok(key) = self.key(0) else { return false };
        // Not relaxed, unlike the events: whoever resumes the stream of a store that lost some is told so by the beginning.
        let put = Put::create(key, value, self.ttl).group(self.group.clone());
        match self.node.records().put(put).await {
            Ok(_) => true,
            Err(error) => {
                tracing::warn!(%error, "a stream cannot be resumed, because its beginning is not stored");
                false
            }
        }
    }

    /// Returns the beginning of the stream, if it is known.
    pub(super) async fn header(&self) -> Result<Option<Header>, StoreError> {
        let found = self.node.records().get(&[self.key(0)?]).await?.pop().flatten();
        Ok(found.and_then(|record| serde_json::from_slice(&record.value).ok()))
    }

    async fn put(&self, entry: &Entry) -> Result<(), PutError> {
        let value = serde_json::to_vec(entry).unwrap_or_default();
        let key = self.key(entry.first)?;
        let mut put = Put::create(key, value, self.ttl).group(self.group.clone());
        if !entry.is_awaited() {
            put = put.relaxed();
        }
        self.node.records().put(put).await?;
        self.node.announce_key(self.group.as_str());
        Ok(())
    }

    async fn entry(&self, first: u64) -> Result<Option<Entry>, StoreError> {
        let found = self.node.records().get(&[self.key(first)?]).await?.pop().flatten();
        Ok(found.and_then(|record| serde_json::from_slice(&record.value).ok()))
    }

    /// Stores events, and tries for a while if the store does not answer.
    async fn append(&self, entry: &Entry, stream: &Stream) -> Appended {
        let started = Instant::now();
        let mut pause = Duration::from_millis(20);
        loop {
            match self.put(entry).await {
                Ok(()) => return Appended::Stored,
                Err(PutError::Store(error)) if error.kind() == ErrorKind::Invalid => {
                    tracing::warn!(%error, "events of a stream cannot be stored");
                    return Appended::Failed;
                }
                Err(PutError::Store(_)) => {}
                Err(_) => match self.entry(entry.first).await {
                    // An earlier attempt was applied without an answer.
                    Ok(Some(found)) if found.events == entry.events => return Appended::Stored,
                    Ok(Some(found)) => return Appended::Fenced(found),
                    Ok(None) | Err(_) => {}
                },
            }
            if started.elapsed() >= MAX_UNSTORED.0 || stream.staged_bytes() > MAX_UNSTORED.1 {
                return Appended::Failed;
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(320));
        }
    }

    /// Returns the events after `after` as they are sent, for a GET stream of another process; `None` if some are lost.
    pub(super) async fn missed(&self, name: &str, after: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let (mut next, mut seen, mut out) = (after + 1, after == 0, Vec::new());
        let mut from = self.key(next.saturating_sub(MAX_BATCH.0 as u64 + 1))?;
        loop {
            let page = self.node.records().list(&self.group, Some(&from), PAGE).await?;
            for record in &page {
                let Ok(entry) = serde_json::from_slice::<Entry>(&record.value) else { return Ok(None) };
                if entry.first == 0 {
                    continue;
                }
                seen |= entry.holds(after);
                if entry.is_broken || entry.first > next {
                    return Ok(None);
                }
                for (number, event) in entry.numbered().filter(|(number, _)| *number >= next) {
                    encode_logged(&mut out, name, number, event.as_bytes());
                }
                next = next.max(entry.next());
            }
            let Some(last) = page.last().filter(|_| page.len() == PAGE) else { break };
            from = last.key.clone();
        }
        Ok(seen.then_some(out))
    }
}

impl Entry {
    fn next(&self) -> u64 {
        self.first.saturating_add(self.events.len() as u64)
    }

    fn holds(&self, number: u64) -> bool {
        (self.first..self.next()).contains(&number)
    }

    /// Returns whether somebody waits for it: the end of the stream, or a question.
    ///
    /// A store may lose other events. Their gap shows when the next event is read. After these there may be no next event.
    fn is_awaited(&self) -> bool {
        let is_request = |event: &RawJson| {
            matches!(envelope::parse(&bytes(event)), Frame::Single(Ok(Message::Request { .. })))
        };
        self.is_last || self.events.iter().any(is_request)
    }

    fn numbered(&self) -> impl Iterator<Item = (u64, &RawJson)> {
        (self.first..).zip(&self.events)
    }
}

fn bytes(event: &RawJson) -> Bytes {
    Bytes::copy_from_slice(event.as_bytes())
}

/// Stores the events of a stream of this process and lets its reader have them, until the stream ends.
pub(super) async fn write(log: StreamLog, stream: Arc<Stream>, mut pending: Vec<Id>, is_open: bool) {
    let (mut next, mut touched) = (stream.last() + 1, Instant::now());
    if !is_open {
        return send_live(&stream).await;
    }
    while let Some(mut batch) = stream.next_batch().await {
        for event in &batch.events {
            if let Frame::Single(Ok(Message::Response { id, .. } | Message::Failure { id: Some(id), .. })) =
                envelope::parse(event)
            {
                pending.retain(|known| *known != id);
            }
        }
        if batch.is_last && log.node.is_leaving() {
            // The calls were ended with this process. Whoever resumes the stream would wait for ever.
            batch.events.extend(pending.iter().map(|id| failure(id, GONE)));
        }
        let events = batch.events.iter().filter_map(|event| RawJson::parse(event.clone()).ok()).collect();
        let entry = Entry { first: next, events, is_last: batch.is_last, is_broken: false };
        match log.append(&entry, &stream).await {
            Appended::Stored => {
                next = entry.next().max(next + u64::from(batch.is_last));
                stream.publish(batch);
            }
            Appended::Fenced(found) => {
                tracing::warn!("another process considered this process dead and ended one of its streams");
                let events = found.events.iter().map(bytes).collect();
                return stream.publish(Batch { events, is_last: true });
            }
            Appended::Failed => {
                tracing::warn!("the store does not respond; a stream continues, but cannot be resumed");
                stream.go_live();
                stream.publish(batch);
                let broken = mark_broken(&log, entry);
                tokio::join!(broken, send_live(&stream));
                return;
            }
        }
        if touched.elapsed() >= log.ttl / 4 {
            touched = Instant::now();
            if let Ok(header) = log.key(0) {
                drop(log.node.records().touch(&[header], log.ttl).await);
            }
        }
    }
}

/// Sends what is not stored.
async fn send_live(stream: &Stream) {
    while let Some(batch) = stream.next_batch().await {
        stream.publish(batch);
    }
}

/// Marks the place after which events were sent without being stored, once the store answers.
async fn mark_broken(log: &StreamLog, unstored: Entry) {
    let started = Instant::now();
    let mut first = unstored.first;
    while started.elapsed() < log.ttl && !log.node.is_leaving() {
        let marker = Entry { first, events: Vec::new(), is_last: true, is_broken: true };
        match log.put(&marker).await {
            Ok(()) => return,
            Err(PutError::Conflict) => match log.entry(first).await {
                // The events were stored after all, but sent without ids.
                Ok(Some(found)) if !found.is_last && found.next() > first => first = found.next(),
                Ok(Some(_)) => return,
                Ok(None) | Err(_) => {}
            },
            Err(_) => {}
        }
        sleep(Duration::from_millis(500)).await;
    }
}

/// Copies the events of a stream of another process, until the stream ends or nobody reads the copy.
pub(super) async fn follow(log: StreamLog, stream: Weak<Stream>, header: Header, after: u64) {
    let waiter = log.node.waiter(log.group.as_str());
    let (mut next, mut seen) = (after + 1, after == 0);
    let end = |stream: &Stream, reason| {
        let events = header.requests.iter().map(|id| failure(id, reason)).collect();
        stream.publish(Batch { events, is_last: true });
    };
    loop {
        let Some(copy) = stream.upgrade() else { return };
        let Ok(from) = log.key(next.saturating_sub(MAX_BATCH.0 as u64 + 1)) else { return };
        let page = log.node.records().list(&log.group, Some(&from), PAGE + MAX_BATCH.0).await;
        if let Ok(page) = page {
            let begun = next;
            let is_whole = page.len() < PAGE + MAX_BATCH.0;
            for found in page {
                let Ok(entry) = serde_json::from_slice::<Entry>(&found.value) else { continue };
                seen |= entry.holds(after);
                if entry.is_broken || entry.first > next {
                    return end(&copy, LOST);
                }
                let events: Vec<_> = entry
                    .numbered()
                    .filter(|(number, _)| *number >= next)
                    .map(|(_, event)| bytes(event))
                    .collect();
                next = next.max(entry.next());
                if entry.is_last && !seen && entry.next() <= after {
                    return end(&copy, LOST);
                }
                copy.publish(Batch { events, is_last: entry.is_last });
                if entry.is_last {
                    return;
                }
            }
            if is_whole && !seen {
                // An event is sent only after it is stored, so this one never was, or is no longer kept.
                return end(&copy, LOST);
            }
            if !is_whole {
                continue;
            }
            if next == begun && log.node.is_alive(&log.writer).await.is_ok_and(|alive| !alive) {
                let events = header.requests.iter().map(|id| failure(id, GONE));
                let events = events.filter_map(|event| RawJson::parse(event).ok()).collect();
                // Whichever is stored first holds; it is read in the next round. A write wakes the waiter; a store that
                // refuses it is asked again when it is time to.
                drop(log.put(&Entry { first: next, events, is_last: true, is_broken: false }).await);
            }
        }
        drop(copy);
        waiter.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_knows_its_numbers() {
        let event = RawJson::parse("{}").unwrap();
        let entry = Entry { first: 3, events: vec![event.clone(), event], is_last: false, is_broken: false };
        assert_eq!(entry.next(), 5);
        assert!(entry.holds(3) && entry.holds(4) && !entry.holds(5) && !entry.holds(2));
        assert_eq!(entry.numbered().map(|(number, _)| number).collect::<Vec<_>>(), [3, 4]);
    }
}
