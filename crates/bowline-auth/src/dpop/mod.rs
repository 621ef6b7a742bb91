//! DPoP (RFC 9449): tokens that are bound to a key, and the proofs that the sender has it.

mod nonce;
mod nonce_issuer;
mod proof;
mod replay;
mod verify;

pub use nonce::Nonces;
pub use nonce_issuer::{NONCE_LIFETIME, NonceIssuer};
pub use proof::Proof;
pub use replay::{
    MAX_PER_KEY, MAX_PER_KEY_WITH_NONCE, MAX_REMEMBERED, MAX_REMEMBERED_WITH_NONCE, Once, Replay,
};
pub use verify::{ProofError, ProofRequest, VerifiedProof, verify_proof};

/// The type of a proof.
const TYPE: &str = "dpop+jwt";

/// Returns the value of `ath`: the SHA-256 digest of an access token, in base64url.
fn token_digest(token: &str) -> String {
    crate::jose::encode(ring::digest::digest(&ring::digest::SHA256, token.as_bytes()).as_ref())
}
