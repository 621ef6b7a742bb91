//! What a handler records: steps, and times to wait for.

use super::{attempt::Attempt, table::backoff};
use crate::{Error, Result};
use bowline_proto::seal::digest;
use bowline_store::{ErrorKind, Put, PutError};
use bowline_text::hex;
use bowline_types::RawJson;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{collections::HashMap, future::Future};
use tokio::time::sleep;

/// How many steps one task may have.
const MAX_STEPS: usize = 1000;

/// The largest value of a step, in bytes.
const MAX_STEP_BYTES: usize = 1 << 20;

/// How many bytes the values of all steps of a task may have.
const MAX_STEPS_BYTES: usize = 8 << 20;

/// The recorded values of a task.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    values: HashMap<String, RawJson>,
    bytes: usize,
}

/// A step in the store.
#[derive(Serialize, Deserialize)]
struct Recorded {
    name: String,
    value: RawJson,
}

impl Steps {
    /// Adds a step from the store.
    pub(crate) fn load(&mut self, value: &[u8]) {
        if let Ok(Recorded { name, value }) = serde_json::from_slice(value) {
            self.add(name, value);
        }
    }

    fn add(&mut self, name: String, value: RawJson) {
        self.bytes += value.as_bytes().len();
        self.values.insert(name, value);
    }

    fn check(&self, name: &str, value: &RawJson) -> Result<(), Error> {
        let length = value.as_bytes().len();
        let limit = if self.values.len() >= MAX_STEPS {
            format!("a task has at most {MAX_STEPS} steps")
        } else if length > MAX_STEP_BYTES {
            format!("the value of a step has at most {MAX_STEP_BYTES} bytes, this one has {length}")
        } else if self.bytes.saturating_add(length) > MAX_STEPS_BYTES {
            format!("the values of all steps of a task have at most {MAX_STEPS_BYTES} bytes")
        } else {
            return Ok(());
        };
        Err(Error::internal(format!(
            "step `{name}` cannot be recorded: {limit}; keep less, such as a key to what is stored elsewhere"
        )))
    }
}

/// The name of a step in the store: any text can name a step.
fn part_of(name: &str) -> String {
    let digest = digest(&[name.as_bytes()]);
    format!("step/{}", hex(&digest))
}

impl Attempt {
    /// Returns the value of a step, and runs `work` if it has none. The value is recorded before this returns.
    pub(crate) async fn step<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        if let Some(value) = self.recorded(name) {
            return Ok(value.decode()?);
        }
        self.await_lease().await;
        if self.is_stopped() {
            self.abandon().await;
        }
        let value = RawJson::of(&work.await?)?;
        Ok(self.record_step(name, value).await?.decode()?)
    }

    pub(crate) fn recorded(&self, name: &str) -> Option<RawJson> {
        self.steps().values.get(name).cloned()
    }

    /// Records a value, or returns the one that is recorded already.
    pub(crate) async fn record_step(&self, name: &str, value: RawJson) -> Result<RawJson> {
        self.steps().check(name, &value)?;
        let key = self.table().part(self.id(), &part_of(name));
        let recorded = Recorded { name: name.to_owned(), value: value.clone() };
        let bytes = serde_json::to_vec(&recorded)?;
        let mut tries = 0;
        loop {
            self.await_lease().await;
            if self.is_stopped() {
                self.abandon().await;
            }
            let put = Put::create(key.clone(), bytes.clone(), self.kept_for())
                .under_claim(self.key().clone(), self.claim())
                .group(self.table().parts(self.id()));
            match self.table().records().put(put).await {
                Ok(_) => break,
                // An earlier attempt, or an earlier try of this one, has recorded a value: that one counts.
                Err(PutError::Conflict) => {
                    match self.table().records().get(std::slice::from_ref(&key)).await {
                        Ok(mut read) => {
                            if let Some(row) = read.pop().flatten() {
                                let Recorded { value, .. } = serde_json::from_slice(&row.value)?;
                                self.steps().add(name.to_owned(), value.clone());
                                return Ok(value);
                            }
                        }
                        // It cannot be read, now or later.
                        Err(error) if error.kind() == ErrorKind::Invalid => return Err(Error::other(error)),
                        Err(_) => {}
                    }
                }
                Err(PutError::ClaimLost) => self.abandon().await,
                Err(PutError::Store(error)) if error.kind() == ErrorKind::Invalid => {
                    return Err(Error::other(error));
                }
                // The store is not available, or the write is not confirmed. Running goes on up to here.
                Err(_) => {}
            }
            sleep(backoff(tries)).await;
            tries += 1;
        }
        self.steps().add(name.to_owned(), value.clone());
        Ok(value)
    }

    /// Returns the time at which a wait of the handler ends, in milliseconds since the epoch. The first attempt decides it.
    pub(crate) async fn wake_time(&self, position: usize, millis: u64) -> Result<u64> {
        let name = format!("bowline/sleep/{position}");
        if let Some(recorded) = self.recorded(&name) {
            return Ok(recorded.decode()?);
        }
        let wake = self.table().clock.now().saturating_add(millis);
        Ok(self.record_step(&name, RawJson::of(&wake)?).await?.decode()?)
    }

    /// Returns a name for a step that no other step of any task has, and that stays the same.
    pub(crate) fn step_id(&self, name: &str) -> String {
        let digest = digest(&[name.as_bytes()]);
        format!("{}.{}", self.id(), hex(&digest[..8]))
    }
}
