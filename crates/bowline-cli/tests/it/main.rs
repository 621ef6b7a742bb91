//! The program as its users run it.

use expect_test::{Expect, expect};
use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Output, Stdio},
};

/// The program, with neither a home nor a terminal nor anything else of whoever runs the tests.
fn program(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
    command.args(words).env_clear().stdin(Stdio::null());
    command
}

fn run(words: &[&str]) -> (String, String, Option<i32>) {
    let Output { stdout, stderr, status } = program(words).output().expect("the program can be started");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
    (text(stdout), text(stderr), status.code())
}

#[expect(clippy::needless_pass_by_value, reason = "an inline snapshot is made where it is checked")]
fn check(words: &[&str], code: i32, stdout: Expect, stderr: Expect) {
    let (told, complained, ended) = run(words);
    stdout.assert_eq(&told);
    stderr.assert_eq(&complained);
    assert_eq!(ended, Some(code));
}

#[test]
fn without_words_it_shows_what_each_revision_sees() {
    check(
        &[],
        0,
        expect![[r#"
        One server, `bowline serve demo`, and a client of each revision of the protocol.

        revision    opened by        tools                 add 2 3  "Which color?"    progress  resource  prompt
        ----------  ---------------  --------------------  -------  ----------------  --------  --------  ----------------
        2024-11-05  initialize       echo add paint count  5        cannot ask        3 steps   Ahoy!     Say ahoy to Ann.
        2025-03-26  initialize       echo add paint count  5        cannot ask        3 steps   Ahoy!     Say ahoy to Ann.
        2025-06-18  initialize       echo add paint count  5        painted it green  3 steps   Ahoy!     Say ahoy to Ann.
        2025-11-25  initialize       echo add paint count  5        painted it green  3 steps   Ahoy!     Say ahoy to Ann.
        2026-07-28  server/discover  echo add paint count  5        painted it green  3 steps   Ahoy!     Say ahoy to Ann.

        Revisions before 2025-06-18 have no way to ask the user, so a tool that has to ask fails there.
        In 2024-11-05 the model reads: the client does not support elicitation
        In 2025-03-26 the model reads: the client does not support elicitation
    "#]],
        expect![""],
    );
}

#[test]
fn the_tour_is_the_default() {
    assert_eq!(run(&["tour"]), run(&[]));
}

#[test]
fn a_trace_has_the_messages_of_both_sides_and_then_the_table() {
    let (told, _, _) = run(&["--trace"]);
    let (_, asked) = told.split_once("2026-07-28\n").expect("each revision has its part");
    let (asked, table) = asked.split_once("\n\n").expect("the parts are apart");
    let frames: Vec<serde_json::Value> = asked
        .lines()
        .map(|line| serde_json::from_str(line.get(2..).unwrap_or_default()).expect("each line is a message"))
        .collect();
    assert!(asked.starts_with("> {") && asked.contains("\n< {"), "{asked}");
    assert_eq!(frames[0]["method"], "server/discover");
    assert!(frames.iter().any(|frame| frame["result"]["resultType"] == "input_required"), "{asked}");
    let (plain, _, _) = run(&[]);
    assert!(plain.ends_with(table), "{table}");
}

#[test]
fn unknown_words_are_refused_in_a_sentence() {
    check(
        &["fly"],
        2,
        expect![""],
        expect![[r"
            bowline: expected a command or an option, got `fly`; try `bowline --help`
        "]],
    );
    check(
        &["serve"],
        2,
        expect![""],
        expect![[r"
            bowline: expected the name of a server after `serve`: there is `demo`
        "]],
    );
}

#[test]
fn help_and_version_are_told() {
    let version = format!("bowline {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(&["--version"]), (version, String::new(), Some(0)));
    let (help, _, code) = run(&["--help"]);
    assert!(help.contains("serve demo") && help.contains("--trace"), "{help}");
    assert_eq!(code, Some(0));
}

#[test]
fn the_demo_serves_until_its_client_leaves() {
    let mut child =
        program(&["serve", "demo"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut write = child.stdin.take().expect("it has a standard input");
    writeln!(write, r#"{{"jsonrpc":"2.0","id":1,"method":"ping"}}"#).expect("it reads");
    let mut line = String::new();
    let mut read = BufReader::new(child.stdout.take().expect("it has a standard output"));
    read.read_line(&mut line).expect("it writes");
    assert_eq!(line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
    drop(write);
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let mut child = program(&[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}
