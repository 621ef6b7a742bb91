//! Encrypted connections.

use bowline_store::{ErrorKind, Records};

use crate::server::{namespace, options, url};

#[tokio::test]
async fn certificates_are_verified() {
    let Some(url) = url("BOWLINE_STORE_POSTGRES_TLS") else { return };
    let store = options(&url).namespace(namespace()).open().await.unwrap();
    assert_eq!(store.sweep(1).await.unwrap(), 0);
    // Without the root certificate of the test nobody vouches for the server.
    let (unverified, _) = url.split_once("&sslrootcert=").unwrap();
    let error = options(unverified).open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("certificate"), "{error}");
}
