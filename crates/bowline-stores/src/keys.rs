//! Reads keys from text.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bowline_proto::seal::{Key, KeyRing};

/// Why a text is not a key. It never shows the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidKey {
    /// No key was given.
    Missing,
    /// The key in this place, counted from 1, is not 32 bytes in base64 or hexadecimal digits.
    Malformed(usize),
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("no key; make one with `openssl rand -base64 32`"),
            Self::Malformed(place) => write!(
                f,
                "key {place} is not 32 bytes in base64 or hexadecimal digits; make one with `openssl rand -base64 32`"
            ),
        }
    }
}

impl std::error::Error for InvalidKey {}

/// Reads keys: the first seals, all open. Each is 32 random bytes in base64 or in hexadecimal digits.
///
/// ```
/// let keys = bowline_stores::key_ring(["q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA="])?;
/// assert!(bowline_stores::key_ring(["secret"]).is_err());
/// # Ok::<(), bowline_stores::InvalidKey>(())
/// ```
pub fn key_ring<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<KeyRing, InvalidKey> {
    let mut ring: Option<KeyRing> = None;
    for (index, text) in texts.into_iter().enumerate() {
        let key = key(text.as_ref()).ok_or(InvalidKey::Malformed(index + 1))?;
        ring = Some(match ring {
            None => KeyRing::new(key),
            Some(ring) => ring.with_previous(key),
        });
    }
    ring.ok_or(InvalidKey::Missing)
}

fn key(text: &str) -> Option<Key> {
    let text = text.trim();
    let bytes = if text.len() == 64 { digits(text)? } else { base64(text.trim_end_matches('='))? };
    Some(Key::new(bytes.try_into().ok()?))
}

fn base64(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).or_else(|_| STANDARD_NO_PAD.decode(text)).ok()
}

fn digits(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    Some(digits?.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::{InvalidKey, key_ring};

    #[test]
    fn one_key_has_several_spellings() {
        let spellings = [
            "+/++/++/++/++/++/++/++/++/++/++/++/++/++/+8=",
            "-_--_--_--_--_--_--_--_--_--_--_--_--_--_-8",
            "fbffbeffefbffbeffefbffbeffefbffbeffefbffbeffefbffbeffefbffbeffef",
        ];
        let sealed = key_ring([spellings[0]]).unwrap().seal(&[3; 32], b"context", b"plain");
        for spelling in spellings {
            assert_eq!(
                key_ring([spelling]).unwrap().open(b"context", &sealed, 100).unwrap(),
                b"plain",
                "{spelling}"
            );
        }
    }

    #[test]
    fn the_first_key_seals_and_all_open() {
        let (old, new) = ("00".repeat(32), "11".repeat(32));
        let before = key_ring([&old]).unwrap().seal(&[3; 32], b"", b"plain");
        let both = key_ring([&new, &old]).unwrap();
        assert!(both.open(b"", &before, 100).is_ok());
        let after = both.seal(&[3; 32], b"", b"plain");
        assert!(key_ring([&old]).unwrap().open(b"", &after, 100).is_err());
        assert!(key_ring([&new]).unwrap().open(b"", &after, 100).is_ok());
    }

    #[test]
    fn a_wrong_key_is_named_by_its_place() {
        let right = "00".repeat(32);
        assert_eq!(key_ring([right.as_str(), "canary"]).unwrap_err(), InvalidKey::Malformed(2));
        assert!(!key_ring(["canary"]).unwrap_err().to_string().contains("canary"));
        assert_eq!(key_ring([""; 0]).unwrap_err(), InvalidKey::Missing);
        assert_eq!(key_ring(["zz".repeat(32)]).unwrap_err(), InvalidKey::Malformed(1));
        assert_eq!(key_ring(["é".repeat(32)]).unwrap_err(), InvalidKey::Malformed(1));
    }
}
