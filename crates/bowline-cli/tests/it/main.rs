//! Runs the program like its users do.
#![expect(clippy::needless_raw_string_hashes, reason = "snapshots are written with hashes, needed or not")]

mod book;
mod calling;
mod completing;
mod config;
#[cfg(unix)]
mod connect;
#[cfg(unix)]
mod consent;
#[cfg(unix)]
mod dev_login;
#[cfg(unix)]
mod doctor;
#[cfg(unix)]
mod inbox;
#[cfg(unix)]
mod inspector;
#[cfg(unix)]
mod issuer;
#[cfg(unix)]
mod login;
#[cfg(unix)]
mod login_secrets;
mod looking;
mod place;
mod proxy;
#[cfg(unix)]
mod pty;
#[cfg(unix)]
mod record;
#[cfg(unix)]
mod rules;
#[cfg(unix)]
mod serving;
#[cfg(unix)]
mod shells;
mod store;
#[cfg(unix)]
mod tasks;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod terminal_picture;
#[cfg(unix)]
mod up;

use std::process::{Command, Stdio};

/// Returns the program without a home directory, a terminal and the environment of the caller, so that it cannot find gateways of
/// this machine.
pub(crate) fn program(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
    command.args(words).env_clear().env("TMPDIR", env!("CARGO_TARGET_TMPDIR")).stdin(Stdio::null());
    command
}

#[test]
fn a_server_that_cannot_be_started_is_named() {
    let output = program(&["ping", "--", "/no/such/program"]).output().expect("the program can be started");
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/program"));
}
