//! The settings of a server, and encrypted connections.

use bowline_store::{ErrorKind, Key, Put, PutError, Records};

use crate::server::{namespace, options, url};

#[tokio::test]
async fn a_server_that_evicts_is_refused() {
    let Some(url) = url("BOWLINE_STORE_REDIS_EVICTING") else { return };
    let error = options(&url).open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(
        error.to_string(),
        "Redis removes records when memory is short (maxmemory-policy allkeys-lru); set `maxmemory-policy noeviction`"
    );
}

#[tokio::test]
async fn certificates_are_verified() {
    let Some(url) = url("BOWLINE_STORE_REDIS_TLS") else { return };
    let store = options(&url).namespace(namespace()).open().await.unwrap();
    assert_eq!(store.sweep(1).await.unwrap(), 0);
    // Without the root certificate of the test nobody vouches for the server.
    let (unverified, _) = url.split_once('?').unwrap();
    let error = options(unverified).open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn the_server_can_be_inspected() {
    let Some(url) = url("BOWLINE_STORE_REDIS") else { return };
    let findings = options(&url).open().await.unwrap().inspect().await.unwrap();
    let of = |name| findings.iter().find(|finding| finding.name == name).unwrap();
    assert!(of("version").value.contains(' '), "{findings:?}");
    assert_eq!(of("eviction policy").value, "noeviction");
    assert_eq!(of("durability").value, "append-only file, written at once");
}

/// There is no replica, so a write that waits for one is not confirmed, though it was applied.
#[tokio::test]
async fn a_write_without_its_replicas_is_unknown() {
    let Some(url) = url("BOWLINE_STORE_REDIS") else { return };
    let deadline = std::time::Duration::from_millis(400);
    let options = options(&format!("{url}?wait=1")).namespace(namespace()).deadline(deadline);
    let store = options.open().await.unwrap();
    let key = Key::new("a").unwrap();
    let result = store.put(Put::create(key.clone(), "1", std::time::Duration::from_secs(60))).await;
    assert!(
        matches!(&result, Err(PutError::Store(error)) if error.kind() == ErrorKind::Unknown),
        "{result:?}"
    );
    assert!(store.get(&[key]).await.unwrap()[0].is_some());
}
