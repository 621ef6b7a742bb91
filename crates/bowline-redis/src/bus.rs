//! Hints with publish and subscribe.

use std::time::Duration;

use bowline_store::{Bus, BusEvent, Hints, Message, Namespace, StoreError, Topic};
use futures_core::stream::BoxStream;
use futures_util::StreamExt;
use redis::aio::{PubSubSink, PubSubStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::connection::Link;
use crate::failure::connecting;
use crate::url::Address;

/// How many hints wait to be sent. More are lost.
const WAITING: usize = 1024;

/// How many hints are sent together.
const BATCH: usize = 64;

/// The shortest and the longest pause before another attempt to connect.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// How often a silent connection is probed.
const PROBE: Duration = Duration::from_secs(15);

/// Carries hints through a server.
#[derive(Debug)]
pub struct RedisBus {
    hints: Hints,
    waiting: mpsc::Sender<Message>,
    tasks: [AbortHandle; 2],
}

impl RedisBus {
    /// Connects and subscribes. After a lost connection, subscribers get [`BusEvent::Gap`] as soon as it is subscribed again.
    pub(crate) async fn open(
        address: &Address,
        namespace: &Namespace,
        deadline: Duration,
    ) -> Result<Self, StoreError> {
        let (waiting, messages) = mpsc::channel(WAITING);
        let hints = Hints::new();
        let channel = format!("bowline.{namespace}");
        let listener =
            Listener { address: address.clone(), channel: channel.clone(), hints: hints.clone(), deadline };
        let first = listener.subscribe().await?;
        let sender = Link::new(address, deadline);
        let listen = tokio::spawn(async move { listener.run(first).await });
        let send = tokio::spawn(send(sender, channel, messages));
        Ok(Self { hints, waiting, tasks: [listen.abort_handle(), send.abort_handle()] })
    }
}

impl Drop for RedisBus {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Bus for RedisBus {
    fn publish(&self, message: Message) {
        if self.waiting.try_send(message).is_err() {
            tracing::debug!("dropped a hint, because {WAITING} are waiting to be sent");
        }
    }

    fn subscribe(&self) -> BoxStream<'static, BusEvent> {
        self.hints.subscribe()
    }
}

/// Sends hints, those that wait together.
async fn send(link: Link, channel: String, mut messages: mpsc::Receiver<Message>) {
    let mut batch = Vec::new();
    while messages.recv_many(&mut batch, BATCH).await > 0 {
        let mut pipeline = redis::pipe();
        for message in batch.drain(..) {
            pipeline.cmd("PUBLISH").arg(&channel).arg(payload(&message)).ignore();
        }
        match link.connection().await {
            Err(error) => tracing::debug!(%error, "hints are lost"),
            Ok((mut connection, number)) => {
                if let Err(error) = pipeline.exec_async(&mut connection).await {
                    tracing::debug!(%error, "hints are lost");
                    link.failed(number, &error).await;
                }
            }
        }
    }
}

/// The topic, a line break and the hint. A topic contains no control character.
fn payload(message: &Message) -> Vec<u8> {
    [message.topic().as_str().as_bytes(), b"\n", message.hint()].concat()
}

fn read(payload: &[u8]) -> Option<Message> {
    let end = payload.iter().position(|byte| *byte == b'\n')?;
    let (topic, hint) = payload.split_at(end);
    let topic = Topic::new(std::str::from_utf8(topic).ok()?).ok()?;
    Message::new(topic, hint.get(1..)?.to_vec()).ok()
}

struct Listener {
    address: Address,
    channel: String,
    hints: Hints,
    deadline: Duration,
}

impl Listener {
    async fn subscribe(&self) -> Result<(PubSubSink, PubSubStream), StoreError> {
        let connect = async {
            let (mut sink, stream) = self.address.client.get_async_pubsub().await?.split();
            sink.subscribe(&self.channel).await?;
            Ok((sink, stream))
        };
        match tokio::time::timeout(self.deadline, connect).await {
            Ok(connected) => connected.map_err(|error| connecting(error, &self.address.shown)),
            Err(_) => Err(StoreError::unavailable(format!(
                "connecting to Redis at {} timed out after {:?}",
                self.address.shown, self.deadline
            ))),
        }
    }

    async fn run(self, first: (PubSubSink, PubSubStream)) {
        let mut subscribed = first;
        loop {
            self.listen(&mut subscribed).await;
            drop(subscribed);
            tracing::warn!("the connection for hints was closed; reconnecting");
            let mut pause = PAUSES.0;
            subscribed = loop {
                // All nodes lose their connections at the same time; they must not reconnect at the same time.
                tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
                match self.subscribe().await {
                    Ok(subscribed) => break subscribed,
                    Err(error) => tracing::debug!(%error, "hints are not connected"),
                }
                pause = (pause * 2).min(PAUSES.1);
            };
            self.hints.send(BusEvent::Gap);
        }
    }

    /// Returns when the connection is lost.
    async fn listen(&self, (sink, stream): &mut (PubSubSink, PubSubStream)) {
        loop {
            match tokio::time::timeout(PROBE, stream.next()).await {
                Ok(Some(message)) => {
                    self.hints
                        .send(read(message.get_payload_bytes()).map_or(BusEvent::Gap, BusEvent::Message));
                }
                Ok(None) => return,
                Err(_) => {
                    let alive = tokio::time::timeout(self.deadline, sink.ping::<redis::Value>()).await;
                    if !matches!(alive, Ok(Ok(_))) {
                        return;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_hint_is_not_read() {
        let message = Message::new(Topic::new("a b").unwrap(), "x\ny\0").unwrap();
        assert_eq!(read(&payload(&message)), Some(message));
        for payload in ["", "no line break", "\nhint", "\u{1}\nhint"] {
            assert_eq!(read(payload.as_bytes()), None, "{payload:?}");
        }
    }
}
