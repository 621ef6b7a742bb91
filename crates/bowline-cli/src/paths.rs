//! Folders for what lasts as long as a login, which nobody else can write; and files that are whole, and their owner's alone.

use crate::environment::ProcessEnvironment;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The folders of what lasts as long as a login, the best one first. The last needs neither a login nor a home.
pub(crate) fn runtime_dirs(environment: &ProcessEnvironment) -> Vec<PathBuf> {
    let login = environment.variables.variable("XDG_RUNTIME_DIR").map(PathBuf::from);
    // A relative one would be another one in every folder.
    let login = login.filter(|folder| folder.is_absolute()).map(|folder| folder.join("bowline"));
    // Others may write there, so the name says whose it is; whose it really is, is checked.
    let shared = environment.temporary.join(format!("bowline-{}", owner()));
    login.into_iter().chain(environment.state_dir()).chain([shared]).collect()
}

/// Creates a folder that only its owner may look into. One that is there has to be like that already.
pub(crate) fn create_private_dir(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    if is_private_dir(folder) {
        return Ok(());
    }
    let message = format!(
        "expected that `{}` is a folder that only you may write, as after `chmod 700`",
        folder.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Options by which a file that is created is its owner's alone.
pub(crate) fn private_options(options: &mut fs::OpenOptions) -> &mut fs::OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Writes a new file that is its owner's alone, whatever the umask is.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A file that a stopped process left has the mode it had.
    let _: io::Result<()> = fs::remove_file(path);
    let mut file = private_options(fs::OpenOptions::new().write(true).create_new(true)).open(path)?;
    io::Write::write_all(&mut file, bytes)?;
    file.sync_all()
}

/// Puts a file in the place of another. It is written beside it and moved, so that nobody reads half of it.
pub(crate) fn replace_file(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let placed = write(&new).and_then(|()| fs::rename(&new, path));
    if placed.is_err() {
        // The error that matters is the one that came first.
        let _: io::Result<()> = fs::remove_file(&new);
    }
    placed
}

/// Whether what is in a folder is by the user and nobody else.
#[cfg(unix)]
pub(crate) fn is_private_dir(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::symlink_metadata(folder)
        .is_ok_and(|found| found.is_dir() && found.uid() == owner() && found.mode() & 0o022 == 0)
}

/// Whether what is in a folder is by the user and nobody else: folders of users are, on this system.
#[cfg(not(unix))]
pub(crate) fn is_private_dir(folder: &Path) -> bool {
    folder.is_dir()
}

/// Whether a file is the user's, and nobody else can read or write it.
#[cfg(unix)]
pub(crate) fn is_owner_only(file: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    const OTHERS: u32 = 0o077;
    file.uid() == owner() && file.mode() & OTHERS == 0
}

/// Whether a file is the user's alone: those in folders of users are, on this system.
#[cfg(not(unix))]
pub(crate) fn is_owner_only(_: &fs::Metadata) -> bool {
    true
}

#[cfg(unix)]
fn owner() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn owner() -> String {
    std::env::var("USERNAME").unwrap_or_default()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_folder_that_others_may_write_or_have_put_there_is_not_used() {
        let place = tempfile::tempdir().expect("there is a folder for temporary files");
        let own = place.path().join("own");
        create_private_dir(&own).expect("it can be created");
        assert!(is_private_dir(&own));
        create_private_dir(&own).expect("it is there already");
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).expect("it is ours");
        assert!(create_private_dir(&own).is_err());
        fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).expect("it is ours");
        let link = place.path().join("link");
        symlink(&own, &link).expect("links can be made");
        assert!(create_private_dir(&link).is_err());
    }
}
