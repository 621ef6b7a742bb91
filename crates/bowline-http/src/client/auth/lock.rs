//! Locks a file against other processes and other tasks.

use std::{
    fs::{File, TryLockError},
    io::{self, Read, Seek, Write},
    path::Path,
    time::{Duration, Instant},
};

/// The first and the longest pause between two attempts.
const PAUSES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));
/// The longest note that is read from a lock file.
const MAX_NOTE: u64 = 64;

/// An exclusive lock. Dropping it releases the lock.
///
/// While it is held, the file contains the id of the process. A process that is killed leaves this note behind, so the next
/// holder learns that its predecessor did not finish.
#[derive(Debug)]
pub(super) struct FileLock {
    file: File,
    interrupted: bool,
}

impl FileLock {
    /// Takes the lock. Fails with [`io::ErrorKind::TimedOut`] if others hold it for longer than `timeout`.
    ///
    /// It polls, because a thread that is blocked in `File::lock` cannot be stopped and would delay the end of the program.
    pub(super) async fn acquire(path: &Path, timeout: Duration) -> io::Result<Self> {
        let (start, mut pause) = (Instant::now(), PAUSES.0);
        // The file is never deleted: a process could otherwise lock a file that is no longer there.
        let file = super::private_file::open_lock(path)?;
        loop {
            match file.try_lock() {
                Ok(()) => return Self::held(file),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if start.elapsed() >= timeout => {
                    let holder = match note(&file)?.as_str() {
                        "" => "another task or process".to_owned(),
                        id => format!("process {id}"),
                    };
                    let message = format!("{holder} has kept it locked for {} s", timeout.as_secs());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, message));
                }
                Err(TryLockError::WouldBlock) => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
    }

    fn held(mut file: File) -> io::Result<Self> {
        let interrupted = !note(&file)?.is_empty();
        file.set_len(0)?;
        file.rewind()?;
        write!(file, "{}", std::process::id())?;
        Ok(Self { file, interrupted })
    }

    /// Returns whether the process that had the lock before ended without releasing it.
    pub(super) fn is_after_interruption(&self) -> bool {
        self.interrupted
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file releases the lock even if this fails.
        let _ = self.file.set_len(0);
        let _ = self.file.unlock();
    }
}

/// Returns the note in a lock file: the id of a process, or nothing.
fn note(mut file: &File) -> io::Result<String> {
    let mut note = Vec::new();
    file.rewind()?;
    file.take(MAX_NOTE).read_to_end(&mut note)?;
    Ok(String::from_utf8_lossy(&note).chars().filter(char::is_ascii_digit).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("bowline-lock-{}", std::process::id()));
        super::super::private_file::create_folder(&folder).unwrap();
        folder.join(name)
    }

    #[tokio::test]
    async fn one_holds_the_lock_and_the_others_wait() {
        let path = path("exclusive");
        let first = FileLock::acquire(&path, Duration::ZERO).await.unwrap();
        let error = FileLock::acquire(&path, Duration::ZERO).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let id = std::process::id();
        assert_eq!(error.to_string(), format!("process {id} has kept it locked for 0 s"));
        let (second, ()) = tokio::join!(FileLock::acquire(&path, Duration::from_secs(60)), async {
            tokio::task::yield_now().await;
            drop(first);
        });
        assert!(!second.unwrap().is_after_interruption());
    }

    #[tokio::test]
    async fn a_killed_holder_is_noticed_once() {
        let path = path("killed");
        // What a process leaves that is killed while it holds the lock.
        super::super::private_file::open_lock(&path).unwrap().write_all(b"4711").unwrap();
        let next = FileLock::acquire(&path, Duration::ZERO).await.unwrap();
        assert!(next.is_after_interruption());
        drop(next);
        assert!(!FileLock::acquire(&path, Duration::ZERO).await.unwrap().is_after_interruption());
    }
}
