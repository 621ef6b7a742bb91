//! Tests of bowline-auth through its public API.

mod jose;
mod jwt;
