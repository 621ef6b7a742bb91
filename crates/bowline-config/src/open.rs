//! Opens files whose path or content others may control.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// Opens a regular file for reading. Fails for a device, which may have no end, and a pipe, which waits for a writer.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Checks before opening, because opening a device can have effects.
    check(&fs::metadata(path)?)?;
    let file = open(path)?;
    // The file may have been replaced in the meantime.
    check(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file of at most `limit` bytes.
pub fn read_regular(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    open_regular(path)?.take(most).read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("expected at most {limit} bytes")));
    }
    Ok(bytes)
}

fn check(found: &fs::Metadata) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let kind = if found.is_dir() { "a folder" } else { "a device or a pipe" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("expected a regular file, got {kind}")))
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    // Without NONBLOCK, opening a pipe waits for a writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}
