//! Remembers which tokens were accepted, so that a signature is checked once per token and not once per request.

use super::MAX_VERDICT_AGE;
use crate::Caller;
use std::{
    collections::HashMap,
    fmt::{self, Write as _},
    sync::{Arc, Mutex, PoisonError},
};

/// How many verdicts are kept.
pub const MAX_CACHED_VERDICTS: usize = 10_000;

/// The accepted tokens, by the SHA-256 digest of the token. A hit allocates nothing.
#[derive(Default)]
pub struct VerdictCache {
    kept: Mutex<Kept>,
}

/// New entries go to `recent`. When it is full it becomes `older`, and what was `older` is dropped, so that nothing has to be
/// searched for the entry to drop. An entry that is used stays.
#[derive(Default)]
struct Kept {
    generation: u64,
    recent: HashMap<Digest, Entry>,
    older: HashMap<Digest, Entry>,
}

type Digest = [u8; 32];

struct Entry {
    caller: Arc<Caller>,
    until: u64,
}

impl VerdictCache {
    /// Returns the caller of a token that was accepted before, if that still holds at `now` under the keys of `generation`.
    pub fn get(&self, token: &str, now: u64, generation: u64) -> Option<Arc<Caller>> {
        let digest = digest(token);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clear_unless(generation);
        if let Some(entry) = kept.recent.get(&digest) {
            return (now < entry.until).then(|| Arc::clone(&entry.caller));
        }
        let entry = kept.older.remove(&digest).filter(|entry| now < entry.until)?;
        let caller = Arc::clone(&entry.caller);
        kept.insert(digest, entry);
        Some(caller)
    }

    /// Keeps the verdict on a token until it expires, at most `max_age` seconds.
    pub fn insert(&self, token: &str, caller: &Arc<Caller>, now: u64, max_age: u64, generation: u64) {
        let until = now.saturating_add(max_age.min(MAX_VERDICT_AGE));
        let until = caller.expiry().map_or(until, |expiry| until.min(expiry));
        if until <= now {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clear_unless(generation);
        kept.insert(digest(token), Entry { caller: Arc::clone(caller), until });
    }
}

impl Kept {
    fn clear_unless(&mut self, generation: u64) {
        if self.generation != generation {
            self.generation = generation;
            self.recent.clear();
            self.older.clear();
        }
    }

    fn insert(&mut self, digest: Digest, entry: Entry) {
        if self.recent.len() >= MAX_CACHED_VERDICTS / 2 {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(digest, entry);
    }
}

impl fmt::Debug for VerdictCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerdictCache").finish_non_exhaustive()
    }
}

/// Returns a digest of a token for logs: it identifies the token and does not reveal it.
///
/// ```
/// let digest = bowline_auth::verify::token_digest("7d1f");
/// assert!(digest.starts_with("sha256:") && !digest.contains("7d1f"));
/// ```
pub fn token_digest(token: &str) -> String {
    digest(token).iter().fold("sha256:".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn digest(token: &str) -> Digest {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, token.as_bytes()).as_ref());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(expiry: Option<u64>) -> Arc<Caller> {
        let caller = Caller::new("i", "s");
        Arc::new(match expiry {
            Some(expiry) => caller.with_expiry(expiry),
            None => caller,
        })
    }

    #[test]
    fn a_verdict_lasts_until_expiry_and_at_most_five_minutes() {
        for (expiry, max_age, until) in
            [(None, 1000, 1300), (Some(1010), 1000, 1010), (Some(9000), 60, 1060), (Some(9000), 1000, 1300)]
        {
            let cache = VerdictCache::default();
            cache.insert("t", &caller(expiry), 1000, max_age, 0);
            assert!(cache.get("t", until - 1, 0).is_some(), "{expiry:?} {max_age}");
            assert!(cache.get("t", until, 0).is_none(), "{expiry:?} {max_age}");
        }
        let cache = VerdictCache::default();
        cache.insert("expired", &caller(Some(1000)), 1000, 300, 0);
        cache.insert("never", &caller(None), 1000, 0, 0);
        assert!(cache.get("expired", 1000, 0).is_none() && cache.get("never", 1000, 0).is_none());
    }

    #[test]
    fn another_generation_of_keys_clears_the_cache() {
        let cache = VerdictCache::default();
        cache.insert("t", &caller(None), 1000, 300, 1);
        assert!(cache.get("t", 1000, 1).is_some());
        assert!(cache.get("t", 1000, 2).is_none());
        assert!(cache.get("t", 1000, 1).is_none());
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_what_is_used() {
        let cache = VerdictCache::default();
        cache.insert("used", &caller(None), 1000, 300, 0);
        for number in 0..3 * MAX_CACHED_VERDICTS {
            cache.insert(&format!("token {number}"), &caller(None), 1000, 300, 0);
            if number % 1000 == 0 {
                assert!(cache.get("used", 1000, 0).is_some(), "{number}");
            }
        }
        assert!(cache.get("token 0", 1000, 0).is_none());
        let kept = cache.kept.lock().unwrap();
        assert!(kept.recent.len() + kept.older.len() <= MAX_CACHED_VERDICTS);
    }
}
