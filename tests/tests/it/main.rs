//! The integration tests of the workspace.

mod badinput;
mod badservers;
mod connections;
mod faults;
mod features;
mod independent;
mod matrix;
mod oracle;
#[cfg(target_os = "linux")]
mod orphans;
mod security;
mod signals;
mod transcripts;

use bowline_testing::Oracle;

/// The official schemas, or a notice that they are not there.
fn oracle_or_notice() -> Option<Oracle> {
    let oracle = Oracle::find(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    if oracle.is_none() {
        #[expect(clippy::print_stderr, reason = "a test that checks less has to say so")]
        {
            eprintln!(
                "the official schemas are not there, so nothing is held against them; set BOWLINE_SPEC"
            );
        }
    }
    oracle
}
