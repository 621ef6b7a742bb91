//! The mandatory requirements of built areas that are known to be open: `spec/open.tsv`.

use std::collections::BTreeSet;

use super::catalog::{Requirement, table};
use super::state::{State, Trace};
use crate::finding::Finding;

/// The path of the list, relative to the root.
pub(super) const PATH: &str = "spec/open.tsv";

const HEADER: [&str; 2] = ["id", "reason"];

/// Reads the text of the file into the ids it lists.
pub(super) fn parse(text: &str, trace: &Trace<'_>) -> Result<(BTreeSet<String>, Vec<Finding>), String> {
    let mut ids = BTreeSet::new();
    let mut findings = Vec::new();
    for (line, columns) in table(text, PATH, &HEADER)? {
        let [id, reason] = columns[..] else {
            unreachable!("`table` gives as many columns as the header has")
        };
        let problem = match trace.rows().find(|(row, _)| row.id == id) {
            None => Some(format!("unknown requirement `{id}`")),
            Some((_, State::Proven(_) | State::Waived(_))) => Some(format!("`{id}` is not open: remove it")),
            Some((_, State::Open)) if reason.trim().is_empty() => Some(format!("`{id}` has no reason")),
            Some((_, State::Open)) => None,
        };
        findings.extend(problem.map(|sentence| Finding::new(PATH, line, sentence)));
        ids.insert(id.to_owned());
    }
    Ok((ids, findings))
}

/// Returns the open mandatory rows that `is_built` picks and nobody listed.
pub(super) fn unlisted(
    trace: &Trace<'_>,
    listed: &BTreeSet<String>,
    is_built: impl Fn(&Requirement) -> bool,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (row, state) in trace.rows() {
        let is_open = *state == State::Open && row.level.is_mandatory();
        if is_open && is_built(row) && !listed.contains(&row.id) {
            let sentence = format!(
                "`{}` is open and its area `{}` is built: prove it, or list it here with the reason",
                row.id, row.area
            );
            findings.push(Finding::new(PATH, 1, sentence));
        }
    }
    findings
}
