//! Examples that show by themselves what they do.

use std::{
    io::Write,
    process::{Command, Stdio},
};

/// Runs a program to its end, with a user who types `input`, and checks what it showed.
fn check(program: &str, words: &[&str], input: &str, expected: &str) {
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut stdin = child.stdin.take().expect("it has a standard input");
    // A program that asks nothing may be gone before it is told anything.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("the program ends");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{complaint}");
    assert!(output.status.success(), "{complaint}");
}

#[test]
fn the_client_calls_a_tool() {
    let shown = "hello speaks 2026-07-28\n  add: Add two numbers.\n";
    check(env!("CARGO_BIN_EXE_client"), &[], "", shown);
    let shown = format!("{shown}3\n");
    check(env!("CARGO_BIN_EXE_client"), &["hello", "add", r#"{"a": 1, "b": 2}"#], "", &shown);
}

#[test]
fn the_client_lets_its_user_answer() {
    let words = ["asking", "delete_project", r#"{"name": "demo"}"#];
    let shown = "asking speaks 2026-07-28\n  delete_project: Delete a project after asking its owner.\n\
                 Delete demo? Answer in JSON:\n";
    let client = env!("CARGO_BIN_EXE_client");
    check(client, &words, "{\"sure\": true}\n", &format!("{shown}ticket 1: deleted demo\n"));
    check(client, &words, "{\"sure\": false}\n", &format!("{shown}ticket 1: kept demo\n"));
    check(client, &words, "", &format!("{shown}ticket 1: kept demo\n"));
}

#[test]
fn the_client_lets_its_user_be_the_model() {
    let shown = "sampling speaks 2026-07-28\n  summarize: Summarize a text in one sentence.\n\
                 Summarize in one sentence: It was long. Answer as the model would:\nthe user says: Short.\n";
    let words = ["sampling", "summarize", r#"{"text": "It was long."}"#];
    check(env!("CARGO_BIN_EXE_client"), &words, "Short.\n", shown);
}

#[test]
fn the_client_shows_progress() {
    let shown = "progress speaks 2026-07-28\n  copy: Copy some files.\n  count: Count to a number.\n\
                 1 of Some(2.0)\n2 of Some(2.0)\ncopied 2 files\n";
    check(env!("CARGO_BIN_EXE_client"), &["progress", "copy", r#"{"files": 2}"#], "", shown);
}

#[test]
fn resources_are_read_and_their_changes_received() {
    let shown = r#"changed: Some(Resource("board://notes"))
changed: Some(Resource("board://notes"))
[{"uri":"board://notes","mimeType":"text/plain","text":"buy milk\nfeed the cat"}]
[{"uri":"board://notes/1","mimeType":"text/plain","text":"feed the cat"}]
the server returned an error: resource not found: board://notes/2 (-32602)
"#;
    check(env!("CARGO_BIN_EXE_resources"), &[], "", shown);
}

#[test]
fn prompts_are_completed_and_filled_in() {
    let shown = r#"["ruby", "rust"]
["axum", "tokio"]
User: Review this rust code using axum.
Assistant: Gladly. Show it to me.
"#;
    check(env!("CARGO_BIN_EXE_prompts"), &[], "", shown);
}

// proves: STDIO-20
#[cfg(unix)]
#[test]
fn a_socket_serves_one_client_after_another() {
    check(env!("CARGO_BIN_EXE_socket"), &[], "", "Hello, Ann!\nHello, Bo!\n");
}

#[test]
fn a_protected_server_looks_at_tokens_and_scopes() {
    let shown = "writer: noted for bo: milk
reader: the server returned an error: insufficient scope: this needs `notes:read notes:write` (-32003)
stranger: the server refused to open the connection: unknown token (-32600)
";
    check(env!("CARGO_BIN_EXE_protected"), &[], "", shown);
}
