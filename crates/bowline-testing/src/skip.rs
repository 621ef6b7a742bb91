//! Tests that cannot run on this machine say so.

use std::{io::Write as _, thread};

/// Says that the running test checks nothing, and why.
///
/// The line begins with `skipped:` and goes to standard error past the capturing of the test harness, so that a script can
/// count what a run left out.
pub fn skip(reason: &str) {
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    // One write, so that lines of tests that run at the same time do not mix.
    let line = format!("\nskipped: {test}: {reason}\n");
    // A closed standard error is no reason for a test to fail.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
