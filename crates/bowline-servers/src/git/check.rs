//! What may be handed to git: names of revisions, branches and paths that can be nothing else.

use bowline::server::{Error, Result};
use std::path::{Component, Path};

/// A revision or a range: `HEAD~2`, `main..topic`, `v1.0^{commit}`, a hash. Never an option, never a path.
pub(super) fn revision(text: &str) -> Result<&str> {
    let wrong =
        |reason: &str| Error::tool(format!("expected a revision such as `HEAD~1`, got `{text}`: {reason}"));
    let allowed = |character: char| {
        character.is_alphanumeric()
            || matches!(character, '/' | '.' | '_' | '-' | '+' | '=' | '#' | '~' | '^' | '@' | '{' | '}')
    };
    if text.is_empty() || text.len() > 300 {
        return Err(wrong("it must have between 1 and 300 characters"));
    }
    if text.starts_with('-') {
        return Err(wrong("it begins with a dash"));
    }
    // What comes after `..` is a revision, too.
    if text.split("..").any(|part| part.trim_start_matches('.').starts_with('-')) {
        return Err(wrong("a part of it begins with a dash"));
    }
    match text.chars().find(|character| !allowed(*character)) {
        Some(character) => Err(wrong(&format!("it holds `{}`", character.escape_default()))),
        None => Ok(text),
    }
}

/// The name of a branch, by the rules of `git check-ref-format --branch`.
pub(super) fn branch(text: &str) -> Result<&str> {
    let wrong = |reason: &str| Error::tool(format!("expected the name of a branch, got `{text}`: {reason}"));
    if text.is_empty() || text.len() > 200 {
        return Err(wrong("it must have between 1 and 200 characters"));
    }
    if text.starts_with('-') {
        return Err(wrong("it begins with a dash"));
    }
    if text == "HEAD" || text == "@" {
        return Err(wrong("it has a meaning of its own"));
    }
    let forbidden = |character: char| {
        character.is_ascii_control()
            || character.is_whitespace()
            || matches!(character, '~' | '^' | ':' | '?' | '*' | '[' | '\\')
    };
    if let Some(character) = text.chars().find(|character| forbidden(*character)) {
        return Err(wrong(&format!("it holds `{}`", character.escape_default())));
    }
    if text.contains("..") || text.contains("@{") {
        return Err(wrong("it holds `..` or `@{`"));
    }
    let unfit = |part: &str| {
        let locked =
            part.get(part.len().saturating_sub(5)..).is_some_and(|end| end.eq_ignore_ascii_case(".lock"));
        part.is_empty() || part.starts_with('.') || part.ends_with('.') || locked
    };
    if text.split('/').any(unfit) {
        return Err(wrong("a part of it is empty, begins or ends with a dot, or ends with `.lock`"));
    }
    Ok(text)
}

/// A path in the repository, from its top. Git takes it literally; it may not lead out.
pub(super) fn path(text: &str) -> Result<&str> {
    let wrong =
        |reason: &str| Error::tool(format!("expected a path in the repository, got `{text}`: {reason}"));
    if text.is_empty() {
        return Err(wrong("it is empty"));
    }
    if text.contains('\0') {
        return Err(wrong("it holds a NUL character"));
    }
    let path = Path::new(text);
    // A drive is a prefix on Windows alone, but means nothing good elsewhere.
    if path.has_root() || text.get(1..3) == Some(":\\") || text.get(1..3) == Some(":/") {
        return Err(wrong("it is not relative to the top of the repository"));
    }
    let leads_out = |component| !matches!(component, Component::Normal(_) | Component::CurDir);
    if path.components().any(leads_out) || text.split(['/', '\\']).any(|part| part == "..") {
        return Err(wrong("it leads out"));
    }
    Ok(text)
}

/// All of these paths.
pub(super) fn paths(texts: Option<&[String]>) -> Result<Vec<&str>> {
    texts.unwrap_or_default().iter().map(|text| path(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // V-91
    #[test]
    fn what_could_be_an_option_is_no_revision_and_no_branch() {
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
    fn revisions_are_told_from_other_texts() {
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
    fn branches_have_the_names_that_git_gives() {
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
