//! The file itself.

use std::time::Duration;

use bowline_sqlite::{Options, Sqlite};
use bowline_store::{ErrorKind, Key, Put, Records};

const MINUTE: Duration = Duration::from_secs(60);

fn key() -> [Key; 1] {
    [Key::new("a").unwrap()]
}

#[tokio::test]
async fn namespaces_in_one_file_do_not_see_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let one = Options::new().namespace("one").open(&path).unwrap();
    let two = Options::new().namespace("two").open(&path).unwrap();
    one.put(Put::create(key()[0].clone(), "1", MINUTE)).await.unwrap();
    assert_eq!(two.get(&key()).await.unwrap(), [None]);
    two.put(Put::create(key()[0].clone(), "2", MINUTE)).await.unwrap();
    assert_eq!(one.get(&key()).await.unwrap()[0].as_ref().unwrap().value, "1");
}

#[tokio::test]
async fn records_stay_when_the_store_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let store = Options::new().synchronous_full().open(&path).unwrap();
    let version = store.put(Put::create(key()[0].clone(), "1", MINUTE)).await.unwrap();
    drop(store);
    let record = Sqlite::open(&path).unwrap().get(&key()).await.unwrap().remove(0).unwrap();
    assert_eq!((record.value.as_ref(), record.version), (&b"1"[..], version));
}

#[cfg(unix)]
#[test]
fn a_new_file_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let _store = Sqlite::open(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    let error = Sqlite::open(&path).unwrap_err();
    assert!(
        error.to_string().ends_with("other users can access it (mode 640); run `chmod 600` on it"),
        "{error}"
    );
    // The log takes the mode of the file.
    assert_eq!(
        std::fs::metadata(folder.path().join("state.db-wal")).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn a_file_that_is_not_ours_is_refused_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "not a database, but a text of more than one hundred bytes. ".repeat(20)).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = Sqlite::open(&path).unwrap_err();
    assert!(error.to_string().ends_with("file is not a database"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);

    let error = Sqlite::open(folder.path().join("missing/state.db")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[test]
fn a_file_of_a_later_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    drop(Sqlite::open(&path).unwrap());
    rusqlite::Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 9").unwrap();
    let error = Sqlite::open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error
            .to_string()
            .ends_with("the file has format 9, and this version knows 1; use a newer version of the program"),
        "{error}"
    );
}
