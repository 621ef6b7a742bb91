//! Remembers proofs, so that each is accepted once.

use super::{VerifiedProof, verify::MAX_AGE};
use std::collections::{BTreeMap, HashSet};

/// At most this many proofs are remembered.
pub const MAX_REMEMBERED: usize = 100_000;

/// The proofs that were accepted and are not too old yet.
#[derive(Debug, Default)]
pub struct Replay {
    seen: HashSet<[u8; 32]>,
    /// The same, by the time at which they can be forgotten.
    expiring: BTreeMap<u64, Vec<[u8; 32]>>,
}

/// Whether a proof may be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Once {
    /// It is new, and remembered from now on.
    New,
    /// It was accepted before.
    Replayed,
    /// There is no room to remember it: ask for a nonce, and remember proofs only as long as nonces live.
    Full,
}

impl Replay {
    /// Remembers a proof. Call it after all other checks, so that nobody else can fill the memory.
    pub fn remember(&mut self, proof: &VerifiedProof, now: u64) -> Once {
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
        if self.seen.len() >= MAX_REMEMBERED {
            return Once::Full;
        }
        self.seen.insert(digest);
        self.expiring.entry(proof.issued.saturating_add(MAX_AGE)).or_default().push(digest);
        Once::New
    }

    /// Forgets proofs that are refused for their age anyway.
    fn forget(&mut self, now: u64) {
        while let Some(entry) = self.expiring.first_entry().filter(|entry| *entry.key() < now) {
            for digest in entry.remove() {
                self.seen.remove(&digest);
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
        assert_eq!(replay.remember(&proof("a", 1000), 1000), Once::New);
        assert_eq!(replay.remember(&proof("a", 1000), 1001), Once::Replayed);
        assert_eq!(replay.remember(&proof("b", 1000), 1001), Once::New);
        let other = VerifiedProof { thumbprint: "u".repeat(43), ..proof("a", 1000) };
        assert_eq!(replay.remember(&other, 1001), Once::New);
        assert_eq!(replay.remember(&proof("a", 1000), 1300), Once::Replayed);
        assert_eq!(replay.remember(&proof("a", 1301), 1301), Once::New);
        assert_eq!(replay.seen.len(), 1);
    }

    #[test]
    fn the_memory_is_bounded_and_frees_itself() {
        let mut replay = Replay::default();
        for number in 0..MAX_REMEMBERED {
            assert_eq!(replay.remember(&proof(&number.to_string(), 1000), 1000), Once::New);
        }
        assert_eq!(replay.remember(&proof("one more", 1000), 1000), Once::Full);
        assert_eq!(replay.remember(&proof("7", 1000), 1000), Once::Replayed);
        assert_eq!(replay.remember(&proof("one more", 1301), 1301), Once::New);
        assert_eq!((replay.seen.len(), replay.expiring.len()), (1, 1));
    }
}
