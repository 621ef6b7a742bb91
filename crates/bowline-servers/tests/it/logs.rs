//! What the servers write to the logs of their clients: nothing, so no log message contains data of the user.

use crate::support::{has_git, repository};
use bowline::prelude::*;
use bowline_servers::{Database, Files, Git, Web, files_and_git};
use bowline_testing::Peer;
use serde_json::Value;
use std::collections::BTreeSet;

const PASSWORD: &str = "hunter2";

/// Calls every tool of a server. Returns what they gave.
async fn call_all(server: Server, calls: &[(&str, Value)]) -> String {
    let mut peer = Peer::memory(server).unwrap().capabilities(json!({ "elicitation": {} }));
    let listed = peer.modern("tools/list", json!({})).await.unwrap();
    let offered: BTreeSet<_> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(offered, calls.iter().map(|(tool, _)| *tool).collect(), "the test calls every tool");
    let mut results = String::new();
    for (tool, arguments) in calls {
        let meta = json!({ "io.modelcontextprotocol/logLevel": "debug" });
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        let answer = peer.modern("tools/call", params).await.unwrap();
        assert_eq!(peer.notifications(), [] as [Value; 0], "{tool}");
        results.push_str(&answer.to_string());
    }
    assert_eq!(peer.close().await.unwrap(), [] as [Value; 0]);
    results
}

// proves: LOG-16, LOG-17, LOG-18
#[tokio::test]
async fn no_server_sends_log_messages_about_data_of_the_user() {
    if !has_git() {
        return;
    }
    let folder = repository();
    folder.write("secret.env", format!("PASSWORD={PASSWORD}\n"));
    let files = Files::new([&folder.top]).unwrap().writable(true);
    let git = Git::at(&folder.top).unwrap().writable(true);
    let calls = [
        ("list_allowed_directories", json!({})),
        ("list_directory", json!({ "path": "." })),
        ("directory_tree", json!({ "path": "." })),
        ("stat", json!({ "path": "secret.env" })),
        ("read_file", json!({ "path": "secret.env" })),
        ("read_files", json!({ "paths": ["secret.env", "missing"] })),
        ("read_file", json!({ "path": "/etc/shadow" })),
        ("search_files", json!({ "content": PASSWORD })),
        ("write_file", json!({ "path": "new.txt", "content": PASSWORD })),
        ("edit_file", json!({ "path": "new.txt", "edits": [{ "old_text": PASSWORD, "new_text": "x" }] })),
        ("create_directory", json!({ "path": "directory" })),
        ("move_file", json!({ "source": "new.txt", "destination": "directory/new.txt" })),
        ("delete_file", json!({ "path": "directory/new.txt" })),
        ("git_status", json!({})),
        ("git_add", json!({ "paths": ["secret.env"] })),
        ("git_diff", json!({ "staged": true })),
        ("git_unstage", json!({ "paths": ["secret.env"] })),
        ("git_add", json!({ "paths": ["secret.env"] })),
        ("git_commit", json!({ "message": PASSWORD })),
        ("git_log", json!({})),
        ("git_show", json!({ "revision": "HEAD" })),
        ("git_blame", json!({ "path": "secret.env" })),
        ("git_branches", json!({})),
        ("git_create_branch", json!({ "name": PASSWORD })),
        ("git_switch", json!({ "name": "no such branch" })),
    ];
    assert!(call_all(files_and_git(files, git), &calls).await.contains("PASSWORD=hunter2"));

    let database = Database::sqlite_or_create(folder.top.join("users.db")).unwrap().writable(true);
    let calls = [
        ("execute", json!({ "sql": "CREATE TABLE users (password TEXT)" })),
        ("execute", json!({ "sql": format!("INSERT INTO users VALUES ('{PASSWORD}')") })),
        ("tables", json!({})),
        ("describe", json!({ "table": "users" })),
        ("query", json!({ "sql": format!("SELECT * FROM users WHERE password = '{PASSWORD}'") })),
        ("query", json!({ "sql": format!("SELECT '{PASSWORD}") })),
        ("explain", json!({ "sql": format!("SELECT '{PASSWORD}'") })),
    ];
    assert!(call_all(database.without_consent().server(), &calls).await.contains(r#"rows":[["hunter2"]]"#));

    // This address is refused before anything is sent.
    let url = format!("http://ada:{PASSWORD}@127.0.0.1:9/");
    call_all(Web::new().server().unwrap(), &[("fetch", json!({ "url": url }))]).await;
}
