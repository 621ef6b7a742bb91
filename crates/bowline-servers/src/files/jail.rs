//! The directories a server may use, and how paths are opened inside them.
//!
//! A root is opened once. Everything else is opened relative to that handle, one component at a time, so a path cannot escape and
//! there is no gap between check and use.

use super::path;
use crate::text;
use bowline::server::{Error, Result};
use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::{
    ambient_authority,
    fs::{Dir, File, Metadata, OpenOptions},
};
use std::{
    ffi::OsString,
    io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

/// A root directory.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    /// The canonical path at the time it was opened.
    pub(crate) path: PathBuf,
    /// The path given by the user, which may contain links.
    pub(crate) given: PathBuf,
    pub(crate) dir: Arc<Dir>,
}

impl Root {
    fn open(path: &Path) -> Result<Self> {
        let wrong =
            |error: io::Error| Error::tool(format!("cannot open directory `{}`: {error}", path.display()));
        let given = std::path::absolute(path).map_err(wrong)?;
        let path = std::fs::canonicalize(&given).map_err(wrong)?;
        let dir = Dir::open_ambient_dir(&path, ambient_authority()).map_err(wrong)?;
        Ok(Self { path, given, dir: Arc::new(dir) })
    }

    /// Returns the part of an absolute path below this root, by its text alone.
    fn strip<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        path.strip_prefix(&self.path).or_else(|_| path.strip_prefix(&self.given)).ok()
    }

    /// Returns the part of this root that is inside `folder`, by its text: all of it, or a subdirectory.
    pub(crate) fn within(&self, folder: &Path) -> Option<Self> {
        if self.path.starts_with(folder) || self.given.starts_with(folder) {
            return Some(self.clone());
        }
        let inside = path::below(self.strip(folder)?).ok()?;
        let dir = self.dir.open_dir(&inside).ok()?;
        Some(Self { path: self.path.join(&inside), given: folder.to_owned(), dir: Arc::new(dir) })
    }
}

/// The directories a server may use.
#[derive(Clone, Debug)]
pub(crate) struct Jail {
    pub(crate) roots: Vec<Root>,
}

/// A path inside one of the directories. It need not exist.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) root: Root,
    /// Relative to the root; may contain `..`.
    pub(crate) inside: PathBuf,
}

impl Jail {
    /// Opens the directories.
    pub(crate) fn open(roots: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self> {
        let roots = roots.into_iter().map(|root| Root::open(root.as_ref())).collect::<Result<Vec<_>>>()?;
        if roots.is_empty() {
            return Err(Error::tool("no directory to serve; name at least one"));
        }
        Ok(Self { roots })
    }

    /// Returns the names for messages.
    pub(crate) fn names(&self) -> String {
        let names: Vec<_> = self.roots.iter().map(|root| format!("`{}`", root.path.display())).collect();
        names.join(", ")
    }

    /// Resolves a path relative to the only root, an absolute path, or a `file` URI.
    pub(crate) fn place(&self, text: &str) -> Result<Place> {
        if text.contains('\0') {
            return Err(Error::tool("the path contains a NUL character"));
        }
        let is_uri = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("file:"));
        let path = if is_uri { text::file_path(text) } else { Some(PathBuf::from(text)) };
        let outside = || {
            Error::tool(format!(
                "`{text}` is outside of {}; use `--root DIR` to serve another directory",
                self.names()
            ))
        };
        let path = path.ok_or_else(outside)?;
        let (root, inside) = if path.has_root() || path.is_absolute() {
            let found = self.roots.iter().filter_map(|root| Some((root, root.strip(&path)?)));
            // The innermost root leaves the shortest rest.
            let found = found.min_by_key(|(_, inside)| inside.components().count());
            let (root, inside) = found.ok_or_else(outside)?;
            (root, inside.to_owned())
        } else {
            let [root] = self.roots.as_slice() else {
                let names = self.names();
                return Err(Error::tool(format!(
                    "expected an absolute path inside one of {names}, got `{text}`"
                )));
            };
            (root, path)
        };
        let wrong = |reason| Error::tool(format!("cannot use `{text}`: {reason}"));
        Ok(Place { root: root.clone(), inside: path::below(&inside).map_err(wrong)? })
    }
}

impl Place {
    /// Returns the absolute path, for display.
    pub(crate) fn path(&self) -> PathBuf {
        // Joining an empty path would add a trailing slash.
        if self.is_root() { self.root.path.clone() } else { self.root.path.join(&self.inside) }
    }

    /// Returns the absolute path as text.
    pub(crate) fn shown(&self) -> String {
        self.path().display().to_string()
    }

    /// Returns the `file` URI; `None` if the path is not Unicode.
    pub(crate) fn uri(&self) -> Option<String> {
        let resolved = if self.inside.components().any(|part| part == Component::ParentDir) {
            self.root.path.join(self.root.dir.canonicalize(&self.inside).ok()?)
        } else {
            self.path()
        };
        text::file_uri(&resolved)
    }

    pub(crate) fn is_root(&self) -> bool {
        self.inside.as_os_str().is_empty()
    }

    /// Returns the path relative to the root handle.
    fn relative(&self) -> &Path {
        if self.is_root() { Path::new(".") } else { &self.inside }
    }

    /// Returns the metadata, following links that stay inside the root.
    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.root.dir.metadata(self.relative())
    }

    /// Returns the metadata without following links.
    pub(crate) fn link_metadata(&self) -> io::Result<Metadata> {
        self.root.dir.symlink_metadata(self.relative())
    }

    /// Opens a directory.
    pub(crate) fn open_dir(&self) -> Result<Dir> {
        self.root.dir.open_dir(self.relative()).map_err(|error| self.failed("open", &error))
    }

    /// Opens a regular file for reading. Pipes and devices are refused without blocking.
    pub(crate) fn open_file(&self) -> Result<(File, Metadata)> {
        let seen = self.metadata().map_err(|error| self.failed("read", &error))?;
        self.check_file(&seen)?;
        let mut options = OpenOptions::new();
        options.read(true);
        if cfg!(unix) {
            // The file may have been replaced by a pipe in the meantime.
            options.nonblock(true);
        }
        let file =
            self.root.dir.open_with(&self.inside, &options).map_err(|error| self.failed("read", &error))?;
        let metadata = file.metadata().map_err(|error| self.failed("read", &error))?;
        self.check_file(&metadata)?;
        Ok((file, metadata))
    }

    fn check_file(&self, metadata: &Metadata) -> Result<()> {
        if metadata.is_file() {
            return Ok(());
        }
        let found = if metadata.is_dir() { "a directory" } else { "a pipe, socket or device" };
        Err(Error::tool(format!("`{}` is {found}, not a file", self.shown())))
    }

    /// Opens the parent directory for writing. Links are not followed: the target of a link is changed under its own name. Missing
    /// directories are created if `missing` says so.
    pub(crate) fn open_parent(&self, missing: Missing) -> Result<(Dir, OsString)> {
        let refused = |reason: String| Error::tool(format!("cannot change `{}`: {reason}", self.shown()));
        let mut names = Vec::new();
        for component in self.inside.components() {
            match component {
                Component::Normal(name) if path::is_git(name) => {
                    return Err(refused("files inside `.git` cannot be changed".into()));
                }
                Component::Normal(name) => names.push(name),
                _ => return Err(refused("the path contains `..`".into())),
            }
        }
        let Some((last, parents)) = names.split_last() else {
            return Err(refused("it is a root directory".into()));
        };
        let mut dir = self.root.dir.try_clone().map_err(|error| self.failed("open", &error))?;
        for name in parents {
            if missing == Missing::Make {
                make_dir(&dir, Path::new(name)).map_err(|error| self.failed("change", &error))?;
            }
            dir = match dir.open_dir_nofollow(name) {
                Ok(next) => next,
                Err(_) if dir.symlink_metadata(name).is_ok_and(|found| found.is_symlink()) => {
                    let link = name.display();
                    return Err(refused(format!("`{link}` is a symbolic link; use the path of its target")));
                }
                Err(error) => return Err(self.failed("change", &error)),
            };
        }
        Ok((dir, (*last).to_owned()))
    }

    /// Converts an IO error of this path.
    pub(crate) fn failed(&self, what: &str, error: &io::Error) -> Error {
        let shown = self.shown();
        // A permission error without an OS error code means that the path escapes the root.
        if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
            return Error::tool(format!(
                "cannot {what} `{shown}`: it is outside of `{}`",
                self.root.path.display()
            ));
        }
        Error::tool(format!("cannot {what} `{shown}`: {error}"))
    }
}

/// What to do about a missing parent directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Create it.
    Make,
    /// Fail.
    Fail,
}

/// Creates a directory, unless the name exists.
pub(crate) fn make_dir(dir: &Dir, name: &Path) -> io::Result<()> {
    match dir.create_dir(name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Opens a regular file in `dir` for reading, without following links.
pub(crate) fn open_plain(dir: &Dir, name: &Path) -> io::Result<(File, Metadata)> {
    let not_a_file = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
    if !dir.symlink_metadata(name)?.is_file() {
        return Err(not_a_file());
    }
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    if cfg!(unix) {
        options.nonblock(true);
    }
    let file = dir.open_with(name, &options)?;
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(not_a_file()) }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::{
        io::Read as _,
        os::unix::fs::symlink,
        sync::atomic::{AtomicBool, Ordering},
    };

    /// What of the roots of a jail a client gets that works in `folder`.
    fn check_within(root: &Root, folder: &Path, expected: Option<&Path>) {
        assert_eq!(root.within(folder).map(|root| root.path).as_deref(), expected, "{}", folder.display());
    }

    #[test]
    fn a_root_and_a_directory_share_the_smaller_one() {
        let whole = tempfile::tempdir().unwrap();
        let top = std::fs::canonicalize(whole.path()).unwrap();
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        symlink("/", top.join("a/out")).unwrap();
        let root = Root::open(&top.join("a")).unwrap();
        check_within(&root, &top, Some(&top.join("a")));
        check_within(&root, &top.join("a"), Some(&top.join("a")));
        check_within(&root, &top.join("a/b"), Some(&top.join("a/b")));
        for apart in ["a/none", "ab", "a/..", "a/b/../../x", "a/out", "a/out/etc"] {
            check_within(&root, &top.join(apart), None);
        }
        // Through a link, by which the root was named.
        symlink(top.join("a"), top.join("link")).unwrap();
        let root = Root::open(&top.join("link")).unwrap();
        check_within(&root, &top.join("link/b"), Some(&top.join("a/b")));
    }

    // V-90
    #[test]
    fn swapping_paths_between_checks_cannot_escape() {
        let whole = tempfile::tempdir().unwrap();
        let (top, outside) = (whole.path().join("top"), whole.path().join("outside"));
        for (folder, content) in [(&top.join("real"), "inside"), (&outside, "outside")] {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join("x"), content).unwrap();
        }
        symlink(&outside, top.join("link")).unwrap();
        let jail = Jail::open([&top]).unwrap();
        let place = jail.place("door/x").unwrap();
        let ended = AtomicBool::new(false);
        let (mut inside, mut swaps) = (0, 0);
        std::thread::scope(|scope| {
            let swapping = scope.spawn(|| {
                let mut swaps = 0_u32;
                while !ended.load(Ordering::Relaxed) {
                    for name in ["real", "link"] {
                        std::fs::rename(top.join(name), top.join("door")).unwrap();
                        std::fs::rename(top.join("door"), top.join(name)).unwrap();
                    }
                    swaps += 1;
                }
                swaps
            });
            for _ in 0..30_000 {
                if let Ok((mut file, _)) = place.open_file() {
                    let mut content = String::new();
                    file.read_to_string(&mut content).unwrap();
                    assert_eq!(content, "inside");
                    inside += 1;
                }
                if let Ok((dir, _)) = place.open_parent(Missing::Fail) {
                    assert_eq!(dir.read_to_string("x").unwrap(), "inside");
                }
            }
            ended.store(true, Ordering::Relaxed);
            swaps = swapping.join().unwrap();
        });
        assert!(inside > 0 && swaps > 100, "{inside} reads, {swaps} swaps");
    }
}
