//! Rejects unsafe path components.

use std::{
    ffi::OsStr,
    path::{Component, Path, PathBuf},
};

/// Returns the components of a relative path, without `.`, or the reason why a component is unsafe.
pub(super) fn below(path: &Path) -> Result<PathBuf, String> {
    let mut inside = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => inside.push(component),
            Component::Normal(name) => {
                if cfg!(windows) {
                    check_windows(name)?;
                }
                inside.push(name);
            }
            Component::Prefix(_) | Component::RootDir => return Err("expected a relative path".into()),
        }
    }
    Ok(inside)
}

/// Rejects names with a special meaning on Windows: devices, streams, and trailing characters that are dropped.
fn check_windows(name: &OsStr) -> Result<(), String> {
    let name = name.to_string_lossy();
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let numbered = |prefix: &str| {
        stem.strip_prefix(prefix).is_some_and(|rest| {
            let mut rest = rest.chars();
            matches!((rest.next(), rest.next()), (Some('0'..='9' | '¹' | '²' | '³'), None))
        })
    };
    let device = matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$");
    if device || numbered("COM") || numbered("LPT") {
        return Err(format!("`{name}` is a device name on Windows"));
    }
    if let Some(odd) = name.chars().find(|odd| matches!(odd, ':' | '<' | '>' | '"' | '|' | '?' | '*')) {
        return Err(format!("`{name}` contains `{odd}`, which is invalid in file names on Windows"));
    }
    if name.ends_with(['.', ' ']) {
        return Err(format!("`{name}` ends with a dot or a space, which Windows drops"));
    }
    Ok(())
}

/// Returns whether some file system treats this name as `.git`. Writing there could make git run programs.
pub(super) fn is_git(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    // NTFS drops trailing dots and spaces and supports streams; HFS+ ignores some characters.
    let name = name.split(':').next().unwrap_or_default();
    let ignored = |character: char| {
        matches!(character,
            '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
    };
    let name: String = name.chars().filter(|character| !ignored(*character)).collect();
    let name = name.trim_end_matches(['.', ' ']);
    name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case("git~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    // V-90
    #[test]
    fn names_with_a_meaning_on_windows_are_rejected() {
        let odd = [
            "con",
            "NUL.txt",
            "aux .md",
            "COM1",
            "lpt9.log",
            "COM²",
            "a:b",
            "a.txt::$DATA",
            "a.",
            "a ",
            "a?",
        ];
        for name in odd {
            assert!(check_windows(OsStr::new(name)).is_err(), "{name}");
        }
        for name in ["console", "com", "com10", "null.txt", ".a", "a b", "ñ"] {
            assert!(check_windows(OsStr::new(name)).is_ok(), "{name}");
        }
    }

    #[test]
    fn all_spellings_of_dot_git_are_recognized() {
        for name in [".git", ".GIT", ".git.", ".git ", ".g\u{200c}it", "GIT~1", ".git::$INDEX_ALLOCATION"] {
            assert!(is_git(OsStr::new(name)), "{name}");
        }
        for name in ["git", ".gitignore", ".github", "git~2"] {
            assert!(!is_git(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn a_path_below_a_root_is_relative() {
        assert_eq!(below(Path::new("./a/./b")).unwrap(), Path::new("a/b"));
        assert_eq!(below(Path::new("")).unwrap(), Path::new(""));
        assert_eq!(below(Path::new("../a")).unwrap(), Path::new("../a"));
        assert!(below(Path::new("/a")).is_err());
    }
}
