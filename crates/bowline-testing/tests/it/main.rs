//! The test kit, tested: that it passes what is right and fails what is wrong.

mod peer;
mod transcript;
