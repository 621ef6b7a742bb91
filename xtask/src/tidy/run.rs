//! Collects what all rules of `tidy` have to say, and prints it.

use std::path::Path;

use super::{book, direction, length, manifests, security, sources, web};
use crate::finding::Finding;
use crate::workspace::{self, Package};
use crate::{Verdict, files};

pub(crate) fn run(root: &Path) -> Result<Verdict, String> {
    let report = inspect(root, &workspace::packages(root)?)?;
    for note in &report.notes {
        println!("note: {note}");
    }
    for finding in &report.findings {
        println!("{finding}");
    }
    println!("tidy: {} files, {} findings", report.files, report.findings.len());
    Ok(Verdict::of(report.findings.is_empty()))
}

struct Report {
    files: usize,
    findings: Vec<Finding>,
    notes: Vec<Finding>,
}

fn inspect(root: &Path, packages: &[Package]) -> Result<Report, String> {
    let mut findings = direction::findings(packages);
    findings.extend(manifests::findings(root, packages)?);
    findings.extend(security::findings(root)?);
    findings.extend(book::findings(root)?);
    findings.extend(web::findings(root)?);

    let mut crates = files::below(root, &["crates"], "rs")?;
    findings.extend(sources::findings(&crates));

    crates.extend(files::below(root, &["tests", "xtask"], "rs")?);
    let (too_long, notes) = length::findings(&crates);
    findings.extend(too_long);
    findings.sort();
    Ok(Report { files: crates.len(), findings, notes })
}

#[cfg(test)]
mod tests {
    use super::inspect;
    use crate::scratch::Tree;
    use crate::workspace::{Dependency, Kind, Package};

    const WORKSPACE: &str = "[workspace.lints.rust]\nunsafe_code = \"forbid\"\n";

    fn package(name: &str, dependencies: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            manifest: format!("crates/{name}/Cargo.toml"),
            dependencies: dependencies
                .iter()
                .map(|name| Dependency { name: (*name).to_owned(), kind: Kind::Normal })
                .collect(),
            features: Vec::new(),
            is_published_library: true,
        }
    }

    #[test]
    fn a_tidy_tree_has_no_findings() {
        let tree = Tree::new(&[
            ("Cargo.toml", WORKSPACE),
            ("crates/bowline-types/Cargo.toml", "[lints]\nworkspace = true\n"),
            ("crates/bowline-types/src/lib.rs", "//! Words.\n"),
        ]);
        let report = inspect(tree.root(), &[package("bowline-types", &["serde"])]).unwrap();
        assert_eq!(report.findings, []);
        assert_eq!(report.files, 1);
    }

    #[test]
    fn every_rule_is_asked() {
        let long = format!("//! Long.\n{}", "//\n".repeat(1_300));
        let tree = Tree::new(&[
            ("Cargo.toml", WORKSPACE),
            ("crates/bowline-types/Cargo.toml", "[package]\n"),
            ("crates/bowline-types/src/lib.rs", "fn f() {\n    todo!()\n}\n"),
            ("crates/bowline-types/src/long.rs", &long),
            ("crates/bowline-types/src/longish.rs", &long[..2_200]),
        ]);
        let report = inspect(tree.root(), &[package("bowline-types", &["bowline-proto", "tokio"])]).unwrap();
        let lines: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        let starts = [
            "crates/bowline-types/Cargo.toml:1: `bowline-types` must not depend on `tokio`",
            "crates/bowline-types/Cargo.toml:1: expected `[lints]` with `workspace = true`",
            "crates/bowline-types/src/lib.rs:1: the first line",
            "crates/bowline-types/src/lib.rs:2: `todo!`",
            "crates/bowline-types/src/long.rs:1201: 1301 lines",
        ];
        assert_eq!(lines.len(), starts.len(), "{lines:#?}");
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start), "{line}");
        }
        assert_eq!(report.notes.len(), 1);
        assert!(report.notes[0].to_string().starts_with("crates/bowline-types/src/longish.rs:601: "));
    }
}
