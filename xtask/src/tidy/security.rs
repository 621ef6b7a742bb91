//! Whether the page on security and the tests it names agree.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::Path;

use crate::files::{self, TextFile};
use crate::finding::Finding;
use crate::rust::{Outline, Source};

/// The page.
const PAGE: &str = "docs/SECURITY.md";
/// Where the tests are that it names without a file.
const SUITE: &str = "tests/tests/it/security";
/// The threats that tests of other files bear in a comment: processes, what reaches the model, and gateways.
const MARKED: [RangeInclusive<u32>; 3] = [70..=74, 100..=105, 110..=113];

/// Tests that the page names and that are not there, tests of the suite that it does not name, and threats whose rows do not
/// name just the tests that are marked with them.
pub(super) fn findings(root: &Path) -> Result<Vec<Finding>, String> {
    let suite = tests_of(&files::below(root, &[SUITE], "rs")?);
    let mut page = files::below(root, &["docs"], "md")?;
    page.retain(|file| file.path == PAGE);
    let Some(page) = page.pop() else {
        let missing = (!suite.is_empty()).then(|| Finding::new(PAGE, 1, "the page is missing"));
        return Ok(missing.into_iter().collect());
    };

    let mut findings = Vec::new();
    let mut named = BTreeSet::new();
    for (line, text) in (1..).zip(page.text.lines()) {
        for name in text.split('`').skip(1).step_by(2) {
            let known = match name.split_once("::") {
                Some((path, test)) if Path::new(path).extension().is_some_and(|found| found == "rs") => {
                    has_test(root, path, test)?
                }
                _ if is_of_the_suite(name) => {
                    named.insert(name.to_owned());
                    suite.iter().any(|(_, test)| test == name)
                }
                _ => continue,
            };
            if !known {
                findings.push(Finding::new(PAGE, line, format!("there is no test `{name}`")));
            }
        }
    }
    for (path, test) in suite {
        if !named.contains(&test) {
            findings.push(Finding::new(path, 1, format!("{PAGE} does not name `{test}`")));
        }
    }
    findings.extend(unlike_marks(&page.text, &marks_of(&files::below(root, &["crates", "tests"], "rs")?)));
    Ok(findings)
}

/// A test that is marked with a threat.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    threat: u32,
    /// File and name, as the page has it.
    test: String,
}

/// Returns where rows of the page and marks of tests differ.
fn unlike_marks(page: &str, marks: &BTreeSet<Mark>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut rows = BTreeSet::new();
    let mut named = BTreeSet::new();
    for (line, text) in (1..).zip(page.lines()) {
        let Some(threat) = text.strip_prefix("| **V-").and_then(|rest| rest.split("**").next()?.parse().ok())
        else {
            continue;
        };
        if !is_marked(threat) {
            continue;
        }
        rows.insert(threat);
        for name in text.split('`').skip(1).step_by(2).filter(|name| name.contains(".rs::")) {
            let mark = Mark { threat, test: name.to_owned() };
            if !marks.contains(&mark) {
                findings.push(Finding::new(PAGE, line, format!("`{name}` is not marked with V-{threat}")));
            }
            named.insert(mark);
        }
    }
    for Mark { threat, test } in marks.difference(&named) {
        let path = test.split("::").next().unwrap_or_default();
        findings.push(Finding::new(path, 1, format!("{PAGE} does not name `{test}` at V-{threat}")));
    }
    if !marks.is_empty() {
        let missing = MARKED.into_iter().flatten().filter(|threat| !rows.contains(threat));
        findings
            .extend(missing.map(|threat| Finding::new(PAGE, 1, format!("there is no row for V-{threat}"))));
        let tested: BTreeSet<_> = named.iter().map(|mark| mark.threat).collect();
        let untested = rows.difference(&tested);
        findings.extend(untested.map(|threat| Finding::new(PAGE, 1, format!("no test for V-{threat}"))));
    }
    findings
}

fn is_marked(threat: u32) -> bool {
    MARKED.iter().any(|range| range.contains(&threat))
}

/// Returns the marks in comments of tests, such as `// V-70`.
fn marks_of(files: &[TextFile]) -> BTreeSet<Mark> {
    let mut marks = BTreeSet::new();
    for file in files.iter().filter(|file| file.text.contains("V-")) {
        let functions = Outline::new(&Source::new(&file.text)).functions;
        for (number, line) in (1..).zip(file.text.lines()) {
            let Some((_, comment)) = line.split_once("// ").filter(|(_, comment)| comment.contains("V-"))
            else {
                continue;
            };
            let mut within = functions.iter().filter(|function| function.lines.contains(&number));
            let Some(test) = within.next_back().filter(|function| function.is_test && !function.is_ignored)
            else {
                continue;
            };
            for words in comment.split("V-").skip(1) {
                let digits: String = words.chars().take_while(char::is_ascii_digit).collect();
                if let Some(threat) = digits.parse().ok().filter(|threat| is_marked(*threat)) {
                    marks.insert(Mark { threat, test: format!("{}::{}", file.path, test.name) });
                }
            }
        }
    }
    marks
}

/// Returns whether a name is that of a test of the suite: `v`, the number of a threat, and what it shows.
fn is_of_the_suite(name: &str) -> bool {
    let number = name.strip_prefix('v').and_then(|rest| rest.split_once('_')).map(|(number, _)| number);
    number.is_some_and(|number| number.len() >= 2 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn has_test(root: &Path, path: &str, test: &str) -> Result<bool, String> {
    let file = root.join(path);
    if !file.is_file() {
        return Ok(false);
    }
    let file = TextFile { path: path.to_owned(), text: files::read(&file)? };
    Ok(tests_of(&[file]).iter().any(|(_, known)| known == test))
}

/// Returns the tests of files, each with its file.
fn tests_of(files: &[TextFile]) -> Vec<(String, String)> {
    let tests = files.iter().flat_map(|file| {
        let functions = Outline::new(&Source::new(&file.text)).functions;
        let tests = functions.into_iter().filter(|function| function.is_test && !function.is_ignored);
        tests.map(|function| (file.path.clone(), function.name))
    });
    tests.collect()
}

#[cfg(test)]
mod tests {
    use super::findings;
    use crate::scratch::Tree;

    #[test]
    fn page_and_tests_must_agree() {
        let tests = "#[test]\nfn v01_named() {}\n#[test]\nfn v02_forgotten() {}\nfn v03_no_test() {}\n";
        let page = "`v01_named` `v03_no_test` `v99_gone`\n`a.rs::there` `a.rs::gone` `b.rs::gone` `other`\n";
        let tree = Tree::new(&[
            ("docs/SECURITY.md", page),
            ("tests/tests/it/security/x.rs", tests),
            ("a.rs", "#[test]\nfn there() {}\nfn gone() {}\n"),
        ]);
        let printed: Vec<_> = findings(tree.root()).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(
            printed,
            [
                "docs/SECURITY.md:1: there is no test `v03_no_test`",
                "docs/SECURITY.md:1: there is no test `v99_gone`",
                "docs/SECURITY.md:2: there is no test `a.rs::gone`",
                "docs/SECURITY.md:2: there is no test `b.rs::gone`",
                "tests/tests/it/security/x.rs:1: docs/SECURITY.md does not name `v02_forgotten`",
            ]
        );
    }

    #[test]
    fn rows_name_the_tests_that_are_marked() {
        let numbers = super::MARKED.into_iter().flatten().filter(|threat| ![72, 113].contains(threat));
        let rows: Vec<_> = numbers.map(|threat| format!("| **V-{threat}** `crates/a.rs::all` |\n")).collect();
        let mut page = rows.concat();
        page.push_str("| **V-72** said, not shown |\n| **V-01** `crates/a.rs::all` |\n");
        let marked: Vec<_> =
            super::MARKED.into_iter().flatten().map(|threat| format!("V-{threat}")).collect();
        let tests = format!(
            "#[test]\nfn all() {{\n    // {}\n}}\n#[test]\nfn other() {{\n    // V-71\n}}\nfn none() {{\n    // V-70\n}}\n",
            marked
                .iter()
                .filter(|mark| !["V-70", "V-72", "V-113"].contains(&mark.as_str()))
                .cloned()
                .collect::<Vec<_>>()
                .join(", ")
        );
        let tree = Tree::new(&[("docs/SECURITY.md", &page), ("crates/a.rs", &tests)]);
        let printed: Vec<_> = findings(tree.root()).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(
            printed,
            [
                "docs/SECURITY.md:1: `crates/a.rs::all` is not marked with V-70",
                "crates/a.rs:1: docs/SECURITY.md does not name `crates/a.rs::other` at V-71",
                "docs/SECURITY.md:1: there is no row for V-113",
                "docs/SECURITY.md:1: no test for V-72",
            ]
        );
    }

    #[test]
    fn without_a_suite_no_page_is_needed() {
        assert_eq!(findings(Tree::new(&[("a.rs", "")]).root()), Ok(Vec::new()));
        let suite = Tree::new(&[("tests/tests/it/security/x.rs", "#[test]\nfn v01_named() {}\n")]);
        assert_eq!(findings(suite.root()).unwrap().len(), 1);
    }
}
