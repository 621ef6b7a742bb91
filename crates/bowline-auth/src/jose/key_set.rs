//! Reads a set of public keys (JWKS, RFC 7517, 5) and finds the key of a token in it.

use super::{
    Algorithm, PublicKey,
    error::{JoseError, Kind, shown},
    json,
};
use serde_json::{Map, Value};

/// A key set is at most this long, in bytes.
pub const MAX_KEY_SET: usize = 256 * 1024;
/// A key set has at most this many keys.
pub const MAX_KEYS: usize = 100;

/// The public keys of an issuer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySet {
    keys: Vec<Key>,
    skipped: Vec<JoseError>,
}

/// A key with what its issuer says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    kid: Option<String>,
    algorithm: Option<Algorithm>,
    public: PublicKey,
}

/// The result of [`KeySet::find`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// The only key that fits.
    Key(&'a PublicKey),
    /// No key has this `kid`, or none fits a token without `kid`. A newer set may have it.
    Unknown,
    /// The key is there, but it is for another algorithm.
    Unfit,
    /// Several keys fit.
    Ambiguous,
}

impl<'a> Found<'a> {
    /// Returns the key, if exactly one fits.
    #[must_use]
    pub fn key(self) -> Option<&'a PublicKey> {
        match self {
            Self::Key(key) => Some(key),
            Self::Unknown | Self::Unfit | Self::Ambiguous => None,
        }
    }
}

impl KeySet {
    /// Reads a set. Keys of unknown types, for other uses, or with unusable values are skipped (RFC 7517, 5).
    pub fn parse(text: &[u8]) -> Result<Self, JoseError> {
        if text.len() > MAX_KEY_SET {
            return Err(Kind::KeySetTooLong(MAX_KEY_SET).into());
        }
        let document = json::object("key set", text)?;
        let entries = match document.get("keys") {
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err(Kind::WrongType("keys".to_owned()).into()),
            None => return Err(Kind::Missing("keys").into()),
        };
        if entries.len() > MAX_KEYS {
            return Err(Kind::TooManyKeys(MAX_KEYS).into());
        }
        let mut set = Self::default();
        for entry in entries {
            match Key::parse(entry) {
                Ok(key) => set.keys.push(key),
                Err(error) => set.skipped.push(error),
            }
        }
        Ok(set)
    }

    /// Creates a set of one key.
    #[must_use]
    pub fn of(kid: Option<&str>, key: PublicKey) -> Self {
        let key = Key { kid: kid.map(str::to_owned), algorithm: None, public: key };
        Self { keys: vec![key], skipped: Vec::new() }
    }

    /// Returns the key for a token with this header. A token without `kid` needs a set in which exactly one key fits.
    #[must_use]
    pub fn find(&self, algorithm: Algorithm, kid: Option<&str>) -> Found<'_> {
        let mut named = self.keys.iter().filter(|key| kid.is_none() || key.kid.as_deref() == kid).peekable();
        if named.peek().is_none() {
            return Found::Unknown;
        }
        let mut fitting = named.filter(|key| key.fits(algorithm));
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Found::Key(&key.public),
            (Some(_), Some(_)) => Found::Ambiguous,
            // Without a name, a newer set may have a key that fits.
            (None, _) if kid.is_none() => Found::Unknown,
            (None, _) => Found::Unfit,
        }
    }

    /// Returns the number of usable keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether no key is usable.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns why keys were skipped, one reason per key.
    #[must_use]
    pub fn skipped(&self) -> &[JoseError] {
        &self.skipped
    }
}

impl Key {
    fn parse(entry: &Value) -> Result<Self, JoseError> {
        let Value::Object(jwk) = entry else { return Err(Kind::Key("it is not an object").into()) };
        check_use(jwk)?;
        let algorithm = match text(jwk, "alg")? {
            Some(name) => Some(Algorithm::parse(name).ok_or_else(|| Kind::Algorithm(shown(name)))?),
            None => None,
        };
        let key =
            Self { kid: text(jwk, "kid")?.map(str::to_owned), algorithm, public: PublicKey::from_jwk(jwk)? };
        match algorithm {
            Some(algorithm) if !key.fits(algorithm) => Err(Kind::KeyDoesNotFit(algorithm.name()).into()),
            _ => Ok(key),
        }
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        self.algorithm.is_none_or(|own| own == algorithm) && self.public.fits(algorithm)
    }
}

/// Checks that the issuer published the key for the verification of signatures (RFC 7517, 4.2 and 4.3).
fn check_use(jwk: &Map<String, Value>) -> Result<(), JoseError> {
    if let Some(purpose) = text(jwk, "use")?.filter(|purpose| *purpose != "sig") {
        return Err(Kind::KeyUse(shown(purpose)).into());
    }
    match jwk.get("key_ops") {
        None => Ok(()),
        Some(Value::Array(operations)) if operations.iter().any(|operation| operation == "verify") => Ok(()),
        Some(Value::Array(_)) => Err(Kind::Key("`key_ops` does not contain `verify`").into()),
        Some(_) => Err(Kind::WrongType("key_ops".to_owned()).into()),
    }
}

fn text<'a>(jwk: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, JoseError> {
    match jwk.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Kind::WrongType(name.to_owned()).into()),
    }
}
