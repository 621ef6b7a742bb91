//! How long a file may be.

use crate::files::TextFile;
use crate::finding::Finding;

/// From here on, look for the seam.
const LONG: usize = 600;
/// Beyond this, a file needs a reason in `ALLOWED`.
const TOO_LONG: usize = 1_200;

/// Files that may be longer, with the reason.
const ALLOWED: &[(&str, &str)] = &[];

/// Returns the files that are too long, and notes on those that are merely long.
pub(super) fn findings(files: &[TextFile]) -> (Vec<Finding>, Vec<Finding>) {
    check(files, ALLOWED)
}

fn check(files: &[TextFile], allowed: &[(&str, &str)]) -> (Vec<Finding>, Vec<Finding>) {
    let (mut findings, mut notes) = (Vec::new(), Vec::new());
    for file in files {
        let lines = file.text.lines().count();
        let reason = allowed.iter().find(|(path, _)| *path == file.path).map(|(_, reason)| *reason);
        match (lines, reason) {
            (..=LONG, None) => {}
            (..=TOO_LONG, None) => {
                notes.push(Finding::new(&file.path, LONG + 1, format!("{lines} lines; look for the seam")));
            }
            (_, None) => {
                let sentence = format!("{lines} lines, more than {TOO_LONG}: split the file at its seam");
                findings.push(Finding::new(&file.path, TOO_LONG + 1, sentence));
            }
            (..=TOO_LONG, Some(_)) => {
                let sentence = format!("{lines} lines need no exception from the length of files");
                findings.push(Finding::new(&file.path, 1, sentence));
            }
            (_, Some(reason)) => {
                notes.push(Finding::new(
                    &file.path,
                    TOO_LONG + 1,
                    format!("{lines} lines, allowed: {reason}"),
                ));
            }
        }
    }
    for (path, _) in allowed {
        if !files.iter().any(|file| file.path == *path) {
            findings.push(Finding::new(
                *path,
                1,
                "the exception from the length of files names a file that is not there",
            ));
        }
    }
    (findings, notes)
}

#[cfg(test)]
mod tests {
    use super::{TextFile, check};

    fn printed(lines: usize, allowed: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let file = TextFile { path: "a.rs".to_owned(), text: "\n".repeat(lines) };
        let (findings, notes) = check(&[file], allowed);
        let texts = |found: Vec<super::Finding>| found.iter().map(ToString::to_string).collect();
        (texts(findings), texts(notes))
    }

    #[test]
    fn length_is_noted_then_refused() {
        assert_eq!(printed(600, &[]), (vec![], vec![]));
        assert_eq!(printed(601, &[]), (vec![], vec!["a.rs:601: 601 lines; look for the seam".to_owned()]));
        assert_eq!(printed(1_200, &[]).0, [""; 0]);
        assert_eq!(
            printed(1_201, &[]).0,
            ["a.rs:1201: 1201 lines, more than 1200: split the file at its seam"]
        );
    }

    #[test]
    fn exceptions_have_a_reason_and_do_not_outlive_it() {
        let table = [("a.rs", "one table")];
        assert_eq!(
            printed(1_201, &table),
            (vec![], vec!["a.rs:1201: 1201 lines, allowed: one table".to_owned()])
        );
        assert_eq!(
            printed(1_200, &table).0,
            ["a.rs:1: 1200 lines need no exception from the length of files"]
        );
        assert_eq!(printed(1, &[("b.rs", "gone")]).0.len(), 1);
    }
}
