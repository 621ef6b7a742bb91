//! Where the program keeps what is the user's own: remembered answers, history, and what runs.

use crate::surroundings::Surroundings;
use bowline_host::config::Platform;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The folder of what outlives a run, whether it is there yet or not. None without a home.
pub(crate) fn state(surroundings: &Surroundings) -> Option<PathBuf> {
    let named = absolute(surroundings, "XDG_STATE_HOME");
    let beneath = named.or_else(|| {
        let home = surroundings.home.as_deref()?;
        Some(match Platform::current() {
            Platform::Linux => home.join(".local").join("state"),
            Platform::MacOs => home.join("Library").join("Application Support"),
            Platform::Windows => home.join("AppData").join("Local"),
        })
    });
    beneath.map(|folder| folder.join("bowline"))
}

/// The folders of what lasts as long as a login, the best one first. The last needs neither a login nor a home.
pub(crate) fn runtime(surroundings: &Surroundings) -> Vec<PathBuf> {
    let login = absolute(surroundings, "XDG_RUNTIME_DIR").map(|folder| folder.join("bowline"));
    // Others may write there, so the name says whose it is; whose it really is, is checked.
    let shared = std::env::temp_dir().join(format!("bowline-{}", owner()));
    login.into_iter().chain(state(surroundings)).chain([shared]).collect()
}

/// Creates a folder that only its owner may look into. One that is there has to be like that already.
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    if is_private(folder) {
        return Ok(());
    }
    let message = format!(
        "expected that `{}` is a folder that only you may write, as after `chmod 700`",
        folder.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Whether what is in a folder is by the user and nobody else.
#[cfg(unix)]
pub(crate) fn is_private(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::symlink_metadata(folder)
        .is_ok_and(|found| found.is_dir() && found.uid() == owner() && found.mode() & 0o022 == 0)
}

/// Whether what is in a folder is by the user and nobody else: folders of users are, on this system.
#[cfg(not(unix))]
pub(crate) fn is_private(folder: &Path) -> bool {
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

/// A folder that a variable names. A relative one means nothing, since it would be another one in every folder.
fn absolute(surroundings: &Surroundings, variable: &str) -> Option<PathBuf> {
    surroundings.environment.variable(variable).map(PathBuf::from).filter(|folder| folder.is_absolute())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_folder_that_others_may_write_or_have_put_there_is_not_used() {
        let place = tempfile::tempdir().expect("there is a folder for temporary files");
        let own = place.path().join("own");
        make_private(&own).expect("it can be created");
        assert!(is_private(&own));
        make_private(&own).expect("it is there already");
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).expect("it is ours");
        assert!(make_private(&own).is_err());
        fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).expect("it is ours");
        let link = place.path().join("link");
        symlink(&own, &link).expect("links can be made");
        assert!(make_private(&link).is_err());
    }
}
