//! Tests of bowline-auth through its public API.

mod dpop;
mod jose;
mod jwt;
mod merge;
