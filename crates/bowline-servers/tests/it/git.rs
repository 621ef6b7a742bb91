//! The tools of the git server.

use crate::support::{
    Folder, REVISIONS, call, connect, connect_with, git, has_git, refused, repository, text, tools,
};
use bowline::{prelude::*, types::Root};
use bowline_servers::{Files, Git, files_and_git};
use serde_json::{Value, json};

const READING: [&str; 6] = ["git_status", "git_log", "git_diff", "git_show", "git_blame", "git_branches"];
const WRITING: [&str; 5] = ["git_add", "git_unstage", "git_commit", "git_create_branch", "git_switch"];

fn server(folder: &Folder) -> Server {
    Git::at(&folder.top).unwrap().writable(true).server()
}

#[tokio::test]
async fn tools_that_write_need_the_write_flag() {
    if !has_git() {
        return;
    }
    let folder = repository();
    for revision in REVISIONS {
        let reading = connect(Git::at(&folder.top).unwrap().server(), revision).await;
        assert_eq!(tools(&reading).await, READING);
        for tool in WRITING {
            let told = refused(&reading, tool, json!({})).await;
            assert!(told.contains("unknown tool") && told.contains("start it with `--write`"), "{told}");
        }
        let writing = connect(server(&folder), revision).await;
        assert_eq!(tools(&writing).await, [&READING[..], &WRITING[..]].concat());
        for tool in writing.tools().await.unwrap() {
            let hints = tool.annotations.unwrap();
            assert_eq!(
                hints.read_only_hint == Some(true),
                READING.contains(&tool.name.as_str()),
                "{}",
                tool.name
            );
            assert_eq!(hints.open_world_hint, Some(false));
            assert!(tool.title.is_some());
        }
    }
}

#[tokio::test]
async fn a_repository_is_inspected() {
    if !has_git() {
        return;
    }
    let folder = repository();
    folder.write("a.txt", "one\n2\n");
    folder.write("new file", "");
    let hash = git(&folder.top, &["rev-parse", "HEAD"]).trim().to_owned();
    for revision in REVISIONS {
        let client = connect(server(&folder), revision).await;
        let status = call(&client, "git_status", json!({})).await;
        assert_eq!((&status["branch"], &status["commit"]), (&json!("main"), &json!(hash)));
        let file = |path: &str, unstaged: &str| json!({ "path": path, "before": null, "staged": null, "unstaged": unstaged });
        assert_eq!(status["files"], json!([file("a.txt", "modified"), file("new file", "untracked")]));

        let log = call(&client, "git_log", json!({ "paths": ["a.txt"], "author": "ann@" })).await;
        assert_eq!((&log["commits"][0]["hash"], &log["more"]), (&json!(hash), &json!(false)));
        assert_eq!(log["commits"][0]["message"], "First");
        assert_eq!(call(&client, "git_log", json!({ "author": "nobody" })).await["commits"], json!([]));

        let diff = text(&client, "git_diff", json!({ "paths": ["a.txt"] })).await;
        assert!(diff.contains("-two\n+2\n"), "{diff}");
        assert_eq!(text(&client, "git_diff", json!({ "staged": true })).await, "");
        let diff = text(&client, "git_diff", json!({ "from": "HEAD" })).await;
        assert!(diff.contains("-two\n+2\n"), "{diff}");

        let show = text(&client, "git_show", json!({})).await;
        assert!(show.contains("First") && show.contains("+two"), "{show}");
        assert_eq!(text(&client, "git_show", json!({ "path": "a.txt" })).await, "one\ntwo\n");

        let blame =
            call(&client, "git_blame", json!({ "path": "a.txt", "revision": "HEAD", "from_line": 2 })).await;
        assert_eq!(blame["lines"].as_array().unwrap().len(), 1);
        let line = &blame["lines"][0];
        assert_eq!(
            (&line["line"], &line["commit"], &line["author"]),
            (&json!(2), &json!(hash), &json!("Ann"))
        );
        let blame = call(&client, "git_blame", json!({ "path": "a.txt" })).await;
        assert_eq!(blame["lines"][1]["commit"], "0".repeat(40));

        let branches = call(&client, "git_branches", json!({})).await;
        assert_eq!(
            (&branches["branches"][0]["name"], &branches["branches"][0]["current"]),
            (&json!("main"), &json!(true))
        );

        assert!(refused(&client, "git_log", json!({ "revision": "nowhere" })).await.contains("git failed"));
        assert!(
            refused(&client, "git_show", json!({ "revision": "nowhere" }))
                .await
                .contains("unknown revision `nowhere`")
        );
        assert!(refused(&client, "git_diff", json!({ "to": "HEAD" })).await.contains("`to` needs `from`"));
    }
}

#[tokio::test]
async fn a_repository_is_committed_to() {
    if !has_git() {
        return;
    }
    for revision in REVISIONS {
        let folder = repository();
        let client = connect(server(&folder), revision).await;
        folder.write("b.txt", "b");
        folder.write("-odd", "odd");
        std::fs::remove_file(folder.top.join("a.txt")).unwrap();
        call(&client, "git_add", json!({ "paths": ["b.txt", "a.txt"] })).await;
        let message = "-m not an option\n\nBody\n# kept";
        let made = call(&client, "git_commit", json!({ "message": message, "paths": ["-odd"] })).await;
        assert_eq!(git(&folder.top, &["rev-parse", "HEAD"]).trim(), made["hash"]);
        assert_eq!(git(&folder.top, &["log", "-1", "--format=%B"]).trim(), message);
        assert_eq!(git(&folder.top, &["status", "--porcelain"]), "");
        assert_eq!(git(&folder.top, &["ls-files"]), "-odd\nb.txt\n");
        assert!(
            refused(&client, "git_commit", json!({ "message": "nothing to commit" }))
                .await
                .contains("git failed")
        );
        assert!(
            refused(&client, "git_commit", json!({ "message": " " })).await.contains("must not be empty")
        );

        let made = call(&client, "git_create_branch", json!({ "name": "topic", "start": "HEAD~1" })).await;
        assert_eq!(made["branch"], "topic");
        assert!(
            refused(&client, "git_create_branch", json!({ "name": "topic" }))
                .await
                .contains("already exists")
        );
        call(&client, "git_switch", json!({ "name": "topic" })).await;
        assert_eq!(call(&client, "git_status", json!({})).await["branch"], "topic");
        assert_eq!(folder.read("a.txt"), "one\ntwo\n");
        let log = call(&client, "git_log", json!({ "revision": "topic..main" })).await;
        assert_eq!(log["commits"].as_array().unwrap().len(), 1);
        // Changes are not lost.
        folder.write("b.txt", "mine");
        assert!(refused(&client, "git_switch", json!({ "name": "main" })).await.contains("git failed"));
        assert_eq!(folder.read("b.txt"), "mine");
    }
}

#[tokio::test]
async fn staged_files_are_unstaged() {
    if !has_git() {
        return;
    }
    for revision in REVISIONS {
        let folder = repository();
        let client = connect(server(&folder), revision).await;
        folder.write("a.txt", "changed\n");
        folder.write("new/b.txt", "b");
        call(&client, "git_add", json!({ "paths": ["a.txt", "new"] })).await;
        call(&client, "git_unstage", json!({ "paths": ["new"] })).await;
        assert_eq!(git(&folder.top, &["diff", "--cached", "--name-only"]), "a.txt\n");
        call(&client, "git_unstage", json!({ "paths": ["a.txt"] })).await;
        assert_eq!(git(&folder.top, &["diff", "--cached", "--name-only"]), "");
        assert_eq!((folder.read("a.txt"), folder.read("new/b.txt")), ("changed\n".into(), "b".into()));
        refused(&client, "git_unstage", json!({ "paths": [] })).await;
        refused(&client, "git_unstage", json!({ "paths": ["../root-evil"] })).await;

        // Also before the first commit.
        let fresh = Folder::with(&[("c.txt", "c")]);
        git(&fresh.top, &["init", "-q", "-b", "main"]);
        let client = connect(server(&fresh), revision).await;
        call(&client, "git_add", json!({ "paths": ["c.txt"] })).await;
        call(&client, "git_unstage", json!({ "paths": ["c.txt"] })).await;
        assert_eq!(git(&fresh.top, &["ls-files"]), "");
        assert_eq!(fresh.read("c.txt"), "c");
    }
}

#[tokio::test]
async fn long_output_is_cut_with_a_note() {
    if !has_git() {
        return;
    }
    let folder = repository();
    for number in 0..3 {
        folder.write(&format!("n{number}"), "x".repeat(100));
        git(&folder.top, &["add", "."]);
        git(&folder.top, &["commit", "-q", "-m", "More"]);
    }
    let client = connect(server(&folder), Revision::V2026_07_28).await;
    let log = call(&client, "git_log", json!({ "limit": 2 })).await;
    assert_eq!((log["commits"].as_array().unwrap().len(), &log["more"]), (2, &json!(true)));
    let log = call(&client, "git_log", json!({ "limit": 2, "skip": 2 })).await;
    assert_eq!((log["commits"].as_array().unwrap().len(), &log["more"]), (2, &json!(false)));

    let short = Git::at(&folder.top).unwrap().max_output(300).server();
    let client = connect(short, Revision::V2026_07_28).await;
    let diff = text(&client, "git_diff", json!({ "from": "HEAD~3", "to": "HEAD" })).await;
    assert!(diff.ends_with("(cut after 300 bytes; limit the paths)"), "{diff}");
    let log = call(&client, "git_log", json!({})).await;
    assert_eq!(log["more"], true);
    assert!(log["commits"].as_array().unwrap().iter().all(|commit: &Value| commit["message"] == "More"));
}

#[tokio::test]
async fn roots_of_the_client_must_contain_the_repository() {
    if !has_git() {
        return;
    }
    let folder = repository();
    for revision in REVISIONS {
        let client = connect_with(server(&folder), revision, Some(vec![Root::new(folder.uri(""))])).await;
        call(&client, "git_status", json!({})).await;
        client.set_roots([Root::new(format!("file://{}", folder.outside.display()))]).unwrap();
        let told = refused(&client, "git_status", json!({})).await;
        assert!(told.contains("do not overlap"), "{told}");
    }
}

#[tokio::test]
async fn one_server_has_the_tools_of_both() {
    if !has_git() {
        return;
    }
    let folder = repository();
    let files = Files::new([&folder.top]).unwrap();
    let server = files_and_git(files, Git::at(&folder.top).unwrap());
    let client = connect(server, Revision::V2025_11_25).await;
    assert_eq!(client.server().server_info.as_ref().unwrap().name, "files");
    assert_eq!(tools(&client).await.len(), 13);
    assert_eq!(text(&client, "read_file", json!({ "path": "a.txt" })).await, "one\ntwo\n");
    assert_eq!(call(&client, "git_status", json!({})).await["files"], json!([]));
}

#[test]
fn a_directory_without_a_repository_is_an_error() {
    if !has_git() {
        return;
    }
    let folder = Folder::new();
    let told = Git::at(&folder.top).unwrap_err().to_string();
    assert!(told.contains("is not in a git work tree") && told.contains("not a git repository"), "{told}");
}

#[tokio::test]
async fn a_subdirectory_serves_the_whole_repository() {
    if !has_git() {
        return;
    }
    let folder = repository();
    folder.write("sub/x", "");
    let client = connect(Git::at(folder.top.join("sub")).unwrap().server(), Revision::V2025_11_25).await;
    let told = client.server().instructions.clone().unwrap_or_default();
    let top = std::fs::canonicalize(&folder.top).unwrap();
    assert_eq!(
        told,
        format!(
            "The top of the repository is `{}`; paths are relative to it. The repository is read-only; `--write` adds tools that change it.",
            top.display()
        )
    );
    let status = call(&client, "git_status", json!({})).await;
    assert!(status["files"][0]["path"].as_str().unwrap().starts_with("sub/"), "{status}");
}
