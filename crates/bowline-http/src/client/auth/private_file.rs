//! Files and folders that only their owner can access.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// Distinguishes the temporary files of one process.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Creates a folder with mode 0700. An existing folder must have that mode already.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
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

/// Replaces a file atomically: writes a new file next to it, and renames it.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let new = temporary(path, &format!("{}-{number}", std::process::id()));
    let written = write_new(&new, text).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&new);
    }
    written?;
    // The rename itself must survive a power failure, because a rotated token cannot be fetched again.
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Removes a file, and what a killed process left of writing it.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let prefix = temporary(path, "");
    let prefix = prefix.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    for entry in path.parent().map(fs::read_dir).transpose()?.into_iter().flatten() {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(&prefix) && name.ends_with(".new") {
            fs::remove_file(entry.path())?;
        }
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Opens a lock file, and creates it if there is none.
pub(super) fn open_lock(path: &Path) -> io::Result<File> {
    private(OpenOptions::new().read(true).write(true).create(true)).open(path)
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = private(OpenOptions::new().write(true).create_new(true)).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Returns `.NAME.mark.new` for a file `NAME.json`.
fn temporary(path: &Path, mark: &str) -> PathBuf {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{mark}.new"))
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(unix)]
fn is_owner_only(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    const OTHERS: u32 = 0o077;
    found.uid() == rustix::process::geteuid().as_raw() && found.mode() & OTHERS == 0
}

/// User folders are private on this system.
#[cfg(not(unix))]
fn is_owner_only(_: &fs::Metadata) -> bool {
    true
}
