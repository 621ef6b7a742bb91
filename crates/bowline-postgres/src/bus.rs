//! Hints with `LISTEN` and `NOTIFY`.
//!
//! A notification takes a lock of the whole server when it commits, so hints are sent in batches, on a connection of
//! their own.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bowline_store::{Bus, BusEvent, Hints, Message, Namespace, StoreError, Topic};
use futures_core::stream::BoxStream;
use futures_util::StreamExt;
use futures_util::stream::poll_fn;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client};

use crate::connection::{Connector, Driver};

/// How many hints wait to be sent. More are lost.
const WAITING: usize = 1024;

/// How long hints are collected before they are sent together.
const COLLECT: Duration = Duration::from_millis(10);

/// The longest payload of a notification is 7,999 bytes.
const MAX_PAYLOAD: usize = 7_900;

/// The shortest and the longest pause before another attempt to connect.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// How long a server may take to send us our own notification, or to answer at all.
const PROBE: Duration = Duration::from_secs(5);

/// How often a silent connection is probed: one that broke without a word would never be replaced.
const SILENCE: Duration = Duration::from_secs(15);

/// Carries hints through a database.
#[derive(Debug)]
pub struct PostgresBus {
    hints: Hints,
    waiting: mpsc::Sender<Message>,
    task: AbortHandle,
}

impl PostgresBus {
    /// Connects and listens. After a lost connection, subscribers get [`BusEvent::Gap`] as soon as it listens again.
    pub(crate) async fn open(connector: Connector, namespace: &Namespace) -> Result<Self, StoreError> {
        let (waiting, messages) = mpsc::channel(WAITING);
        let hints = Hints::new();
        let mut link =
            Link { connector, channel: format!("bowline.{namespace}"), hints: hints.clone(), messages };
        let listening = link.listen().await?;
        let task = tokio::spawn(async move { link.run(listening).await }).abort_handle();
        Ok(Self { hints, waiting, task })
    }
}

impl Drop for PostgresBus {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Bus for PostgresBus {
    fn publish(&self, message: Message) {
        if self.waiting.try_send(message).is_err() {
            tracing::debug!("dropped a hint, because {WAITING} are waiting to be sent");
        }
    }

    fn subscribe(&self) -> BoxStream<'static, BusEvent> {
        self.hints.subscribe()
    }
}

/// The connection of a bus.
struct Link {
    connector: Connector,
    channel: String,
    hints: Hints,
    messages: mpsc::Receiver<Message>,
}

/// A connection that listens. It closes when it is dropped.
struct Listening {
    client: Client,
    driver: tokio::task::JoinHandle<()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Link {
    async fn listen(&self) -> Result<Listening, StoreError> {
        let (client, driver) = self.connector.open().await?;
        let nonce = format!("{:016x}", fastrand::u64(..));
        let (probe_seen, mut probe) = mpsc::channel(1);
        let driver = tokio::spawn(drive(driver, self.hints.clone(), nonce.clone(), probe_seen));
        let listening = Listening { client, driver };
        // The name of a channel is an identifier; a namespace contains no quote.
        let listen = format!("LISTEN \"{}\"", self.channel);
        let failed = |error| crate::failure::connecting(error);
        listening.client.batch_execute(&listen).await.map_err(failed)?;
        notify(&listening.client, &self.channel, &[format!("\t{nonce}\n")]).await.map_err(failed)?;
        // A pooler that shares connections accepts LISTEN and delivers nothing.
        if tokio::time::timeout(PROBE, probe.recv()).await.is_err() {
            tracing::warn!(
                "PostgreSQL delivers no notifications on this connection; nodes notice changes late. \
                 Behind a pooler, add `listen=host:port` with the address of the server to the URL of the store"
            );
        }
        Ok(listening)
    }

    async fn run(&mut self, first: Listening) {
        let mut listening = first;
        loop {
            self.send_until_closed(&mut listening).await;
            drop(listening);
            tracing::warn!("the connection for hints was closed; reconnecting");
            let mut pause = PAUSES.0;
            listening = loop {
                // All nodes lose their connections at the same time; they must not reconnect at the same time.
                tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
                match self.listen().await {
                    Ok(listening) => break listening,
                    Err(error) => tracing::debug!(%error, "hints are not connected"),
                }
                pause = (pause * 2).min(PAUSES.1);
            };
            self.hints.send(BusEvent::Gap);
        }
    }

    /// Returns when the connection closes.
    async fn send_until_closed(&mut self, listening: &mut Listening) {
        loop {
            let first = tokio::select! {
                message = self.messages.recv() => message,
                _ = &mut listening.driver => return,
                () = tokio::time::sleep(SILENCE) => {
                    match tokio::time::timeout(PROBE, listening.client.batch_execute("")).await {
                        Ok(Ok(())) => continue,
                        _ => return,
                    }
                }
            };
            // The sender is dropped after this task is aborted.
            let Some(first) = first else { return };
            tokio::time::sleep(COLLECT).await;
            let mut payloads = vec![String::new()];
            append(&mut payloads, &first);
            while let Ok(message) = self.messages.try_recv() {
                append(&mut payloads, &message);
            }
            match tokio::time::timeout(PROBE, notify(&listening.client, &self.channel, &payloads)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) if !listening.client.is_closed() => tracing::debug!(%error, "hints are lost"),
                _ => return,
            }
        }
    }
}

/// Drives a connection and passes on the hints it receives.
async fn drive(mut driver: Driver, hints: Hints, nonce: String, probe: mpsc::Sender<()>) {
    let mut messages = poll_fn(|cx| driver.poll_message(cx));
    while let Some(message) = messages.next().await {
        match message {
            Ok(AsyncMessage::Notification(notification)) => {
                for line in notification.payload().lines() {
                    match line.split_once('\t') {
                        Some(("", probed)) if probed == nonce => _ = probe.try_send(()),
                        // The probe of another process.
                        Some(("", _)) => {}
                        _ => hints.send(read(line).map_or(BusEvent::Gap, BusEvent::Message)),
                    }
                }
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(%error, "the connection for hints failed");
                return;
            }
        }
    }
}

/// Adds a line with the topic and the hint. A topic contains no control character.
fn append(payloads: &mut Vec<String>, message: &Message) {
    let line = format!("{}\t{}\n", message.topic(), STANDARD_NO_PAD.encode(message.hint()));
    match payloads.last_mut() {
        Some(payload) if payload.len() + line.len() <= MAX_PAYLOAD => payload.push_str(&line),
        _ => payloads.push(line),
    }
}

fn read(line: &str) -> Option<Message> {
    let (topic, hint) = line.split_once('\t')?;
    Message::new(Topic::new(topic).ok()?, STANDARD_NO_PAD.decode(hint).ok()?).ok()
}

async fn notify(client: &Client, channel: &str, payloads: &[String]) -> Result<(), tokio_postgres::Error> {
    let statement = "SELECT pg_notify($1, payload) FROM unnest($2) AS payload";
    client.query_typed(statement, &[(&channel, Type::TEXT), (&payloads, Type::TEXT_ARRAY)]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_packed_below_the_limit_and_read_again() {
        let message =
            |n: u8| Message::new(Topic::new(format!("topic {n} ä")).unwrap(), vec![n; 1024]).unwrap();
        let sent: Vec<Message> = (0..20).map(message).collect();
        let mut payloads = vec![String::new()];
        for message in &sent {
            append(&mut payloads, message);
        }
        assert!(payloads.len() > 1 && payloads.iter().all(|payload| payload.len() <= MAX_PAYLOAD));
        let read: Vec<Message> =
            payloads.iter().flat_map(|payload| payload.lines()).filter_map(read).collect();
        assert_eq!(read, sent);
    }

    #[test]
    fn a_payload_of_others_is_not_a_hint() {
        for line in ["", "no tab", "topic\tnot base64!", "\tAAAA"] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
