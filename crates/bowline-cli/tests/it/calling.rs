//! Tool calls: arguments, results, errors and exit codes.

mod arguments;

use crate::place::Place;
use expect_test::expect;
use std::{
    io::{BufRead, BufReader, Read, Write},
    process::Stdio,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_bowline");

#[test]
fn text_is_printed() {
    let place = Place::new();
    place.check(
        &["call", "everything", "echo", "message=hi"],
        0,
        &expect![[r"
        hi
    "]],
    );
    place.check(
        &["call", "echo", "message=hi", "--", PROGRAM, "serve", "everything"],
        0,
        &expect![[r"
        hi
    "]],
    );
    for revision in ["2024-11-05", "2025-11-25", "2026-07-28"] {
        let words =
            ["call", "echo", "message=hi", "--revision", revision, "--", PROGRAM, "serve", "everything"];
        assert_eq!(place.run(&words), ("hi\n".to_owned(), Some(0)));
    }
}

#[test]
fn server_text_cannot_control_the_terminal() {
    // V-100
    let place = Place::new();
    let message = "message=\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}x";
    place.check(
        &["call", "everything", "echo", message],
        0,
        &expect![[r"
        <U+001B>]0;owned<U+0007><U+001B>[2J<U+202E>x
    "]],
    );
}

#[test]
fn results_in_json_use_the_protocol_format() {
    let place = Place::new();
    place.check(
        &["call", "everything", "sum", "numbers=1", "numbers=2.5", "--json"],
        0,
        &expect![[r#"
        {
          "content": [
            {
              "type": "text",
              "text": "{\"count\":2,\"sum\":3.5}"
            }
          ],
          "structuredContent": {
            "count": 2,
            "sum": 3.5
          },
          "isError": false
        }
    "#]],
    );
    place.check(
        &["call", "everything", "sum", "--json", r#"{"numbers": [1]}"#],
        0,
        &expect![[r#"
        {
          "content": [
            {
              "type": "text",
              "text": "{\"count\":1,\"sum\":1.0}"
            }
          ],
          "structuredContent": {
            "count": 1,
            "sum": 1.0
          },
          "isError": false
        }
    "#]],
    );
    place.check(
        &["call", "everything", "test_error_handling", "--json"],
        1,
        &expect![[r#"
            {
              "content": [
                {
                  "type": "text",
                  "text": "This tool intentionally returns an error for testing"
                }
              ],
              "isError": true
            }
            {"error":{"exitCode":1,"code":null,"message":"tool `test_error_handling` returned an error","data":null,"advice":[]}}
        "#]],
    );
}

/// Runs the program with standard input, and returns the output of both streams and the exit code.
fn with_input(place: &Place, words: &[&str], text: &str) -> (String, Option<i32>) {
    let mut child = place
        .program(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut input = child.stdin.take().expect("it is a pipe");
    input.write_all(text.as_bytes()).expect("it is read");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (printed.into_owned(), output.status.code())
}

#[test]
fn a_dash_reads_standard_input() {
    let place = Place::new();
    let three = ("{\"count\":2,\"sum\":3.0}\n".to_owned(), Some(0));
    let all = r#"{"numbers": [1, 2]}"#;
    assert_eq!(with_input(&place, &["call", "everything", "sum", "-"], all), three);
    assert_eq!(with_input(&place, &["call", "everything", "sum", "--args", "-"], all), three);
    assert_eq!(with_input(&place, &["call", "everything", "sum", "numbers=@-"], "[1, 2]"), three);
    let params = r#"{"name": "sum", "arguments": {"numbers": [1, 2]}}"#;
    let (printed, code) = with_input(&place, &["request", "everything", "tools/call", "-"], params);
    assert!(printed.contains(r#""sum": 3.0"#), "{printed}");
    assert_eq!(code, Some(0));
}

#[test]
fn failures_are_json_with_the_json_flag() {
    let place = Place::new();
    place.check(
        &["call", "everything", "ecko", "--json"],
        2,
        &expect![[r#"
            {"error":{"exitCode":2,"code":null,"message":"the server has no tool `ecko`","data":null,"advice":["did you mean `echo`?"]}}
        "#]],
    );
    place.check(
        &["--json", "read", "everything", "test://none"],
        5,
        &expect![[r#"
            {"error":{"exitCode":5,"code":-32602,"message":"the server returned an error: resource not found: test://none (-32602)","data":{"uri":"test://none"},"advice":[]}}
        "#]],
    );
    place.check(
        &["--json", "call", "everything", "test_sampling", "prompt=Hi"],
        7,
        &expect![[r#"
            {"error":{"exitCode":7,"code":-32021,"message":"the server returned an error: missing required client capability (-32021)","data":{"requiredCapabilities":{"sampling":{}}},"advice":["the server asks for a model: configure `[sampling]` in bowline.toml and run the command in a terminal, or pass `--answers FILE`"]}}
        "#]],
    );
    place.check(
        &["--json", "tools", "nobody"],
        3,
        &expect![[r#"
            {"error":{"exitCode":3,"code":null,"message":"unknown server `nobody`","data":null,"advice":["no servers are configured","built-in servers: files, git, database, web, everything","to start a program, put it after `--`: `bowline tools -- nobody`"]}}
        "#]],
    );
    // Also for an invalid command line.
    place.check(
        &["tools", "--json", "--timeout", "soon"],
        2,
        &expect![[r#"
            {"error":{"exitCode":2,"code":null,"message":"invalid value 'soon' for '--timeout <TIME>': expected a duration such as 500ms, 10s, 5m or 1h","data":null,"advice":["For more information, try '--help'."]}}
        "#]],
    );
    place.check(
        &["--json", "-C", "nowhere", "tools"],
        2,
        &expect![[r#"
            {"error":{"exitCode":2,"code":null,"message":"cannot change to directory `nowhere`: No such file or directory (os error 2)","data":null,"advice":[]}}
        "#]],
    );
}

#[test]
fn any_request_can_be_sent() {
    let place = Place::new();
    place.check(
        &["request", "--revision", "2025-06-18", "everything", "completion/complete", r#"{"ref": {"type": "ref/prompt", "name": "travel"}, "argument": {"name": "country", "value": "It"}}"#],
        0,
        &expect![[r#"
            {
              "completion": {
                "values": [
                  "Italy"
                ]
              }
            }
        "#]],
    );
    place.check(
        &["request", "everything", "no/such/method"],
        5,
        &expect![[r#"
            error: the server returned an error: method not found: no/such/method (-32601)
        "#]],
    );
    place.check(
        &["request", "everything", "tools/list", "[1]"],
        2,
        &expect![[r#"
            error: expected the parameters as a JSON object, got `[1]`
        "#]],
    );
    place.check(
        &["request", "everything"],
        2,
        &expect![[r#"
            error: expected a method and at most one JSON object with parameters
              for example `bowline request everything tools/list`
        "#]],
    );
}

#[test]
fn metadata_is_sent_with_a_request() {
    let place = Place::new();
    for words in [
        &["call", "everything", "echo", "message=hi"][..],
        &["read", "everything", "test://static-text"],
        &["prompt", "everything", "test_simple_prompt"],
        &["request", "everything", "tools/list"],
    ] {
        let meta = ["--trace", "--meta", "example.com/a=1", "--meta", "b:=[2]", "--meta", r#"{"c":{"d":3}}"#];
        let (printed, code) = place.run(&[words, &meta].concat());
        assert_eq!(code, Some(0), "{printed}");
        let sent = |line: &&str| line.contains(r#""example.com/a":"1""#) && line.contains(r#""b":[2]"#);
        assert!(printed.lines().find(sent).is_some_and(|line| line.contains(r#""c":{"d":3}"#)), "{printed}");
    }
    let (printed, code) = place.run(&["call", "everything", "echo", "message=hi", "--meta", "a b=1"]);
    assert!(printed.contains("--meta"), "{printed}");
    assert_eq!(code, Some(2));
}

#[test]
fn each_traced_message_starts_with_its_time() {
    let place = Place::new();
    let (printed, code) = place.run(&["call", "everything", "echo", "message=hi", "--trace"]);
    assert_eq!(code, Some(0), "{printed}");
    let mut messages = 0;
    for line in printed.lines().filter(|line| line.contains(r#""jsonrpc""#)) {
        // `05:44:05.123Z > {…}`
        let (time, rest) = line.split_once(' ').expect("a time comes first");
        let digits = time.bytes().filter(u8::is_ascii_digit).count();
        assert!(time.ends_with('Z') && time.matches(':').count() == 2 && digits >= 6, "{line}");
        assert!(rest.starts_with("> {") || rest.starts_with("< {"), "{line}");
        messages += 1;
    }
    assert!(messages >= 4, "{printed}");
}

#[test]
fn log_messages_are_printed_to_standard_error() {
    let place = Place::new();
    for revision in ["2026-07-28", "2025-06-18"] {
        let words =
            ["call", "everything", "test_tool_with_logging", "--log-level", "info", "--revision", revision];
        let (printed, code) = place.run(&words);
        assert!(printed.contains("log: info"), "{printed}");
        assert!(printed.contains("Tool execution started"), "{printed}");
        assert_eq!(code, Some(0));
        let (printed, _) =
            place.run(&["call", "everything", "test_tool_with_logging", "--log-level", "error"]);
        assert!(!printed.contains("log: "), "{printed}");
    }
}

#[test]
fn questions_are_answered_from_a_file() {
    let place = Place::new();
    let answers = r#"{
        "elicitation": [{"match": "never asked", "action": "decline"},
                        {"action": "accept", "content": {"username": "ann", "email": "ann@example.com"}}],
        "sampling": [{"text": "a model said this"}]
    }"#;
    place.put("here/answers.json", answers);
    for revision in ["2026-07-28", "2025-06-18"] {
        let call = |words: &[&str]| {
            let options = ["--answers", "answers.json", "--revision", revision];
            place.run(&[&["call", "everything"], words, &options].concat())
        };
        let (printed, code) = call(&["test_elicitation", "message=Who?"]);
        assert!(printed.contains(r#"accept Account { username: "ann""#), "{printed}");
        assert_eq!(code, Some(0));
        let (printed, code) = call(&["test_sampling", "prompt=Hi"]);
        assert!(printed.contains("a model said this"), "{printed}");
        assert_eq!(code, Some(0));
    }
    // A question without an answer is cancelled with a warning.
    place.put("here/few.json", r#"{"elicitation": [{"match": "another question", "action": "decline"}]}"#);
    let (printed, _) =
        place.run(&["call", "everything", "test_elicitation", "message=Who?", "--answers", "few.json"]);
    assert!(
        printed.contains("no unused answer in the `--answers` file matches `Who?`; cancelled"),
        "{printed}"
    );
    place.put("here/wrong.json", r#"{"elicitation": [{"action": "maybe"}]}"#);
    let (printed, code) = place.run(&["call", "everything", "echo", "--answers", "wrong.json"]);
    assert!(
        printed.starts_with("error: invalid answers file `wrong.json`: unknown variant `maybe`"),
        "{printed}"
    );
    assert_eq!(code, Some(2));
    let (printed, code) =
        with_input(&place, &["call", "everything", "test_sampling", "prompt=Hi", "--answers", "-"], answers);
    assert!(printed.contains("a model said this"), "{printed}");
    assert_eq!(code, Some(0));
}

#[cfg(unix)]
#[test]
fn a_timeout_exits_with_6() {
    let place = Place::new();
    let server = format!("{}/tests/it/servers/silent.sh", env!("CARGO_MANIFEST_DIR"));
    for words in [
        &["tools"][..],
        &["call", "anything"],
        &["resources"],
        &["read", "test://a"],
        &["prompts"],
        &["prompt", "a"],
        &["complete", "a", "b=c"],
        &["request", "tools/list"],
        &["ping"],
    ] {
        let (printed, code) = place.run(&[words, &["--timeout", "300ms", "--", "/bin/sh", &server]].concat());
        assert_eq!(code, Some(6), "{words:?} {printed}");
        assert!(printed.contains("timed out after 300ms"), "{printed}");
    }
    // A port that accepts connections and never responds.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("it is bound"));
    let (printed, code) = place.run(&["tools", &url, "--timeout", "300ms"]);
    assert_eq!(code, Some(6), "{printed}");
}

#[test]
fn images_and_audio_are_saved_on_request() {
    let place = Place::new();
    place.check(
        &["call", "everything", "test_image_content"],
        0,
        &expect![[r#"
            image/png, 69 bytes; use `-o DIR` to save it
        "#]],
    );
    place.check(
        &["call", "everything", "test_image_content", "-o", "out"],
        0,
        &expect![[r#"
            saved out/test_image_content.png (image/png, 69 bytes)
        "#]],
    );
    place.check(
        &["call", "everything", "test_audio_content", "--output", "out"],
        0,
        &expect![[r"
        saved out/test_audio_content.wav (audio/wav, 60 bytes)
    "]],
    );
    place.check(
        &["call", "everything", "test_multiple_content_types"],
        0,
        &expect![[r#"
            Multiple content types:
            This is an embedded resource.
            image/png, 69 bytes; use `-o DIR` to save it
        "#]],
    );
    place.check(
        &["call", "everything", "links"],
        0,
        &expect![[r"
        Two resources to look at:
        test://static-text  static_text (text/plain)
        test://template/7/data  row 7
        The seventh row
    "]],
    );
    assert!(!place.path("here/test_image_content.png").exists());
    let picture = std::fs::read(place.path("here/out/test_image_content.png")).expect("it was written");
    assert!(picture.starts_with(b"\x89PNG"));
    place.put("here/file", "");
    place.check(
        &["call", "everything", "test_image_content", "--output", "file"],
        1,
        &expect![[r#"
            error: cannot write `file`: File exists (os error 17)
              use `--output DIR` to save files elsewhere
        "#]],
    );
}

#[test]
fn progress_is_printed_to_standard_error() {
    let place = Place::new();
    place.check(
        &["call", "everything", "wait", "seconds=1"],
        0,
        &expect![[r#"
            waited 1 s
            progress: 1/1 1 s elapsed
        "#]],
    );
}

#[test]
fn a_built_in_server_that_cannot_start_is_unreachable() {
    // There is no repository here.
    let (_, code) = Place::new().run(&["call", "git", "git_status"]);
    assert_eq!(code, Some(4));
}

#[test]
fn the_exit_code_reflects_the_result_of_a_call() {
    let place = Place::new();
    place.check(
        &["call", "everything", "test_error_handling"],
        1,
        &expect![[r#"
            This tool intentionally returns an error for testing
            error: tool `test_error_handling` returned an error
        "#]],
    );
    place.check(
        &["call", "everything", "test_elicitation", "message=Who?"],
        7,
        &expect![[r#"
            error: the server returned an error: missing required client capability (-32021)
              the server asks the user for input: run the command in a terminal, or pass `--answers FILE`
        "#]],
    );
    place.check(&["call", "everything", "test_sampling", "prompt=Hi"], 7, &expect![[r#"
        error: the server returned an error: missing required client capability (-32021)
          the server asks for a model: configure `[sampling]` in bowline.toml and run the command in a terminal, or pass `--answers FILE`
    "#]]);
    place.check(
        &["call", "everything", "test_input_required_result_list_roots"],
        7,
        &expect![[r#"
            error: the server returned an error: missing required client capability (-32021)
              the server asks for roots: pass `--root DIR`
        "#]],
    );
    place.check(
        &["call", "everything", "wait", "seconds=3600", "--timeout", "500ms"],
        6,
        &expect![[r"
        error: tools/call timed out after 500ms
    "]],
    );
    place.check(
        &["tools", "--timeout", "100ms", "--", "sleep", "600"],
        6,
        &expect![[r"
        error: sleep: starting the server timed out after 100ms
    "]],
    );
    place.check(
        &["call", "echo", "--", PROGRAM, "--version"],
        4,
        &expect![[r"
        error: program `bowline` exited with code 0 before answering
    "]],
    );
}

#[test]
fn roots_are_sent_to_the_server() {
    let place = Place::new();
    let (printed, code) =
        place.run(&["call", "everything", "test_input_required_result_list_roots", "--root", "."]);
    assert!(printed.contains("/here"), "{printed}");
    assert_eq!(code, Some(0));
    place.check(
        &["tools", "everything", "--root", "nowhere"],
        2,
        &expect![[r#"
            error: cannot use root `nowhere`: No such file or directory (os error 2)
        "#]],
    );
}

#[cfg(unix)]
#[test]
fn an_interrupted_call_is_cancelled_on_the_server() {
    use rustix::process::{Pid, Signal, kill_process};

    let place = Place::new();
    let words = [
        "--trace",
        "call",
        "wait",
        "seconds=3600",
        "--revision",
        "2025-11-25",
        "--",
        PROGRAM,
        "serve",
        "everything",
    ];
    let mut child = place
        .program(&words)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut trace = BufReader::new(child.stderr.take().expect("it is a pipe"));
    let mut line = String::new();
    while !line.contains("tools/call") {
        line.clear();
        assert_ne!(trace.read_line(&mut line).expect("it is text"), 0, "the call was never sent");
    }
    let id = Pid::from_child(&child);
    kill_process(id, Signal::INT).expect("it is our child");
    let mut rest = String::new();
    trace.read_to_string(&mut rest).expect("it is text");
    assert!(rest.contains("notifications/cancelled"), "{rest}");
    assert_eq!(child.wait().expect("it is our child").code(), Some(130));
}

#[test]
fn the_repl_continues_after_errors() {
    let place = Place::new();
    let mut child = place
        .program(&["repl", "everything"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut input = child.stdin.take().expect("it is a pipe");
    let lines =
        "call echo message='two words'\ncal echo\nread test://rules\ncall echo\nread\n\nhelp\nquit\nping\n";
    input.write_all(lines.as_bytes()).expect("it is read");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    expect![[r#"
        two words
        There are none.
        tools [TOOL]                    list the tools, or describe one
        call TOOL [name=value]...       call a tool
        resources, templates            list the resources or resource templates
        read URI                        read a resource
        prompts                         list the prompts
        prompt PROMPT [name=value]...   get a prompt
        complete PROMPT|TEMPLATE argument=prefix
                                        complete an argument
        request METHOD [JSON]           send any request
        info, ping                      show or ping the server
        help                            show this help
        quit                            exit; so does Ctrl-D
    "#]]
    .assert_eq(&String::from_utf8_lossy(&output.stdout));
    expect![[r#"
        error: unknown command `cal`
          did you mean `call`?
        error: echo: missing required argument `message`
          run `bowline tools everything echo` to see its arguments
        error: wrong arguments for `read`
          type `help` for a list of commands
    "#]]
    .assert_eq(&String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
}
