//! Private keys, and the one place where a signature is made.

use super::{
    Algorithm, PublicKey, decode, encode,
    error::{JoseError, Kind},
};
use crate::Secret;
use ring::{
    rand::SystemRandom,
    rsa::PublicKeyComponents,
    signature::{
        self, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RsaEncoding, RsaKeyPair,
    },
};
use rustls_pki_types::{PrivatePkcs8KeyDer, pem::PemObject as _};
use serde_json::{Map, Value};
use std::fmt;
use zeroize::Zeroizing;

/// A private key that signs tokens.
///
/// ECDSA signatures and new keys need random bytes, and `ring` takes them only from the system. This type is the one place in
/// the crate that does so.
///
/// ```
/// use bowline_auth::jose::{Jws, SigningKey};
/// use serde_json::json;
///
/// let key = SigningKey::generate_es256()?;
/// let token = key.sign(json!({ "typ": "JWT" }), json!({ "sub": "ada" }))?;
/// assert_eq!(Jws::parse(&token)?.verify(key.public())?, br#"{"sub":"ada"}"#);
/// # Ok::<(), bowline_auth::jose::JoseError>(())
/// ```
pub struct SigningKey {
    pair: Pair,
    algorithm: Algorithm,
    public: PublicKey,
    pkcs8: Zeroizing<Vec<u8>>,
}

enum Pair {
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

impl SigningKey {
    /// Makes a new key for ES256.
    pub fn generate_es256() -> Result<Self, JoseError> {
        let pkcs8 =
            EcdsaKeyPair::generate_pkcs8(&signature::ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        Self::from_pkcs8(pkcs8.map_err(|_| no_random())?.as_ref())
    }

    /// Makes a new key for EdDSA with Ed25519.
    pub fn generate_ed25519() -> Result<Self, JoseError> {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        Self::from_pkcs8(pkcs8.map_err(|_| no_random())?.as_ref())
    }

    /// Reads a key from PEM text with a section `PRIVATE KEY` (PKCS #8), as `openssl genpkey` writes it.
    pub fn from_pem(pem: &str) -> Result<Self, JoseError> {
        let key = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| {
            Kind::SigningKey(
                "the PEM text has no section `PRIVATE KEY`; convert it with `openssl pkcs8 -topk8 -nocrypt`",
            )
        })?;
        Self::from_pkcs8(key.secret_pkcs8_der())
    }

    /// Reads a key in PKCS #8: P-256, P-384, Ed25519 or RSA with at least 2048 bits.
    ///
    /// An elliptic curve key must contain its public key, which `openssl` writes. RSA keys sign with RS256 unless
    /// [`with_algorithm`](Self::with_algorithm) says otherwise.
    pub fn from_pkcs8(pkcs8: &[u8]) -> Result<Self, JoseError> {
        let random = SystemRandom::new();
        let ecdsa =
            |algorithm: &'static EcdsaSigningAlgorithm| EcdsaKeyPair::from_pkcs8(algorithm, pkcs8, &random);
        let (pair, algorithm, public) = if let Ok(pair) = ecdsa(&signature::ECDSA_P256_SHA256_FIXED_SIGNING) {
            let public = PublicKey::of_curve(Algorithm::Es256, pair.public_key().as_ref());
            (Pair::Ecdsa(pair), Algorithm::Es256, public)
        } else if let Ok(pair) = ecdsa(&signature::ECDSA_P384_SHA384_FIXED_SIGNING) {
            let public = PublicKey::of_curve(Algorithm::Es384, pair.public_key().as_ref());
            (Pair::Ecdsa(pair), Algorithm::Es384, public)
        } else if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8) {
            let public = PublicKey::of_curve(Algorithm::EdDsa, pair.public_key().as_ref());
            (Pair::Ed25519(pair), Algorithm::EdDsa, public)
        } else if let Ok(pair) = RsaKeyPair::from_pkcs8(pkcs8) {
            let numbers: PublicKeyComponents<Vec<u8>> = pair.public().into();
            let public = PublicKey::of_rsa(&numbers.n, &numbers.e)?;
            (Pair::Rsa(pair), Algorithm::Rs256, Some(public))
        } else {
            return Err(
                Kind::SigningKey("it is not a P-256, P-384, Ed25519 or RSA key that can be used").into()
            );
        };
        let public = public.ok_or(Kind::SigningKey("it has no public key"))?;
        Ok(Self { pair, algorithm, public, pkcs8: Zeroizing::new(pkcs8.to_vec()) })
    }

    /// Signs with another algorithm that fits the key: any of RS256 to PS512 for RSA.
    pub fn with_algorithm(mut self, algorithm: Algorithm) -> Result<Self, JoseError> {
        if !self.public.fits(algorithm) {
            return Err(Kind::KeyDoesNotFit(algorithm.name()).into());
        }
        self.algorithm = algorithm;
        Ok(self)
    }

    /// Returns the algorithm of the signatures.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Returns the private key in PKCS #8, to be stored.
    #[must_use]
    pub fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// Returns the private key as text, for a store: PKCS #8 in base64url.
    #[must_use]
    pub fn to_secret(&self) -> Secret {
        Secret::new(encode(&self.pkcs8))
    }

    /// Reads what [`to_secret`](Self::to_secret) wrote.
    pub fn from_secret(secret: &Secret) -> Result<Self, JoseError> {
        let pkcs8 = decode(secret.expose()).map(Zeroizing::new);
        Self::from_pkcs8(&pkcs8.ok_or(Kind::SigningKey("it is not base64url"))?)
    }

    /// Signs a token. `alg` is added to the header.
    ///
    /// Fails if the header is not an object, or if the system has no random bytes.
    pub fn sign(&self, header: Value, payload: impl Into<Value>) -> Result<String, JoseError> {
        let Value::Object(header) = header else { return Err(Kind::WrongType("header".to_owned()).into()) };
        let mut all = Map::new();
        all.insert("alg".to_owned(), self.algorithm.name().into());
        all.extend(header.into_iter().filter(|(name, _)| name != "alg"));
        let payload = payload.into().to_string();
        let mut token =
            format!("{}.{}", encode(Value::Object(all).to_string().as_bytes()), encode(payload.as_bytes()));
        let signature = self.signature(token.as_bytes())?;
        token.push('.');
        token.push_str(&encode(&signature));
        Ok(token)
    }

    fn signature(&self, message: &[u8]) -> Result<Vec<u8>, JoseError> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Ecdsa(pair) => pair
                .sign(&random, message)
                .map(|signature| signature.as_ref().to_vec())
                .map_err(|_| no_random()),
            Pair::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(self.encoding()?, &random, message, &mut signature).map_err(|_| no_random())?;
                Ok(signature)
            }
        }
    }

    fn encoding(&self) -> Result<&'static dyn RsaEncoding, JoseError> {
        Ok(match self.algorithm {
            Algorithm::Rs256 => &signature::RSA_PKCS1_SHA256,
            Algorithm::Rs384 => &signature::RSA_PKCS1_SHA384,
            Algorithm::Rs512 => &signature::RSA_PKCS1_SHA512,
            Algorithm::Ps256 => &signature::RSA_PSS_SHA256,
            Algorithm::Ps384 => &signature::RSA_PSS_SHA384,
            Algorithm::Ps512 => &signature::RSA_PSS_SHA512,
            Algorithm::Es256 | Algorithm::Es384 | Algorithm::EdDsa => {
                return Err(Kind::KeyDoesNotFit(self.algorithm.name()).into());
            }
        })
    }
}

fn no_random() -> JoseError {
    Kind::SigningKey("the system has no random bytes").into()
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({}, ***)", self.algorithm)
    }
}
