//! `bowline up`: at a terminal and without one.

use crate::{
    place::{Background, Place, signal},
    pty::Pty,
};
use expect_test::expect;
use rustix::process::Signal;
use std::{fs, net::TcpListener};

/// Masks the port in a text.
fn without_port(text: &str) -> String {
    let mut parts = text.split("127.0.0.1:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + "127.0.0.1:PORT" + part.trim_start_matches(|digit: char| digit.is_ascii_digit())
    })
}

/// Masks the code of the inspector's link in a text.
fn without_code(text: &str) -> String {
    let Some((before, after)) = text.split_once("/open#") else { return text.to_owned() };
    format!("{before}/open#CODE{}", after.trim_start_matches(|digit: char| digit.is_ascii_hexdigit()))
}

/// Returns the cells of a server's row.
fn row<'a>(screen: &'a str, server: &str) -> Vec<&'a str> {
    let words = screen.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    words.filter(|words| words.len() == 7).find(|words| words[0] == server).unwrap_or_default()
}

fn start(place: &Place, words: &[&str]) -> (Background, String) {
    let mut up = Background::start(place.program(words));
    let url = up.line();
    assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/mcp"), "{url}");
    (up, url)
}

fn port(url: &str) -> &str {
    url.trim_start_matches("http://127.0.0.1:").trim_end_matches("/mcp")
}

#[test]
fn all_suggested_commands_work() {
    let place = Place::new();
    place.put("here/README.md", "Hello\n");
    place.put("user/.cursor/mcp.json", "{}");
    let mut up = Pty::sized(place.program(&["up", "--port", "0"]), 40, 300);
    let servers = ["database", "files", "web"];
    up.wait("all servers", |screen| {
        let is_there =
            |server: &&str| matches!(row(screen, server)[..], [_, "ready", _, tools, ..] if tools != "-");
        servers.iter().all(is_there)
    });
    let screen = place.masked(&without_code(&without_port(&up.screen())));
    expect![[r#"
        consent = "ask": if no rule matches, you are asked here
        Inspect at http://127.0.0.1:PORT/open#CODE
        (this link works once; `bowline open` makes another)

        Gateway running at http://127.0.0.1:PORT/mcp
        No configuration found; running demo servers:
          files     files in /here, read-only
          database  sample SQLite database in memory
          web       web pages
        Found the configuration of Cursor; run `bowline config import` to import the servers.

        Connect a client:
          Claude Code     claude mcp add --transport http bowline http://127.0.0.1:PORT/mcp --header "Authorization: Bearer TOKEN"
          Cursor          {"mcpServers":{"bowline":{"url":"http://127.0.0.1:PORT/mcp","headers":{"Authorization":"Bearer TOKEN"}}}}
          VS Code         {"servers":{"bowline":{"type":"http","url":"http://127.0.0.1:PORT/mcp","headers":{"Authorization":"Bearer TOKEN"}}}}
          Claude Desktop  {"mcpServers":{"bowline":{"command":"bowline","args":["connect"]}}}

        Try in a second terminal:
          bowline tools
          bowline call up files__list_directory
          bowline call up database__tables
          bowline call up database__query sql='SELECT city, count(*) AS customers FROM customers GROUP BY city'
          bowline call up web__fetch url=http://127.0.0.1:PORT/healthz

        Press Ctrl-C to stop.

          SERVER    STATE         REVISION    TOOLS  CALLS  ERRORS  RUNNING
          database  ready         2026-07-28      4      0       0        0
          files     ready         2026-07-28      7      0       0        0
          web       ready         2026-07-28      1      0       0        0"#]].assert_eq(&screen);

    let shown = up.screen();
    let commands: Vec<&str> =
        shown.lines().filter(|line| line.starts_with("  bowline ")).map(str::trim).collect();
    let mut printed = String::new();
    for command in &commands {
        let (output, code) = place.output(place.shell(command));
        assert_eq!(code, Some(0), "{command}: {output}");
        printed.push_str(&output);
    }
    for wanted in ["files__read_file", "README.md", "customers", "ok"] {
        assert!(printed.contains(wanted), "{printed}");
    }
    up.wait("the calls", |screen| row(screen, "database").get(4) == Some(&"2"));

    signal(up.id(), Signal::INT);
    let (code, screen) = up.finish();
    assert_eq!(code, Some(0));
    assert!(
        screen.contains("Shutting down; waiting for running calls. Press Ctrl-C again to exit immediately."),
        "{screen}"
    );
    assert_eq!(fs::read_dir(place.path("login/bowline")).expect("it was made").count(), 0);
    let (printed, code) = place.run(&["ping"]);
    assert_eq!(code, Some(4), "{printed}");
}

#[test]
fn up_prints_lines_without_a_terminal() {
    let place = Place::new();
    place.put("here/README.md", "Hello\n");
    let (up, _) = start(&place, &["up", "--port", "0"]);
    let (printed, code) = place.run(&["call", "up", "files__read_file", "path=README.md"]);
    assert_eq!((printed.trim_end(), code), ("Hello", Some(0)));
    up.signal(Signal::TERM);
    let (code, messages) = up.end();
    assert_eq!(code, Some(0), "{messages}");
    for wanted in ["INFO server is ready server=\"files\"", "Shutting down"] {
        assert!(messages.contains(wanted), "{messages}");
    }
    assert!(!messages.contains("a call has ended"), "a call is no change of state: {messages}");
    assert!(!messages.contains('\u{1b}'), "{messages}");
}

#[test]
fn up_works_without_home_and_runtime_directory() {
    let place = Place::new();
    let here = |words: &[&str]| {
        let mut command = place.program(words);
        command.env("HOME", "").env_remove("XDG_RUNTIME_DIR").env("TMPDIR", place.path("login"));
        command
    };
    let mut up = Background::start(here(&["up", "--port", "0"]));
    let url = up.line();
    let (printed, code) = place.output(here(&["tools"]));
    assert_eq!(code, Some(0), "{url}: {printed}");
    assert!(printed.contains("database__query"), "{printed}");
    up.signal(Signal::INT);
    assert_eq!(up.end().0, Some(0));
}

#[test]
fn a_second_gateway_prints_the_url_of_the_first() {
    let place = Place::new();
    let (first, url) = start(&place, &["up", "--port", "0"]);
    let output = place.program(&["up", "--port", port(&url)]).output().expect("the program can be started");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), url);
    assert!(String::from_utf8_lossy(&output.stderr).contains("bowline is already running (process "));
    let (printed, code) = place.run(&["up", "--json", "--port", port(&url)]);
    assert_eq!(code, Some(0));
    let printed: serde_json::Value = serde_json::from_str(&printed).expect("it is JSON");
    assert_eq!(printed["url"], url);
    first.signal(Signal::INT);
    assert_eq!(first.end().0, Some(0));
}

#[test]
fn a_port_in_use_is_an_error_with_a_hint() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("there are ports left");
    let port = taken.local_addr().expect("it has an address").port().to_string();
    let (printed, code) = place.run(&["up", "--port", &port]);
    expect![[r#"
        error: address 127.0.0.1:PORT is already in use
          use another port with `bowline up --port PORT`, or `--port 0` for a free one
    "#]]
    .assert_eq(&without_port(&printed));
    assert_eq!(code, Some(1));
}

#[test]
fn claude_desktop_gets_a_working_connect_command() {
    let place = Place::new();
    let free = TcpListener::bind("127.0.0.1:0").expect("there are ports left");
    let port = free.local_addr().expect("it has an address").port().to_string();
    drop(free);
    let shown = |port: &str| {
        let mut up = Pty::sized(place.program(&["up", "--port", port]), 40, 400);
        up.expect("Press Ctrl-C to stop.");
        let screen = place.masked(&up.screen());
        let line = screen.lines().find(|line| line.contains("Claude Desktop")).expect("it is printed").trim();
        line.to_owned()
    };
    // A port chosen by the system differs in the next run.
    assert!(shown("0").contains(r#""args":["connect"]"#));
    assert!(shown(&port).contains(&format!(r#"["connect","--port","{port}"]"#)));
}

#[test]
fn consent_is_requested_above_the_table() {
    let place = Place::new();
    let server = "command = \"bowline\"\nargs = [\"serve\", \"everything\"]\n";
    place.put("user/.config/bowline/bowline.toml", &format!("[servers.mine]\n{server}"));
    place.put("here/bowline.toml", &format!("[servers.theirs]\n{server}"));
    let mut up = Pty::sized(place.program(&["up", "--port", "0"]), 50, 120);
    // V-70
    up.expect("theirs>");
    let screen = up.screen();
    assert!(screen.contains("This server is defined by the project. Allow it to run?"), "{screen}");
    assert_eq!(row(&screen, "mine"), [""; 0], "the table is away while something is asked: {screen}");
    up.enter("y");
    up.wait("the approval", |screen| row(screen, "theirs").get(1) == Some(&"idle"));

    let mut call = Background::start(place.program(&["call", "up", "mine__echo", "message=hi there"]));
    up.expect("mine>");
    assert!(up.screen().contains("Allow this tool call?"), "{}", up.screen());
    up.enter("y");
    assert_eq!(call.line(), "hi there");
    assert_eq!(call.end().0, Some(0));
    up.wait("the call", |screen| {
        matches!(row(screen, "mine")[..], [_, "ready", "2026-07-28", tools, "1", "0", "0"] if tools != "-")
    });

    // A server that is added at run time appears.
    place.put(
        "user/.config/bowline/bowline.toml",
        &format!("[servers.mine]\n{server}[servers.more]\n{server}"),
    );
    up.wait("the new server", |screen| row(screen, "more").get(1) == Some(&"idle"));
    signal(up.id(), Signal::INT);
    let (code, screen) = up.finish();
    assert_eq!(code, Some(0), "{screen}");
}

#[test]
fn a_refused_question_is_reported_while_another_waits() {
    let place = Place::new();
    let file = "[gateway]\nmax_questions = 1\n[servers.mine]\ncommand = \"bowline\"\nargs = [\"serve\", \"everything\"]\n";
    place.put("user/.config/bowline/bowline.toml", file);
    let mut up = Pty::sized(place.program(&["up", "--port", "0"]), 50, 160);
    up.wait("the table", |screen| row(screen, "mine").get(1) == Some(&"idle"));
    let mut first = Background::start(place.program(&["call", "up", "mine__echo", "message=one"]));
    up.expect("mine>");
    let (output, code) = place.run(&["call", "up", "mine__wait", "seconds=0"]);
    assert_eq!(code, Some(7), "{output}");
    assert!(output.contains("1 question of this server is unanswered; answer it,"), "{output}");
    // The first question is still open.
    up.expect("too many questions of this server are unanswered");
    up.enter("y");
    assert_eq!(first.line(), "one");
    assert_eq!(first.end().0, Some(0));
    up.wait("the table", |screen| row(screen, "mine").get(4) == Some(&"1"));
}

/// A configuration with one server that starts when the file `go` exists in its directory, and one that is ready at once.
fn slow_and_fast(place: &Place) -> String {
    let (go, program) = (place.path("go"), env!("CARGO_BIN_EXE_bowline"));
    // Opening a pipe waits for its writer.
    let made = std::process::Command::new("mkfifo").arg(&go).status().expect("it can be run");
    assert!(made.success());
    let script = format!("read line <{}; exec {program} serve everything", go.display());
    format!(
        "[[rules]]\neffect = \"allow\"\n[servers.slow]\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\n[servers.fast]\ncommand = {program:?}\nargs = [\"serve\", \"everything\"]\n"
    )
}

#[test]
fn a_list_names_servers_that_are_starting_and_a_call_waits_for_them() {
    let place = Place::new();
    place.put("user/.config/bowline/bowline.toml", &slow_and_fast(&place));
    let (up, _) = start(&place, &["up", "--port", "0"]);
    let (output, code) = place.run(&["tools"]);
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("fast__echo") && !output.contains("slow__echo"), "{output}");
    assert!(output.contains("still starting: slow"), "{output}");
    let call = Background::start(place.program(&["call", "up", "slow__echo", "message=hi"]));
    fs::write(place.path("go"), "now\n").expect("the server reads it");
    let (code, output) = {
        let mut call = call;
        let line = call.line();
        (call.end().0, line)
    };
    assert_eq!((output.as_str(), code), ("hi", Some(0)));
    let (output, _) = place.run(&["tools"]);
    assert!(output.contains("slow__echo") && !output.contains("still starting"), "{output}");
    up.signal(Signal::TERM);
    let (_, messages) = up.end();
    let named = messages.lines().filter(|line| line.contains("a list is incomplete")).collect::<Vec<_>>();
    assert!(named.len() == 1 && named[0].contains("slow"), "{messages}");
}

#[test]
fn tools_that_the_gateway_hides_can_be_shown_and_called() {
    let place = Place::new();
    let file = "[disclosure]\nmode = \"on\"\n[[rules]]\neffect = \"allow\"\n[servers.mine]\ncommand = \"bowline\"\nargs = [\"serve\", \"everything\"]\n";
    place.put("user/.config/bowline/bowline.toml", file);
    let (_up, _) = start(&place, &["up", "--port", "0"]);
    let (listed, _) = place.run(&["tools", "up"]);
    assert!(listed.contains("search_tools") && !listed.contains("mine__echo"), "{listed}");
    // Without the schema the text would be sent as a number.
    place.check(
        &["call", "up", "mine__echo", "message=5"],
        0,
        &expect![[r#"
            5
        "#]],
    );
    let (shown, code) = place.run(&["tools", "up", "mine__echo"]);
    assert!(shown.contains("message  string, required"), "{shown}");
    assert_eq!(code, Some(0));
    let (printed, code) = place.run(&["call", "up", "mine__ecko", "message=hi"]);
    assert!(printed.contains("no tool `mine__ecko`") && printed.contains("mine__echo"), "{printed}");
    assert_eq!(code, Some(2));
}

#[test]
fn a_denied_call_exits_with_7() {
    let place = Place::new();
    let file = "[[rules]]\ntool = \"echo\"\neffect = \"deny\"\n[[rules]]\naction = \"read\"\neffect = \"deny\"\n[[rules]]\neffect = \"allow\"\n[servers.mine]\ncommand = \"bowline\"\nargs = [\"serve\", \"everything\"]\n";
    place.put("user/.config/bowline/bowline.toml", file);
    let (_up, _) = start(&place, &["up", "--port", "0"]);
    let (printed, code) = place.run(&["call", "up", "mine__echo", "message=hi"]);
    assert_eq!(code, Some(7), "{printed}");
    let (printed, code) = place.run(&["--json", "call", "up", "mine__echo", "message=hi"]);
    assert!(printed.contains(r#""exitCode":7"#), "{printed}");
    assert_eq!(code, Some(7), "{printed}");
    let (printed, code) = place.run(&["read", "up", "test://static-text"]);
    assert_eq!(code, Some(7), "{printed}");
    // An error of the tool itself has another exit code.
    assert_eq!(place.run(&["call", "up", "mine__test_error_handling"]).1, Some(1));
}

#[test]
fn running_calls_finish_unless_interrupted_twice() {
    // proves: TOOL-56
    let place = Place::new();
    let file = "[[rules]]\neffect = \"allow\"\n[servers.mine]\ncommand = \"bowline\"\nargs = [\"serve\", \"everything\"]\n";
    place.put("user/.config/bowline/bowline.toml", file);
    for (seconds, signals, code) in [("seconds=2", 1, 0), ("seconds=3600", 2, 130)] {
        let mut up = Pty::sized(place.program(&["up", "--port", "0"]), 50, 120);
        up.wait("the table", |screen| row(screen, "mine").get(1) == Some(&"idle"));
        let mut call = Background::start(place.program(&["call", "up", "mine__wait", seconds]));
        up.wait("the call", |screen| row(screen, "mine").last() == Some(&"1"));
        signal(up.id(), Signal::INT);
        up.expect("Shutting down; waiting for running calls.");
        if signals == 2 {
            signal(up.id(), Signal::INT);
        } else {
            assert_eq!(call.line(), "waited 2 s");
        }
        let (ended, screen) = up.finish();
        assert_eq!(ended, Some(code), "{screen}");
        let (printed, _) = call.end();
        assert_eq!(printed == Some(0), signals == 1);
    }
}

#[test]
fn an_unsafe_configuration_prevents_startup() {
    let place = Place::new();
    place.put("user/.config/bowline/bowline.toml", "[[rules]]\neffect = \"forbid\"\n");
    let (printed, code) = place.run(&["up", "--port", "0"]);
    expect![[r#"
        error: the configuration is invalid
          /user/.config/bowline/bowline.toml:2:10: rules[0].effect: expected one of `ask`, `deny`, `allow`, got `forbid`; write `effect = "ask"`
    "#]].assert_eq(&printed);
    assert_eq!(code, Some(3));
}

/// Returns the HTTP status for a request with these headers.
fn status(url: &str, headers: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port(url).parse().expect("it is a port")))
        .expect("it listens");
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
        port(url),
        body.len()
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers with text");
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn another_user_without_the_token_is_refused() {
    // proves: SEC-33
    let place = Place::new();
    let (token, code) = {
        let output = place.program(&["token", "show"]).output().expect("the program can be started");
        (String::from_utf8(output.stdout).expect("it is text").trim().to_owned(), output.status.code())
    };
    assert_eq!(code, Some(0));
    for _ in 0..2 {
        let (up, url) = start(&place, &["up", "--port", "0"]);
        assert_eq!(status(&url, ""), "401");
        assert_eq!(status(&url, "Authorization: Bearer bowline_0\r\n"), "401");
        assert_ne!(status(&url, &format!("Authorization: Bearer {token}\r\n")), "401");
        // The user's own commands send the token, however they address the gateway.
        for target in ["up", &url, &url.replace("127.0.0.1", "localhost")] {
            let (printed, code) = place.run(&["tools", target]);
            assert_eq!(code, Some(0), "{target}: {printed}");
        }
        up.signal(Signal::TERM);
        let (_, messages) = up.end();
        assert!(!messages.contains(&token), "{messages}");
    }
    let (up, url) = start(&place, &["up", "--port", "0", "--no-token"]);
    assert_ne!(status(&url, ""), "401");
    up.signal(Signal::TERM);
    up.end();
}

#[test]
fn a_token_is_rotated_and_kept_private() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let show = || place.program(&["token", "show"]).output().expect("the program can be started").stdout;
    let first = show();
    assert_eq!(show(), first);
    place.check(
        &["token", "rotate"],
        0,
        &expect![[r"
        TOKEN
    "]],
    );
    assert_ne!(show(), first);
    let file = place.path("user/.local/state/bowline/token");
    assert_eq!(fs::metadata(&file).expect("it is kept").permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("it is ours");
    for words in [&["token", "show"][..], &["up", "--port", "0"]] {
        place.check(words, 3, &expect![[r#"
            error: token file `/user/.local/state/bowline/token` belongs to another user or is readable by others
              run `bowline token rotate` to replace it
        "#]]);
    }
}

#[test]
fn without_a_home_the_token_of_the_run_is_printed() {
    let place = Place::new();
    let mut command = place.program(&["up", "--port", "0", "--json"]);
    command.env_remove("HOME");
    let mut up = Background::start(command);
    let printed = (0..5).map(|_| up.line()).collect::<String>();
    let printed: serde_json::Value = serde_json::from_str(&printed).expect("it is JSON");
    let (url, token) =
        (printed["url"].as_str().expect("it is printed"), printed["token"].as_str().expect("it is printed"));
    assert!(up.message("cannot store a token without a home directory").contains(token));
    assert_eq!(status(url, ""), "401");
    assert_ne!(status(url, &format!("Authorization: Bearer {token}\r\n")), "401");
}

#[test]
fn a_process_that_took_over_the_port_gets_no_token() {
    let place = Place::new();
    let (up, url) = start(&place, &["up", "--port", "0"]);
    up.signal(Signal::KILL);
    up.end();
    let other =
        TcpListener::bind(("127.0.0.1", port(&url).parse().expect("it is a port"))).expect("it is free");
    other.set_nonblocking(true).expect("it can be set");
    // The files of the killed process are still there.
    assert_ne!(fs::read_dir(place.path("login/bowline")).expect("it was made").count(), 0);
    place.check(
        &["tools"],
        4,
        &expect![[r#"
            error: your gateway is not running
              no target means `up`, your running gateway; `bowline up` starts it
              to use a gateway of another user or machine, give its URL
        "#]],
    );
    let refused = other.accept().expect_err("nobody connects");
    assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock);
}
