//! How the snapshots of all revisions are taken.

use std::fmt::Write as _;

use bowline_types::{Adapt, Revision};
use expect_test::Expect;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a value and writes it for every revision, one line each; equal neighbors share a line.
#[expect(clippy::needless_pass_by_value, reason = "that is how snapshots are written at the call")]
pub(crate) fn check<T: Adapt + Serialize + DeserializeOwned>(json: &str, expected: Expect) {
    let mut lines: Vec<(String, String)> = Vec::new();
    for revision in Revision::ALL {
        let mut value: T = serde_json::from_str(json).unwrap();
        value.adapt(revision);
        let once = serde_json::to_string(&value).unwrap();
        value.adapt(revision);
        assert_eq!(serde_json::to_string(&value).unwrap(), once, "adapting twice changes nothing more");
        match lines.last_mut() {
            Some((revisions, text)) if *text == once => write!(revisions, " {revision}").unwrap(),
            _ => lines.push((revision.to_string(), once)),
        }
    }
    let shown: Vec<String> =
        lines.iter().map(|(revisions, text)| format!("{revisions}\n  {text}\n")).collect();
    expected.assert_eq(&shown.concat());
}
