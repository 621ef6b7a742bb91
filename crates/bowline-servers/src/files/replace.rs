//! Replaces files atomically.

use cap_fs_ext::MetadataExt as _;
use cap_std::{
    fs::{Dir, Metadata, OpenOptions},
    time::SystemTime,
};
use std::{
    hash::{BuildHasher as _, RandomState},
    io::{self, Write as _},
    path::Path,
};

/// Identifies a version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    number: u64,
    length: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            number: metadata.ino(),
            length: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }
}

/// Writes a temporary file and renames it. The permissions are kept; hard links keep the old content.
///
/// With `expected`, fails if the file was changed in the meantime.
pub(super) fn replace(dir: &Dir, name: &Path, bytes: &[u8], expected: Option<Stamp>) -> io::Result<()> {
    let before = match dir.symlink_metadata(name) {
        Ok(metadata) if metadata.is_file() => Some(metadata),
        Ok(_) => {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path exists and is not a file"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let temporary = TemporaryFile::new(dir)?;
    let mut file = dir.open_with(&temporary.name, OpenOptions::new().write(true).create_new(true))?;
    file.write_all(bytes)?;
    if let Some(before) = &before {
        file.set_permissions(before.permissions())?;
    }
    file.sync_all()?;
    drop(file);
    if let Some(expected) = expected
        && dir.symlink_metadata(name).ok().map(|now| Stamp::of(&now)) != Some(expected)
    {
        return Err(io::Error::other("the file was changed by another program; read it again"));
    }
    dir.rename(&temporary.name, dir, name)?;
    temporary.keep();
    Ok(())
}

/// A temporary file next to the target. It is removed unless it is kept.
struct TemporaryFile<'a> {
    dir: &'a Dir,
    name: String,
}

impl<'a> TemporaryFile<'a> {
    fn new(dir: &'a Dir) -> io::Result<Self> {
        for _ in 0..8 {
            let name = format!(".bowline-{:016x}.tmp", RandomState::new().hash_one(0));
            if dir.symlink_metadata(&name).is_err() {
                return Ok(Self { dir, name });
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "cannot find a free name for a temporary file"))
    }

    fn keep(mut self) {
        self.name.clear();
    }
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            drop(self.dir.remove_file(&self.name));
        }
    }
}
