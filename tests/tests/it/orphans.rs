//! A host as a process of its own: nothing that it started outlives it, however it ends.

use std::process::Command;

/// Long enough for a busy machine. Two seconds are held by `orphans/run`, which has one to itself.
const SECONDS: &str = "30";

#[test]
fn no_process_of_a_server_outlives_its_host() {
    // V-72
    let output = Command::new(env!("CARGO_BIN_EXE_orphans")).args(["5", "1", SECONDS]).output();
    let output = output.expect("the program can be started");
    let (told, complaint) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}{complaint}");
    assert!(told.ends_with("5 passed, 0 failed\n"), "{told}{complaint}");
}
