//! Reports tests that cannot run on this machine.

use std::{io::Write as _, thread};

/// Reports that the running test is skipped, and why.
///
/// The line starts with `skipped:` and is written to standard error, which the test harness does not capture here.
/// Scripts count these lines.
pub fn skip(reason: &str) {
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    // A single write keeps the lines of concurrent tests apart.
    let line = format!("\nskipped: {test}: {reason}\n");
    // A closed standard error must not fail the test.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
