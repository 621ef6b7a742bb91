//! Tests of bowline-auth through its public API.

mod dpop;
#[cfg(feature = "issuer")]
mod issuer;
mod jose;
mod jwt;
mod merge;
mod responses;
mod token_response;
