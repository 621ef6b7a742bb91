//! Replaces exact text and produces a diff.

use bowline::server::{Error, Result};
use similar::TextDiff;

/// One replacement.
pub(super) struct Replacement<'a> {
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    pub(super) all: bool,
}

/// Applies the replacements in order. Each old text must occur exactly once, unless all occurrences are replaced.
pub(super) fn apply(text: &str, replacements: &[Replacement<'_>]) -> Result<String> {
    if replacements.is_empty() {
        return Err(Error::tool("expected at least one edit, got none"));
    }
    let mut text = text.to_owned();
    for (number, Replacement { old, new, all }) in (1..).zip(replacements) {
        if old.is_empty() {
            return Err(Error::tool(format!("edit {number}: `old_text` is empty")));
        }
        let lines: Vec<_> = text.match_indices(old).map(|(at, _)| line_of(&text, at)).collect();
        match lines.as_slice() {
            [] => {
                let crlf = text.contains("\r\n") && old.contains('\n') && !old.contains("\r\n");
                let hint = if crlf { "; the file uses CRLF line endings" } else { "" };
                return Err(Error::tool(format!("edit {number}: `old_text` not found in the file{hint}")));
            }
            [_, _, ..] if !all => {
                let places: Vec<_> = lines.iter().take(10).map(ToString::to_string).collect();
                return Err(Error::tool(format!(
                    "edit {number}: `old_text` occurs {} times (lines {}); include more context to make \
                     it unique, or set `replace_all`",
                    lines.len(),
                    places.join(", ")
                )));
            }
            _ => text = text.replace(old, new),
        }
    }
    Ok(text)
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// Returns a unified diff; empty if there is no difference.
pub(super) fn diff(name: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    diff.unified_diff().context_radius(3).header(&format!("a/{name}"), &format!("b/{name}")).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn check(text: &str, edits: &[(&str, &str, bool)], expected: &expect_test::Expect) {
        let edits: Vec<_> = edits.iter().map(|&(old, new, all)| Replacement { old, new, all }).collect();
        expected.assert_eq(&match apply(text, &edits) {
            Ok(text) => text,
            Err(error) => format!("error: {error}"),
        });
    }

    #[test]
    fn exact_text_is_replaced() {
        check("a b c", &[("b", "x", false), ("x c", "y", false)], &expect!["a y"]);
        check("a a", &[("a", "aa", true)], &expect!["aa aa"]);
        check("a", &[], &expect!["error: expected at least one edit, got none"]);
        check("a", &[("", "b", false)], &expect!["error: edit 1: `old_text` is empty"]);
        check("a", &[("b", "c", true)], &expect!["error: edit 1: `old_text` not found in the file"]);
        check(
            "a\r\nb\r\n",
            &[("a\nb", "c", false)],
            &expect!["error: edit 1: `old_text` not found in the file; the file uses CRLF line endings"],
        );
        check(
            "a\nb\na\n",
            &[("a", "c", false)],
            &expect![
                "error: edit 1: `old_text` occurs 2 times (lines 1, 3); include more context to make it unique, or set `replace_all`"
            ],
        );
    }

    #[test]
    fn a_difference_reads_as_a_patch() {
        expect![[r"
            --- a/x
            +++ b/x
            @@ -1,2 +1,2 @@
             one
            -two
            +2
        "]]
        .assert_eq(&diff("x", "one\ntwo\n", "one\n2\n"));
        assert_eq!(diff("x", "same\n", "same\n"), "");
    }
}
