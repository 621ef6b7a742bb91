//! Reads and verifies a signed token in compact form (RFC 7515, 7.1).

use super::{
    Algorithm, PublicKey, decode,
    error::{JoseError, Kind, shown},
    json,
};
use serde_json::{Map, Value};

/// A token is at most this long, in bytes.
pub const MAX_TOKEN: usize = 16 * 1024;

/// A token whose signature is not verified yet.
#[derive(Debug)]
pub struct Jws<'a> {
    header: Header,
    /// Header and payload as they were sent: what is signed.
    signed: &'a str,
    payload: Vec<u8>,
    signature: Vec<u8>,
}

/// The protected header of a token.
#[derive(Clone, Debug)]
pub struct Header {
    algorithm: Algorithm,
    members: Map<String, Value>,
}

impl<'a> Jws<'a> {
    /// Reads a token. Nothing is verified yet.
    pub fn parse(token: &'a str) -> Result<Self, JoseError> {
        if token.len() > MAX_TOKEN {
            return Err(Kind::TokenTooLong(MAX_TOKEN).into());
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(Kind::NotThreeParts)?;
        let (header, payload) = signed.split_once('.').ok_or(Kind::NotThreeParts)?;
        if payload.contains('.') {
            return Err(Kind::NotThreeParts.into());
        }
        let header = Header::parse(&decode(header).ok_or(Kind::NotBase64Url("header"))?)?;
        let payload = decode(payload).ok_or(Kind::NotBase64Url("payload"))?;
        let signature = decode(signature).ok_or(Kind::NotBase64Url("signature"))?;
        Ok(Self { header, signed, payload, signature })
    }

    /// Returns the header. It is not verified.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the payload. It is not verified: use it to choose a key and to refuse early, for nothing else.
    #[must_use]
    pub fn unverified_payload(&self) -> &[u8] {
        &self.payload
    }

    /// Verifies the signature and returns the payload.
    pub fn verify(&self, key: &PublicKey) -> Result<&[u8], JoseError> {
        key.verify(self.header.algorithm, self.signed.as_bytes(), &self.signature)?;
        Ok(&self.payload)
    }
}

impl Header {
    fn parse(text: &[u8]) -> Result<Self, JoseError> {
        let members = json::object("header", text)?;
        // An extension that must be understood. None is, also not `b64` (RFC 7797).
        if members.contains_key("crit") {
            return Err(Kind::Critical.into());
        }
        for name in ["typ", "kid"] {
            if members.get(name).is_some_and(|value| !value.is_string()) {
                return Err(Kind::WrongType(name.to_owned()).into());
            }
        }
        let name = match members.get("alg") {
            Some(Value::String(name)) => name,
            Some(_) => return Err(Kind::WrongType("alg".to_owned()).into()),
            None => return Err(Kind::Missing("alg").into()),
        };
        let algorithm = Algorithm::parse(name).ok_or_else(|| Kind::Algorithm(shown(name)))?;
        Ok(Self { algorithm, members })
    }

    /// Returns the algorithm of the signature.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the key that the token names.
    #[must_use]
    pub fn kid(&self) -> Option<&str> {
        self.members.get("kid").and_then(Value::as_str)
    }

    /// Returns the media type of the whole token, as it was sent.
    #[must_use]
    pub fn typ(&self) -> Option<&str> {
        self.members.get("typ").and_then(Value::as_str)
    }

    /// Returns whether `typ` names one of these media types, in any case, with or without `application/` (RFC 7515, 4.1.9).
    #[must_use]
    pub fn has_type(&self, types: &[&str]) -> bool {
        self.typ().is_some_and(|typ| {
            let short = typ.get(..12).filter(|prefix| prefix.eq_ignore_ascii_case("application/"));
            let short = short.and_then(|_| typ.get(12..)).unwrap_or(typ);
            types.iter().any(|known| known.eq_ignore_ascii_case(short))
        })
    }

    /// Returns any member of the header.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }
}
