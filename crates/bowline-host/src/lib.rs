//! The host: many servers as one, under one policy.

pub mod audit;
pub mod config;
pub mod policy;
pub mod sampling;
