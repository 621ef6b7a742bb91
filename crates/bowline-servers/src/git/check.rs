//! Validates revisions, branch names and paths before they are passed to git.

use bowline::server::{Error, Result};
use std::path::{Component, Path};

/// Validates a revision or range: `HEAD~2`, `main..topic`, `v1.0^{commit}`, a hash. Rejects options and paths.
pub(super) fn revision(text: &str) -> Result<&str> {
    let wrong = |reason: &str| {
        Error::tool(format!("invalid revision `{text}`, expected something like `HEAD~1`: {reason}"))
    };
    let allowed = |character: char| {
        character.is_alphanumeric()
            || matches!(character, '/' | '.' | '_' | '-' | '+' | '=' | '#' | '~' | '^' | '@' | '{' | '}')
    };
    if text.is_empty() || text.len() > 300 {
        return Err(wrong("must have 1 to 300 characters"));
    }
    if text.starts_with('-') {
        return Err(wrong("starts with a dash"));
    }
    // The part after `..` is a revision, too.
    if text.split("..").any(|part| part.trim_start_matches('.').starts_with('-')) {
        return Err(wrong("a part of it starts with a dash"));
    }
    match text.chars().find(|character| !allowed(*character)) {
        Some(character) => Err(wrong(&format!("contains `{}`", character.escape_default()))),
        None => Ok(text),
    }
}

/// Validates a branch name by the rules of `git check-ref-format --branch`.
pub(super) fn branch(text: &str) -> Result<&str> {
    let wrong = |reason: &str| Error::tool(format!("invalid branch name `{text}`: {reason}"));
    if text.is_empty() || text.len() > 200 {
        return Err(wrong("must have 1 to 200 characters"));
    }
    if text.starts_with('-') {
        return Err(wrong("starts with a dash"));
    }
    if text == "HEAD" || text == "@" {
        return Err(wrong("is a reserved name"));
    }
    let forbidden = |character: char| {
        character.is_ascii_control()
            || character.is_whitespace()
            || matches!(character, '~' | '^' | ':' | '?' | '*' | '[' | '\\')
    };
    if let Some(character) = text.chars().find(|character| forbidden(*character)) {
        return Err(wrong(&format!("contains `{}`", character.escape_default())));
    }
    if text.contains("..") || text.contains("@{") {
        return Err(wrong("contains `..` or `@{`"));
    }
    let unfit = |part: &str| {
        let locked =
            part.get(part.len().saturating_sub(5)..).is_some_and(|end| end.eq_ignore_ascii_case(".lock"));
        part.is_empty() || part.starts_with('.') || part.ends_with('.') || locked
    };
    if text.split('/').any(unfit) {
        return Err(wrong("a part of it is empty, starts or ends with a dot, or ends with `.lock`"));
    }
    Ok(text)
}

/// Validates a path relative to the top of the repository. Git interprets it literally.
pub(super) fn path(text: &str) -> Result<&str> {
    let wrong = |reason: &str| Error::tool(format!("invalid path `{text}`: {reason}"));
    if text.is_empty() {
        return Err(wrong("is empty"));
    }
    if text.contains('\0') {
        return Err(wrong("contains a NUL character"));
    }
    let path = Path::new(text);
    // Drive letters are prefixes only on Windows, but are rejected everywhere.
    if path.has_root() || text.get(1..3) == Some(":\\") || text.get(1..3) == Some(":/") {
        return Err(wrong("is not relative to the top of the repository"));
    }
    let leads_out = |component| !matches!(component, Component::Normal(_) | Component::CurDir);
    if path.components().any(leads_out) || text.split(['/', '\\']).any(|part| part == "..") {
        return Err(wrong("is outside of the repository"));
    }
    Ok(text)
}

/// Validates several paths.
pub(super) fn paths(texts: Option<&[String]>) -> Result<Vec<&str>> {
    texts.unwrap_or_default().iter().map(|text| path(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // V-91
    #[test]
    fn options_are_not_valid_revisions_or_branches() {
        let options = [
            "--output=/tmp/x",
            "-c",
            "-ccore.pager=id",
            "--upload-pack=id",
            "--exec=id",
            "-O/tmp/x",
            "--no-index",
            "--",
            "-",
            "--end-of-options",
            "--ext-diff",
            "--textconv",
        ];
        for option in options {
            assert!(revision(option).is_err(), "{option}");
            assert!(branch(option).is_err(), "{option}");
        }
        for range in ["HEAD..--output=x", "HEAD...-x", "a..b..-c"] {
            assert!(revision(range).is_err(), "{range}");
        }
    }

    #[test]
    fn revisions_are_validated() {
        for text in
            ["HEAD", "HEAD~3", "main..topic", "a...b", "v1.0^{commit}", "@{upstream}", "feature/ñ", "0a1b2c"]
        {
            assert!(revision(text).is_ok(), "{text}");
        }
        for text in ["", "a b", "HEAD:secret", ":/fix", "a\nb", "a\0b", "a;b", "$(id)", "`id`", "a\\b", "*"] {
            assert!(revision(text).is_err(), "{text}");
        }
        assert!(revision(&"a".repeat(301)).is_err());
    }

    #[test]
    fn branch_names_follow_the_rules_of_git() {
        for text in ["main", "feature/x", "a-b_c.d", "ñ", "@a"] {
            assert!(branch(text).is_ok(), "{text}");
        }
        let unfit = [
            "", "HEAD", "@", "a..b", "a@{b", "a b", "a~b", "a^b", "a:b", "a?b", "a*b", "a[b", "a\\b", "/a",
            "a/", "a//b", ".a", "a/.b", "a.", "a.lock", "a.LOCK/b", "a\u{7f}b",
        ];
        for text in unfit {
            assert!(branch(text).is_err(), "{text}");
        }
    }

    #[test]
    fn paths_stay_in_the_repository() {
        for text in ["a", "./a", "a/b c", "-x", ":(top)a", "a..b"] {
            assert!(path(text).is_ok(), "{text}");
        }
        for text in ["", "/etc/passwd", "..", "a/../../b", "a\\..\\..\\b", "C:\\x", "C:/x", "a\0b"] {
            assert!(path(text).is_err(), "{text}");
        }
    }
}
