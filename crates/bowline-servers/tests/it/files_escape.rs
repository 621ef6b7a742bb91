//! Attempts to escape from the served directories.
#![cfg(unix)]

use crate::support::{Folder, SECRET, call, connect, names, refused, text, tools};
use bowline::{client::Client, prelude::*};
use bowline_servers::Files;
use std::{
    os::unix::fs::symlink,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

async fn client(folder: &Folder) -> Client {
    connect(
        Files::new([&folder.top]).unwrap().writable(true).calls_per_minute(0).server(),
        Revision::V2026_07_28,
    )
    .await
}

/// Checks that every tool refuses this path, and that nothing outside is read or changed.
async fn check_refused(folder: &Folder, client: &Client, path: &str) {
    folder.write("inside.txt", "inside");
    let calls = [
        ("read_file", json!({ "path": path })),
        ("read_files", json!({ "paths": [path] })),
        ("directory_tree", json!({ "path": path })),
        ("list_directory", json!({ "path": path })),
        ("search_files", json!({ "path": path, "pattern": "*" })),
        ("stat", json!({ "path": path })),
        ("write_file", json!({ "path": path, "content": "x" })),
        ("edit_file", json!({ "path": path, "edits": [{ "old_text": "o", "new_text": "x" }] })),
        ("create_directory", json!({ "path": path })),
        ("delete_file", json!({ "path": format!("{path}/secret.txt") })),
        ("move_file", json!({ "source": format!("{path}/secret.txt"), "destination": "stolen.txt" })),
        ("move_file", json!({ "source": "inside.txt", "destination": format!("{path}/planted.txt") })),
    ];
    for tool in tools(client).await.iter().filter(|tool| *tool != "list_allowed_directories") {
        assert!(calls.iter().any(|(called, _)| called == tool), "no call of `{tool}` is checked");
    }
    for (tool, arguments) in calls {
        let told = refused(client, tool, arguments).await;
        assert!(!told.contains(SECRET), "{tool} {path}: {told}");
    }
    assert_eq!(names(&folder.outside), ["secret.txt"], "{path}");
    assert_eq!(std::fs::read_to_string(folder.outside.join("secret.txt")).unwrap(), SECRET, "{path}");
}

// V-90
#[tokio::test]
async fn paths_that_leave_the_root_are_refused() {
    let folder = Folder::with(&[("sub/a.txt", "a")]);
    let client = client(&folder).await;
    let top = folder.top.to_str().unwrap();
    for path in [
        // A directory whose name starts like the served one.
        format!("{top}-evil"),
        format!("{top}-evil/secret.txt"),
        format!("{top}/../root-evil/secret.txt"),
        "../root-evil".into(),
        "../root-evil/secret.txt".into(),
        "sub/../../root-evil/secret.txt".into(),
        "/".into(),
        "/etc/passwd".into(),
        "..".into(),
        "/proc/self/root/etc/passwd".into(),
        "/proc/self/cwd".into(),
        format!("/proc/self/root{top}-evil/secret.txt"),
        // Other spellings of the directory's path are refused.
        format!("{}/../root-evil/secret.txt", top.to_uppercase()),
        format!("{}/a.txt", top.replace("root", "ROOT")),
        format!("{}/a.txt", top.replace("root", "r\u{6f}\u{308}ot")),
        format!("file://{top}-evil/secret.txt"),
        format!("file://{top}/../root-evil/secret.txt"),
        format!("file://{top}/%2e%2e/root-evil/secret.txt"),
        format!("file://{top}/..%2froot-evil%2fsecret.txt"),
        format!("file://elsewhere{top}/sub/a.txt"),
        "sub/\0/a.txt".into(),
        format!("{top}-evil/secret.txt\0{top}"),
    ] {
        check_refused(&folder, &client, &path).await;
    }
}

// V-90
#[tokio::test]
async fn links_that_leave_the_root_are_refused() {
    let folder = Folder::with(&[("sub/a.txt", "a")]);
    symlink(&folder.outside, folder.top.join("absolute")).unwrap();
    symlink("../root-evil", folder.top.join("relative")).unwrap();
    symlink("../../root-evil", folder.top.join("sub/deeper")).unwrap();
    symlink("relative", folder.top.join("chain")).unwrap();
    symlink("/proc/self/root", folder.top.join("proc")).unwrap();
    symlink("loop", folder.top.join("loop")).unwrap();
    symlink(folder.outside.join("secret.txt"), folder.top.join("file")).unwrap();
    let client = client(&folder).await;
    let via_proc = format!("proc{}", folder.outside.to_str().unwrap());
    for path in
        ["absolute", "relative", "sub/deeper", "chain", "loop", "file", "absolute/secret.txt", &via_proc]
    {
        check_refused(&folder, &client, path).await;
    }
    // They are listed as links, and a search skips them.
    let listed = call(&client, "list_directory", json!({})).await;
    let kinds = listed["entries"].as_array().unwrap().iter().filter(|entry| entry["kind"] == "link").count();
    assert_eq!(kinds, 6);
    let found = call(&client, "search_files", json!({ "content": SECRET })).await;
    assert_eq!(found["matches"], json!([]));
    // Deleting removes the link, not the target.
    call(&client, "delete_file", json!({ "path": "file" })).await;
    assert_eq!(std::fs::read_to_string(folder.outside.join("secret.txt")).unwrap(), SECRET);
}

#[tokio::test]
async fn links_inside_the_root_are_read_but_not_written_through() {
    let folder = Folder::with(&[("real/a.txt", "a"), (".git/config", "config")]);
    symlink("real", folder.top.join("link")).unwrap();
    symlink(".git", folder.top.join("disguise")).unwrap();
    let client = client(&folder).await;
    assert_eq!(text(&client, "read_file", json!({ "path": "link/a.txt" })).await, "a");
    assert_eq!(call(&client, "stat", json!({ "path": "link" })).await["is_link"], true);
    for path in ["link/a.txt", "disguise/config"] {
        let told = refused(&client, "write_file", json!({ "path": path, "content": "x" })).await;
        assert!(told.contains("is a symbolic link; use the path of its target"), "{told}");
    }
    let told = refused(&client, "write_file", json!({ "path": "link", "content": "x" })).await;
    assert!(told.contains("the path exists and is not a file"), "{told}");
    assert_eq!((folder.read("real/a.txt").as_str(), folder.read(".git/config").as_str()), ("a", "config"));
}

// V-90: a hard link is the file itself; what is written under one name never shows under the other.
#[tokio::test]
async fn writing_breaks_hard_links() {
    let folder = Folder::new();
    std::fs::hard_link(folder.outside.join("secret.txt"), folder.top.join("hard")).unwrap();
    let client = client(&folder).await;
    let edit = json!({ "path": "hard", "edits": [{ "old_text": "outside", "new_text": "x" }] });
    call(&client, "edit_file", edit).await;
    call(&client, "write_file", json!({ "path": "hard", "content": "new" })).await;
    assert_eq!(folder.read("hard"), "new");
    assert_eq!(std::fs::read_to_string(folder.outside.join("secret.txt")).unwrap(), SECRET);
}

#[tokio::test]
async fn pipes_sockets_and_devices_are_refused_without_blocking() {
    let folder = Folder::new();
    let made =
        Command::new("mkfifo").arg(folder.top.join("pipe")).status().is_ok_and(|status| status.success());
    assert!(made, "`mkfifo` makes a pipe");
    let _listener = std::os::unix::net::UnixListener::bind(folder.top.join("socket")).unwrap();
    let client = client(&folder).await;
    for name in ["pipe", "socket"] {
        let told = refused(&client, "read_file", json!({ "path": name })).await;
        assert!(told.contains("is a pipe, socket or device"), "{told}");
        assert!(
            refused(&client, "write_file", json!({ "path": name, "content": "x" }))
                .await
                .contains("cannot write")
        );
        let edit = json!({ "path": name, "edits": [{ "old_text": "a", "new_text": "b" }] });
        assert!(refused(&client, "edit_file", edit).await.contains("not a regular file"));
        assert_eq!(call(&client, "stat", json!({ "path": name })).await["kind"], "other");
        assert!(client.read(folder.uri(name)).await.is_err());
    }
    let found = call(&client, "search_files", json!({ "content": "." })).await;
    assert_eq!(found["matches"], json!([]));
    let devices = Files::new(["/dev"]).unwrap().server();
    let client = connect(devices, Revision::V2026_07_28).await;
    assert!(
        refused(&client, "read_file", json!({ "path": "zero" }))
            .await
            .contains("is a pipe, socket or device")
    );
}

/// Swaps `folder/door` between a directory and a link that leads outside, until stopped.
fn swap(folder: &Folder, ended: &Arc<AtomicBool>) -> std::thread::JoinHandle<u64> {
    let (door, real) = (folder.top.join("door"), folder.top.join("real"));
    let link = folder.top.join("link");
    symlink(&folder.outside, &link).unwrap();
    let ended = Arc::clone(ended);
    std::thread::spawn(move || {
        let mut swaps = 0;
        while !ended.load(Ordering::Relaxed) {
            // First the directory, then the link, each by a rename.
            std::fs::rename(&real, &door).unwrap();
            std::fs::rename(&door, &real).unwrap();
            std::fs::rename(&link, &door).unwrap();
            std::fs::rename(&door, &link).unwrap();
            swaps += 1;
        }
        swaps
    })
}

// V-90
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_swapped_for_a_link_cannot_escape() {
    let folder = Folder::with(&[("real/secret.txt", "inside"), ("real/more.txt", "inside")]);
    let ended = Arc::new(AtomicBool::new(false));
    let swapping = swap(&folder, &ended);
    let client = client(&folder).await;
    let mut inside = 0;
    for round in 0..3000 {
        let read = client.call("read_file", json!({ "path": "door/secret.txt" })).await.unwrap();
        assert!(!read.text().contains(SECRET), "round {round}: {}", read.text());
        inside += u32::from(!read.is_error());
        if round % 10 == 0 {
            let found = client.call("search_files", json!({ "path": "door", "content": "." })).await.unwrap();
            assert!(!found.text().contains(SECRET), "round {round}: {}", found.text());
            let listed = client.call("list_directory", json!({ "path": "door" })).await.unwrap();
            assert!(listed.is_error() || !listed.text().contains(r#""total":1"#), "{}", listed.text());
            // Both can succeed while the directory is in place; then it is restored.
            let write = json!({ "path": "door/planted.txt", "content": "x" });
            drop(client.call("write_file", write).await.unwrap());
            let away = json!({ "source": "door/more.txt", "destination": "door/less.txt" });
            drop(client.call("move_file", away).await.unwrap());
            let back = json!({ "source": "door/less.txt", "destination": "door/more.txt" });
            drop(client.call("move_file", back).await.unwrap());
        }
    }
    ended.store(true, Ordering::Relaxed);
    let swaps = swapping.join().unwrap();
    assert!(swaps > 100, "the folder was swapped {swaps} times");
    assert!(inside > 0, "sometimes it was the folder's turn");
    assert_eq!(names(&folder.outside), ["secret.txt"], "nothing was written outside");
    assert_eq!(std::fs::read_to_string(folder.outside.join("secret.txt")).unwrap(), SECRET);
}
