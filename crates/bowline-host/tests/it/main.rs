//! The host as its users meet it.
#![expect(
    clippy::needless_raw_string_hashes,
    reason = "snapshots are written by a tool that always puts them"
)]

mod aside;
mod bridge;
mod catalog;
mod channel;
mod collector;
mod custom;
mod fairness;
mod gateway;
#[cfg(target_os = "linux")]
mod lifecycle;
mod news;
mod policy_guard;
mod policy_terminal;
mod sampling;
mod search;
mod spelling;
mod task_hosted;
mod task_listen;
mod task_matrix;
mod task_questions;
mod task_records;
mod task_script;
mod tasks;
mod telemetry;
mod upstreams;
mod visits;
mod wired;
