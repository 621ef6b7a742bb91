//! Runs the trace: reads, prints, writes or compares.

use std::fs;
use std::path::Path;

use super::catalog::{self, Catalog};
use super::options::Options;
use super::state::Trace;
use super::{proofs, report, waivers};
use crate::finding::Finding;
use crate::{Verdict, files};

/// The page, relative to the root.
const PAGE: &str = "spec/TRACE.md";

pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<Verdict, String> {
    let outcome = trace(root, &Options::parse(arguments)?)?;
    println!("{}", outcome.text);
    for finding in &outcome.findings {
        println!("{finding}");
    }
    println!("trace: {} findings", outcome.findings.len());
    Ok(Verdict::of(outcome.findings.is_empty()))
}

struct Outcome {
    text: String,
    findings: Vec<Finding>,
}

fn trace(root: &Path, options: &Options) -> Result<Outcome, String> {
    let catalog = Catalog::parse(&files::read(&root.join(catalog::PATH))?)?;
    options.check_areas(&catalog)?;
    let (waivers, mut findings) = waivers::parse(&files::read(&root.join(waivers::PATH))?, &catalog)?;
    let claims = proofs::collect(root)?;
    findings.extend(claims.findings);
    let (trace, contradictions) = Trace::new(&catalog, &claims.proofs, &waivers);
    findings.extend(contradictions);
    // A page made from wrong claims would hide them.
    if findings.is_empty() || options.check {
        findings.extend(settle(root, &report::page(&trace), options)?);
    }

    let mut paragraphs = vec![report::table(&trace)];
    let unproven = report::unproven(&trace, |row| options.looks_at(&row.area));
    if !unproven.is_empty() {
        paragraphs.push(format!("unproven MUST and MUST NOT rows of {}:\n{unproven}", options.scope()));
    }
    if let Some(required) = options.require {
        let sums = trace.sums(|row| row.level.is_mandatory() && options.looks_at(&row.area));
        let (proven, provable) = (sums.proven, sums.provable());
        let sentence = format!(
            "{proven} of {provable} provable MUST and MUST NOT rows of {} are proven, {required} % are required",
            options.scope()
        );
        if proven * 100 < required * provable {
            findings.push(Finding::new(catalog::PATH, 1, sentence));
        } else {
            paragraphs.push(format!("{sentence}\n"));
        }
    }
    findings.sort();
    Ok(Outcome { text: paragraphs.join("\n"), findings })
}

/// Writes the page, or says that it is out of date.
fn settle(root: &Path, page: &str, options: &Options) -> Result<Option<Finding>, String> {
    let path = root.join(PAGE);
    let is_current = fs::read_to_string(&path).is_ok_and(|found| found == page);
    if is_current {
        return Ok(None);
    }
    if options.check {
        return Ok(Some(Finding::new(PAGE, 1, "the page is out of date: run `cargo xtask trace`")));
    }
    fs::write(&path, page).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::catalog::tests::text as catalog;
    use super::{Options, Outcome, PAGE, trace};
    use crate::files;
    use crate::scratch::Tree;

    const TEST: &str = "// proves: A-1\n#[test]\nfn t() {}\n";
    const NO_WAIVERS: &str = "id\tclass\treason\n";

    fn tree() -> Tree {
        let rows =
            [("A-1", "MUST", "a"), ("A-2", "MUST NOT", "a"), ("A-3", "SHOULD", "a"), ("B-1", "MUST", "b")];
        Tree::new(&[
            ("spec/requirements.tsv", &catalog(&rows)),
            ("spec/waived.tsv", NO_WAIVERS),
            ("crates/x/tests/it/main.rs", TEST),
        ])
    }

    fn run(tree: &Tree, arguments: &[&str]) -> Outcome {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        trace(tree.root(), &Options::parse(&arguments).unwrap()).unwrap()
    }

    fn findings(tree: &Tree, arguments: &[&str]) -> Vec<String> {
        run(tree, arguments).findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_page_is_written_and_then_compared() {
        let tree = tree();
        let stale = ["spec/TRACE.md:1: the page is out of date: run `cargo xtask trace`"];
        assert_eq!(findings(&tree, &["--check"]), stale);
        assert_eq!(findings(&tree, &[]), [""; 0]);
        assert_eq!(findings(&tree, &["--check"]), [""; 0]);
        assert!(
            files::read(&tree.root().join(PAGE))
                .unwrap()
                .contains("| A-1 | MUST | proven | `crates/x/tests/it/main.rs::t` |")
        );

        tree.write("crates/x/tests/it/main.rs", "");
        assert_eq!(findings(&tree, &["--check"]), stale);
    }

    #[test]
    fn a_share_is_required_of_the_named_areas() {
        let tree = tree();
        assert_eq!(findings(&tree, &["--require", "50", "--areas", "a"]), [""; 0]);
        let missed = "spec/requirements.tsv:1: 1 of 2 provable MUST and MUST NOT rows of 1 area are proven, 51 % are required";
        assert_eq!(findings(&tree, &["--require", "51", "--areas", "a"]), [missed]);
        assert_eq!(findings(&tree, &["--require", "34"]).len(), 1);
        assert_eq!(findings(&tree, &["--require", "33"]), [""; 0]);

        tree.write(
            "spec/waived.tsv",
            &format!("{NO_WAIVERS}A-2\thost\tPolicy.\nB-1\tnot-emitted\tNever sent.\n"),
        );
        assert_eq!(findings(&tree, &["--require", "100", "--areas", "a"]), [""; 0]);
        assert_eq!(findings(&tree, &["--require", "51", "--areas", "a,b"]).len(), 1);
    }

    #[test]
    fn unproven_rows_are_listed_for_the_named_areas() {
        let text = run(&tree(), &["--areas", "b"]).text;
        assert!(
            text.ends_with("\nunproven MUST and MUST NOT rows of 1 area:\nB-1  MUST  b: Sentence of B-1.\n"),
            "{text}"
        );
    }

    #[test]
    fn wrong_claims_fail_and_leave_the_page_alone() {
        let tree = tree();
        tree.write("spec/waived.tsv", &format!("{NO_WAIVERS}A-1\thost\tPolicy.\n"));
        tree.write("tests/transcripts/a.txtar", "proves: A-4\n-- client --\n");
        assert_eq!(
            findings(&tree, &[]),
            [
                "spec/waived.tsv:2: `A-1` is proven by crates/x/tests/it/main.rs::t: remove the waiver",
                "tests/transcripts/a.txtar:1: unknown requirement `A-4`",
            ]
        );
        assert!(!tree.root().join(PAGE).exists());
    }
}
