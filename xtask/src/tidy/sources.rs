//! What the sources of the crates must not contain.

use std::collections::BTreeSet;

use super::direction::PURE;
use crate::files::TextFile;
use crate::finding::Finding;
use crate::rust::{Audience, Outline, Source, word_offsets};

/// Macros that have no place in a library, with the reason. Tests may use them.
const MACROS: [(&str, &str); 7] = [
    ("println!", "stdout belongs to the protocol"),
    ("print!", "stdout belongs to the protocol"),
    ("eprintln!", "a library reports through `tracing`"),
    ("eprint!", "a library reports through `tracing`"),
    ("dbg!", "it is for the moment of debugging"),
    ("todo!", "unfinished code is not merged"),
    ("unimplemented!", "unfinished code is not merged"),
];

/// Attributes that no test carries, with the reason.
const ATTRIBUTES: [(&str, &str); 2] = [
    ("ignore", "a test that does not run proves nothing"),
    ("should_panic", "assert what is returned instead"),
];

/// Marks of unfinished work in comments.
const MARKS: [&str; 2] = ["FIXME", "XXX"];

/// What the pure crates take as an argument instead. Their tests may begin at any time.
const IMPURE: [&str; 3] = ["Instant::now", "SystemTime::now", "thread_rng"];

/// Where people keep their files. In a URI they are an example, elsewhere somebody's machine.
const HOMES: [&str; 4] = ["/home/", "/root/", "/work/", "/Users/"];

/// Checks every source below `crates/`.
pub(super) fn findings(files: &[TextFile]) -> Vec<Finding> {
    let parsed: Vec<_> = files
        .iter()
        .map(|file| {
            let source = Source::new(&file.text);
            let outline = Outline::new(&source);
            (file, source, outline)
        })
        .collect();
    let test_modules: BTreeSet<String> = parsed
        .iter()
        .flat_map(|(file, _, outline)| module_paths(&file.path, &outline.test_modules))
        .collect();

    let mut findings = Vec::new();
    for (file, source, outline) in &parsed {
        let mut tell = |line, sentence| findings.push(Finding::new(&file.path, line, sentence));
        homes(&file.text, &mut tell);
        attributes(outline, &mut tell);
        let Some((name, inner)) = inner_path(&file.path) else { continue };

        first_line(&file.text, &mut tell);
        marks(source, &mut tell);
        let is_test_file = inner.split(['/', '.']).any(|part| part == "tests")
            || test_modules.iter().any(|module| is_module(&file.path, module));
        if !is_test_file {
            calls(name, source, outline, &mut tell);
        }
    }
    findings
}

/// Returns the name of the crate and the path below `src`, for a file of `crates/*/src`.
fn inner_path(path: &str) -> Option<(&str, &str)> {
    let (name, rest) = path.strip_prefix("crates/")?.split_once('/')?;
    Some((name, rest.strip_prefix("src/")?))
}

/// Returns where the modules declared in the file at `path` are, without `.rs`.
fn module_paths(path: &str, modules: &[String]) -> Vec<String> {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let folder = match stem.rsplit_once('/') {
        Some((folder, "lib" | "main" | "mod")) => folder,
        _ => stem,
    };
    modules.iter().map(|module| format!("{folder}/{module}")).collect()
}

/// Returns whether the file at `path` is `module` or in its directory.
fn is_module(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

fn first_line(text: &str, tell: &mut impl FnMut(usize, String)) {
    if !text.starts_with("//!") {
        tell(
            1,
            "the first line must be a `//!` sentence that says which question the file answers".to_owned(),
        );
    }
}

/// Macros and, in pure crates, calls, outside of tests.
fn calls(name: &str, source: &Source, outline: &Outline, tell: &mut impl FnMut(usize, String)) {
    for (line, code) in source.lines().filter(|(line, _)| !outline.is_test_line(*line)) {
        for (call, reason) in MACROS {
            if word_offsets(code, call).next().is_some() {
                tell(line, format!("`{call}` is not for the sources of a crate: {reason}"));
            }
        }
        for call in IMPURE.into_iter().filter(|_| PURE.contains(&name)) {
            if word_offsets(code, call).next().is_some() {
                tell(line, format!("`{call}` in `{name}`: time and chance are arguments there"));
            }
        }
    }
}

fn attributes(outline: &Outline, tell: &mut impl FnMut(usize, String)) {
    for attribute in &outline.attributes {
        for (name, reason) in ATTRIBUTES {
            if attribute.is(name) {
                tell(attribute.line, format!("`#[{name}]` is not used here: {reason}"));
            }
        }
    }
}

fn marks(source: &Source, tell: &mut impl FnMut(usize, String)) {
    for comment in source.comments.iter().filter(|comment| comment.audience == Audience::Maintainer) {
        for mark in MARKS {
            if word_offsets(&comment.text, mark).next().is_some() {
                tell(comment.line, format!("`{mark}` marks unfinished work: finish it or file it"));
            }
        }
    }
}

fn homes(text: &str, tell: &mut impl FnMut(usize, String)) {
    for (line, content) in (1..).zip(text.lines()) {
        for home in HOMES {
            if content.match_indices(home).any(|(offset, _)| is_rooted(&content[..offset])) {
                tell(
                    line,
                    format!("a path below `{home}` is somebody's machine: use a relative path or a URI"),
                );
            }
        }
    }
}

/// Returns whether a `/` behind `before` begins an absolute path, and is not part of another path or a URI.
fn is_rooted(before: &str) -> bool {
    let continues =
        |last: char| last.is_alphanumeric() || matches!(last, '_' | '-' | '.' | '~' | '}' | ')' | '*' | '/');
    !before.ends_with(continues)
}

#[cfg(test)]
mod tests {
    use super::{TextFile, findings};

    /// Checks the findings of one file as `line: start of the sentence`.
    fn check(path: &str, text: &str, expected: &[&str]) {
        let file = TextFile { path: path.to_owned(), text: text.to_owned() };
        let found: Vec<String> = findings(&[file]).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(&format!("{path}:{expected}")), "{found}");
        }
    }

    const LIB: &str = "crates/bowline-server/src/lib.rs";

    #[test]
    fn macros_of_the_moment_are_found_in_code_only() {
        check(
            LIB,
            "//! A.\nfn f() {\n    println!(\"x\");\n    std::dbg!(1);\n}\n",
            &["3: `println!`", "4: `dbg!`"],
        );
        check(LIB, "//! A.\n/// `println!(..)`\n// not println!\nfn f() { g(\"todo!\") }\n", &[]);
        check(
            LIB,
            "//! A.\n#[cfg(test)]\nmod tests {\n    fn f() { println!() }\n}\nfn g() { todo!() }",
            &["6: `todo!`"],
        );
        check(LIB, "//! A.\n#[test]\nfn f() {\n    eprintln!();\n}\n", &[]);
    }

    #[test]
    fn files_that_only_tests_compile_may_print() {
        check("crates/bowline-server/src/call/tests.rs", "//! A.\nfn f() { println!() }", &[]);
        check("crates/bowline-server/tests/it/main.rs", "fn f() { println!() }", &[]);
        let declared = |declaration: &str| {
            findings(&[
                TextFile {
                    path: "crates/a/src/call.rs".to_owned(),
                    text: format!("//! A.\n{declaration}\nmod check;"),
                },
                TextFile {
                    path: "crates/a/src/call/check.rs".to_owned(),
                    text: "//! B.\nfn f() { dbg!() }".to_owned(),
                },
            ])
        };
        assert_eq!(declared("#[cfg(test)]"), []);
        assert_eq!(declared("").len(), 1);
    }

    #[test]
    fn tests_run_and_return() {
        let text =
            "//! A.\n#[test]\n#[ignore]\nfn a() {}\n#[test]\n#[should_panic(expected = \"x\")]\nfn b() {}";
        check(LIB, text, &["3: `#[ignore]`", "6: `#[should_panic]`"]);
        check("crates/a/tests/it/main.rs", text, &["3: `#[ignore]`", "6: `#[should_panic]`"]);
    }

    #[test]
    fn unfinished_work_is_found_in_comments() {
        check(
            LIB,
            "//! A.\n// FIXME: later\nlet x = \"XXX\"; /* XXX */\n/// XXX in a doc\n// XXXL",
            &["2: `FIXME`", "3: `XXX`"],
        );
    }

    #[test]
    fn files_have_their_media_type() {
        check(LIB, "use a;\n", &["1: the first line"]);
        check(LIB, "", &["1: the first line"]);
        check("crates/a/tests/it/main.rs", "use a;\n", &[]);
    }

    #[test]
    fn pure_crates_take_time_as_an_argument() {
        let text = "//! A.\n// Instant::now is for others.\nfn f() { std::time::Instant::now() }";
        check("crates/bowline-proto/src/a.rs", text, &["3: `Instant::now` in `bowline-proto`"]);
        check("crates/bowline-proto/src/a.rs", "//! A.\n#[test]\nfn f() { Instant::now() }", &[]);
        check(LIB, text, &[]);
    }

    #[test]
    fn homes_of_developers_are_found() {
        check(
            LIB,
            "//! A.\nf(\"/home/ann/x\");\n// see /Users/ann\n",
            &["2: a path below `/home/`", "3: a path below `/Users/`"],
        );
        check(LIB, "//! A.\nf(\"file:///home/ann\", \"https://a.example/root/b\", \"../work/c\");\n", &[]);
        check("crates/a/tests/it/main.rs", "f(\"/work/x\");", &["1: a path below `/work/`"]);
    }
}
