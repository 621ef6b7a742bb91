//! Whether the book is whole: every page is in its table of contents, every link leads somewhere, every snippet is tested.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use crate::files::{self, TextFile};
use crate::finding::Finding;

const FOLDER: &str = "docs";
const SUMMARY: &str = "docs/SUMMARY.md";
/// Marks of Rust that the documentation tests leave out; `rs` is for what is included.
const UNTESTED: [&str; 2] = ["ignore", "rs"];

pub(super) fn findings(root: &Path) -> Result<Vec<Finding>, String> {
    let pages = files::below(root, &[FOLDER], "md")?;
    if !pages.iter().any(|page| page.path == SUMMARY) {
        return Ok(Vec::new());
    }
    let headings: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|page| (page.path.as_str(), anchors(&page.text))).collect();
    let mut findings = Vec::new();
    let mut listed = BTreeSet::from([SUMMARY.to_owned()]);
    for page in &pages {
        for (line, text) in prose(&page.text) {
            for link in links(text) {
                if page.path == SUMMARY {
                    listed.insert(resolve(&page.path, link).unwrap_or_default());
                }
                if let Some(complaint) = complaint(root, &page.path, link, &headings) {
                    findings.push(Finding::new(&page.path, line, complaint));
                }
            }
        }
        findings.extend(fences(root, page)?);
    }
    let missing = pages.iter().filter(|page| !listed.contains(&page.path));
    findings
        .extend(missing.map(|page| Finding::new(&page.path, 1, format!("{SUMMARY} does not list the page"))));
    Ok(findings)
}

/// Returns what is wrong with a link of a page.
fn complaint(
    root: &Path,
    page: &str,
    link: &str,
    headings: &BTreeMap<&str, BTreeSet<String>>,
) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { Some(page.to_owned()) } else { resolve(page, path) };
    let Some(known) = target.as_deref().and_then(|target| headings.get(target)) else {
        if target.is_some_and(|target| is_attachment(root, &target)) {
            return None;
        }
        return Some(format!("expected a page of the book, got a link to `{link}`"));
    };
    (!anchor.is_empty() && !known.contains(anchor))
        .then(|| format!("there is no heading for `#{anchor}` in `{}`", target.unwrap_or_default()))
}

/// Returns whether the path is a file of the book that is not a page; mdBook copies these.
fn is_attachment(root: &Path, path: &str) -> bool {
    let is_page = Path::new(path).extension().is_some_and(|extension| extension == "md");
    path.starts_with("docs/") && !is_page && root.join(path).is_file()
}

/// Returns the path that a link of a page means, unless it leaves the repository.
fn resolve(page: &str, link: &str) -> Option<String> {
    let link = link.split('#').next().unwrap_or_default();
    let folder = Path::new(page).parent()?;
    let mut parts: Vec<String> = Vec::new();
    for part in folder.join(link).components() {
        match part {
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// Returns the lines that are not code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.starts_with("```");
        inside ^= fence;
        !inside && !fence
    })
}

/// Returns where the links of a line lead, those that are defined for other lines included.
fn links(line: &str) -> Vec<&str> {
    if let Some((name, target)) = line.split_once("]: ")
        && name.starts_with('[')
    {
        return vec![target.trim()];
    }
    // Text in backticks is not a link.
    let outside = line.split('`').step_by(2);
    let mut found = Vec::new();
    for text in outside {
        found.extend(text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link));
    }
    found
}

/// Returns the anchors of the headings of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter_map(|(_, line)| line.strip_prefix('#'));
    headings.map(|heading| slug(heading.trim_start_matches('#'))).collect()
}

fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|character| match character {
        ' ' => Some('-'),
        '-' | '_' => Some(character),
        _ => character.is_alphanumeric().then(|| character.to_ascii_lowercase()),
    });
    kept.collect()
}

/// Returns what is wrong with the blocks of code of a page.
fn fences(root: &Path, page: &TextFile) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    let mut inside: Option<&str> = None;
    for (number, line) in (1..).zip(page.text.lines()) {
        if let Some(language) = line.strip_prefix("```") {
            inside = match inside {
                Some(_) => None,
                None if language.is_empty() => {
                    findings.push(Finding::new(
                        &page.path,
                        number,
                        "expected a language after the backticks",
                    ));
                    Some("text")
                }
                None => Some(language),
            };
            continue;
        }
        let Some(language) = inside else { continue };
        let included = line.strip_prefix("{{#include ").and_then(|rest| rest.strip_suffix("}}"));
        if let Some(included) = included {
            let (path, anchor) = included.split_once(':').unwrap_or((included, ""));
            if !has_anchor(root, &page.path, path, anchor)? {
                findings.push(Finding::new(
                    &page.path,
                    number,
                    format!("there is no `{included}` to include"),
                ));
            }
        } else if !line.is_empty() && language.split(',').any(|word| UNTESTED.contains(&word)) {
            let sentence = "expected a snippet that is tested, or included from a file that is";
            findings.push(Finding::new(&page.path, number, sentence));
        }
    }
    Ok(findings)
}

fn has_anchor(root: &Path, page: &str, path: &str, anchor: &str) -> Result<bool, String> {
    let Some(file) = resolve(page, path).map(|path| root.join(path)).filter(|path| path.is_file()) else {
        return Ok(false);
    };
    let wanted = format!("ANCHOR: {anchor}");
    Ok(anchor.is_empty() || files::read(&file)?.lines().any(|line| line.trim_end().ends_with(&wanted)))
}

#[cfg(test)]
mod tests {
    use super::{findings, slug};
    use crate::scratch::Tree;

    fn check(page: &str, expected: &[&str]) {
        let tree = Tree::new(&[
            ("docs/SUMMARY.md", "- [A](a.md)\n- [B](deep/b.md)\n"),
            ("docs/a.md", page),
            ("docs/deep/b.md", "# The `b`\n\n[up](../a.md)\n"),
            ("docs/deep/c.cfg", "x\n"),
            ("code.rs", "// ANCHOR: one\nfn one() {}\n// ANCHOR_END: one\n"),
        ]);
        let printed: Vec<_> = findings(tree.root()).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(printed, expected);
    }

    #[test]
    fn links_lead_to_pages_and_headings() {
        check("[b](deep/b.md) [b](deep/b.md#the-b) [web](https://a.example) `[no](link.md)`\n", &[]);
        check("[file](deep/c.cfg)\n", &[]);
        check(
            "[no](deep/d.cfg)\n",
            &["docs/a.md:1: expected a page of the book, got a link to `deep/d.cfg`"],
        );
        check("\n[b](b.md)\n", &["docs/a.md:2: expected a page of the book, got a link to `b.md`"]);
        check(
            "[b][1]\n\n[1]: deep/b.md#c\n",
            &["docs/a.md:3: there is no heading for `#c` in `docs/deep/b.md`"],
        );
        check(
            "[out](../code.rs)\n",
            &["docs/a.md:1: expected a page of the book, got a link to `../code.rs`"],
        );
        check("```text\n[no](link.md)\n```\n", &[]);
    }

    #[test]
    fn snippets_are_tested() {
        check("```rs\n{{#include ../code.rs:one}}\n```\n", &[]);
        check(
            "```rs\n{{#include ../code.rs:two}}\n```\n",
            &["docs/a.md:2: there is no `../code.rs:two` to include"],
        );
        check(
            "```rust,ignore\nlet a = 1;\n```\n",
            &["docs/a.md:2: expected a snippet that is tested, or included from a file that is"],
        );
        check("```\na\n```\n", &["docs/a.md:1: expected a language after the backticks"]);
    }

    #[test]
    fn every_page_is_listed() {
        let tree = Tree::new(&[("docs/SUMMARY.md", "# Summary\n"), ("docs/a.md", "")]);
        assert_eq!(
            findings(tree.root()).unwrap()[0].to_string(),
            "docs/a.md:1: docs/SUMMARY.md does not list the page"
        );
        assert_eq!(findings(Tree::new(&[("docs/a.md", "[x](y.md)")]).root()), Ok(Vec::new()));
    }

    #[test]
    fn headings_have_the_anchors_of_the_book() {
        assert_eq!(slug(" `[servers.NAME]` with `url`"), "serversname-with-url");
    }
}
