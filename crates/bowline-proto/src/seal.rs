//! Seals and signs state that clients carry.
//!
//! A server without sessions sends its state to the client and gets it back later, perhaps on another node.
//! [`KeyRing::seal`] encrypts and authenticates such a state and binds it to a context, so that it cannot be opened
//! in another. [`KeyRing::tag`] only authenticates a value. Random bytes are arguments.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::{digest as hash, hkdf, hmac};

const VERSION: u8 = 1;
const KEY_ID_LENGTH: usize = 4;
const SALT_LENGTH: usize = 20;
const RANDOM_LENGTH: usize = 32;
const HEAD_LENGTH: usize = 1 + KEY_ID_LENGTH;
/// Version, key id, random bytes and authentication tag.
const OVERHEAD: usize = HEAD_LENGTH + RANDOM_LENGTH + 16;

type KeyId = [u8; KEY_ID_LENGTH];

/// A secret of 32 random bytes from which all keys in use are derived.
#[derive(Clone)]
pub struct Key {
    id: KeyId,
    /// Derives one key for each sealed blob.
    secret: [u8; 32],
    /// Signs tags.
    mac: hmac::Key,
}

impl Key {
    /// Creates a key from a secret, which must come from a cryptographic random source.
    pub fn new(secret: [u8; 32]) -> Self {
        let named = digest(&[b"bowline key id", &secret]);
        let mut id = KeyId::default();
        for (to, from) in id.iter_mut().zip(named) {
            *to = from;
        }
        let mac = derive(&secret, b"", b"bowline tag v1");
        Self { id, secret, mac: hmac::Key::new(hmac::HMAC_SHA256, &mac) }
    }

    fn cipher(&self, salt: &[u8]) -> LessSafeKey {
        let subkey = derive(&self.secret, salt, b"bowline seal v1");
        let unbound = UnboundKey::new(&CHACHA20_POLY1305, &subkey)
            .expect("the derived key has the length of the cipher's");
        LessSafeKey::new(unbound)
    }

    /// Returns the full signature. A tag is its prefix.
    fn sign(&self, context: &[u8], data: &[u8]) -> hmac::Tag {
        let mut signing = hmac::Context::with_key(&self.mac);
        for part in [context, data] {
            signing.update(&length_prefix(part));
            signing.update(part);
        }
        signing.sign()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(***)")
    }
}

/// The keys of a server: one that seals, and former ones that can still open.
///
/// ```
/// use bowline_proto::seal::{Key, KeyRing};
///
/// let keys = KeyRing::new(Key::new([7; 32]));
/// let sealed = keys.seal(&[1; 32], b"tools/call for ann", b"state");
/// assert_eq!(keys.open(b"tools/call for ann", &sealed, 1024)?, b"state");
/// assert!(keys.open(b"tools/call for bob", &sealed, 1024).is_err());
/// # Ok::<(), bowline_proto::seal::SealError>(())
/// ```
#[derive(Debug, Clone)]
pub struct KeyRing {
    current: Key,
    previous: Vec<Key>,
}

impl KeyRing {
    /// Creates a ring with the key that seals.
    pub fn new(current: Key) -> Self {
        Self { current, previous: Vec::new() }
    }

    /// Adds a former key, so that what it sealed can still be opened.
    #[must_use]
    pub fn with_previous(mut self, key: Key) -> Self {
        self.previous.push(key);
        self
    }

    /// Returns the key that seals.
    pub fn current(&self) -> &Key {
        &self.current
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.current).chain(&self.previous)
    }

    /// Encrypts `plain` and binds it to `context`, which is not part of the result.
    ///
    /// `random` must be fresh from a cryptographic random source for every call. The result has
    /// [`sealed_len`] characters of base64url.
    pub fn seal(&self, random: &[u8; 32], context: &[u8], plain: &[u8]) -> String {
        let (salt, nonce) = split_random(random);
        let mut sealed = Vec::with_capacity(OVERHEAD + plain.len());
        sealed.push(VERSION);
        sealed.extend_from_slice(&self.current.id);
        let associated = associated_data(&sealed, context);
        sealed.extend_from_slice(random);

        let mut body = plain.to_vec();
        self.current
            .cipher(salt)
            .seal_in_place_append_tag(nonce, Aad::from(associated), &mut body)
            .expect("what fits into memory is within the cipher's limit of 256 GiB");
        sealed.extend_from_slice(&body);
        URL_SAFE_NO_PAD.encode(sealed)
    }

    /// Opens the result of [`KeyRing::seal`], with any key of the ring.
    ///
    /// A `sealed` text of more than `max_len` characters is [`SealError::Malformed`].
    pub fn open(&self, context: &[u8], sealed: &str, max_len: usize) -> Result<Vec<u8>, SealError> {
        if sealed.len() > max_len {
            return Err(SealError::Malformed);
        }
        let bytes = URL_SAFE_NO_PAD.decode(sealed).map_err(|_| SealError::Malformed)?;
        if bytes.len() < OVERHEAD {
            return Err(SealError::Malformed);
        }
        let (head, rest) = bytes.split_first_chunk::<HEAD_LENGTH>().ok_or(SealError::Malformed)?;
        let (random, body) = rest.split_first_chunk::<RANDOM_LENGTH>().ok_or(SealError::Malformed)?;
        let [VERSION, id @ ..] = head else {
            return Err(SealError::Malformed);
        };

        let mut outcome = Err(SealError::UnknownKey);
        // Two keys may share an id.
        for key in self.keys().filter(|key| key.id == *id) {
            let (salt, nonce) = split_random(random);
            let mut body = body.to_vec();
            let opened =
                key.cipher(salt).open_in_place(nonce, Aad::from(associated_data(head, context)), &mut body);
            match opened {
                Ok(plain) => return Ok(plain.to_vec()),
                Err(_) => outcome = Err(SealError::Forged),
            }
        }
        outcome
    }

    /// Returns a short signature of `data` and `context`, made with the current key.
    pub fn tag(&self, context: &[u8], data: &[u8]) -> [u8; 16] {
        truncate(&self.current.sign(context, data))
    }

    /// Returns whether a key of the ring made this tag, in constant time.
    pub fn verify_tag(&self, context: &[u8], data: &[u8], tag: &[u8; 16]) -> bool {
        self.keys().any(|key| {
            // Comparing signatures of the two tags reveals nothing about where the tags themselves differ.
            let expected = truncate(&key.sign(context, data));
            let received = hmac::sign(&key.mac, tag);
            hmac::verify(&key.mac, &expected, received.as_ref()).is_ok()
        })
    }
}

/// Returns the length of the result of [`KeyRing::seal`] for `plain_len` bytes.
pub fn sealed_len(plain_len: usize) -> usize {
    let bytes = plain_len.saturating_add(OVERHEAD);
    (bytes / 3).saturating_mul(4).saturating_add([0, 2, 3][bytes % 3])
}

/// Why a sealed text cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SealError {
    /// It has the wrong format or is too long.
    Malformed,
    /// Its key is not in the ring.
    UnknownKey,
    /// It was altered or sealed for another context.
    Forged,
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "not a sealed value",
            Self::UnknownKey => "sealed with an unknown key",
            Self::Forged => "altered, or sealed for another context",
        })
    }
}

impl std::error::Error for SealError {}

/// Returns the SHA-256 digest of several parts. Each counts with its length, so different lists have different digests.
pub fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hashing = hash::Context::new(&hash::SHA256);
    for part in parts {
        hashing.update(&length_prefix(part));
        hashing.update(part);
    }
    hashing.finish().as_ref().try_into().expect("a sha-256 digest has 32 bytes")
}

fn length_prefix(part: &[u8]) -> [u8; 8] {
    u64::try_from(part.len()).expect("a length fits 64 bits").to_be_bytes()
}

fn truncate(tag: &hmac::Tag) -> [u8; 16] {
    *tag.as_ref().first_chunk().expect("a sha-256 signature has 32 bytes")
}

fn derive(secret: &[u8; 32], salt: &[u8], info: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    hkdf::Salt::new(hkdf::HKDF_SHA256, salt)
        .extract(secret)
        .expand(&[info], hkdf::HKDF_SHA256)
        .and_then(|expanded| expanded.fill(&mut key))
        .expect("one block is within the limit of the derivation");
    key
}

/// The salt of the derivation, and the nonce of the cipher.
fn split_random(random: &[u8; RANDOM_LENGTH]) -> (&[u8], Nonce) {
    let (salt, nonce) = random.split_at(SALT_LENGTH);
    let nonce = Nonce::try_assume_unique_for_key(nonce).expect("12 of 32 bytes remain behind the salt");
    (salt, nonce)
}

/// Joins the header and the data. The header has a fixed length, so the result is unambiguous.
fn associated_data(head: &[u8], context: &[u8]) -> Vec<u8> {
    [head, context].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAX: usize = 4096;
    const RANDOM: [u8; 32] = [9; 32];

    fn ring(secret: u8) -> KeyRing {
        KeyRing::new(Key::new([secret; 32]))
    }

    #[test]
    fn the_format_is_fixed() {
        let sealed = ring(7).seal(&RANDOM, b"context", b"plain");
        assert_eq!(sealed, "AQrLvjQJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCb1KrgI2QVhNryaIzFp-4ypiPlQLTw");
        assert_eq!(sealed.len(), sealed_len(5));
        let tag = URL_SAFE_NO_PAD.encode(ring(7).tag(b"context", b"plain"));
        assert_eq!(tag, "lFLXEClHq60CgHoIvYBDMA");
    }

    #[test]
    fn a_blob_opens_in_its_context_only() {
        let sealed = ring(7).seal(&RANDOM, b"ann", b"state");
        assert_eq!(ring(7).open(b"ann", &sealed, MAX), Ok(b"state".to_vec()));
        assert_eq!(ring(7).open(b"bob", &sealed, MAX), Err(SealError::Forged));
        assert_eq!(ring(7).open(b"", &sealed, MAX), Err(SealError::Forged));
    }

    #[test]
    fn former_keys_open_and_the_current_key_seals() {
        let before = ring(1);
        let after = ring(2).with_previous(Key::new([1; 32]));
        let (old, new) = (before.seal(&RANDOM, b"", b"old"), after.seal(&RANDOM, b"", b"new"));
        assert_eq!(after.open(b"", &old, MAX), Ok(b"old".to_vec()));
        assert_eq!(after.open(b"", &new, MAX), Ok(b"new".to_vec()));
        assert_eq!(before.open(b"", &new, MAX), Err(SealError::UnknownKey));

        let tag = before.tag(b"c", b"d");
        assert!(after.verify_tag(b"c", b"d", &tag));
        assert!(!ring(2).verify_tag(b"c", b"d", &tag));
        assert_ne!(after.tag(b"c", b"d"), tag);
    }

    #[test]
    fn keys_that_share_an_id_are_both_tried() {
        let mut twin = Key::new([1; 32]);
        twin.id = Key::new([2; 32]).id;
        let sealed = ring(2).seal(&RANDOM, b"", b"x");
        assert_eq!(KeyRing::new(twin.clone()).open(b"", &sealed, MAX), Err(SealError::Forged));
        let both = KeyRing::new(twin).with_previous(Key::new([2; 32]));
        assert_eq!(both.open(b"", &sealed, MAX), Ok(b"x".to_vec()));
    }

    #[test]
    fn every_altered_bit_is_noticed() {
        let keys = ring(7);
        let bytes = URL_SAFE_NO_PAD.decode(keys.seal(&RANDOM, b"c", b"plain")).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut altered = bytes.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            let expected = match bit / 8 {
                0 => SealError::Malformed,
                1..HEAD_LENGTH => SealError::UnknownKey,
                _ => SealError::Forged,
            };
            assert_eq!(keys.open(b"c", &URL_SAFE_NO_PAD.encode(altered), MAX), Err(expected), "bit {bit}");
        }
    }

    #[test]
    fn every_altered_character_is_noticed() {
        let keys = ring(7);
        // 58 bytes leave unused bits in the last character, which must be zero.
        let sealed = keys.seal(&RANDOM, b"c", b"plain");
        for index in 0..sealed.len() {
            for character in "ABCDwxyz0189-_=+/ ".chars() {
                let mut altered = sealed.clone();
                altered.replace_range(index..=index, &character.to_string());
                assert_eq!(keys.open(b"c", &altered, MAX).is_ok(), altered == sealed);
            }
        }
        for end in 0..sealed.len() {
            assert!(keys.open(b"c", &sealed[..end], MAX).is_err());
        }
        for suffix in ["A", "AAAA", "=", "==", " ", "-TAMPERED"] {
            assert!(keys.open(b"c", &format!("{sealed}{suffix}"), MAX).is_err());
        }
    }

    #[test]
    fn too_long_or_too_short_values_are_malformed() {
        let sealed = ring(7).seal(&RANDOM, b"", b"");
        assert_eq!(ring(7).open(b"", &sealed, sealed.len()), Ok(Vec::new()));
        assert_eq!(ring(7).open(b"", &sealed, sealed.len() - 1), Err(SealError::Malformed));
        assert_eq!(ring(7).open(b"", "", MAX), Err(SealError::Malformed));
        assert_eq!(ring(7).open(b"", "AQ", MAX), Err(SealError::Malformed));
        assert_eq!(ring(7).open(b"", "\u{e9}", MAX), Err(SealError::Malformed));
    }

    #[test]
    fn secrets_are_not_printed() {
        let keys = ring(7).with_previous(Key::new([8; 32]));
        assert_eq!(format!("{keys:?}"), "KeyRing { current: Key(***), previous: [Key(***)] }");
    }

    #[test]
    fn tags_bind_context_and_data_apart() {
        let keys = ring(7);
        let tag = keys.tag(b"ab", b"c");
        assert!(keys.verify_tag(b"ab", b"c", &tag));
        assert!(!keys.verify_tag(b"a", b"bc", &tag));
        assert!(!keys.verify_tag(b"abc", b"", &tag));
        for bit in 0..128 {
            let mut altered = tag;
            altered[bit / 8] ^= 1 << (bit % 8);
            assert!(!keys.verify_tag(b"ab", b"c", &altered));
        }
    }

    #[test]
    fn digests_distinguish_parts() {
        let lists: [&[&[u8]]; 7] =
            [&[], &[b""], &[b"", b""], &[b"ab"], &[b"a", b"b"], &[b"ab", b""], &[b"", b"ab"]];
        for (index, one) in lists.iter().enumerate() {
            for other in &lists[index + 1..] {
                assert_ne!(digest(one), digest(other), "{one:?} {other:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn opening_undoes_sealing(
            secret in any::<[u8; 32]>(),
            random in any::<[u8; 32]>(),
            context in prop::collection::vec(any::<u8>(), 0..20),
            plain in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let keys = KeyRing::new(Key::new(secret));
            let sealed = keys.seal(&random, &context, &plain);
            prop_assert_eq!(sealed.len(), sealed_len(plain.len()));
            prop_assert_eq!(keys.open(&context, &sealed, MAX), Ok(plain));
        }

        #[test]
        fn any_text_is_refused_without_panic(text in "[A-Za-z0-9_-]{0,120}|.{0,40}") {
            prop_assert!(ring(7).open(b"", &text, MAX).is_err());
        }
    }
}
