//! Whether the page on security and the tests it names agree.

use std::collections::BTreeSet;
use std::path::Path;

use crate::files::{self, TextFile};
use crate::finding::Finding;
use crate::rust::{Outline, Source};

/// The page.
const PAGE: &str = "docs/SECURITY.md";
/// Where the tests are that it names without a file.
const SUITE: &str = "tests/tests/it/security";

/// Tests that the page names and that are not there, and tests of the suite that it does not name.
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
    Ok(findings)
}

/// Whether a name is that of a test of the suite: `v`, the number of a threat, and what it shows.
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

/// The tests of files, each with its file.
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
    fn page_and_tests_have_to_agree() {
        let tests = "#[test]\nfn v01_named() {}\n#[test]\nfn v02_forgotten() {}\nfn v03_no_test() {}\n";
        let page = "`v01_named` `v03_no_test` `v99_gone`\n`a.rs::there` `a.rs::gone` `b.rs::gone` `other`\n";
        let tree = Tree::new(&[
            ("docs/SECURITY.md", page),
            ("tests/tests/it/security/x.rs", tests),
            ("a.rs", "#[test]\nfn there() {}\nfn gone() {}\n"),
        ]);
        let told: Vec<_> = findings(tree.root()).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
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
    fn without_a_suite_there_need_not_be_a_page() {
        assert_eq!(findings(Tree::new(&[("a.rs", "")]).root()), Ok(Vec::new()));
        let suite = Tree::new(&[("tests/tests/it/security/x.rs", "#[test]\nfn v01_named() {}\n")]);
        assert_eq!(findings(suite.root()).unwrap().len(), 1);
    }
}
