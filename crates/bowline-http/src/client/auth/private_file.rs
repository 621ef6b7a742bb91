//! Reads files, and checks folders, that only their owner may access.

use bowline_files::{is_owner_only, private};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    path::Path,
};

/// Creates a folder with mode 0700. An existing folder must have that mode already.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    bowline_files::create_folder(folder)?;
    check_folder(folder)
}

/// Fails unless the path is a folder that only the user can access.
pub(super) fn check_folder(folder: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    if found.is_dir() && is_owner_only(&found) {
        return Ok(());
    }
    let message = "it must be a folder that only you can access; run `chmod 700` on it";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Reads a file. `None` if there is none. Fails if others can access it, or if it is longer than `limit`.
pub(super) fn read(path: &Path, limit: u64) -> io::Result<Option<String>> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file"));
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !is_owner_only(&file.metadata()?) {
        let message = "it must be readable only by you; run `chmod 600` on it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    let mut text = String::new();
    file.take(limit + 1).read_to_string(&mut text)?;
    if u64::try_from(text.len()).is_ok_and(|length| length > limit) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it is longer than {limit} bytes")));
    }
    Ok(Some(text))
}

/// Opens a lock file, and creates it if there is none.
pub(super) fn open_lock(path: &Path) -> io::Result<File> {
    private(OpenOptions::new().read(true).write(true).create(true)).open(path)
}
