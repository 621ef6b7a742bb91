//! Remembers proofs, so that each is accepted once.

use super::{NONCE_LIFETIME, VerifiedProof, verify::MAX_AGE};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

/// At most this many proofs are remembered before a nonce is required.
pub const MAX_REMEMBERED: usize = 100_000;
/// At most this many proofs are remembered in all. Those beyond [`MAX_REMEMBERED`] have a nonce and are soon forgotten.
pub const MAX_REMEMBERED_WITH_NONCE: usize = 2 * MAX_REMEMBERED;
/// At most this many proofs of one key are remembered before it needs a nonce, so that one client cannot take all the space.
pub const MAX_PER_KEY: usize = 10_000;
/// At most this many proofs of one key are remembered in all.
pub const MAX_PER_KEY_WITH_NONCE: usize = 25_000;

/// The digest of a proof, and the thumbprint of its key.
type Remembered = ([u8; 32], Arc<str>);

/// The proofs that were accepted and could be sent again.
#[derive(Debug, Default)]
pub struct Replay {
    seen: HashSet<[u8; 32]>,
    /// The number of remembered proofs of each key, by its thumbprint.
    per_key: HashMap<Arc<str>, usize>,
    /// The same digests and their keys, by the time after which they can be forgotten.
    expiring: BTreeMap<u64, Vec<Remembered>>,
}

/// Whether a proof may be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Once {
    /// It is new, and remembered from now on.
    New,
    /// It was accepted before.
    Replayed,
    /// There is no space for it, in all or for its key. Ask for a nonce: proofs with a nonce are remembered for a shorter time
    /// and have more space.
    Full,
}

impl Replay {
    /// Remembers a proof. Call it after all other checks, so that only valid proofs take space.
    ///
    /// `nonce_issued` is the time at which its nonce was issued, if it has one. The nonce must be valid.
    pub fn remember(&mut self, proof: &VerifiedProof, nonce_issued: Option<u64>, now: u64) -> Once {
        self.forget(now);
        let mut context = ring::digest::Context::new(&ring::digest::SHA256);
        // A thumbprint has a fixed length, so the two parts cannot be confused.
        context.update(proof.thumbprint.as_bytes());
        context.update(proof.id.as_bytes());
        let mut digest = [0; 32];
        digest.copy_from_slice(context.finish().as_ref());
        if self.seen.contains(&digest) {
            return Once::Replayed;
        }
        let (limit, limit_per_key) = match nonce_issued {
            Some(_) => (MAX_REMEMBERED_WITH_NONCE, MAX_PER_KEY_WITH_NONCE),
            None => (MAX_REMEMBERED, MAX_PER_KEY),
        };
        let (key, of_key) = match self.per_key.get_key_value(proof.thumbprint.as_str()) {
            Some((key, count)) => (Arc::clone(key), *count),
            None => (Arc::from(proof.thumbprint.as_str()), 0),
        };
        if self.seen.len() >= limit || of_key >= limit_per_key {
            return Once::Full;
        }
        let too_old = proof.issued.saturating_add(MAX_AGE);
        // After that time the nonce is refused.
        let until = nonce_issued.map_or(too_old, |issued| too_old.min(issued.saturating_add(NONCE_LIFETIME)));
        self.seen.insert(digest);
        self.per_key.insert(Arc::clone(&key), of_key + 1);
        self.expiring.entry(until).or_default().push((digest, key));
        Once::New
    }

    /// Forgets proofs that are refused for their age anyway.
    fn forget(&mut self, now: u64) {
        while let Some(entry) = self.expiring.first_entry().filter(|entry| *entry.key() < now) {
            for (digest, key) in entry.remove() {
                self.seen.remove(&digest);
                if let Some(count) = self.per_key.get_mut(&key) {
                    *count -= 1;
                    if *count == 0 {
                        self.per_key.remove(&key);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(id: &str, issued: u64) -> VerifiedProof {
        VerifiedProof { thumbprint: "t".repeat(43), id: id.to_owned(), issued, nonce: None }
    }

    #[test]
    fn a_proof_is_accepted_once_until_it_is_too_old() {
        let mut replay = Replay::default();
        assert_eq!(replay.remember(&proof("a", 1000), None, 1000), Once::New);
        assert_eq!(replay.remember(&proof("a", 1000), None, 1001), Once::Replayed);
        assert_eq!(replay.remember(&proof("b", 1000), None, 1001), Once::New);
        let other = VerifiedProof { thumbprint: "u".repeat(43), ..proof("a", 1000) };
        assert_eq!(replay.remember(&other, None, 1001), Once::New);
        assert_eq!(replay.remember(&proof("a", 1000), None, 1300), Once::Replayed);
        assert_eq!(replay.remember(&proof("a", 1301), None, 1301), Once::New);
        assert_eq!(replay.seen.len(), 1);
    }

    #[test]
    fn a_proof_with_a_nonce_is_remembered_while_the_nonce_is_valid() {
        let mut replay = Replay::default();
        assert_eq!(replay.remember(&proof("a", 1010), Some(1000), 1010), Once::New);
        assert_eq!(replay.remember(&proof("a", 1010), Some(1000), 1060), Once::Replayed);
        assert_eq!(replay.remember(&proof("b", 1010), Some(1000), 1061), Once::New);
        assert_eq!(replay.seen.len(), 1);
    }

    fn proof_of(key: usize, id: usize) -> VerifiedProof {
        VerifiedProof { thumbprint: format!("{key:043}"), ..proof(&id.to_string(), 1000) }
    }

    #[test]
    fn the_memory_is_bounded_and_frees_itself() {
        let mut replay = Replay::default();
        let one_more = proof_of(usize::MAX, 0);
        for number in 0..MAX_REMEMBERED {
            assert_eq!(replay.remember(&proof_of(number % 100, number), None, 1000), Once::New);
        }
        assert_eq!(replay.remember(&one_more, None, 1000), Once::Full);
        assert_eq!(replay.remember(&proof_of(7, 7), None, 1000), Once::Replayed);
        for number in MAX_REMEMBERED..MAX_REMEMBERED_WITH_NONCE {
            assert_eq!(replay.remember(&proof_of(number % 100, number), Some(1000), 1000), Once::New);
        }
        assert_eq!(replay.remember(&one_more, Some(1000), 1000), Once::Full);
        assert_eq!(replay.remember(&one_more, Some(1020), 1061), Once::New);
        assert_eq!(replay.remember(&proof("two more", 1301), None, 1301), Once::New);
        assert_eq!((replay.seen.len(), replay.per_key.len(), replay.expiring.len()), (1, 1, 1));
    }

    #[test]
    fn one_key_cannot_take_the_space_of_others() {
        let mut replay = Replay::default();
        for number in 0..MAX_PER_KEY {
            assert_eq!(replay.remember(&proof_of(1, number), None, 1000), Once::New);
        }
        assert_eq!(replay.remember(&proof_of(1, MAX_PER_KEY), None, 1000), Once::Full);
        assert_eq!(replay.remember(&proof_of(2, 0), None, 1000), Once::New);
        for number in MAX_PER_KEY..MAX_PER_KEY_WITH_NONCE {
            assert_eq!(replay.remember(&proof_of(1, number), Some(1000), 1000), Once::New);
        }
        assert_eq!(replay.remember(&proof_of(1, MAX_PER_KEY_WITH_NONCE), Some(1000), 1000), Once::Full);
        assert_eq!(replay.remember(&proof_of(2, 1), Some(1000), 1000), Once::New);
        // The proofs with a nonce are forgotten first.
        assert_eq!(replay.remember(&proof_of(1, MAX_PER_KEY_WITH_NONCE), Some(1030), 1061), Once::New);
        assert_eq!(replay.remember(&proof_of(1, 0), None, 1301), Once::New);
        assert_eq!(replay.per_key.values().sum::<usize>(), replay.seen.len());
    }
}
