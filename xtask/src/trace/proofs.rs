//! Which tests and transcripts claim to prove which requirement.

use std::path::Path;

use crate::files::{self, TextFile};
use crate::finding::Finding;
use crate::rust::{Audience, Function, Outline, Source};

/// One claim: a test, or a transcript, and one id it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proof {
    pub(super) id: String,
    /// The file, and behind `::` the test where a file has several.
    pub(super) test: String,
    pub(super) path: String,
    pub(super) line: usize,
}

/// What a comment or a header line begins with to name what it proves.
const KEYWORD: &str = "proves:";

/// Everything that `collect` found.
#[derive(Clone, Debug, Default)]
pub(super) struct Proofs {
    pub(super) proofs: Vec<Proof>,
    /// Claims that are invalid.
    pub(super) findings: Vec<Finding>,
}

/// Reads every test and transcript of the repository.
pub(super) fn collect(root: &Path) -> Result<Proofs, String> {
    let mut folders = files::children(root, "crates", "src")?;
    folders.extend(files::children(root, "crates", "tests")?);
    folders.extend(["tests", "examples", "conformance", "interop"].map(str::to_owned));

    let mut proofs = Proofs::default();
    for file in files::below(root, &folders, "rs")? {
        proofs.read_rust(&file);
    }
    for file in files::below(root, &["tests/transcripts"], "txtar")? {
        proofs.read_transcript(&file);
    }
    Ok(proofs)
}

impl Proofs {
    fn read_rust(&mut self, file: &TextFile) {
        let source = Source::new(&file.text);
        let mut outline = None;
        for comment in &source.comments {
            let Some(ids) = claim(&comment.text) else { continue };
            let outline = outline.get_or_insert_with(|| Outline::new(&source));
            let claimed = match (comment.audience, ids) {
                (Audience::User, _) => Err("`proves:` must be in a plain `//` comment".to_owned()),
                (Audience::Maintainer, Err(sentence)) => Err(sentence),
                (Audience::Maintainer, Ok(ids)) => {
                    test_at(outline, &source, comment.line).map(|test| (test, ids))
                }
            };
            match claimed {
                Err(sentence) => self.findings.push(Finding::new(&file.path, comment.line, sentence)),
                Ok((test, ids)) => {
                    let test = format!("{}::{}", file.path, test.name);
                    self.extend(&file.path, comment.line, &test, &ids);
                }
            }
        }
    }

    /// Reads the header of a transcript. The whole transcript proves the rows that it names there.
    fn read_transcript(&mut self, file: &TextFile) {
        let mut is_header = true;
        for (line, content) in (1..).zip(file.text.lines()) {
            is_header = is_header && !is_file_marker(content);
            let claimed = match claim(content) {
                None => continue,
                Some(_) if !is_header => {
                    Err("`proves:` belongs before the first file of a transcript".to_owned())
                }
                Some(claimed) => claimed,
            };
            match claimed {
                Err(sentence) => self.findings.push(Finding::new(&file.path, line, sentence)),
                Ok(ids) => self.extend(&file.path, line, &file.path, &ids),
            }
        }
    }

    fn extend(&mut self, path: &str, line: usize, test: &str, ids: &[&str]) {
        self.proofs.extend(ids.iter().map(|id| Proof {
            id: (*id).to_owned(),
            test: test.to_owned(),
            path: path.to_owned(),
            line,
        }));
    }
}

/// Returns the ids that `text` claims, if it is a claim at all.
fn claim(text: &str) -> Option<Result<Vec<&str>, String>> {
    let text = text.trim();
    let start = text.get(..KEYWORD.len())?;
    if !start.eq_ignore_ascii_case(KEYWORD) {
        return None;
    }
    if start != KEYWORD {
        return Some(Err(format!("expected `{KEYWORD}`, got `{start}`")));
    }
    let ids: Vec<&str> =
        text[KEYWORD.len()..].split([',', ' ', '\t']).map(str::trim).filter(|id| !id.is_empty()).collect();
    Some(if ids.is_empty() { Err(format!("`{KEYWORD}` names no requirement")) } else { Ok(ids) })
}

/// Returns the test that the comment on `line` belongs to: the one around it, or the one right below.
fn test_at<'a>(outline: &'a Outline, source: &Source, line: usize) -> Result<&'a Function, String> {
    let around: Vec<&Function> =
        outline.functions.iter().filter(|function| function.lines.contains(&line)).collect();
    let found = match around.iter().rfind(|function| function.is_test).or_else(|| around.last()) {
        Some(function) => function,
        None => below(outline, source, line)?,
    };
    if !found.is_test {
        return Err(format!("`proves:` belongs to a test, and `{}` is none", found.name));
    }
    if found.is_ignored {
        return Err(format!("`{}` is ignored and proves nothing", found.name));
    }
    Ok(found)
}

fn below<'a>(outline: &'a Outline, source: &Source, line: usize) -> Result<&'a Function, String> {
    let nearest = outline.functions.iter().find(|function| *function.lines.start() > line);
    let nearest = nearest.ok_or("`proves:` belongs to a test, and none follows")?;
    // Only comments and blank lines may stand between; attributes belong to the function already.
    let between = line + 1..*nearest.lines.start();
    let code = source.lines().find(|(number, code)| between.contains(number) && !code.trim().is_empty());
    match code {
        Some((number, _)) => {
            Err(format!("`proves:` must be right above its test; line {number} is between them"))
        }
        None => Ok(nearest),
    }
}

/// Returns whether a line begins a file of a txtar archive: `-- name --`.
fn is_file_marker(line: &str) -> bool {
    line.starts_with("-- ") && line.trim_end().ends_with(" --")
}

#[cfg(test)]
mod tests {
    use super::{Proofs, TextFile, collect};
    use crate::scratch::Tree;

    /// Returns the proofs as `id test` and the findings as they are printed.
    fn printed(proofs: &Proofs) -> (Vec<String>, Vec<String>) {
        let claims = proofs.proofs.iter().map(|proof| format!("{} {}", proof.id, proof.test)).collect();
        (claims, proofs.findings.iter().map(ToString::to_string).collect())
    }

    fn check_rust(text: &str, claims: &[&str], findings: &[&str]) {
        let mut proofs = Proofs::default();
        proofs.read_rust(&TextFile { path: "a.rs".to_owned(), text: text.to_owned() });
        assert_eq!(printed(&proofs), (owned(claims), owned(findings)));
    }

    fn check_transcript(text: &str, claims: &[&str], findings: &[&str]) {
        let mut proofs = Proofs::default();
        proofs.read_transcript(&TextFile { path: "a.txtar".to_owned(), text: text.to_owned() });
        assert_eq!(printed(&proofs), (owned(claims), owned(findings)));
    }

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_test_names_what_it_proves_above_or_inside() {
        check_rust(
            "// proves: A-1, A-2\n/// Doc.\n\n#[test]\nfn above() {}\n",
            &["A-1 a.rs::above", "A-2 a.rs::above"],
            &[],
        );
        check_rust("#[tokio::test]\n// proves: A-1\nasync fn between() {}\n", &["A-1 a.rs::between"], &[]);
        check_rust(
            "#[test]\nfn inside() {\n    f(); // proves: A-1 A-2\n}\n",
            &["A-1 a.rs::inside", "A-2 a.rs::inside"],
            &[],
        );
        check_rust(
            "#[test]\nfn outer() {\n    fn inner() {\n        // proves: A-1\n    }\n}\n",
            &["A-1 a.rs::outer"],
            &[],
        );
    }

    #[test]
    fn only_a_test_that_runs_is_a_proof() {
        check_rust(
            "// proves: A-1\nfn f() {}\n",
            &[],
            &["a.rs:1: `proves:` belongs to a test, and `f` is none"],
        );
        check_rust(
            "fn f() {\n    // proves: A-1\n}\n",
            &[],
            &["a.rs:2: `proves:` belongs to a test, and `f` is none"],
        );
        check_rust("// proves: A-1\n", &[], &["a.rs:1: `proves:` belongs to a test, and none follows"]);
        check_rust(
            "#[test]\n#[ignore]\nfn f() {\n// proves: A-1\n}",
            &[],
            &["a.rs:4: `f` is ignored and proves nothing"],
        );
        check_rust(
            "// proves: A-1\nconst X: u8 = 1;\n#[test]\nfn f() {}\n",
            &[],
            &["a.rs:1: `proves:` must be right above its test; line 2 is between them"],
        );
    }

    #[test]
    fn misplaced_claims_are_reported() {
        check_rust(
            "/// proves: A-1\n#[test]\nfn f() {}",
            &[],
            &["a.rs:1: `proves:` must be in a plain `//` comment"],
        );
        check_rust("// Proves: A-1\n#[test]\nfn f() {}", &[], &["a.rs:1: expected `proves:`, got `Proves:`"]);
        check_rust("// proves: ,\n#[test]\nfn f() {}", &[], &["a.rs:1: `proves:` names no requirement"]);
        check_rust("let text = \"\n// proves: A-1\n\"; // It proves: nothing.\n// é", &[], &[]);
    }

    #[test]
    fn a_transcript_names_what_it_proves_in_its_header() {
        let text = "A call is answered.\nproves: A-1 A-2\n-- client --\n{}\n-- server --\n{}\n";
        check_transcript(text, &["A-1 a.txtar", "A-2 a.txtar"], &[]);
        let late = "-- client --\nproves: A-1\n";
        check_transcript(late, &[], &["a.txtar:2: `proves:` belongs before the first file of a transcript"]);
    }

    #[test]
    fn the_whole_repository_is_read() {
        let test = "// proves: A-1\n#[test]\nfn t() {}\n";
        let tree = Tree::new(&[
            ("crates/a/src/deep/x.rs", test),
            ("crates/a/tests/it/main.rs", test),
            ("crates/a/benches/no.rs", test),
            ("examples/e.rs", test),
            ("conformance/src/c.rs", test),
            ("interop/i.rs", test),
            ("xtask/src/no.rs", test),
            ("tests/tests/it/t.rs", test),
            ("tests/transcripts/tools/call.txtar", "proves: A-1\n"),
            ("tests/transcripts/tools/notes.md", "proves: A-1\n"),
        ]);
        let (claims, findings) = printed(&collect(tree.root()).unwrap());
        assert_eq!(findings, [""; 0]);
        assert_eq!(
            claims,
            [
                "A-1 conformance/src/c.rs::t",
                "A-1 crates/a/src/deep/x.rs::t",
                "A-1 crates/a/tests/it/main.rs::t",
                "A-1 examples/e.rs::t",
                "A-1 interop/i.rs::t",
                "A-1 tests/tests/it/t.rs::t",
                "A-1 tests/transcripts/tools/call.txtar",
            ]
        );
    }
}
