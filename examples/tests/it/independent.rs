//! The smallest server, before a client that shares nothing with it.

use std::{io::ErrorKind, process::Command};

#[test]
fn an_independent_client_finds_nothing_wrong_with_hello() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/independent/client.py");
    let mut command = Command::new("python3");
    command.args(["-B", script, "hello", env!("CARGO_BIN_EXE_hello")]);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bowline_testing::skip("the program `python3` is not installed");
            return;
        }
        Err(error) => panic!("python3 cannot be started: {error}"),
    };
    let told = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}{complaint}");
    assert!(told.ends_with("checks hold\n"), "{told}{complaint}");
}
