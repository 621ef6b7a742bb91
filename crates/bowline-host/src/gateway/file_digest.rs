//! Digests of the files that an approval covers.

use bowline_config::open_regular;
use bowline_proto::seal::digest;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

/// The most that is read of a file whose content is approved.
const MAX_CONTENT: u64 = 64 << 20;

/// A digest of what is in a file, and whether all of it was read; nothing if it is not a file that can be read.
fn content_digest(path: &Path) -> Option<([u8; 32], bool)> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let file = open_regular(path).ok()?;
    let found = file.metadata().ok()?;
    let is_whole = found.len() <= MAX_CONTENT;
    let changed = found.modified().ok().filter(|_| !is_whole);
    let changed =
        changed.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
    file.take(MAX_CONTENT).read_to_end(&mut bytes).ok()?;
    let parts = [&bytes[..], &found.len().to_le_bytes(), &changed.as_nanos().to_le_bytes()];
    Some((digest(&parts), is_whole))
}

/// Digests of files, so that a review of the configuration reads only what changed.
///
/// It is never the last check: before a server is started, its files are read again without it.
#[derive(Debug, Default)]
pub(super) struct DigestCache {
    digests: Mutex<HashMap<PathBuf, (FileStamp, ContentDigest)>>,
    #[cfg(test)]
    reads: std::sync::atomic::AtomicUsize,
}

/// A digest of a file, and whether the whole file was read.
type ContentDigest = ([u8; 32], bool);
/// Device, inode, length, and the seconds and nanoseconds of the last change.
type FileStamp = (u64, u64, u64, i64, i64);

/// How many digests are kept.
const MAX_DIGESTS: usize = 4096;
/// A file that changed so recently can change again without a different stamp.
const FRESH: Duration = Duration::from_secs(2);

impl DigestCache {
    /// Returns the digest of a file, or `None` if it is not a file that can be read.
    pub(super) fn digest(&self, path: &Path) -> Option<ContentDigest> {
        let stamp = stamp(path);
        let lock = || self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, digest)) = lock().get(path)
            && Some(*known) == stamp
        {
            return Some(*digest);
        }
        #[cfg(test)]
        self.reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let digest = content_digest(path)?;
        let mut digests = lock();
        if digests.len() >= MAX_DIGESTS {
            digests.clear();
        }
        // A stamp from before the read: what changes during the read has another one.
        if let Some(stamp) = stamp {
            digests.insert(path.to_owned(), (stamp, digest));
        }
        Some(digest)
    }
}

/// Identifies the content of a file. The time of the last change cannot be set by programs, unlike that of modification.
#[cfg(unix)]
fn stamp(path: &Path) -> Option<FileStamp> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).ok()?;
    let changed = Duration::new(found.ctime().try_into().ok()?, found.ctime_nsec().try_into().ok()?);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let is_settled = now.checked_sub(changed).is_some_and(|age| age >= FRESH);
    is_settled.then(|| (found.dev(), found.ino(), found.len(), found.ctime(), found.ctime_nsec()))
}

/// Without a time that programs cannot set, files are read each time.
#[cfg(not(unix))]
fn stamp(_: &Path) -> Option<FileStamp> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use tempfile::tempdir;

    #[test]
    fn a_file_that_did_not_change_is_read_once() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("server.js");
        std::fs::write(&path, "one").unwrap();
        let cache = DigestCache::default();
        let reads = || cache.reads.load(std::sync::atomic::Ordering::Relaxed);
        // A file that was written just now is read each time, since it can change within the same time stamp.
        assert_eq!(cache.digest(&path), cache.digest(&path));
        assert_eq!(reads(), 2);
        // This file is older than the program that runs the test.
        let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(stamp(&old).is_some());
        assert_eq!(cache.digest(&old), cache.digest(&old));
        assert_eq!(reads(), 3);
        let first = cache.digest(&path);
        std::fs::write(&path, "two").unwrap();
        assert_ne!(cache.digest(&path), first);
    }
}
