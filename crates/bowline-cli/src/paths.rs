//! Private directories: where runtime state is kept.

use crate::environment::ProcessEnvironment;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Returns the directories for runtime state, in order of preference. The last one needs neither a login session nor a home.
pub(crate) fn runtime_dirs(environment: &ProcessEnvironment) -> Vec<PathBuf> {
    let login = environment.variables.variable("XDG_RUNTIME_DIR").map(PathBuf::from);
    // A relative path would depend on the current directory.
    let login = login.filter(|folder| folder.is_absolute()).map(|folder| folder.join("bowline"));
    // Other users can write to this directory. The owner of the entry is checked before it is used.
    let shared = environment.temporary.join(format!("bowline-{}", owner()));
    login.into_iter().chain(environment.state_dir()).chain([shared]).collect()
}

/// Creates a directory that only its owner can access. An existing one must already be private.
pub(crate) fn create_private_dir(folder: &Path) -> io::Result<()> {
    bowline_files::create_folder(folder)?;
    if is_private_dir(folder) {
        return Ok(());
    }
    let message =
        format!("directory `{}` must be writable only by you; run `chmod 700` on it", folder.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Returns whether only the user can write to a directory.
#[cfg(unix)]
pub(crate) fn is_private_dir(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::symlink_metadata(folder)
        .is_ok_and(|found| found.is_dir() && found.uid() == owner() && found.mode() & 0o022 == 0)
}

/// Returns whether only the user can write to a directory. User directories are private on this system.
#[cfg(not(unix))]
pub(crate) fn is_private_dir(folder: &Path) -> bool {
    folder.is_dir()
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
    fn a_directory_that_others_can_write_is_not_used() {
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
