//! Appends whole lines to the log file and rotates it.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bowline_files::{create_folder, private};

/// A log file that several processes append to.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    max_bytes: u64,
    keep: usize,
}

impl LogFile {
    pub(super) fn new(path: PathBuf, max_bytes: u64, keep: usize) -> Self {
        Self { path, max_bytes, keep }
    }

    /// Appends complete lines. Opens the file each time, because another process may have rotated it.
    pub(super) fn append(&self, lines: &str) -> io::Result<()> {
        let lock = private(OpenOptions::new().write(true).create(true)).open(self.beside(".", ".lock"))?;
        lock.lock()?;
        let mut file = self.open()?;
        let length = file.metadata()?.len();
        let new = u64::try_from(lines.len()).unwrap_or(u64::MAX);
        if length > 0 && length.saturating_add(new) > self.max_bytes {
            drop(file);
            if let Err(error) = self.rotate() {
                // If rotation fails, keep writing to the same file.
                tracing::warn!(%error, path = %self.path.display(), "cannot rotate the audit log");
            }
            file = self.open()?;
        }
        if file.metadata()?.len() > 0 && !ends_with_line(&mut file)? {
            // A process was stopped in the middle of a line; terminate that line.
            file.write_all(b"\n")?;
        }
        file.write_all(lines.as_bytes())
    }

    /// Checks that the file is writable.
    pub(super) fn check(&self) -> io::Result<()> {
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            create_folder(folder)?;
        }
        self.append("")
    }

    fn open(&self) -> io::Result<fs::File> {
        private(OpenOptions::new().read(true).append(true).create(true)).open(&self.path)
    }

    fn rotate(&self) -> io::Result<()> {
        if self.keep == 0 {
            return remove(&self.path);
        }
        let old = |number: usize| self.beside("", &format!(".{number}"));
        remove(&old(self.keep))?;
        for number in (1..self.keep).rev() {
            match fs::rename(old(number), old(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.path, old(1))
    }

    fn beside(&self, prefix: &str, suffix: &str) -> PathBuf {
        let mut name = OsString::from(prefix);
        name.push(self.path.file_name().unwrap_or_default());
        name.push(suffix);
        self.path.with_file_name(name)
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn ends_with_line(file: &mut fs::File) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
