//! The test kit, tested: that it passes what is right and fails what is wrong.

mod crash;
mod fault;
#[cfg(feature = "http")]
mod http;
mod peer;
mod sim;
mod traced;
mod transcript;
