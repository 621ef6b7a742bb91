//! The doctor, with servers that are well and servers that are not.

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

/// What was printed, with all times the same.
fn told(output: &Output) -> String {
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
fn a_server_that_is_well_has_a_clean_bill() {
    let output = doctor(&[], "good", &[]);
    expect![[r"
        server       good 1.0
        revisions    2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 (spoken here: 2025-11-25)
        capabilities tools
        offers       1 tool; about 49 tokens
        times        opened after N ms, a ping takes N ms, ended after N ms

        hint [newest-revision]: it does not answer 2026-07-28, the newest revision
          no harm yet; the newest clients will speak an older revision with it

        0 errors, 0 warnings, 1 hint
    "]]
    .assert_eq(&told(&output));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(doctor(&["--fail-on", "hint"], "good", &[]).status.code(), Some(8));
}

#[test]
fn a_server_that_misses_a_capability_is_well() {
    let bowline = env!("CARGO_BIN_EXE_bowline");
    let output = program(&["doctor", "--call", "--json", "--", bowline, "serve", "everything"]).output();
    let checks = checks(&output.expect("the program ends"));
    assert!(!checks.contains(&"bad-call".to_owned()), "{checks:?}");
}

#[test]
fn everything_that_is_wrong_is_told() {
    let output = doctor(&[], "bad", &[]);
    expect![[r#"
        server       bad
        revisions    2024-11-05 (spoken here: 2024-11-05)
        capabilities prompts, tools
        offers       3 tools, 0 prompts; about 47 tokens
        times        opened after N ms, ended after N ms

        error [early-messages]: it speaks before it is opened
          in `roots/list`
          wait for `notifications/initialized` before asking or telling anything but logs

        error [stdout-noise]: 1 line on standard output that is no message
          in `Listening...`
          print only messages there, and everything else to standard error; many clients give up at such a line

        error [bad-frame]: `roots/list`, although the client did not declare that it can
          in {"jsonrpc":"2.0","id":1,"method":"roots/list"}
          the frame breaks the protocol: see the specification of the revision

        error [ping]: `ping` is answered with error -32000 (what?); expected an empty result
          answer pings: clients end connections over them

        error [unknown-method]: an unknown method is answered with error -32000 (what?); expected error -32601
          clients find out by this code what a server has; the newest ones also whether it is of their era

        error [bad-entry]: `tools/list` has entries of the wrong shape
          in twice
          clients leave such entries out, or drop the whole list

        error [duplicate]: more than one tool of the same `name`
          in twice
          only one of them can be reached; rename or remove the others

        error [broken-list]: `prompts/list` is answered with error -32000 (what?), although `prompts` is declared
          declare only what is there, and answer with a list, be it empty

        error [hidden-characters]: a text with characters that cannot be seen
          in twice
          remove them: they can carry orders to a model that nobody sees

        error [schema-root]: an `inputSchema` whose root is no object
          in twice
          write `"type": "object"` at the root, also for a tool without parameters

        warning [old-revision]: the newest revision it answers is 2024-11-05
          update its SDK: newer clients drop what is older than 2025-06-18 first

        warning [invalid-params]: `tools/call` without a name is answered with error -32000 (what?); expected error -32602
          check parameters and refuse with this code

        warning [unknown-tool]: a tool that does not exist is answered with error -32000 (what?); expected error -32602
          refuse with this code, so that a client does not take it for a failure of the tool

        warning [name-characters]: a tool whose name some models refuse
          in files.read
          use letters, digits, `_` and `-` of ASCII: OpenAI, Anthropic and Gemini refuse a request with any other

        warning [no-description]: a tool without a description
          in files.read, twice
          say what it does, when to use it and what comes back: the model knows nothing else

        hint [no-identity]: it does not say its name and version
          set `serverInfo`: clients show it, and bug reports need it

        hint [bad-end]: it exited with code 3 when standard input is closed
          exit with code 0 when standard input is closed

        hint [unknown-prompt]: a prompt that does not exist is answered with error -32000 (what?); expected error -32602
          refuse with this code

        hint [bad-cursor]: a cursor that it never gave is not refused with error -32602
          in tools/list, prompts/list
          refuse it: a client with an old cursor would read the first page again

        hint [undescribed-parameter]: a parameter without a description
          in files.read.path
          say what it is, in which form, with an example

        hint [no-annotations]: a tool that does not say whether it changes anything
          in files.read, twice, twice
          set `readOnlyHint` or `destructiveHint`: clients otherwise ask their user for every call, as if it could destroy something

        hint [schema-gemini]: a schema that goes beyond what Gemini takes
          in files.read (oneOf)
          use plain types with `properties`, `items`, `enum` of texts and `required`: Gemini refuses the request or drops the rest

        hint [schema-strict]: a schema that OpenAI's strict mode does not take
          in files.read
          only matters where strict mode is wanted: require every property, forbid others with `"additionalProperties": false`, and have no defaults

        10 errors, 5 warnings, 8 hints
    "#]].assert_eq(&told(&output));
    assert_eq!(output.status.code(), Some(8));
}

#[test]
fn the_report_for_programs_has_the_same_findings() {
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
fn a_server_that_cannot_be_opened_is_no_finding() {
    let output = program(&["doctor", "--", "/no/such/program"]).output().expect("the program ends");
    assert_eq!(output.status.code(), Some(4));
    let output =
        program(&["doctor", "--", "/bin/sh", "-c", "echo broken >&2; exit 7"]).output().expect("it ends");
    assert_eq!(output.status.code(), Some(4));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("exited with code 7") && told.contains("broken"), "{told}");
}

#[tokio::test]
async fn a_server_behind_a_url_is_knocked_at() {
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
    expect![[r"
        server       web 1
        revisions    2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28 (spoken here: 2026-07-28)
        capabilities logging, tools
        offers       1 tool; about 31 tokens
        times        opened after N ms, a ping takes N ms

        nothing to complain about
    "]]
    .assert_eq(&told(&output));
    assert_eq!(output.status.code(), Some(0));
}
