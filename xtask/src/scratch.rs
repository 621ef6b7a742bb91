//! Small trees of files for tests, removed when they go out of scope.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

static COUNTER: AtomicUsize = AtomicUsize::new(0);

/// A folder of its own with the files a test asked for.
#[derive(Debug)]
pub(crate) struct Tree(PathBuf);

impl Tree {
    /// Writes `files`, given as path and text.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("xtask-{}-{number}", process::id()));
        fs::create_dir_all(&root).expect("the temporary folder is writable");
        let tree = Self(root);
        for (path, text) in files {
            tree.write(path, text);
        }
        tree
    }

    pub(crate) fn root(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("a file has a parent directory"))
            .expect("the folder is writable");
        fs::write(path, text).expect("the folder is writable");
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // What cannot be removed stays in the temporary folder; a test does not fail for it.
        let _ = fs::remove_dir_all(&self.0);
    }
}
