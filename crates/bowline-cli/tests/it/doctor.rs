//! `bowline doctor`, with correct and faulty servers.

use crate::program;
use bowline_http::HttpService;
use bowline_server::{Server, Tool};
use expect_test::expect;
use serde_json::Value;
use std::process::Output;
use tokio::{net::TcpListener, sync::oneshot};

fn server(name: &str) -> String {
    format!("{}/tests/it/servers/{name}.sh", env!("CARGO_MANIFEST_DIR"))
}

fn doctor(options: &[&str], name: &str, variables: &[(&str, &str)]) -> Output {
    let file = server(name);
    let words = [&["doctor"], options, &["--", "/bin/sh", &file]].concat();
    program(&words).envs(variables.iter().copied()).output().expect("the program ends")
}

/// Masks times in the output.
fn report(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut steady = String::new();
    let mut rest = &*text;
    while let Some((before, behind)) = rest.split_once(" ms") {
        steady.push_str(before.trim_end_matches(|letter: char| letter.is_ascii_digit()));
        steady.push_str("N ms");
        rest = behind;
    }
    steady + rest
}

fn checks(output: &Output) -> Vec<String> {
    let report: Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
    let name = |finding: &Value| finding["check"].as_str().unwrap_or_default().to_owned();
    report["findings"].as_array().expect("there are findings").iter().map(name).collect()
}

#[test]
fn a_correct_server_has_no_findings() {
    let output = doctor(&[], "good", &[]);
    expect![[r#"
        server       good 1.0
        revisions    2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 (used: 2025-11-25)
        capabilities tools
        offers       1 tool; about 49 tokens
        times        connected in N ms, ping N ms, exited after N ms

        hint [newest-revision]: the newest revision, 2026-07-28, is not supported
          no action needed yet: clients fall back to an older revision

        0 errors, 0 warnings, 1 hint
    "#]]
    .assert_eq(&report(&output));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(doctor(&["--fail-on", "hint"], "good", &[]).status.code(), Some(8));
}

#[test]
fn a_missing_client_capability_is_not_a_finding() {
    let bowline = env!("CARGO_BIN_EXE_bowline");
    let output = program(&["doctor", "--call", "--json", "--", bowline, "serve", "everything"]).output();
    let checks = checks(&output.expect("the program ends"));
    assert!(!checks.contains(&"bad-call".to_owned()), "{checks:?}");
}

#[test]
fn all_problems_are_reported() {
    let output = doctor(&[], "bad", &[]);
    expect![[r#"
        server       bad
        revisions    2024-11-05 (used: 2024-11-05)
        capabilities prompts, tools
        offers       3 tools, 0 prompts; about 47 tokens
        times        connected in N ms, exited after N ms

        error [early-messages]: sends messages before initialization
          in `roots/list`
          send only logs and pings before `notifications/initialized`

        error [stdout-noise]: non-protocol text on standard output: 1 line
          in `Listening...`
          print everything else to standard error: many clients disconnect on such a line

        error [bad-frame]: `roots/list` sent although the client did not declare the capability
          in {"jsonrpc":"2.0","id":1,"method":"roots/list"}
          the frame violates the protocol; see the specification of this revision

        error [ping]: `ping`: expected an empty result, got error -32000 (what?)
          respond to pings: clients close the connection otherwise

        error [unknown-method]: unknown method: expected error -32601, got error -32000 (what?)
          clients use this code to detect features, and newer clients to detect the protocol era

        error [bad-entry]: `tools/list` has malformed entries
          in twice
          fix them: clients drop such entries or the whole list

        error [duplicate]: more than one tool with the same `name`
          in twice
          rename or remove duplicates: only one of them can be used

        error [broken-list]: `prompts/list` returns error -32000 (what?), but `prompts` is declared
          return a list, even if it is empty, or do not declare the capability

        error [hidden-characters]: text contains invisible characters
          in twice
          remove them: they can hide instructions to the model

        error [schema-root]: root of `inputSchema` is not an object
          in twice
          set `"type": "object"` at the root, even for a tool without parameters

        warning [old-revision]: the newest supported revision is 2024-11-05
          update the SDK: clients drop support for revisions before 2025-06-18 first

        warning [invalid-params]: `tools/call` without a name: expected error -32602, got error -32000 (what?)
          validate the parameters and return this code

        warning [unknown-tool]: unknown tool: expected error -32602, got error -32000 (what?)
          return this code, so that clients can tell it from an error of the tool

        warning [name-characters]: tool name is rejected by some model providers
          in files.read
          use only ASCII letters, digits, `_` and `-`: OpenAI, Anthropic and Gemini reject other characters

        warning [no-description]: tool has no description
          in files.read, twice
          describe what it does, when to use it and what it returns

        hint [no-identity]: no name and version
          set `serverInfo`: clients display it, and bug reports need it

        hint [bad-end]: exited with code 3 when standard input is closed
          exit with code 0 when standard input is closed

        hint [unknown-prompt]: unknown prompt: expected error -32602, got error -32000 (what?)
          return this code

        hint [bad-cursor]: an invalid cursor is not rejected with error -32602
          in tools/list, prompts/list
          reject it: a client with an outdated cursor would read the first page again

        hint [undescribed-parameter]: parameter has no description
          in files.read.path
          describe its meaning and format, with an example

        hint [no-annotations]: tool has no `readOnlyHint` or `destructiveHint`
          in files.read, twice, twice
          set `readOnlyHint` or `destructiveHint`: otherwise clients assume that the tool is destructive and ask for every call

        hint [schema-gemini]: schema uses keywords that Gemini does not support
          in files.read (oneOf)
          use only plain types, `properties`, `items`, `enum` with strings, and `required`: Gemini rejects the request or ignores the rest

        hint [schema-strict]: schema is not compatible with OpenAI's strict mode
          in files.read
          if you need strict mode: require every property, set `"additionalProperties": false`, and remove defaults

        10 errors, 5 warnings, 8 hints
    "#]].assert_eq(&report(&output));
    assert_eq!(output.status.code(), Some(8));
}

#[test]
fn the_json_report_has_the_same_findings() {
    let output = doctor(&["--json"], "bad", &[]);
    let found = checks(&output);
    for check in
        ["stdout-noise", "early-messages", "unknown-method", "broken-list", "duplicate", "hidden-characters"]
    {
        assert!(found.iter().any(|one| one == check), "{check} is not in {found:?}");
    }
    let report: Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
    assert_eq!(report["revision"], "2024-11-05");
    assert_eq!(report["offers"]["tools"], 3);
    assert_eq!(report["server"]["name"], "bad");
}

#[test]
fn tools_are_called_only_when_asked_for() {
    let wrong = [("STRUCTURED", r#"{"hour":"noon"}"#)];
    assert!(!checks(&doctor(&["--json"], "good", &wrong)).contains(&"bad-call".to_owned()));
    assert!(checks(&doctor(&["--json", "--call"], "good", &wrong)).contains(&"bad-call".to_owned()));
    assert!(!checks(&doctor(&["--json", "--call"], "good", &[])).contains(&"bad-call".to_owned()));
}

#[test]
fn an_unreachable_server_is_an_error_without_findings() {
    let output = program(&["doctor", "--", "/no/such/program"]).output().expect("the program ends");
    assert_eq!(output.status.code(), Some(4));
    let output =
        program(&["doctor", "--", "/bin/sh", "-c", "echo broken >&2; exit 7"]).output().expect("it ends");
    assert_eq!(output.status.code(), Some(4));
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(report.contains("exited with code 7") && report.contains("broken"), "{report}");
}

#[tokio::test]
async fn an_http_server_is_probed() {
    let (stop, stopped) = oneshot::channel::<()>();
    let tool = Tool::new("add").description("Adds two numbers.").read_only().handler(|| "3");
    let service = HttpService::new(Server::new("web").version("1").tool(tool)).expect("it can be built");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("it has an address"));
    let serving = tokio::spawn(async move { service.serve(listener, async { drop(stopped.await) }).await });
    let run = move || program(&["doctor", &url]).output().expect("the program ends");
    let output = tokio::task::spawn_blocking(run).await.expect("the program runs");
    stop.send(()).expect("the server runs");
    serving.await.expect("it was not aborted").expect("it ends well");
    expect![[r#"
        server       web 1
        revisions    2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28 (used: 2026-07-28)
        capabilities logging, tools
        offers       1 tool; about 31 tokens
        times        connected in N ms, ping N ms

        no problems found
    "#]]
    .assert_eq(&report(&output));
    assert_eq!(output.status.code(), Some(0));
}
