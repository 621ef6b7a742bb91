//! Why a token, a key or a key set is refused.

use std::fmt;

/// Why a token, a key or a key set is refused. The text never contains the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoseError(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    TokenTooLong(usize),
    NotThreeParts,
    NotBase64Url(&'static str),
    NotObject(&'static str, String),
    Missing(&'static str),
    WrongType(String),
    Critical,
    Algorithm(String),
    KeyDoesNotFit(&'static str),
    Signature,
    KeySetTooLong(usize),
    TooManyKeys(usize),
    Key(&'static str),
    KeyUse(String),
    PrivateKey(&'static str),
    SigningKey(&'static str),
}

impl From<Kind> for JoseError {
    fn from(kind: Kind) -> Self {
        Self(kind)
    }
}

impl JoseError {
    /// Returns whether the token is well-formed, but its signature does not fit.
    #[must_use]
    pub fn is_signature(&self) -> bool {
        self.0 == Kind::Signature
    }
}

/// At most this many characters of a peer's value are shown.
const SHOWN: usize = 40;

/// Shortens a value of a peer for an error message and drops what cannot be printed.
pub(crate) fn shown(value: &str) -> String {
    value.chars().take(SHOWN).map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect()
}

impl fmt::Display for JoseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::TokenTooLong(limit) => write!(f, "the token is longer than {limit} bytes"),
            Kind::NotThreeParts => f.write_str("the token does not have three parts"),
            Kind::NotBase64Url(part) => write!(f, "the {part} is not base64url without padding"),
            Kind::NotObject(part, reason) => write!(f, "the {part} is not a valid JSON object: {reason}"),
            Kind::Missing(name) => write!(f, "`{name}` is missing"),
            Kind::WrongType(name) => write!(f, "`{name}` has the wrong type"),
            Kind::Critical => {
                f.write_str("the token has critical extensions (`crit`), and none is supported")
            }
            Kind::Algorithm(name) => write!(f, "the algorithm `{name}` is not accepted"),
            Kind::KeyDoesNotFit(name) => write!(f, "the key cannot be used with the algorithm `{name}`"),
            Kind::Signature => f.write_str("the signature is not valid"),
            Kind::KeySetTooLong(limit) => write!(f, "the key set is longer than {limit} bytes"),
            Kind::TooManyKeys(limit) => write!(f, "the key set has more than {limit} keys"),
            Kind::Key(reason) => write!(f, "the key is not usable: {reason}"),
            Kind::KeyUse(purpose) => write!(f, "the key is for `{purpose}`, not for signatures"),
            Kind::PrivateKey(name) => write!(f, "the key contains the private member `{name}`"),
            Kind::SigningKey(reason) => write!(f, "cannot use the private key: {reason}"),
        }
    }
}

impl std::error::Error for JoseError {}
