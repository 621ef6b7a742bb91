//! Caches results for as long as the server allows.
//!
//! A cache belongs to one client, and therefore to one authorization context. Private results are not shared.

use crate::{
    shared::{Shared, lock, now},
    tools,
};
use bowline_proto::{subscribe::Change, uri};
use bowline_types::{Method, RawJson};
use serde::{Deserialize, Deserializer};
use std::{
    collections::HashMap,
    sync::Mutex,
    time::{Duration, Instant},
};

/// The maximum number of results.
const MAX_ENTRIES: usize = 1000;
/// The maximum total size.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// The maximum time, regardless of what the server allows.
const MAX_TTL: Duration = Duration::from_secs(24 * 3600);

/// The method, and the cursor or URI.
pub(crate) type Key = (Method, Option<String>);

#[derive(Debug, Default)]
pub(crate) struct Cache {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<Key, Entry>,
    /// Incremented when entries become stale, so that a result requested before is not stored afterwards.
    era: u64,
}

#[derive(Debug)]
struct Entry {
    result: RawJson,
    until: Instant,
}

impl State {
    fn has_space(&self, key: &Key, result: &RawJson) -> bool {
        let length =
            |key: &Key, result: &RawJson| key.1.as_ref().map_or(0, String::len) + result.as_bytes().len();
        let kept: usize = self.entries.iter().map(|(key, entry)| length(key, &entry.result)).sum();
        self.entries.len() < MAX_ENTRIES && kept + length(key, result) <= MAX_BYTES
    }
}

/// A pending result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot(u64);

impl Cache {
    /// Returns the result if it is fresh.
    pub(crate) fn get(&self, key: &Key) -> Option<RawJson> {
        let state = lock(&self.state);
        state.entries.get(key).filter(|entry| now() < entry.until).map(|entry| entry.result.clone())
    }

    /// Returns a slot. Call this before sending the request.
    pub(crate) fn slot(&self) -> Slot {
        Slot(lock(&self.state).era)
    }

    /// Stores a result for as long as it allows, unless it became stale since `slot` was taken.
    pub(crate) fn put(&self, slot: Slot, key: Key, result: &RawJson) {
        let ttl = time_to_live(result);
        let mut state = lock(&self.state);
        if ttl.is_zero() || slot.0 != state.era {
            return;
        }
        let now = now();
        state.entries.remove(&key);
        if !state.has_space(&key, result) {
            state.entries.retain(|_, entry| now < entry.until);
            if !state.has_space(&key, result) {
                return;
            }
        }
        // Copied, because the frame that contains it may be far larger.
        state.entries.insert(key, Entry { result: result.compact(), until: now + ttl });
    }

    /// Removes the entries for which `is_stale` returns true.
    pub(crate) fn forget(&self, mut is_stale: impl FnMut(&Key) -> bool) {
        let mut state = lock(&self.state);
        state.era += 1;
        state.entries.retain(|key, _| !is_stale(key));
    }
}

impl Shared {
    /// Removes the entries that a change affects.
    pub(crate) fn forget(&self, change: &Change) {
        self.cache.forget(|(method, subject)| match (change, method) {
            (Change::Tools, Method::ListTools)
            | (Change::Prompts, Method::ListPrompts)
            | (Change::Resources, Method::ListResources | Method::ListResourceTemplates) => true,
            (Change::Resource(changed), Method::ReadResource) => subject.as_ref().is_some_and(|kept| {
                uri::is_sub_resource(kept, changed) || uri::is_sub_resource(changed, kept)
            }),
            _ => false,
        });
        if *change == Change::Tools {
            tools::KnownTools::forget(&self.tools);
        }
    }
}

/// Returns how long a result may be used. Zero if the result does not say.
fn time_to_live(result: &RawJson) -> Duration {
    #[derive(Deserialize)]
    struct Hint {
        #[serde(default, rename = "ttlMs", deserialize_with = "milliseconds")]
        ttl: Duration,
    }
    /// Deserializes a positive number; anything else is zero.
    fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let seconds = value.as_f64().unwrap_or(0.0) / 1000.0;
        Ok(Duration::try_from_secs_f64(seconds).unwrap_or(if seconds > 0.0 {
            MAX_TTL
        } else {
            Duration::ZERO
        }))
    }
    result.decode::<Hint>().map_or(Duration::ZERO, |hint| hint.ttl.min(MAX_TTL))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_proto::envelope::{self, Frame, Message};
    use bytes::Bytes;

    #[test]
    fn only_a_positive_time_is_valid() {
        // proves: CACHE-09, CACHE-10
        for (text, milliseconds) in [
            (r#"{"ttlMs":1500}"#, 1500),
            (r#"{"ttlMs":0}"#, 0),
            (r#"{"ttlMs":-1}"#, 0),
            (r#"{"ttlMs":null}"#, 0),
            (r#"{"ttlMs":"60000"}"#, 0),
            (r#"{"ttlMs":1e300}"#, 24 * 3600 * 1000),
            ("{}", 0),
        ] {
            assert_eq!(time_to_live(&RawJson::parse(text).unwrap()).as_millis(), milliseconds, "{text}");
        }
    }

    #[tokio::test]
    async fn captured_lines_are_limited_in_number_and_length() {
        let cache = Cache::default();
        let long =
            RawJson::parse(format!(r#"{{"ttlMs":1000,"x":"{}"}}"#, "x".repeat(MAX_BYTES / 4))).unwrap();
        let key = |name: usize| (Method::ReadResource, Some(name.to_string()));
        for name in 0..5 {
            cache.put(cache.slot(), key(name), &long);
        }
        assert_eq!((0..5).filter(|name| cache.get(&key(*name)).is_some()).count(), 3);
        let short = RawJson::parse(r#"{"ttlMs":1000}"#).unwrap();
        for name in 0..MAX_ENTRIES + 5 {
            cache.put(cache.slot(), key(name), &short);
        }
        assert_eq!(lock(&cache.state).entries.len(), MAX_ENTRIES);
    }

    #[tokio::test]
    async fn a_result_does_not_keep_the_memory_of_its_frame() {
        let (cache, key) = (Cache::default(), (Method::ListTools, None));
        let frame = r#"{"jsonrpc":"2.0","id":1,"result":{"ttlMs":1000},"junk":"..."}"#;
        let frame = Bytes::from(frame.to_owned());
        let Frame::Single(Ok(Message::Response { result, .. })) = envelope::parse(&frame) else {
            panic!("expected a response")
        };
        cache.put(cache.slot(), key.clone(), &result);
        drop(result);
        assert_eq!(cache.get(&key).unwrap().as_str(), r#"{"ttlMs":1000}"#);
        assert!(frame.is_unique());
    }

    #[tokio::test]
    async fn a_list_that_became_stale_while_fetched_is_not_cached() {
        let cache = Cache::default();
        let key = || (Method::ListTools, None);
        let result = RawJson::parse(r#"{"ttlMs":1000}"#).unwrap();
        let slot = cache.slot();
        cache.forget(|_| true);
        cache.put(slot, key(), &result);
        assert_eq!(cache.get(&key()), None);
        cache.put(cache.slot(), key(), &result);
        assert_eq!(cache.get(&key()), Some(result));
    }
}
