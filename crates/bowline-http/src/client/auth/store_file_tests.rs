//! Tests of the store in files.

use super::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder for one test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("bowline-store-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Self(folder)
    }

    fn store(&self) -> FileStore {
        FileStore::at(self.0.join("credentials")).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn key(account: &str) -> StoreKey {
    StoreKey::new("https://notes.example/mcp", account).unwrap()
}

fn record(token: &str) -> Record {
    Record::from_json(&format!(
        r#"{{ "version": 1, "registrations": [], "tokens": {{ "issuer": "https://as.example",
            "resource": "https://notes.example/mcp", "client_id": "c", "origin": "dynamic",
            "access_token": "{token}", "scheme": "Bearer", "refresh_token": "canary-refresh", "issued": 1,
            "expires": 61, "asked": "a b", "granted": "a", "token_endpoint": "https://as.example/token",
            "revocation_endpoint": null, "key": null }} }}"#
    ))
    .unwrap()
}

#[tokio::test]
async fn records_are_kept_per_server_and_account() {
    let folder = Folder::new();
    let store = folder.store();
    assert_eq!(store.load(&key("")).await.unwrap(), None);
    store.save(&key(""), &record("one")).await.unwrap();
    store.save(&key("work"), &record("two")).await.unwrap();
    store.save(&key(""), &record("three")).await.unwrap();
    // Another process has a store of its own.
    let other = folder.store();
    assert_eq!(other.load(&key("")).await.unwrap(), Some(record("three")));
    assert_eq!(other.list().await.unwrap(), [key(""), key("work")]);
    other.remove(&key("")).await.unwrap();
    other.remove(&key("")).await.unwrap();
    assert_eq!(store.list().await.unwrap(), [key("work")]);
    assert_eq!(store.load(&key("")).await.unwrap(), None);
}

#[tokio::test]
async fn names_of_files_do_not_show_the_server() {
    let folder = Folder::new();
    let name = folder.store().path(&key("work")).file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(name.len(), 32 + ".json".len());
    assert!(!name.contains("notes"), "{name}");
}

#[tokio::test]
async fn v57_a_damaged_file_is_an_error_that_quotes_nothing() {
    let folder = Folder::new();
    let store = folder.store();
    store.save(&key(""), &record("canary-access")).await.unwrap();
    let path = store.path(&key(""));
    let good = fs::read_to_string(&path).unwrap();
    for (text, reason) in [
        (good.replace("\"version\":1", "\"version\":9"), "version 9"),
        (good[..good.len() - 2].to_owned(), "damaged at line 1"),
        (String::new(), "damaged at line 1"),
        (format!("{good}{}", " ".repeat(1 << 20)), "longer than 1048576 bytes"),
    ] {
        assert_ne!(text, good);
        fs::write(&path, &text).unwrap();
        let error = store.load(&key("")).await.unwrap_err();
        assert!(error.is_store() && error.to_string().contains(reason), "{reason}: {error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        assert!(!error.to_string().contains("canary"), "{error}");
        assert!(store.list().await.is_err());
    }
    // The file of one server in the place of another's.
    fs::write(&path, &good).unwrap();
    fs::rename(&path, store.path(&key("work"))).unwrap();
    let error = store.load(&key("work")).await.unwrap_err().to_string();
    assert!(error.contains("expected https://notes.example/mcp (work)"), "{error}");
}

// proves: ATOK-12, ATOK-13, ATOK-17
#[cfg(unix)]
#[tokio::test]
async fn a_file_or_folder_that_others_can_access_is_an_error() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let store = folder.store();
    store.save(&key(""), &record("one")).await.unwrap();
    let path = store.path(&key(""));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(store.folder())), (0o600, 0o700));
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    set(&path, 0o640);
    let error = store.load(&key("")).await.unwrap_err().to_string();
    assert!(error.ends_with("it must be readable only by you; run `chmod 600` on it"), "{error}");
    set(&path, 0o600);
    set(store.folder(), 0o750);
    assert!(store.load(&key("")).await.is_err());
    assert!(store.save(&key(""), &record("two")).await.is_err());
    assert!(FileStore::at(store.folder()).unwrap_err().to_string().contains("chmod 700"));
    set(store.folder(), 0o700);
    fs::rename(&path, folder.0.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(folder.0.join("elsewhere"), &path).unwrap();
    assert!(store.load(&key("")).await.unwrap_err().to_string().contains("not a regular file"));
}

#[tokio::test]
async fn logging_out_removes_what_a_killed_process_left() {
    let folder = Folder::new();
    let store = folder.store();
    store.save(&key(""), &record("one")).await.unwrap();
    store.save(&key("work"), &record("two")).await.unwrap();
    let left = store.path(&key("")).with_extension("");
    let left = left.with_file_name(format!(".{}.4711-0.new", left.file_name().unwrap().to_string_lossy()));
    fs::write(&left, "canary").unwrap();
    store.remove(&key("")).await.unwrap();
    assert!(!left.exists() && store.path(&key("work")).exists());
}

#[tokio::test]
async fn v58_each_record_has_its_own_lock() {
    let folder = Folder::new();
    let mut store = folder.store();
    store.lock_timeout = Duration::ZERO;
    let held = store.lock(&key("")).await.unwrap();
    assert!(!held.is_after_interruption());
    // A lock that is busy for long is not a damaged store: an access token that is still valid is used.
    let error = store.lock(&key("")).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    let _other = store.lock(&key("work")).await.unwrap();
    // The data can be read and replaced meanwhile; the lock is another file.
    store.save(&key(""), &record("one")).await.unwrap();
    drop(held);
    store.lock(&key("")).await.unwrap();
}

#[tokio::test]
async fn v57_a_sealed_file_contains_no_secret_and_opens_only_with_its_key() {
    let folder = Folder::new();
    let sealing = |byte: u8| SealingKey::new(&[byte; SealingKey::LENGTH]).unwrap();
    // A file that anybody could have written is refused.
    folder.store().save(&key(""), &record("canary-access")).await.unwrap();
    let store = folder.store().sealed_with(sealing(1));
    let error = store.load(&key("")).await.unwrap_err();
    assert!(error.is_store() && error.to_string().contains("it is not sealed"), "{error}");
    store.save(&key(""), &record("canary-access")).await.unwrap();
    let file = fs::read_to_string(store.path(&key(""))).unwrap();
    assert!(!file.contains("canary") && file.contains("https://notes.example/mcp"), "{file}");
    assert_eq!(store.load(&key("")).await.unwrap(), Some(record("canary-access")));
    assert_eq!(store.list().await.unwrap(), [key("")]);
    for other in [folder.store(), folder.store().sealed_with(sealing(2))] {
        let error = other.load(&key("")).await.unwrap_err();
        assert!(error.is_store() && error.to_string().contains("sealed"), "{error}");
    }
    // The record of one account is not that of another.
    fs::write(store.path(&key("work")), file.replace("\"account\":\"\"", "\"account\":\"work\"")).unwrap();
    set_private(&store.path(&key("work")));
    let error = store.load(&key("work")).await.unwrap_err();
    assert!(error.to_string().contains("was changed"), "{error}");
}

/// Lets only this user read a file.
fn set_private(path: &Path) {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    #[cfg(not(unix))]
    let _ = path;
}
