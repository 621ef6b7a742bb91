//! Seals stored records with a key that is kept elsewhere, such as in the keyring of the system.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bowline_auth::{Error, Secret};
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    rand::{SecureRandom, SystemRandom},
};
use std::{fmt, sync::Arc};

/// A key of 32 bytes that seals records (AES-256-GCM). Clones share it.
///
/// Entries of system keyrings are too small for the tokens of some authorization servers. The keyring therefore holds this key,
/// and the records stay in files.
#[derive(Clone)]
pub struct SealingKey(Arc<LessSafeKey>);

impl SealingKey {
    /// The length of a key in bytes.
    pub const LENGTH: usize = 32;

    /// Takes a key that was stored before.
    pub fn new(bytes: &[u8; Self::LENGTH]) -> Result<Self, Error> {
        let key = UnboundKey::new(&AES_256_GCM, bytes).map_err(|_| Error::store("the key is not usable"))?;
        Ok(Self(Arc::new(LessSafeKey::new(key))))
    }

    /// Returns random bytes for a new key.
    pub fn generate() -> Result<[u8; Self::LENGTH], Error> {
        let mut bytes = [0; Self::LENGTH];
        fill(&mut bytes)?;
        Ok(bytes)
    }

    /// Seals a text. `context` has to be the same when it is opened.
    pub(super) fn seal(&self, context: &str, text: &Secret) -> Result<String, Error> {
        let mut nonce = [0; NONCE_LEN];
        fill(&mut nonce)?;
        let mut sealed = text.expose().as_bytes().to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        self.0
            .seal_in_place_append_tag(unique, Aad::from(context.as_bytes()), &mut sealed)
            .map_err(|_| Error::store("cannot encrypt the login"))?;
        let mut whole = nonce.to_vec();
        whole.append(&mut sealed);
        Ok(URL_SAFE_NO_PAD.encode(whole))
    }

    /// Opens a text. `None` if it was sealed with another key or for another context, or was changed.
    pub(super) fn open(&self, context: &str, sealed: &str) -> Option<Secret> {
        let whole = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = whole.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut bytes = sealed.to_vec();
        let opened = self.0.open_in_place(nonce, Aad::from(context.as_bytes()), &mut bytes).ok()?;
        String::from_utf8(opened.to_vec()).ok().map(Secret::new)
    }
}

/// The key is not printed.
impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey")
    }
}

fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    SystemRandom::new().fill(bytes).map_err(|_| Error::unavailable("no random numbers are available"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_text_opens_only_with_its_key_and_context() {
        let key = SealingKey::new(&[1; 32]).unwrap();
        let sealed = key.seal("a", &"canary".into()).unwrap();
        assert_eq!(key.open("a", &sealed).unwrap().expose(), "canary");
        assert_ne!(key.seal("a", &"canary".into()).unwrap(), sealed, "every nonce is new");
        assert!(key.open("b", &sealed).is_none());
        assert!(SealingKey::new(&[2; 32]).unwrap().open("a", &sealed).is_none());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert!(key.open("a", &String::from_utf8(changed).unwrap()).is_none(), "{at}");
        }
        for text in ["", "A", "====", &sealed[..8]] {
            assert!(key.open("a", text).is_none(), "{text}");
        }
        assert_eq!(SealingKey::generate().unwrap().len(), 32);
        assert!(!format!("{key:?}").contains('1'));
    }
}
