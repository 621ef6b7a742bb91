//! The tools of the file server.

use crate::support::{Folder, REVISIONS, call, connect, refused, text, tools};
use bowline::prelude::*;
use bowline_servers::Files;
use expect_test::expect;
use serde_json::Value;

const READING: [&str; 7] = [
    "read_file",
    "read_files",
    "directory_tree",
    "list_allowed_directories",
    "list_directory",
    "search_files",
    "stat",
];
const WRITING: [&str; 5] = ["write_file", "edit_file", "create_directory", "move_file", "delete_file"];

fn server(folder: &Folder, writable: bool) -> Server {
    Files::new([&folder.top]).unwrap().writable(writable).server()
}

#[tokio::test]
async fn tools_that_write_need_the_write_flag() {
    let folder = Folder::new();
    for revision in REVISIONS {
        let reading = connect(server(&folder, false), revision).await;
        assert_eq!(tools(&reading).await, READING);
        for tool in WRITING {
            let told = refused(&reading, tool, json!({ "path": "x", "content": "x" })).await;
            assert!(told.contains("unknown tool") && told.contains("start it with `--write`"), "{told}");
        }
        let writing = connect(server(&folder, true), revision).await;
        assert_eq!(tools(&writing).await, [&READING[..], &WRITING[..]].concat());
    }
    assert!(folder.names().is_empty());
}

#[tokio::test]
async fn tools_are_annotated() {
    let folder = Folder::new();
    let client = connect(server(&folder, true), Revision::V2025_11_25).await;
    let mut told = String::new();
    for tool in client.tools().await.unwrap() {
        let hints = tool.annotations.clone().unwrap();
        assert_eq!(hints.open_world_hint, Some(false), "{}", tool.name);
        assert!(tool.title.is_some(), "{}", tool.name);
        assert_eq!(tool.output_schema.is_some(), !tool.name.starts_with("read_file"), "{}", tool.name);
        let hint = |name, hint: Option<bool>| hint.map(|hint| format!(" {name}={hint}")).unwrap_or_default();
        told += &tool.name;
        told += &hint("read_only", hints.read_only_hint);
        told += &hint("destructive", hints.destructive_hint);
        told += &hint("idempotent", hints.idempotent_hint);
        told += "\n";
    }
    expect![[r"
        read_file read_only=true
        read_files read_only=true
        directory_tree read_only=true
        list_allowed_directories read_only=true
        list_directory read_only=true
        search_files read_only=true
        stat read_only=true
        write_file destructive=true idempotent=true
        edit_file destructive=true
        create_directory destructive=false idempotent=true
        move_file destructive=true
        delete_file destructive=true
    "]]
    .assert_eq(&told);
}

#[tokio::test]
async fn text_is_read_whole_or_by_lines() {
    let folder = Folder::with(&[("a.txt", "one\ntwo\nthree\n"), ("deep/b.txt", "b")]);
    for revision in REVISIONS {
        let client = connect(server(&folder, false), revision).await;
        let read = async |arguments: Value| text(&client, "read_file", arguments).await;
        assert_eq!(read(json!({ "path": "a.txt" })).await, "one\ntwo\nthree\n");
        assert_eq!(read(json!({ "path": "a.txt", "head": 1 })).await, "one\n");
        assert_eq!(read(json!({ "path": "a.txt", "tail": 1 })).await, "three\n");
        assert_eq!(read(json!({ "path": "a.txt", "from_line": 2, "to_line": 2 })).await, "two\n");
        for name in ["./deep/../deep/b.txt", &folder.path("deep/b.txt"), &folder.uri("deep/b.txt")] {
            assert_eq!(read(json!({ "path": name })).await, "b", "{name}");
        }
        assert!(refused(&client, "read_file", json!({ "path": "none" })).await.contains("cannot read"));
        assert!(
            refused(&client, "read_file", json!({ "path": "deep" }))
                .await
                .contains("is a directory, not a file")
        );
        assert!(
            refused(&client, "read_file", json!({ "path": "a.txt", "head": 1, "tail": 1 }))
                .await
                .contains("only one")
        );
    }
}

#[tokio::test]
async fn several_files_are_read_at_once() {
    let folder = Folder::with(&[("a.txt", "one\n"), ("sub/b.txt", "two"), ("long", &"x".repeat(100))]);
    folder.write("c.png", b"\x89PNG\r\n\x1a\n\0");
    for revision in REVISIONS {
        let client = connect(server(&folder, false), revision).await;
        let paths = json!({ "paths": ["a.txt", "sub/b.txt", "none", "../root-evil/secret.txt", "c.png"] });
        let content = client.call("read_files", paths).await.unwrap().content;
        let blocks: Vec<Value> = content.iter().map(|block| json!(block)).collect();
        assert_eq!(blocks[0]["text"], "==> a.txt <==\none\n");
        assert_eq!(blocks[1]["text"], "==> sub/b.txt <==\ntwo");
        assert!(blocks[2]["text"].as_str().unwrap().starts_with("==> none <==\n(error: cannot read"));
        assert!(blocks[3]["text"].as_str().unwrap().contains("is outside of"), "{}", blocks[3]);
        assert_eq!((&blocks[4]["text"], &blocks[5]["type"]), (&json!("==> c.png <=="), &json!("image")));
        let told = refused(&client, "read_files", json!({ "paths": ["none", "/etc/passwd"] })).await;
        assert!(told.contains("cannot read") && told.contains("`--root DIR`"), "{told}");
        refused(&client, "read_files", json!({ "paths": [] })).await;
        refused(&client, "read_files", json!({ "paths": vec!["a.txt"; 101] })).await;
    }
    // All files together share the limit of one call.
    let small = Files::new([&folder.top]).unwrap().max_bytes(120).server();
    let client = connect(small, Revision::V2026_07_28).await;
    let content =
        client.call("read_files", json!({ "paths": ["long", "long", "a.txt"] })).await.unwrap().content;
    let told = json!(content).to_string();
    assert!(
        told.contains("has 100 bytes, but only 20 of 120 bytes are left in this call")
            && told.contains("one"),
        "{told}"
    );
}

#[tokio::test]
async fn a_directory_is_shown_as_a_tree() {
    let folder = Folder::with(&[
        ("a.txt", ""),
        ("sub/b.txt", ""),
        ("sub/deep/c", ""),
        (".git/config", ""),
        ("z\nz", ""),
    ]);
    let client = connect(server(&folder, false), Revision::V2026_07_28).await;
    let drawn = text(&client, "directory_tree", json!({ "depth": 2 }))
        .await
        .replace(folder.top.to_str().unwrap(), "");
    expect![[r"
        /
          .git/
          a.txt
          sub/
            b.txt
            deep/
          z?z
        (incomplete; list a subdirectory, or increase `depth` or `limit`)
    "]]
    .assert_eq(&drawn);
    let all = call(&client, "directory_tree", json!({ "path": "sub" })).await;
    assert_eq!((&all["more"], all["entries"].as_array().unwrap().len()), (&json!(false), 4));
    assert_eq!(all["entries"][3], json!({ "path": folder.path("sub/deep/c"), "kind": "file", "depth": 2 }));
    let few = call(&client, "directory_tree", json!({ "limit": 2 })).await;
    assert_eq!((&few["more"], few["entries"].as_array().unwrap().len()), (&json!(true), 3));
    refused(&client, "directory_tree", json!({ "path": "../root-evil" })).await;
    // All directories are shown.
    let both = Files::new([folder.top.join("sub"), folder.top.join(".git")]).unwrap().server();
    let client = connect(both, Revision::V2026_07_28).await;
    let drawn = text(&client, "directory_tree", json!({})).await;
    assert!(drawn.contains("/sub/\n") && drawn.contains("/.git/\n  config\n"), "{drawn}");
}

#[tokio::test]
async fn the_allowed_directories_are_listed() {
    let folder = Folder::with(&[("one/a", ""), ("two/b", "")]);
    for writable in [false, true] {
        let files = Files::new([folder.top.join("one"), folder.top.join("two")]).unwrap().writable(writable);
        let client = connect(files.server(), Revision::V2026_07_28).await;
        let listed = call(&client, "list_allowed_directories", json!({})).await;
        assert_eq!(
            listed,
            json!({ "folders": [folder.path("one"), folder.path("two")], "writable": writable })
        );
    }
}

#[tokio::test]
async fn calls_are_limited_per_minute() {
    // proves: TOOL-47
    let folder = Folder::with(&[("a", "")]);
    let files = || Files::new([&folder.top]).unwrap();
    let client = connect(files().calls_per_minute(3).server(), Revision::V2026_07_28).await;
    for _ in 0..3 {
        text(&client, "read_file", json!({ "path": "a" })).await;
    }
    let told = refused(&client, "read_file", json!({ "path": "a" })).await;
    assert!(told.contains("too many calls; try again in"), "{told}");
    assert_eq!(tools(&client).await.len(), READING.len(), "lists do not count");
    let client = connect(files().calls_per_minute(0).server(), Revision::V2026_07_28).await;
    for _ in 0..=bowline_servers::CALLS_PER_MINUTE {
        text(&client, "stat", json!({ "path": "a" })).await;
    }
    let client = connect(files().server(), Revision::V2026_07_28).await;
    let mut refused = false;
    for _ in 0..10 * bowline_servers::CALLS_PER_MINUTE {
        refused |= client.call("stat", json!({ "path": "a" })).await.is_err();
        if refused {
            break;
        }
    }
    assert!(refused, "there is a limit unless it was set");
}

#[tokio::test]
async fn images_audio_and_blobs_are_read() {
    let folder = Folder::new();
    folder.write("a.png", b"\x89PNG\r\n\x1a\n\0");
    folder.write("a.wav", b"RIFF\0\0\0\0WAVEfmt ");
    folder.write("a b.bin", b"\0\x01\xff");
    let client = connect(server(&folder, false), Revision::V2026_07_28).await;
    let mut told = String::new();
    for name in ["a.png", "a.wav", "a b.bin"] {
        let content = client.call("read_file", json!({ "path": name })).await.unwrap().content;
        told += &json!(content).to_string().replace(folder.top.to_str().unwrap(), "");
        told += "\n";
    }
    expect![[r#"
        [{"type":"image","data":"iVBORw0KGgoA","mimeType":"image/png"}]
        [{"type":"audio","data":"UklGRgAAAABXQVZFZm10IA==","mimeType":"audio/wav"}]
        [{"type":"resource","resource":{"uri":"file:///a%20b.bin","mimeType":"application/octet-stream","blob":"AAH/"}}]
    "#]]
    .assert_eq(&told);
    assert!(
        refused(&client, "read_file", json!({ "path": "a.png", "head": 1 }))
            .await
            .contains("is not a text file")
    );
}

#[tokio::test]
async fn more_than_the_limit_is_not_read() {
    let folder = Folder::with(&[("n", "12345678"), ("n+1", "123456789")]);
    let server = Files::new([&folder.top]).unwrap().max_bytes(8).server();
    let client = connect(server, Revision::V2026_07_28).await;
    assert_eq!(text(&client, "read_file", json!({ "path": "n" })).await, "12345678");
    let told = refused(&client, "read_file", json!({ "path": "n+1" })).await;
    assert!(told.contains("has 9 bytes, and a call reads at most 8"), "{told}");
    let found = call(&client, "search_files", json!({ "content": "1" })).await;
    assert_eq!((found["matches"].as_array().unwrap().len(), &found["skipped"]), (1, &json!(1)));
}

#[tokio::test]
async fn a_directory_list_is_paginated() {
    let folder = Folder::with(&[("b.txt", "12"), ("a/x", ""), ("c", "")]);
    let client = connect(server(&folder, false), Revision::V2025_11_25).await;
    let whole = call(&client, "list_directory", json!({})).await;
    let expected = json!([
        { "name": "a", "kind": "folder", "size": null },
        { "name": "b.txt", "kind": "file", "size": 2 },
        { "name": "c", "kind": "file", "size": 0 },
    ]);
    assert_eq!((&whole["entries"], &whole["total"], &whole["next"]), (&expected, &json!(3), &Value::Null));
    let part = call(&client, "list_directory", json!({ "path": ".", "limit": 2 })).await;
    assert_eq!(part["next"], 2);
    let rest = call(&client, "list_directory", json!({ "offset": 2, "limit": 2 })).await;
    assert_eq!((rest["entries"].as_array().unwrap().len(), &rest["next"]), (1, &Value::Null));
    let beyond = call(&client, "list_directory", json!({ "offset": 99 })).await;
    assert_eq!(beyond["entries"], json!([]));
    assert!(refused(&client, "list_directory", json!({ "path": "b.txt" })).await.contains("cannot open"));
}

#[tokio::test]
async fn several_roots_are_distinguished_by_path() {
    let (first, second) = (Folder::with(&[("a", "1")]), Folder::with(&[("a", "2")]));
    let server = Files::new([&first.top, &second.top]).unwrap().server();
    let client = connect(server, Revision::V2026_07_28).await;
    let listed = call(&client, "list_directory", json!({})).await;
    let names: Vec<_> =
        listed["entries"].as_array().unwrap().iter().map(|entry| entry["name"].clone()).collect();
    assert_eq!(names, [first.path("").trim_end_matches('/'), second.path("").trim_end_matches('/')]);
    assert_eq!(text(&client, "read_file", json!({ "path": second.path("a") })).await, "2");
    assert!(
        refused(&client, "read_file", json!({ "path": "a" }))
            .await
            .contains("expected an absolute path inside one of")
    );
    let found = call(&client, "search_files", json!({ "pattern": "a" })).await;
    assert_eq!(found["matches"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn files_are_found_by_name_and_by_content() {
    let files = [
        ("src/a.rs", "fn main() {\n    let needle = 1;\n}\n"),
        ("src/deep/b.rs", "Needle\r\nneedle\r\n"),
        ("c.txt", "needle"),
        (".git/config", "needle"),
    ];
    let folder = Folder::with(&files);
    folder.write("binary", b"needle\0");
    for revision in REVISIONS {
        let client = connect(server(&folder, false), revision).await;
        let find = async |arguments: Value| {
            let found = call(&client, "search_files", arguments).await;
            let matches = found["matches"].as_array().unwrap().iter().map(|found| {
                let path = found["path"].as_str().unwrap().strip_prefix(&folder.path("")).unwrap().to_owned();
                format!("{path}:{}:{}", found["line"], found["text"])
            });
            (matches.collect::<Vec<_>>(), found["more"].as_bool().unwrap())
        };
        let (names, more) = find(json!({ "pattern": "*.rs" })).await;
        assert_eq!(names, ["src/a.rs:null:null", "src/deep/b.rs:null:null"]);
        assert!(!more);
        let (lines, _) = find(json!({ "pattern": "**/*.rs", "content": "^needle|let needle" })).await;
        assert_eq!(lines, [r#"src/a.rs:2:"    let needle = 1;""#, r#"src/deep/b.rs:2:"needle""#]);
        let (lines, _) = find(json!({ "content": "NEEDLE", "ignore_case": true })).await;
        assert_eq!(lines.len(), 4, "neither what git keeps nor what is no text: {lines:?}");
        let (lines, more) = find(json!({ "content": "needle", "limit": 1 })).await;
        assert_eq!((lines.len(), more), (1, true));
        let (lines, _) = find(json!({ "path": "src/deep", "pattern": "b.rs" })).await;
        assert_eq!(lines, ["src/deep/b.rs:null:null"]);
        let (lines, _) = find(json!({ "path": "c.txt", "content": "need" })).await;
        assert_eq!(lines, [r#"c.txt:1:"needle""#]);
        assert!(refused(&client, "search_files", json!({})).await.contains("or both"));
    }
}

#[tokio::test]
async fn file_metadata_is_returned() {
    let folder = Folder::with(&[("a.txt", "one\ntwo\n")]);
    let client = connect(server(&folder, false), Revision::V2026_07_28).await;
    let known = call(&client, "stat", json!({ "path": "a.txt" })).await;
    assert_eq!((&known["kind"], &known["size"], &known["lines"]), (&json!("file"), &json!(8), &json!(2)));
    assert_eq!(known["path"], folder.path("a.txt"));
    assert!(known["modified"].as_u64().unwrap() > 1_000_000_000);
    let known = call(&client, "stat", json!({ "path": "." })).await;
    assert_eq!((&known["kind"], &known["lines"]), (&json!("folder"), &Value::Null));
}

#[tokio::test]
async fn files_are_written_edited_moved_and_deleted() {
    let folder = Folder::new();
    for revision in REVISIONS {
        let client = connect(server(&folder, true), revision).await;
        let made = call(&client, "create_directory", json!({ "path": "x/y" })).await;
        assert_eq!(made, json!({ "path": folder.path("x/y"), "created": true }));
        assert_eq!(call(&client, "create_directory", json!({ "path": "x/y" })).await["created"], false);

        let write = json!({ "path": "x/y/a.txt", "content": "one\ntwo\n" });
        let written = call(&client, "write_file", write.clone()).await;
        assert_eq!(written, json!({ "path": folder.path("x/y/a.txt"), "bytes": 8, "created": true }));
        assert_eq!(call(&client, "write_file", write).await["created"], false);

        let mut edit = json!({
            "path": "x/y/a.txt",
            "edits": [{ "old_text": "two", "new_text": "2" }],
            "dry_run": true,
        });
        let edited = call(&client, "edit_file", edit.clone()).await;
        let diff = "--- a/x/y/a.txt\n+++ b/x/y/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";
        assert_eq!((&edited["diff"], &edited["written"]), (&json!(diff), &json!(false)));
        assert_eq!(folder.read("x/y/a.txt"), "one\ntwo\n");
        edit["dry_run"] = json!(false);
        assert_eq!(call(&client, "edit_file", edit.clone()).await["written"], true);
        assert_eq!(folder.read("x/y/a.txt"), "one\n2\n");
        assert!(
            refused(&client, "edit_file", edit).await.contains("edit 1: `old_text` not found in the file")
        );

        folder.write("taken", "");
        let told =
            refused(&client, "move_file", json!({ "source": "x/y/a.txt", "destination": "taken" })).await;
        assert!(told.contains("already exists"), "{told}");
        call(&client, "move_file", json!({ "source": "x/y/a.txt", "destination": "b.txt" })).await;
        assert_eq!(folder.read("b.txt"), "one\n2\n");

        assert!(refused(&client, "delete_file", json!({ "path": "x" })).await.contains("cannot delete"));
        for path in ["x/y", "x", "b.txt", "taken"] {
            call(&client, "delete_file", json!({ "path": path })).await;
        }
        assert!(
            refused(&client, "delete_file", json!({ "path": "." })).await.contains("it is a root directory")
        );
        assert!(folder.names().is_empty(), "nothing is left behind: {:?}", folder.names());
    }
}

#[tokio::test]
async fn a_write_that_fails_leaves_nothing_behind() {
    let folder = Folder::with(&[("folder/x", "")]);
    let client = connect(server(&folder, true), Revision::V2026_07_28).await;
    let told = refused(&client, "write_file", json!({ "path": "folder", "content": "x" })).await;
    assert!(told.contains("the path exists and is not a file"), "{told}");
    assert!(
        refused(&client, "write_file", json!({ "path": "none/x", "content": "x" }))
            .await
            .contains("cannot change")
    );
    assert!(
        refused(&client, "create_directory", json!({ "path": "folder/x" })).await.contains("cannot make")
    );
    assert_eq!(folder.names(), ["folder"]);
}

#[tokio::test]
async fn files_in_dot_git_are_not_changed() {
    let folder = Folder::with(&[(".git/config", "[core]\n"), ("sub/.git/config", ""), ("a", "")]);
    let client = connect(server(&folder, true), Revision::V2026_07_28).await;
    for path in [".git/hooks", ".git/config", "./.GIT/config", "sub/.git/config", "sub/.git", ".git"] {
        for (tool, arguments) in [
            ("write_file", json!({ "path": path, "content": "x" })),
            ("edit_file", json!({ "path": path, "edits": [{ "old_text": "core", "new_text": "x" }] })),
            ("create_directory", json!({ "path": path })),
            ("delete_file", json!({ "path": path })),
            ("move_file", json!({ "source": "a", "destination": path })),
            ("move_file", json!({ "source": path, "destination": "b" })),
        ] {
            let told = refused(&client, tool, arguments).await;
            assert!(told.contains("files inside `.git` cannot be changed"), "{tool} {path}: {told}");
        }
    }
    assert_eq!(folder.read(".git/config"), "[core]\n");
}

#[cfg(unix)]
#[tokio::test]
async fn permissions_are_kept() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::with(&[("run.sh", "old")]);
    let path = folder.top.join("run.sh");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    let client = connect(server(&folder, true), Revision::V2026_07_28).await;
    call(&client, "write_file", json!({ "path": "run.sh", "content": "new" })).await;
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o751);
    assert_eq!(folder.read("run.sh"), "new");
}
