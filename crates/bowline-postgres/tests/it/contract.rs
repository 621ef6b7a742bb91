//! The contract of records and of hints.

use std::sync::Arc;
use std::time::Duration;

use bowline_store::kit::Ends;
use bowline_store::{ErrorKind, Key, Put, PutError, Records};

use crate::server::{namespace, open, options, url};

bowline_store::contract_tests!(open);

mod bus {
    use super::{Arc, Ends, namespace, options, url};

    async fn open() -> Option<Ends> {
        let options = options(&url("BOWLINE_STORE_POSTGRES")?).namespace(namespace());
        Some((Arc::new(options.open_bus().await.unwrap()), Arc::new(options.open_bus().await.unwrap())))
    }

    bowline_store::bus_tests!(open);
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn namespaces_do_not_see_each_other() {
    let (Some(one), Some(two)) = (open().await, open().await) else { return };
    let key = [Key::new("a").unwrap()];
    one.put(Put::create(key[0].clone(), "1", MINUTE)).await.unwrap();
    assert_eq!(two.get(&key).await.unwrap(), [None]);
    two.put(Put::create(key[0].clone(), "2", MINUTE)).await.unwrap();
    assert_eq!(one.get(&key).await.unwrap()[0].as_ref().unwrap().value, "1");
}

#[tokio::test]
async fn relaxed_writes_are_read_at_once() {
    let Some(store) = open().await else { return };
    let key = [Key::new("a").unwrap()];
    store.put(Put::create(key[0].clone(), "1", MINUTE).relaxed()).await.unwrap();
    assert_eq!(store.get(&key).await.unwrap()[0].as_ref().unwrap().value, "1");
}

/// A lock that another program holds makes the server give up the statement, which is then certainly not applied.
#[tokio::test]
async fn a_statement_that_times_out_was_not_applied() {
    let Some(url) = url("BOWLINE_STORE_POSTGRES") else { return };
    let options = options(&url).namespace(namespace()).deadline(Duration::from_millis(400));
    let store = options.open().await.unwrap();
    let key = Key::new("a").unwrap();
    let version = store.put(Put::create(key.clone(), "1", MINUTE)).await.unwrap();
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    let driver = tokio::spawn(connection);
    client.batch_execute("BEGIN; LOCK TABLE bowline_records IN SHARE MODE").await.unwrap();
    let refused = store.put(Put::update(key.clone(), "2", version)).await;
    assert!(
        matches!(&refused, Err(PutError::Store(error)) if error.kind() == ErrorKind::Unavailable),
        "{refused:?}"
    );
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(store.get(&[key]).await.unwrap()[0].as_ref().unwrap().value, "1");
    driver.abort();
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    // Nothing listens on port 1.
    let error = options("postgres://ann@127.0.0.1:1/state").open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("cannot connect to PostgreSQL"), "{error}");
}

#[tokio::test]
async fn a_missing_database_is_named() {
    let Some(url) = url("BOWLINE_STORE_POSTGRES") else { return };
    let error = options(&url.replace("/postgres", "/missing")).open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("database \"missing\" does not exist"), "{error}");
}

#[tokio::test]
async fn the_server_can_be_inspected() {
    let Some(url) = url("BOWLINE_STORE_POSTGRES") else { return };
    let findings = options(&url).namespace(namespace()).open().await.unwrap().inspect().await.unwrap();
    let of = |name| findings.iter().find(|finding| finding.name == name).unwrap();
    assert!(of("version").value.starts_with("PostgreSQL "), "{findings:?}");
    assert_eq!(of("rights").value, "read and write");
    assert_eq!(of("durability").value, "fsync on, synchronous_commit on");
}
