//! Stores that are opened by their URL.

#[cfg(feature = "sqlite")]
mod rekey;
