//! Files that only their owner can access, replaced atomically.
//!
//! Modes exist on Unix only. On other systems, files are as private as the folder that they are in.

use std::{
    collections::hash_map::RandomState,
    fs::{self, DirBuilder, Metadata, OpenOptions},
    hash::{BuildHasher, Hasher},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// Distinguishes the temporary files of one process.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Creates a folder, and its parents, with mode 0700. An existing folder keeps its mode.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Sets mode 0600 for the file that the options create.
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Writes a new file with mode 0600. Fails if the file exists.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = private(OpenOptions::new().write(true).create_new(true)).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Replaces a file atomically: writes a new file next to it with mode 0600, and renames it.
///
/// The new content survives a power failure. A symbolic link is replaced, not followed.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    // Two containers that share a folder may have the same process id.
    let random = RandomState::new().build_hasher().finish();
    let new = temporary(path, &format!("{}-{number}-{random:016x}", std::process::id()));
    let written = write_new(&new, bytes).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&new);
    }
    written?;
    sync_folder_of(path)
}

/// Removes a file, if it exists, and the temporary files that killed processes left while they replaced it.
pub fn remove(path: &Path) -> io::Result<()> {
    let prefix = temporary(path, "");
    let prefix = prefix.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    for entry in path.parent().map(fs::read_dir).transpose()?.into_iter().flatten() {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let own = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".new"));
        // With another dot it belongs to another file.
        if own.is_some_and(|own| !own.contains('.')) {
            fs::remove_file(entry.path())?;
        }
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Returns whether the current user owns the file and nobody else can access it. Always true where files have no modes.
#[cfg(unix)]
pub fn is_owner_only(found: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    const OTHERS: u32 = 0o077;
    found.uid() == rustix::process::geteuid().as_raw() && found.mode() & OTHERS == 0
}

/// Returns whether the current user owns the file and nobody else can access it. Always true where files have no modes.
#[cfg(not(unix))]
pub fn is_owner_only(_: &Metadata) -> bool {
    true
}

/// Returns `.NAME.mark.new` for a file `NAME.json`.
fn temporary(path: &Path, mark: &str) -> PathBuf {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{mark}.new"))
}

/// Writes a rename to the disk.
#[cfg(unix)]
fn sync_folder_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => fs::File::open(".")?.sync_all(),
        Some(folder) => fs::File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// Folders cannot be opened as files on this system.
#[cfg(not(unix))]
fn sync_folder_of(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("the folder can be read");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("the entry can be read").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_replaced_file_is_whole_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().expect("temporary folders can be created");
        let path = folder.path().join("tokens.json");
        for text in ["one", "two"] {
            replace(&path, text.as_bytes()).expect("the file can be replaced");
            assert_eq!(fs::read_to_string(&path).expect("the file can be read"), text);
        }
        assert_eq!(names(folder.path()), ["tokens.json"]);
        assert!(is_owner_only(&fs::metadata(&path).expect("the file exists")));
    }

    #[test]
    fn a_failed_replacement_leaves_the_old_file() {
        let folder = tempfile::tempdir().expect("temporary folders can be created");
        let path = folder.path().join("taken");
        fs::create_dir_all(path.join("inside")).expect("folders can be created");
        assert!(replace(&path, b"text").is_err());
        assert_eq!(names(folder.path()), ["taken"]);
    }

    #[test]
    fn removing_a_file_removes_what_killed_processes_left() {
        let folder = tempfile::tempdir().expect("temporary folders can be created");
        for name in ["a.json", ".a.4711-0.new", "b.json", ".b.4711-0.new"] {
            fs::write(folder.path().join(name), name).expect("the file can be written");
        }
        remove(&folder.path().join("a.json")).expect("the file can be removed");
        remove(&folder.path().join("a.json")).expect("a missing file is not an error");
        assert_eq!(names(folder.path()), [".b.4711-0.new", "b.json"]);
    }

    #[cfg(unix)]
    #[test]
    fn folders_and_files_are_for_the_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("temporary folders can be created");
        let inner = folder.path().join("deep/inner");
        create_folder(&inner).expect("folders can be created");
        let mode = |path: &Path| fs::metadata(path).expect("the path exists").permissions().mode() & 0o777;
        assert_eq!((mode(&inner), mode(&folder.path().join("deep"))), (0o700, 0o700));
        let path = inner.join("file");
        write_new(&path, b"text").expect("the file can be written");
        assert_eq!(mode(&path), 0o600);
        assert!(write_new(&path, b"text").is_err());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("the mode can be set");
        assert!(!is_owner_only(&fs::metadata(&path).expect("the file exists")));
    }
}
