//! Recordings: recorded, served and replayed.

use crate::program;
use expect_test::expect;
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Output, Stdio},
};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/servers/asking.sh");

/// The frames that a client sends, and how many frames it waits for each time.
const CONVERSATION: [(&str, usize); 4] = [
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}"#,
        1,
    ),
    (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, 0),
    (
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet","arguments":{"password":"hunter2"}}}"#,
        2,
    ),
    (r#"{"jsonrpc":"2.0","id":"q-1","result":{"action":"accept","content":{"name":"tok-secret"}}}"#, 1),
];

fn start(words: &[&str], variables: &[(&str, &str)]) -> Child {
    let mut command = program(words);
    command.envs(variables.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program can be started")
}

/// Runs the conversation, and returns the received frames and the exit code.
fn converse(mut child: Child, conversation: &[(&str, usize)]) -> (Vec<String>, Output) {
    let mut to = child.stdin.take().expect("it is a pipe");
    let mut from = BufReader::new(child.stdout.take().expect("it is a pipe"));
    let mut received = Vec::new();
    for (frame, answers) in conversation {
        writeln!(to, "{frame}").expect("the program reads");
        for _ in 0..*answers {
            let mut line = String::new();
            from.read_line(&mut line).expect("the program answers");
            received.push(line.trim_end().to_owned());
        }
    }
    drop(to);
    received.extend(from.lines().map(|line| line.expect("the program ends")));
    (received, child.wait_with_output().expect("the program ends"))
}

fn recorded(path: &Path) -> Vec<String> {
    let words = ["record", path.to_str().expect("the path is a text"), "--", "/bin/sh", SERVER];
    let child = start(&words, &[("MY_TOKEN", "tok-secret")]);
    let (received, output) = converse(child, &CONVERSATION);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    received
}

fn replayed_to_server(path: &Path, variables: &[(&str, &str)], options: &[&str]) -> Output {
    let mut words = vec!["replay", path.to_str().expect("the path is a text")];
    words.extend(options);
    words.extend(["--", "/bin/sh", SERVER]);
    let mut command = program(&words);
    command.envs(variables.iter().copied()).output().expect("the program ends")
}

/// Removes the times from a recording.
fn without_times(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("the recording is there");
    let is_time = |line: &&str| line.starts_with("# ") && line.ends_with(" s");
    let mut lines: Vec<&str> = text.lines().filter(|line| !is_time(line)).collect();
    lines.push("");
    lines.join("\n")
}

#[test]
fn a_recording_is_a_transcript_without_secrets() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("run.txtar");
    recorded(&path);
    expect![[r#"
        A recorded conversation.

        server: /bin/sh

        -- client --
        {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}
        -- server --
        {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"asking","version":"1"}}}
        -- client --
        {"jsonrpc":"2.0","method":"notifications/initialized"}
        {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet","arguments":{"password":"<masked>"}}}
        -- server --
        {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"asking"}}
        {"jsonrpc":"2.0","id":"q-1","method":"elicitation/create","params":{"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}
        -- client --
        {"jsonrpc":"2.0","id":"q-1","result":{"action":"accept","content":{"name":"<masked>"}}}
        -- server --
        {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"hello"}]}}
    "#]].assert_eq(&without_times(&path));
}

#[test]
fn a_recorded_question_is_replayed_frame_by_frame() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("run.txtar");
    let received = recorded(&path);
    assert_eq!(received.len(), 4);
    let (again, output) =
        converse(start(&["replay", path.to_str().expect("it is a text")], &[]), &CONVERSATION);
    assert_eq!(again, received);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn an_unrecorded_request_is_reported() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("run.txtar");
    recorded(&path);
    let [opening, opened, call, _] = CONVERSATION;
    let other = [
        opening,
        opened,
        call,
        (r#"{"jsonrpc":"2.0","id":"q-1","result":{"action":"decline"}}"#, 1),
        (r#"{"jsonrpc":"2.0","id":9,"method":"prompts/list"}"#, 1),
    ];
    let (received, output) = converse(start(&["replay", path.to_str().expect("it is a text")], &[]), &other);
    assert_eq!(output.status.code(), Some(8));
    assert!(
        received[4].contains("the recording has no `prompts/list`; it has initialize, tools/call"),
        "{received:?}"
    );
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains(r#"/result/action: expected "accept", got "decline""#), "{printed}");
}

#[test]
fn an_unchanged_server_matches_its_recording() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("run.txtar");
    recorded(&path);
    for variables in [&[][..], &[("QUESTION", "77")]] {
        let output = replayed_to_server(&path, variables, &[]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "all responses match the recording\n");
        assert!(output.status.success());
    }
}

#[test]
fn a_changed_response_is_a_difference() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("run.txtar");
    recorded(&path);
    let changed = [("GREETING", "good day")];
    let output = replayed_to_server(&path, &changed, &[]);
    assert_eq!(output.status.code(), Some(8));
    let printed =
        String::from_utf8_lossy(&output.stdout).replace(&*folder.path().to_string_lossy(), "FOLDER");
    expect![[r#"
        FOLDER/run.txtar:24: `tools/call` differs
          /result/content/0/text: expected "hello", got "good day"
    "#]]
    .assert_eq(&printed);
    expect![[r#"
        error: 1 response differs from the recording
    "#]]
    .assert_eq(&String::from_utf8_lossy(&output.stderr));
    let ignored = replayed_to_server(&path, &changed, &["--ignore", "/result/content/*/text"]);
    assert!(ignored.status.success());
    let json = replayed_to_server(&path, &changed, &["--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("it is JSON");
    assert_eq!(json["differences"][0]["about"], "tools/call");
    assert_eq!(json["differences"][0]["came"]["result"]["content"][0]["text"], "good day");
}

#[test]
fn bytes_pass_unchanged() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("raw");
    let words = ["record", path.to_str().expect("it is a text"), "--", "/bin/cat"];
    let (received, output) = converse(start(&words, &[]), &[("no JSON  \u{7}", 1), ("  {\"a\": 1}", 1)]);
    assert_eq!(received, ["no JSON  \u{7}", "  {\"a\": 1}"]);
    assert!(output.status.success());
    let text = without_times(&path);
    assert!(text.contains("-- client raw --\nno JSON  \\x07\n"), "{text}");
    assert!(text.contains("# not a frame: no JSON"), "{text}");
}

#[test]
fn other_commands_can_record() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("ping.txtar");
    let words = ["ping", "--record", path.to_str().expect("it is a text"), "--", "/bin/sh", SERVER];
    let output = program(&words).output().expect("the program ends");
    assert_eq!(output.status.code(), Some(5), "the server knows no ping");
    let text = without_times(&path);
    assert!(text.contains(r#""method":"ping""#) && text.contains("no such method"), "{text}");
}

#[test]
fn an_unwritable_recording_is_an_error() {
    let output = program(&["ping", "--record", "/no/such/folder/a", "--", "/bin/sh", SERVER])
        .output()
        .expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write `/no/such/folder/a`"));
}
