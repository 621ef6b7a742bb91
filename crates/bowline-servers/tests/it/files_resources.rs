//! Files as resources, and roots of the client.

use crate::support::{Folder, REVISIONS, SECRET, call, connect, connect_with, refused, text};
use bowline::{
    prelude::*,
    types::{self, Reference, Root, SubscriptionFilter},
};
use bowline_servers::Files;

fn server(folder: &Folder) -> Server {
    Files::new([&folder.top]).unwrap().writable(true).server()
}

#[tokio::test]
async fn files_at_the_top_are_listed_and_all_can_be_read() {
    // proves: RES-27, RES-28, RES-30, RES-33
    let folder = Folder::with(&[("a b.md", "# A"), ("deep/b.json", "{}"), ("c%20d", "c")]);
    folder.write("x.png", b"\x89PNG\r\n\x1a\n");
    for revision in REVISIONS {
        let client = connect(server(&folder), revision).await;
        let listed = client.resources().await.unwrap();
        // Directories have their own MIME type.
        let is_folder = |file: &&types::Resource| file.mime_type.as_deref() == Some("inode/directory");
        let folders: Vec<_> = listed.iter().filter(is_folder).map(|file| file.uri.clone()).collect();
        assert_eq!(folders, [folder.uri("deep")]);
        let listed: Vec<_> = listed
            .iter()
            .filter(|file| !is_folder(file))
            .map(|file| (file.name.as_str(), file.size, file.uri.clone()))
            .collect();
        let uris = [folder.uri("a%20b.md"), folder.uri("c%2520d"), folder.uri("x.png")];
        let [a, c, x] = uris.clone();
        assert_eq!(listed, [("a b.md", Some(3), a), ("c%20d", Some(1), c), ("x.png", Some(8), x)]);
        for (uri, expected) in [
            (&uris[0], json!({ "uri": uris[0], "mimeType": "text/markdown", "text": "# A" })),
            (&uris[1], json!({ "uri": uris[1], "mimeType": "text/plain", "text": "c" })),
            (&uris[2], json!({ "uri": uris[2], "mimeType": "image/png", "blob": "iVBORw0KGgo=" })),
            (
                &folder.uri("deep"),
                json!({ "uri": folder.uri("deep"), "mimeType": "inode/directory", "text": "b.json\n" }),
            ),
            (
                &folder.uri("deep/b.json"),
                json!({ "uri": folder.uri("deep/b.json"), "mimeType": "application/json", "text": "{}" }),
            ),
        ] {
            assert_eq!(json!(client.read(uri).await.unwrap().contents), json!([expected]));
        }
        let templates = client.templates().await.unwrap();
        assert_eq!(templates.len(), 1);
        // The files have different types.
        assert_eq!(templates[0].mime_type, None);
    }
}

// V-83, V-90
// proves: RES-26
#[tokio::test]
async fn a_uri_outside_of_the_root_is_not_found() {
    let folder = Folder::with(&[("a", "a"), ("sub/b", "b")]);
    let top = folder.top.to_str().unwrap();
    for revision in REVISIONS {
        let client = connect(server(&folder), revision).await;
        for uri in [
            format!("file://{top}-evil/secret.txt"),
            format!("file://{top}/../root-evil/secret.txt"),
            format!("file://{top}/%2e%2e/root-evil/secret.txt"),
            format!("file://{top}/..%2froot-evil%2fsecret.txt"),
            format!("file://{top}/%252e%252e/root-evil/secret.txt"),
            format!("file://{top}/..%5croot-evil%5csecret.txt"),
            format!("file://{top}/a%00"),
            format!("file://{top}/.."),
            format!("file://{top}/%2e%2e"),
            format!("file://{top}/../../../../../../../../etc/passwd"),
            "file:///../../etc/passwd".into(),
            format!("file://{top}-evil"),
            format!("file://elsewhere{top}/a"),
            "file:///etc/passwd".into(),
            "file:///".into(),
        ] {
            let told = client.read(&uri).await.unwrap_err().to_string();
            assert!(!told.contains(SECRET) && told.to_lowercase().contains("not found"), "{uri}: {told}");
        }
    }
}

#[tokio::test]
async fn paths_are_completed() {
    let folder = Folder::with(&[("one.txt", ""), ("once/x", ""), ("two", "")]);
    let client = connect(server(&folder), Revision::V2026_07_28).await;
    let typed = |end: &str| folder.path(end).trim_start_matches('/').to_owned();
    let complete = async |value: String| {
        let reference = Reference::resource("file:///{+path}");
        client.complete(reference, "path", value).await.unwrap().values
    };
    assert_eq!(complete(typed("on")).await, [typed("once/"), typed("one.txt")]);
    assert_eq!(complete(typed("once/")).await, [typed("once/x")]);
    assert_eq!(complete(String::new()).await, [typed("")], "the way begins with the folder");
    assert!(complete("etc/pass".into()).await.is_empty());
    assert!(complete(typed("../root-evil/s")).await.is_empty());
}

#[tokio::test]
async fn subscribers_are_notified_of_changes() {
    for revision in REVISIONS {
        let folder = Folder::with(&[("a.txt", "1"), ("b.txt", "1")]);
        let client = connect(server(&folder), revision).await;
        let uris = vec![folder.uri("a.txt"), folder.uri("later.txt")];
        let mut changes =
            client.listen(SubscriptionFilter::new().resource_subscriptions(uris)).await.unwrap();
        folder.write("b.txt", "nobody asked");
        folder.write("a.txt", "changed");
        let heard = format!("{:?}", changes.next().await.unwrap());
        assert!(heard.contains(&folder.uri("a.txt")), "{heard}");
        // Changed by a tool, which replaces the file, and for a new file.
        call(&client, "write_file", json!({ "path": "later.txt", "content": "new" })).await;
        let heard = format!("{:?}", changes.next().await.unwrap());
        assert!(heard.contains(&folder.uri("later.txt")), "{heard}");
        drop(changes);
        // A later subscription is watched again.
        let filter = SubscriptionFilter::new().resource_subscriptions(vec![folder.uri("b.txt")]);
        let mut changes = client.listen(filter).await.unwrap();
        std::fs::remove_file(folder.top.join("b.txt")).unwrap();
        let heard = format!("{:?}", changes.next().await.unwrap());
        assert!(heard.contains(&folder.uri("b.txt")), "{heard}");
        client.close().await;
    }
}

#[tokio::test]
async fn roots_of_the_client_restrict_access() {
    // proves: RES-24, ROOT-13, ROOT-14, ROOT-15, ROOT-18
    let folder = Folder::with(&[("one/a", "1"), ("two/b", "2"), ("c", "3")]);
    for revision in REVISIONS {
        let client = connect_with(server(&folder), revision, Some(vec![Root::new(folder.uri("one"))])).await;
        assert_eq!(text(&client, "read_file", json!({ "path": "a" })).await, "1");
        assert_eq!(text(&client, "read_file", json!({ "path": folder.path("one/a") })).await, "1");
        for path in [folder.path("two/b"), folder.path("c"), "../two/b".into(), folder.path("one/../c")] {
            refused(&client, "read_file", json!({ "path": path })).await;
            refused(&client, "write_file", json!({ "path": path, "content": "x" })).await;
        }
        assert!(client.read(folder.uri("one/a")).await.is_ok());
        assert!(client.read(folder.uri("two/b")).await.is_err());
        let listed = call(&client, "list_directory", json!({})).await;
        assert_eq!(listed["path"], folder.path("one"));

        // Changed roots take effect with the next call.
        client.set_roots([Root::new(folder.uri("two")), Root::new(folder.uri("one"))]).unwrap();
        assert_eq!(text(&client, "read_file", json!({ "path": folder.path("two/b") })).await, "2");
        // A root that contains the served directory allows all of it, and nothing else.
        let around = folder.top.parent().unwrap().to_str().unwrap();
        client.set_roots([Root::new(format!("file://{around}"))]).unwrap();
        assert_eq!(text(&client, "read_file", json!({ "path": "c" })).await, "3");
        let outside = folder.outside.join("secret.txt");
        let told = refused(&client, "read_file", json!({ "path": outside.to_str().unwrap() })).await;
        assert!(told.contains("is outside of"), "{told}");

        for roots in [vec![Root::new(format!("file://{}", folder.outside.display()))], Vec::new()] {
            client.set_roots(roots).unwrap();
            let told = refused(&client, "read_file", json!({ "path": "c" })).await;
            assert!(told.contains("do not overlap"), "{told}");
            let told = client.read(folder.uri("c")).await.unwrap_err().to_string();
            assert!(told.contains("do not overlap"), "{told}");
        }
        assert_eq!(folder.read("c"), "3");

        // A root that is deleted allows nothing, and the server continues with another.
        folder.write("gone/d", "4");
        client.set_roots([Root::new(folder.uri("gone"))]).unwrap();
        assert_eq!(text(&client, "read_file", json!({ "path": "d" })).await, "4");
        std::fs::remove_dir_all(folder.top.join("gone")).unwrap();
        refused(&client, "read_file", json!({ "path": "d" })).await;
        assert!(client.read(folder.uri("gone/d")).await.is_err());
        client.set_roots([Root::new(folder.uri("one"))]).unwrap();
        assert_eq!(text(&client, "read_file", json!({ "path": "a" })).await, "1");
    }
}

#[test]
fn a_missing_directory_is_an_error() {
    let told = Files::new(["/nowhere/at/all"]).unwrap_err().to_string();
    assert!(told.contains("cannot open directory `/nowhere/at/all`"), "{told}");
    let none: [&str; 0] = [];
    assert!(Files::new(none).unwrap_err().to_string().contains("no directory to serve"));
}
