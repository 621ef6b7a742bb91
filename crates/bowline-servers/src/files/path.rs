//! Which names no path of ours may hold.

use std::{
    ffi::OsStr,
    path::{Component, Path, PathBuf},
};

/// The components of a path below a root, without `.`; why not, when a name in it is not to be used.
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

/// Names with a meaning of their own on Windows: devices, streams, and what is dropped at the end.
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
        return Err(format!("`{name}` is the name of a device on Windows"));
    }
    if let Some(odd) = name.chars().find(|odd| matches!(odd, ':' | '<' | '>' | '"' | '|' | '?' | '*')) {
        return Err(format!("`{name}` holds `{odd}`, which no file name on Windows may"));
    }
    if name.ends_with(['.', ' ']) {
        return Err(format!("`{name}` ends with a dot or a blank, which Windows drops"));
    }
    Ok(())
}

/// Whether some file system takes this name for `.git`: whoever writes there has the user's git run programs.
pub(super) fn is_git(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    // NTFS drops dots and blanks at the end and knows streams; HFS+ ignores some characters.
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
    fn names_with_a_meaning_on_windows_are_told_from_others() {
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
    fn the_folder_of_git_has_many_names() {
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
