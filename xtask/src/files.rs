//! Which files a check looks at, in an order that does not depend on the machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders that hold what tools made, not what people wrote.
const GENERATED: [&str; 2] = ["target", "node_modules"];

/// One text file and how the repository calls it.
#[derive(Clone, Debug)]
pub(crate) struct TextFile {
    /// Relative to the root, with `/` on every platform.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Returns every file below `folders` (relative to `root`) whose name ends in `.extension`, sorted by path. A folder that does
/// not exist holds no files.
pub(crate) fn below(
    root: &Path,
    folders: &[impl AsRef<str>],
    extension: &str,
) -> Result<Vec<TextFile>, String> {
    let mut paths = Vec::new();
    for folder in folders {
        let folder = root.join(folder.as_ref());
        if folder.is_dir() {
            collect(&folder, extension, &mut paths)
                .map_err(|error| format!("cannot walk {}: {error}", folder.display()))?;
        }
    }
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        files.push(TextFile { path: relative(root, &path), text: read(&path)? });
    }
    files.sort_by(|left, right| left.path.cmp(&right.path));
    files.dedup_by(|left, right| left.path == right.path);
    Ok(files)
}

/// Returns the folders `parent/*/child` that exist, relative to `root` and sorted.
pub(crate) fn children(root: &Path, parent: &str, child: &str) -> Result<Vec<String>, String> {
    let folder = root.join(parent);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    let entries =
        fs::read_dir(&folder).map_err(|error| format!("cannot walk {}: {error}", folder.display()))?;
    for entry in entries {
        let path =
            entry.map_err(|error| format!("cannot walk {}: {error}", folder.display()))?.path().join(child);
        if path.is_dir() {
            found.push(relative(root, &path));
        }
    }
    found.sort();
    Ok(found)
}

pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Returns `path` relative to the root, with slashes.
pub(crate) fn relative(root: &Path, path: &Path) -> String {
    let inner = path.strip_prefix(root).unwrap_or(path);
    let parts: Vec<_> = inner.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

fn collect(folder: &Path, extension: &str, into: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            if !name.starts_with('.') && !GENERATED.contains(&name.as_ref()) {
                collect(&path, extension, into)?;
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            into.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{below, children};
    use crate::scratch::Tree;

    #[test]
    fn only_written_files_are_found_and_in_order() {
        let tree = Tree::new(&[
            ("crates/b/src/lib.rs", "b"),
            ("crates/a/src/z.rs", "z"),
            ("crates/a/src/deep/y.rs", "y"),
            ("crates/a/src/notes.md", "no"),
            ("crates/a/src/target/made.rs", "no"),
            ("crates/a/src/.hidden/made.rs", "no"),
            ("crates/c/Cargo.toml", "no"),
        ]);
        let folders = children(tree.root(), "crates", "src").unwrap();
        assert_eq!(folders, ["crates/a/src", "crates/b/src"]);

        let files = below(tree.root(), &folders, "rs").unwrap();
        let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["crates/a/src/deep/y.rs", "crates/a/src/z.rs", "crates/b/src/lib.rs"]);
        assert_eq!(files[2].text, "b");
    }

    #[test]
    fn a_file_reached_twice_is_listed_once() {
        let tree = Tree::new(&[("examples/one.rs", "")]);
        assert_eq!(below(tree.root(), &["examples", "examples", "absent"], "rs").unwrap().len(), 1);
    }
}
