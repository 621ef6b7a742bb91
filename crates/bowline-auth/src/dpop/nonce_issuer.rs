//! The nonces that a resource server issues.

use crate::jose::{decode, encode};
use bowline_proto::seal::KeyRing;

/// How long a nonce is valid, in seconds.
pub const NONCE_LIFETIME: u64 = 60;

/// Separates nonces from everything else that the keys sign.
const CONTEXT: &[u8] = b"dpop nonce";
/// The length of a time, in bytes.
const TIME: usize = 8;
/// The length of a signature, in bytes.
const TAG: usize = 16;

/// Issues and checks nonces. A nonce is a signed time, so every process with the same keys can check it.
#[derive(Clone, Debug)]
pub struct NonceIssuer {
    keys: KeyRing,
}

impl NonceIssuer {
    /// Signs nonces with `keys`.
    #[must_use]
    pub fn new(keys: KeyRing) -> Self {
        Self { keys }
    }

    /// Returns a nonce for the header `DPoP-Nonce`. `now` is in seconds since the Unix epoch.
    #[must_use]
    pub fn issue(&self, now: u64) -> String {
        let time = now.to_be_bytes();
        let mut nonce = [0; TIME + TAG];
        nonce[..TIME].copy_from_slice(&time);
        nonce[TIME..].copy_from_slice(&self.keys.tag(CONTEXT, &time));
        encode(&nonce)
    }

    /// Returns when a nonce was issued. `None` if it is not one of ours or is not valid at `now`.
    #[must_use]
    pub fn check(&self, nonce: &str, now: u64) -> Option<u64> {
        // Text that is too long is not decoded.
        let bytes = (nonce.len() <= 2 * (TIME + TAG)).then(|| decode(nonce)).flatten()?;
        let (time, tag) = bytes.split_first_chunk::<TIME>()?;
        let tag: &[u8; TAG] = tag.try_into().ok()?;
        if !self.keys.verify_tag(CONTEXT, time, tag) {
            return None;
        }
        let issued = u64::from_be_bytes(*time);
        (issued.abs_diff(now) <= NONCE_LIFETIME).then_some(issued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_proto::seal::Key;

    const NOW: u64 = 1_900_000_000;

    fn issuer(key: u8) -> NonceIssuer {
        NonceIssuer::new(KeyRing::new(Key::new([key; 32])))
    }

    #[test]
    fn a_nonce_is_valid_for_a_minute_in_every_process_with_the_key() {
        let nonce = issuer(7).issue(NOW);
        for (now, issued) in [(NOW, Some(NOW)), (NOW + 60, Some(NOW)), (NOW + 61, None), (NOW - 61, None)] {
            assert_eq!(issuer(7).check(&nonce, now), issued, "{now}");
        }
        assert_eq!(issuer(8).check(&nonce, NOW), None);
        let rotated = KeyRing::new(Key::new([8; 32])).with_previous(Key::new([7; 32]));
        assert_eq!(NonceIssuer::new(rotated).check(&nonce, NOW), Some(NOW));
    }

    #[test]
    fn a_forged_nonce_is_not_valid() {
        let nonce = issuer(7).issue(NOW);
        let later = issuer(7).issue(NOW + 50);
        let spliced = format!("{}{}", &later[..11], &nonce[11..]);
        for forged in
            ["", "AAAA", &nonce[..nonce.len() - 1], &format!("{nonce}A"), &spliced, &"A".repeat(10_000)]
        {
            assert_eq!(issuer(7).check(forged, NOW), None, "{forged:.40}");
        }
    }
}
