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

/// The official schemas: their structure in `spec/schema`, or the files below `BOWLINE_SPEC`.
fn oracle() -> Oracle {
    Oracle::find(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .expect("spec/schema, or the folder that BOWLINE_SPEC names, has the schemas of all revisions")
}
