//! Whether every package takes the lints of the workspace, and the workspace forbids unsafe code.

use std::path::Path;

use crate::files;
use crate::finding::Finding;
use crate::workspace::Package;

const WORKSPACE: &str = "Cargo.toml";

pub(super) fn findings(root: &Path, packages: &[Package]) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    if !forbids_unsafe_code(&files::read(&root.join(WORKSPACE))?) {
        let sentence = "expected `unsafe_code = \"forbid\"` in `[workspace.lints.rust]`";
        findings.push(Finding::new(WORKSPACE, 1, sentence));
    }
    for package in packages {
        if !takes_workspace_lints(&files::read(&root.join(&package.manifest))?) {
            findings.push(Finding::new(&package.manifest, 1, "expected `[lints]` with `workspace = true`"));
        }
    }
    Ok(findings)
}

fn forbids_unsafe_code(manifest: &str) -> bool {
    settings(manifest).any(|(table, key, value)| {
        table == "workspace.lints.rust" && key == "unsafe_code" && value.contains("\"forbid\"")
    })
}

fn takes_workspace_lints(manifest: &str) -> bool {
    settings(manifest)
        .any(|setting| matches!(setting, ("lints", "workspace", "true") | ("", "lints.workspace", "true")))
}

/// Returns the one-line settings of a manifest as table, key and value, which is all that these rules need of TOML.
fn settings(manifest: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let mut table = "";
    manifest.lines().filter_map(move |line| {
        let line = line.split_once('#').map_or(line, |(before, _)| before).trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            table = name.trim();
            return None;
        }
        let (key, value) = line.split_once('=')?;
        Some((table, key.trim(), value.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::{forbids_unsafe_code, takes_workspace_lints};

    #[test]
    fn workspace_lints_must_be_inherited() {
        assert!(takes_workspace_lints(
            "[package]\nname = \"a\"\n\n[lints] # all of them\nworkspace = true\n"
        ));
        assert!(takes_workspace_lints("lints.workspace = true\n"));
        assert!(!takes_workspace_lints("[package]\nedition.workspace = true\n"));
        assert!(!takes_workspace_lints("[lints]\n# workspace = true\n"));
        assert!(!takes_workspace_lints("[lints]\n[dependencies]\nworkspace = true\n"));
    }

    #[test]
    fn unsafe_code_must_be_forbidden() {
        assert!(forbids_unsafe_code("[workspace.lints.rust]\nunsafe_code = \"forbid\"\n"));
        assert!(forbids_unsafe_code(
            "[workspace.lints.rust]\nunsafe_code = { level = \"forbid\", priority = 1 }\n"
        ));
        assert!(!forbids_unsafe_code("[workspace.lints.rust]\nunsafe_code = \"deny\"\n"));
        assert!(!forbids_unsafe_code("[workspace.lints.clippy]\nunsafe_code = \"forbid\"\n"));
    }
}
