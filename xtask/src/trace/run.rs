//! Runs the trace: reads, prints, writes or compares.

use std::fs;
use std::path::Path;

use super::catalog::{self, Catalog};
use super::options::Options;
use super::state::Trace;
use super::{open, proofs, report, waivers};
use crate::finding::Finding;
use crate::{Verdict, files};

/// The page, relative to the root.
const PAGE: &str = "spec/TRACE.md";

/// Shows the figures as well, between these markers.
const README: &str = "README.md";
const BEGIN: &str = "<!-- trace: written by `cargo xtask trace` -->";
const END: &str = "<!-- /trace -->";

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
    if let Some(count) = options.sample {
        return Ok(Outcome { text: report::sample(&trace, count, options.seed), findings });
    }
    let (listed, mistakes) = open::parse(&files::read(&root.join(open::PATH))?, &trace)?;
    findings.extend(mistakes);
    // A page made from wrong claims would hide them.
    if findings.is_empty() || options.check {
        findings.extend(settle(root, PAGE, &report::page(&trace), options)?);
        findings.extend(settle(root, README, &readme(root, &report::levels(&trace))?, options)?);
    }

    let mut paragraphs = vec![report::table(&trace)];
    let unproven = report::unproven(&trace, |row| options.lists(&row.area));
    if !unproven.is_empty() {
        paragraphs.push(format!("open MUST and SHOULD rows:\n{unproven}"));
    }
    findings.extend(open::unlisted(&trace, &listed, |row| options.is_built(&row.area)));
    let sums = trace.sums(|row| row.level.is_mandatory());
    let sentence = format!(
        "{} of {} mandatory rows are proven, {} are waived, {} are open",
        sums.proven, sums.rows, sums.waived, sums.open
    );
    if let Some(least) = options.min_proven.filter(|least| sums.proven < *least) {
        let sentence = format!("{sentence}; at least {least} have to be proven");
        findings.push(Finding::new(catalog::PATH, 1, sentence));
    }
    paragraphs.push(format!("{sentence}\n"));
    findings.sort();
    Ok(Outcome { text: paragraphs.join("\n"), findings })
}

/// Returns `README.md` with the current figures between its two markers.
fn readme(root: &Path, levels: &str) -> Result<String, String> {
    let text = files::read(&root.join(README))?;
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) =
        parts.ok_or_else(|| format!("{README} has no `{BEGIN}` and `{END}` around the figures"))?;
    Ok(format!("{before}{BEGIN}\n{levels}{END}{after}"))
}

/// Writes a file, or says that it is out of date.
fn settle(root: &Path, name: &str, text: &str, options: &Options) -> Result<Option<Finding>, String> {
    let path = root.join(name);
    let is_current = fs::read_to_string(&path).is_ok_and(|found| found == text);
    if is_current {
        return Ok(None);
    }
    if options.check {
        return Ok(Some(Finding::new(name, 1, "the figures are out of date: run `cargo xtask trace`")));
    }
    fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::catalog::tests::text as catalog;
    use super::{BEGIN, END, Options, Outcome, PAGE, trace};
    use crate::files;
    use crate::scratch::Tree;

    const TEST: &str = "// proves: A-1\n#[test]\nfn t() {}\n";
    const NO_WAIVERS: &str = "id\tclass\treason\n";
    const NO_LIST: &str = "id\treason\n";

    fn tree() -> Tree {
        let rows =
            [("A-1", "MUST", "a"), ("A-2", "MUST NOT", "a"), ("A-3", "SHOULD", "a"), ("B-1", "MUST", "b")];
        Tree::new(&[
            ("spec/requirements.tsv", &catalog(&rows)),
            ("spec/waived.tsv", NO_WAIVERS),
            ("spec/open.tsv", NO_LIST),
            ("README.md", &format!("# Name\n\n{BEGIN}\n{END}\nMore.\n")),
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
        let stale = [
            "README.md:1: the figures are out of date: run `cargo xtask trace`",
            "spec/TRACE.md:1: the figures are out of date: run `cargo xtask trace`",
        ];
        assert_eq!(findings(&tree, &["--check"]), stale);
        assert_eq!(findings(&tree, &[]), [""; 0]);
        assert_eq!(findings(&tree, &["--check"]), [""; 0]);
        assert!(
            files::read(&tree.root().join(PAGE))
                .unwrap()
                .contains("| A-1 | MUST | proven | `crates/x/tests/it/main.rs::t` |")
        );

        let readme = files::read(&tree.root().join("README.md")).unwrap();
        assert!(readme.starts_with("# Name\n") && readme.ends_with("<!-- /trace -->\nMore.\n"), "{readme}");
        assert!(readme.contains("\n| MUST, MUST NOT | 3 | 1 | 0 | 2 | 33 % |\n"), "{readme}");

        tree.write("crates/x/tests/it/main.rs", "");
        assert_eq!(findings(&tree, &["--check"]), stale);
    }

    #[test]
    fn a_number_of_proven_rows_is_required() {
        let tree = tree();
        assert_eq!(findings(&tree, &["--min-proven", "1"]), [""; 0]);
        let missed = "spec/requirements.tsv:1: 1 of 3 mandatory rows are proven, 0 are waived, 2 are open; at least 2 have to be proven";
        assert_eq!(findings(&tree, &["--min-proven", "2"]), [missed]);
        tree.write("spec/waived.tsv", &format!("{NO_WAIVERS}A-2\thost\tPolicy.\n"));
        assert_eq!(findings(&tree, &["--min-proven", "2"]).len(), 1, "a waiver proves nothing");
    }

    #[test]
    fn an_open_row_of_an_implemented_area_must_be_listed() {
        let tree = tree();
        let unlisted = "spec/open.tsv:1: `A-2` is open and its area `a` is built: prove it, or list it here with the reason";
        assert_eq!(findings(&tree, &["--built", "a"]), [unlisted]);
        tree.write("spec/open.tsv", &format!("{NO_LIST}A-2\tNot built.\n"));
        assert_eq!(findings(&tree, &["--built", "a"]), [""; 0]);
        assert_eq!(findings(&tree, &["--built", "a,b"]).len(), 1);
        tree.write("spec/open.tsv", &format!("{NO_LIST}A-1\tNot built.\nA-2\t \nA-9\tx\n"));
        assert_eq!(
            findings(&tree, &["--built", "a"]),
            [
                "spec/open.tsv:2: `A-1` is not open: remove it",
                "spec/open.tsv:3: `A-2` has no reason",
                "spec/open.tsv:4: unknown requirement `A-9`",
            ]
        );
    }

    #[test]
    fn unproven_rows_are_listed_for_the_named_areas() {
        let text = run(&tree(), &["--built", "b"]).text;
        assert!(text.contains("\nopen MUST and SHOULD rows:\nB-1  MUST  b: Sentence of B-1.\n\n"), "{text}");
        let text = run(&tree(), &[]).text;
        assert!(text.contains("\nA-3  SHOULD  a: Sentence of A-3.\nB-1  MUST"), "{text}");
    }

    #[test]
    fn wrong_claims_fail_and_do_not_change_the_page() {
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
