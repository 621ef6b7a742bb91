//! Public keys, and the one place where a signature is verified.

use super::{
    Algorithm, decode, encode,
    error::{JoseError, Kind},
};
use ring::{
    digest::{SHA256, digest},
    signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm},
};
use serde_json::{Map, Value};

/// RSA keys are at least this long, in bits (RFC 7518, 3.3).
const MIN_RSA: usize = 2048;
/// RSA keys are at most this long, in bits: verification takes time that grows with the square of it.
const MAX_RSA: usize = 8192;
/// The members of private keys (RFC 7518, 6.2.2, 6.3.2 and 6.4.1).
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// A public key for signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(Material);

/// A key in the form that `ring` takes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Material {
    /// The uncompressed point: `04`, x, y.
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
    /// Big-endian numbers without leading zeros.
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
}

impl PublicKey {
    /// Reads a JWK. Private and symmetric keys are refused.
    pub fn from_jwk(jwk: &Map<String, Value>) -> Result<Self, JoseError> {
        if let Some(name) = PRIVATE.into_iter().find(|name| jwk.contains_key(*name)) {
            return Err(Kind::PrivateKey(name).into());
        }
        let text = |name: &'static str| match jwk.get(name) {
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(_) => Err(Kind::WrongType(name.to_owned())),
            None => Err(Kind::Missing(name)),
        };
        let bytes = |name| decode(text(name)?).ok_or(Kind::NotBase64Url(name));
        let material = match text("kty")? {
            "EC" => match text("crv")? {
                "P-256" => Material::P256(point(32, &bytes("x")?, &bytes("y")?)?),
                "P-384" => Material::P384(point(48, &bytes("x")?, &bytes("y")?)?),
                _ => return Err(Kind::Key("the curve is neither P-256 nor P-384").into()),
            },
            "OKP" => match text("crv")? {
                "Ed25519" => Material::Ed25519(
                    Some(bytes("x")?)
                        .filter(|x| x.len() == 32)
                        .ok_or(Kind::Key("`x` does not have 32 bytes"))?,
                ),
                _ => return Err(Kind::Key("the curve is not Ed25519").into()),
            },
            "RSA" => rsa(&bytes("n")?, &bytes("e")?)?,
            _ => return Err(Kind::Key("`kty` is none of EC, OKP and RSA").into()),
        };
        Ok(Self(material))
    }

    /// Returns whether the key can be used with the algorithm.
    #[must_use]
    pub fn fits(&self, algorithm: Algorithm) -> bool {
        self.scheme(algorithm).is_some()
    }

    /// Verifies a signature.
    pub fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> Result<(), JoseError> {
        let scheme = self.scheme(algorithm).ok_or_else(|| Kind::KeyDoesNotFit(algorithm.name()))?;
        let verified = match scheme {
            Scheme::Curve(parameters, key) => {
                UnparsedPublicKey::new(parameters, key).verify(message, signature)
            }
            Scheme::Rsa(parameters, n, e) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
        };
        verified.map_err(|_| Kind::Signature.into())
    }

    /// Takes the public half of a key pair of `ring`.
    pub(super) fn of_curve(algorithm: Algorithm, key: &[u8]) -> Option<Self> {
        match algorithm {
            Algorithm::Es256 => Some(Self(Material::P256(key.to_vec()))),
            Algorithm::Es384 => Some(Self(Material::P384(key.to_vec()))),
            Algorithm::EdDsa => Some(Self(Material::Ed25519(key.to_vec()))),
            _ => None,
        }
    }

    /// Takes an RSA key by its numbers.
    pub(super) fn of_rsa(modulus: &[u8], exponent: &[u8]) -> Result<Self, JoseError> {
        Ok(Self(rsa(modulus, exponent)?))
    }

    /// Returns the members that make up the key, in the order of their names.
    fn members(&self) -> Vec<(&'static str, String)> {
        let curve = |name: &str, point: &[u8]| {
            let (x, y) = point.get(1..).unwrap_or_default().split_at(point.len() / 2);
            vec![("crv", name.to_owned()), ("kty", "EC".to_owned()), ("x", encode(x)), ("y", encode(y))]
        };
        match &self.0 {
            Material::P256(point) => curve("P-256", point),
            Material::P384(point) => curve("P-384", point),
            Material::Ed25519(key) => {
                vec![("crv", "Ed25519".to_owned()), ("kty", "OKP".to_owned()), ("x", encode(key))]
            }
            Material::Rsa { modulus, exponent } => {
                vec![("e", encode(exponent)), ("kty", "RSA".to_owned()), ("n", encode(modulus))]
            }
        }
    }

    /// Returns the key as a JWK, with the members that it needs and no others.
    #[must_use]
    pub fn to_jwk(&self) -> Map<String, Value> {
        self.members().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }

    /// Returns the SHA-256 thumbprint (RFC 7638), in base64url.
    #[must_use]
    pub fn thumbprint(&self) -> String {
        // The values are names and base64url, which JSON does not escape.
        let members: Vec<String> =
            self.members().into_iter().map(|(name, value)| format!("\"{name}\":\"{value}\"")).collect();
        encode(digest(&SHA256, format!("{{{}}}", members.join(",")).as_bytes()).as_ref())
    }

    /// Returns what `ring` needs to verify. A pair of key and algorithm that is not here is never verified.
    fn scheme(&self, algorithm: Algorithm) -> Option<Scheme<'_>> {
        Some(match (&self.0, algorithm) {
            (Material::P256(key), Algorithm::Es256) => {
                Scheme::Curve(&signature::ECDSA_P256_SHA256_FIXED, key)
            }
            (Material::P384(key), Algorithm::Es384) => {
                Scheme::Curve(&signature::ECDSA_P384_SHA384_FIXED, key)
            }
            (Material::Ed25519(key), Algorithm::EdDsa) => Scheme::Curve(&signature::ED25519, key),
            (Material::Rsa { modulus, exponent }, _) => {
                let parameters = match algorithm {
                    Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
                    Algorithm::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    Algorithm::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    Algorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
                    Algorithm::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
                    Algorithm::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
                    Algorithm::Es256 | Algorithm::Es384 | Algorithm::EdDsa => return None,
                };
                Scheme::Rsa(parameters, modulus, exponent)
            }
            _ => return None,
        })
    }
}

enum Scheme<'a> {
    Curve(&'static dyn VerificationAlgorithm, &'a [u8]),
    Rsa(&'static RsaParameters, &'a [u8], &'a [u8]),
}

/// Builds an uncompressed point. Some issuers drop leading zeros of coordinates; they are added again.
fn point(size: usize, x: &[u8], y: &[u8]) -> Result<Vec<u8>, Kind> {
    let mut point = vec![4];
    for coordinate in [x, y] {
        let missing = size.checked_sub(coordinate.len()).ok_or(Kind::Key("a coordinate is too long"))?;
        if coordinate.is_empty() {
            return Err(Kind::Key("a coordinate is empty"));
        }
        point.resize(point.len() + missing, 0);
        point.extend_from_slice(coordinate);
    }
    Ok(point)
}

fn rsa(n: &[u8], e: &[u8]) -> Result<Material, Kind> {
    let (modulus, exponent) = (without_zeros(n), without_zeros(e));
    let bits = modulus.first().map_or(0, |first| modulus.len() * 8 - first.leading_zeros() as usize);
    if bits < MIN_RSA {
        return Err(Kind::Key("the RSA modulus has fewer than 2048 bits"));
    }
    if bits > MAX_RSA {
        return Err(Kind::Key("the RSA modulus has more than 8192 bits"));
    }
    // An exponent of one signs nothing, and RSA has no even exponents.
    if exponent.len() > 4 || exponent == [1] || exponent.last().is_none_or(|last| last % 2 == 0) {
        return Err(Kind::Key("invalid RSA exponent"));
    }
    Ok(Material::Rsa { modulus: modulus.to_vec(), exponent: exponent.to_vec() })
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}
