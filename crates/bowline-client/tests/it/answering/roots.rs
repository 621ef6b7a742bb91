//! Roots that the client lists.

use super::*;

// proves: ROOT-09
#[cfg(unix)]
#[tokio::test]
async fn a_root_that_cannot_be_read_is_not_listed() {
    use std::os::unix::{fs::PermissionsExt as _, process::CommandExt as _};
    const NOBODY: u32 = 65_534;
    let (open, locked) = (Folder::new("open"), Folder::new("locked"));
    std::fs::set_permissions(&locked.0, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read_dir(&locked.0).is_ok() {
        // Permissions do not bind this user: the test runs again as one whom they do.
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again
            .args(["--exact", "answering::roots::a_root_that_cannot_be_read_is_not_listed"])
            .uid(NOBODY)
            .gid(NOBODY);
        match again.current_dir(std::env::temp_dir()).output() {
            Ok(output) => assert!(
                output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed"),
                "{output:?}"
            ),
            Err(error) => bowline_testing::skip(&format!("cannot start the test as another user: {error}")),
        }
        return;
    }
    let builder = Client::builder().roots([open.root(), locked.root()]);
    let (_client, mut peer) = connect(builder, Revision::V2025_11_25, json!({})).await;
    peer.ask(1, "roots/list", json!({})).await;
    assert_eq!(peer.next().await["result"], json!({ "roots": [{ "uri": open.root().uri }] }));
}

#[tokio::test]
async fn roots_are_listed_while_they_are_there() {
    // proves: ROOT-04
    for revision in LEGACY {
        let (stays, goes) = (Folder::new("stays with blanks"), Folder::new("goes"));
        let mut named = stays.root().name("work");
        named.uri = named.uri.replace(' ', "%20");
        let builder = Client::builder().roots([named.clone(), goes.root()]);
        let (_client, mut peer) = connect(builder, revision, json!({})).await;
        peer.ask(1, "roots/list", json!({})).await;
        let uri = &named.uri;
        let (first, second) = (json!({ "uri": uri, "name": "work" }), json!({ "uri": goes.root().uri }));
        assert_eq!(peer.next().await["result"], json!({ "roots": [first, second] }));
        drop(goes);
        peer.ask(2, "roots/list", json!({})).await;
        assert_eq!(peer.next().await["result"], json!({ "roots": [{ "uri": uri, "name": "work" }] }));
    }
}

#[tokio::test]
async fn a_change_of_roots_is_sent_where_the_revision_allows_it() {
    // proves: ROOT-06, ROOT-07
    for revision in Revision::ALL {
        let folder = Folder::new("roots");
        let builder = Client::builder().roots([]);
        let (client, mut peer) = connect(builder, revision, json!({})).await;
        client.set_roots([folder.root()]).unwrap();
        assert!(client.set_roots([Root::new("file:///../x")]).is_err());
        if revision.is_legacy() {
            let notification = peer.expect("notifications/roots/list_changed").await;
            assert_eq!(
                notification,
                json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" })
            );
            peer.ask(1, "roots/list", json!({})).await;
            assert_eq!(peer.next().await["result"]["roots"][0]["uri"], folder.root().uri);
        } else {
            // A modern server receives a request next.
            let (_, ping) =
                both(client.ping().timeout(std::time::Duration::from_millis(1)), peer.next()).await;
            assert_eq!(ping["method"], "server/discover");
        }
    }
    let (client, mut peer) = connect(Client::builder(), V2025_11_25, json!({})).await;
    assert_eq!(
        client.set_roots([]).unwrap_err().to_string(),
        "roots are not enabled; pass them to the builder with `roots`"
    );
    peer.settle().await;
}
