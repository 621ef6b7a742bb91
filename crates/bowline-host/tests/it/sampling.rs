//! Servers that sample, and providers that answer them over HTTP in their own formats.

#![expect(clippy::needless_raw_string_hashes, reason = "snapshots are written with hashes, needed or not")]

mod answers;
mod failures;
mod limits;
mod requests;
mod secrets;
pub(crate) mod site;
