//! Hints between the processes that share a store.

use std::fmt;

use bytes::Bytes;
use futures_core::stream::BoxStream;

use crate::{StoreError, Topic};

/// The longest hint, in bytes.
pub const MAX_HINT_BYTES: usize = 1024;

/// A hint about a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    topic: Topic,
    hint: Bytes,
}

impl Message {
    /// Checks a hint: at most [`MAX_HINT_BYTES`].
    pub fn new(topic: Topic, hint: impl Into<Bytes>) -> Result<Self, StoreError> {
        let hint = hint.into();
        if hint.len() > MAX_HINT_BYTES {
            return Err(StoreError::invalid(format!(
                "a hint has at most {MAX_HINT_BYTES} bytes, this one about {topic} has {}",
                hint.len()
            )));
        }
        Ok(Self { topic, hint })
    }

    /// What the hint is about.
    pub fn topic(&self) -> &Topic {
        &self.topic
    }

    /// The hint.
    pub fn hint(&self) -> &Bytes {
        &self.hint
    }
}

/// What a subscriber receives.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BusEvent {
    /// A hint.
    Message(Message),
    /// Hints may have been lost. Whoever waits for a record reads it again.
    Gap,
}

/// Carries hints. A hint arrives at most once, perhaps not at all, and also at the process that published it.
pub trait Bus: Send + Sync + fmt::Debug {
    /// Publishes a hint. It never waits; what cannot be sent is lost.
    fn publish(&self, message: Message);

    /// Returns what is published from now on.
    fn subscribe(&self) -> BoxStream<'static, BusEvent>;
}
