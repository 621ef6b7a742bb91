//! The host: many servers as one, under one policy.

pub mod search;
pub mod telemetry;
