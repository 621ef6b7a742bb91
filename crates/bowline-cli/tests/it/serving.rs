//! `bowline gateway` and `bowline serve`.

use crate::{
    place::{Background, Place},
    pty::Pty,
};
use expect_test::expect;
use rustix::process::Signal;
use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
};

const SERVERS: &str = r#"
[[rules]]
effect = "allow"

[servers.shop]
command = "bowline"
args = ["serve", "database", "--max-rows", "2"]
"#;

/// Returns the address in a log line as a URL.
fn url(message: &str) -> String {
    let (_, address) = message.split_once("address=").expect("the log names an address");
    format!("http://{}/mcp", address.trim())
}

#[test]
fn a_stdio_gateway_looks_like_one_server() {
    let place = Place::new();
    place.put("user/.config/bowline/bowline.toml", SERVERS);
    let words =
        ["call", "shop__query", "sql=SELECT id FROM customers", "--", "bowline", "gateway", "--stdio"];
    let (printed, code) = place.run(&words);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains('1') && !printed.contains('3'), "{printed}");
}

#[test]
fn a_gateway_serves_http_and_stdio_until_its_client_exits() {
    let place = Place::new();
    place.put("user/.config/bowline/bowline.toml", SERVERS);
    let mut gateway = Background::start(place.program(&["gateway", "--stdio", "--listen", "127.0.0.1:0"]));
    let url = url(&gateway.message("listening"));
    let (printed, code) = place.run(&["tools", &url]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("shop__query"), "{printed}");
    gateway.close_input();
    assert_eq!(gateway.end().0, Some(0));
}

#[test]
fn a_url_without_a_path_gets_a_hint() {
    let place = Place::new();
    let mut server = Background::start(place.program(&["serve", "everything", "--http", "localhost:0"]));
    let url = server.line();
    let (printed, code) = place.run(&["ping", url.trim_end_matches("/mcp")]);
    assert!(printed.contains(&format!("try `{url}`")), "{printed}");
    assert_ne!(code, Some(0));
}

#[test]
fn an_http_gateway_shuts_down_on_signal() {
    let place = Place::new();
    let file = "[gateway]\nlisten = \"127.0.0.1:0\"\ntoken_env = \"GATE_TOKEN\"\n".to_owned() + SERVERS;
    place.put("gateway.toml", &file);
    let config = place.path("gateway.toml").display().to_string();
    let mut command = place.program(&["gateway", "--config", &config, "--log-format", "json"]);
    command.env("GATE_TOKEN", "s3cret-token");
    let mut gateway = Background::start(command);
    let message: serde_json::Value =
        serde_json::from_str(&gateway.message("listening")).expect("each line is JSON");
    let url = format!("http://{}/mcp", message["address"].as_str().expect("it is printed"));
    // The user's own commands know the token; those of another user do not.
    let other = Place::new();
    let (printed, code) = other.run(&["ping", &url]);
    assert_ne!(code, Some(0), "{printed}");
    let mut ping = other.program(&["ping", &url, "--bearer-env", "TOKEN"]);
    ping.env("TOKEN", "s3cret-token");
    let (printed, code) = place.output(ping);
    assert_eq!(code, Some(0), "{printed}");
    gateway.signal(Signal::TERM);
    let (code, messages) = gateway.end();
    assert_eq!(code, Some(0));
    assert!(!messages.contains("s3cret-token"), "{messages}");
}

#[test]
fn a_gateway_logs_changes_of_state_and_no_calls() {
    let place = Place::new();
    place.put("user/.config/bowline/bowline.toml", SERVERS);
    let mut gateway = Background::start(place.program(&["gateway", "--listen", "127.0.0.1:0"]));
    let url = url(&gateway.message("listening"));
    for (sql, expected) in [("SELECT id FROM customers", Some(0)), ("SELECT 1", Some(0)), ("SELEKT", Some(1))]
    {
        let (printed, code) = place.run(&["call", &url, "shop__query", &format!("sql={sql}")]);
        assert_eq!(code, expected, "{printed}");
    }
    gateway.signal(Signal::TERM);
    let (_, messages) = gateway.end();
    let lines = messages.lines().map(|line| line.split_once("Z ").expect("each line has a time").1.trim());
    // On a slow machine the first list is sent before the server is ready.
    let lines: Vec<_> = lines.filter(|line| !line.contains("a list is incomplete")).collect();
    expect![[r#"
        INFO server is ready server="shop" revision=2026-07-28
        INFO shutting down; `/readyz` returns 503 until then seconds=3.0"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn a_gateway_says_which_tokens_it_accepts() {
    let place = Place::new();
    let auth = "[gateway.auth]\nissuer = \"https://login.example.com\"\n";
    for (more, expected) in [
        ("", "clients must send an access token of https://login.example.com"),
        (
            "token_env = \"GATE_TOKEN\"\n",
            "clients must send an access token of https://login.example.com, or the token in `GATE_TOKEN`",
        ),
    ] {
        let file = format!("[gateway]\nlisten = \"127.0.0.1:0\"\n{more}{auth}{SERVERS}");
        place.put("gateway.toml", &file);
        let config = place.path("gateway.toml").display().to_string();
        let mut command = place.program(&["gateway", "--config", &config]);
        command.env("GATE_TOKEN", "s3cret-token");
        let mut gateway = Background::start(command);
        let accepted = gateway.message("clients must send");
        assert!(accepted.trim_end().ends_with(expected), "{accepted}");
        gateway.signal(Signal::INT);
        assert_eq!(gateway.end().0, Some(0));
    }
}

/// Returns the response to a GET request.
fn get(address: &str, path: &str, host: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).expect("somebody listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("it is read");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("it is text");
    reply
}

#[test]
fn a_terminating_gateway_is_not_ready() {
    let place = Place::new();
    let file = "[gateway]\nlisten = \"127.0.0.1:0\"\nshutdown_delay = \"60s\"\n".to_owned() + SERVERS;
    place.put("gateway.toml", &file);
    let config = place.path("gateway.toml").display().to_string();
    let mut gateway = Background::start(place.program(&["gateway", "--config", &config]));
    let url = url(&gateway.message("listening"));
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    assert!(get(address, "/readyz", "anything").starts_with("HTTP/1.1 200"));
    gateway.signal(Signal::TERM);
    gateway.message("shutting down");
    assert!(get(address, "/readyz", "anything").starts_with("HTTP/1.1 503"));
    assert!(get(address, "/healthz", "anything").starts_with("HTTP/1.1 200"));
    // A second signal does not wait.
    gateway.signal(Signal::TERM);
    gateway.end();
}

#[test]
fn a_served_server_accepts_its_hosts_and_2024_11_05() {
    use std::io::{BufRead, BufReader, Write};
    let place = Place::new();
    let words =
        ["serve", "everything", "--http", "0.0.0.0:0", "--no-token", "--http-host", "mcp.example.com"];
    let mut server = Background::start(place.program(&words));
    let url = server.line();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    assert!(get(address, "/mcp", "mcp.example.com").starts_with("HTTP/1.1 400"));
    let refused = get(address, "/mcp", "10.0.0.5");
    assert!(refused.contains("host `10.0.0.5` is not allowed; add it to `--http-host`"), "{refused}");
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    write!(stream, "GET /sse HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("it is read");
    let event =
        BufReader::new(stream).lines().map_while(Result::ok).find(|line| line.contains("?sessionId="));
    assert!(event.is_some());
    server.signal(Signal::INT);
    assert_eq!(server.end().0, Some(0));
    let (printed, code) =
        place.run(&["serve", "everything", "--http", "0", "--no-token", "--http-host", "*"]);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("`--http-host *` needs a token"), "{printed}");
}

#[test]
fn a_served_server_requires_the_token_of_the_user() {
    let place = Place::new();
    let words = ["serve", "everything", "--http", "127.0.0.1:0", "--http-host", "*"];
    let mut server = Background::start(place.program(&words));
    let url = server.line();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    for path in ["/mcp", "/sse"] {
        assert!(get(address, path, "mcp.example.com").starts_with("HTTP/1.1 401"), "{path}");
    }
    // Commands of another user do not know the token; those of this user send it, and no command takes the server for a
    // gateway.
    let (text, code) = Place::new().run(&["ping", &url]);
    assert_ne!(code, Some(0), "{text}");
    let (text, code) = place.run(&["call", &url, "echo", "message=hi"]);
    assert_eq!((text.as_str(), code), ("hi\n", Some(0)));
    let (text, code) = place.run(&["tools", "up"]);
    assert!(text.contains("your gateway is not running"), "{text}");
    assert_eq!(code, Some(4));
    server.signal(Signal::INT);
    let (code, messages) = server.end();
    assert_eq!(code, Some(0));
    assert!(messages.contains("`bowline token show`"), "{messages}");

    let words = ["serve", "everything", "--http", "127.0.0.1:0", "--no-token"];
    let mut server = Background::start(place.program(&words));
    let url = server.line();
    let (text, code) = Place::new().run(&["ping", &url]);
    assert_eq!(code, Some(0), "{text}");
    server.signal(Signal::INT);
    assert!(server.end().1.contains("it requires no token"));
}

#[test]
fn problems_are_logged_and_fatal_with_strict() {
    let place = Place::new();
    let (printed, code) = place.run(&["gateway"]);
    expect![[r#"
        error: no configuration found at `/here/bowline.toml` or `/user/.config/bowline/bowline.toml`
          run `bowline config import` to import servers from other clients
          run `bowline up` to try the built-in servers
    "#]]
    .assert_eq(&printed);
    assert_eq!(code, Some(3));
    place.put(
        "user/.config/bowline/bowline.toml",
        &(SERVERS.to_owned() + "\n[servers.wrong]\nargs = [\"x\"]\n"),
    );
    place.put("here/bowline.toml", "[servers.theirs]\ncommand = \"bowline\"\n");
    let (printed, code) = place.run(&["gateway", "--strict", "--no-token", "--listen", "0.0.0.0:0"]);
    expect![[r#"
        error: the configuration has problems
          /user/.config/bowline/bowline.toml:10:1: servers.wrong.args: `args` requires `command`, which is missing; add `command` or remove `args`
          other machines can connect to 0.0.0.0:0 without a token; remove `--no-token`, or set `token_env` in `[gateway]`
          listening on 0.0.0.0:0, but only requests for `localhost` are allowed; add the host names and addresses that clients use to `gateway.allowed_hosts`
          /here/bowline.toml:1: server `theirs` is defined by the project and needs your approval; run `bowline up` in a terminal to approve it
    "#]].assert_eq(&printed);
    assert_eq!(code, Some(3));
    let (printed, code) = place.run(&["gateway", "--stdio", "--log", "loud"]);
    expect![[r#"
        error: invalid log level `loud`
          expected error, warn, info, debug, trace, or a filter such as `warn,bowline_host=debug`
    "#]]
    .assert_eq(&printed);
    assert_eq!(code, Some(2));
}

#[test]
fn built_in_servers_are_served() {
    let place = Place::new();
    place.put("here/README.md", "Hello\n");
    place.put("here/below/notes.txt", "Notes\n");
    for (words, tool) in [
        (&["files"][..], "read_file"),
        (&["files", "--write", "below"], "write_file"),
        (&["database"], "query"),
        (&["database", "--sample", "--write"], "execute"),
        (&["web"], "fetch"),
        (&["everything"], "echo"),
    ] {
        let (printed, code) = place.run(&[&["tools", "--", "bowline", "serve"][..], words].concat());
        assert_eq!(code, Some(0), "{words:?}: {printed}");
        assert!(printed.contains(tool), "{words:?}: {printed}");
    }
    let outside = ["call", "read_file", "path=../README.md", "--", "bowline", "serve", "files", "below"];
    let (printed, code) = place.run(&outside);
    assert_eq!(code, Some(1), "{printed}");
    // The names are also targets.
    let (printed, code) = place.run(&["call", "files", "read_file", "path=README.md"]);
    assert_eq!((printed.trim_end(), code), ("Hello", Some(0)));

    let mut server = Background::start(place.program(&["serve", "everything", "--http", "127.0.0.1:0"]));
    let url = server.line();
    let (printed, code) = place.run(&["call", &url, "echo", "message=hi"]);
    assert_eq!((printed.as_str(), code), ("hi\n", Some(0)));
    server.signal(Signal::INT);
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn a_home_directory_is_served_only_on_request() {
    let place = Place::new();
    place.put("user/notes.txt", "Notes\n");
    for folder in ["user", "."] {
        let mut command = place.program(&["serve", "files"]);
        command.current_dir(place.path(folder));
        let (printed, code) = place.output(command);
        assert_eq!(code, Some(2), "{printed}");
        assert!(printed.contains("home directory") && printed.contains("`--root "), "{printed}");
    }
    let mut command = place.program(&["serve", "files"]);
    command.current_dir("/");
    let (printed, code) = place.output(command);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("the root of the file system") && printed.contains("`--root /`"), "{printed}");

    // At a terminal the user is asked.
    for (answer, expected) in [("n", "refusing to serve"), ("y", "serving MCP")] {
        let mut command = place.program(&["serve", "files"]);
        command.current_dir(place.path("user"));
        let mut pty = Pty::start(command);
        pty.expect("[y/N]").enter(answer).expect(expected);
    }

    // A named directory is served.
    let home = place.path("user").display().to_string();
    let words = ["call", "read_file", "path=notes.txt", "--", "bowline", "serve", "files", "--root", &home];
    let (text, code) = place.run(&words);
    assert_eq!((text.trim_end(), code), ("Notes", Some(0)));
}

#[test]
fn a_database_is_created_with_write_access() {
    let place = Place::new();
    let (printed, code) = place.run(&["serve", "database", "--sqlite", "new.db"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains("file `new.db` does not exist") && printed.contains("pass `--write` to create it"),
        "{printed}"
    );
    let serve = ["bowline", "serve", "database", "--sqlite", "new.db", "--write", "--without-consent"];
    let create = ["call", "execute", "sql=CREATE TABLE notes (text TEXT)", "--"];
    let (printed, code) = place.run(&[&create[..], &serve].concat());
    assert_eq!(code, Some(0), "{printed}");
    let (printed, code) =
        place.run(&["call", "tables", "--", "bowline", "serve", "database", "--sqlite", "new.db"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("notes"), "{printed}");
}

#[test]
fn calls_are_limited_by_a_flag() {
    let place = Place::new();
    let mut server = Background::start(place.program(&[
        "serve",
        "everything",
        "--http",
        "127.0.0.1:0",
        "--calls-per-minute",
        "1",
    ]));
    let url = server.line();
    let (printed, code) = place.run(&["call", &url, "echo", "message=hi"]);
    assert_eq!((printed.as_str(), code), ("hi\n", Some(0)));
    let (printed, code) = place.run(&["call", &url, "echo", "message=hi"]);
    assert_ne!(code, Some(0), "{printed}");
    assert!(printed.contains("too many calls"), "{printed}");
}

#[test]
fn unsupported_documents_are_an_error() {
    let place = Place::new();
    for (words, code) in [
        (&["serve", "files", "nowhere"][..], 1),
        (&["serve", "database", "--sqlite", "nowhere.db"], 1),
        (&["serve", "database", "--postgres-env", "NOT_SET"], 2),
        (&["serve", "database", "--sqlite", "a", "--sample"], 2),
        (&["serve", "web", "--openapi", "nowhere.json"], 1),
        (&["serve", "nothing"], 2),
    ] {
        let (printed, ended) = place.run(words);
        assert_eq!(ended, Some(code), "{words:?}: {printed}");
    }
}

#[test]
fn sighup_reloads_the_configuration() {
    let place = Place::new();
    place.put("user/.config/bowline/bowline.toml", SERVERS);
    let mut gateway = Background::start(place.program(&["gateway", "--listen", "127.0.0.1:0"]));
    let _ = url(&gateway.message("listening"));
    gateway.signal(Signal::HUP);
    let line = gateway.message("the configuration was reloaded");
    assert!(line.contains("changes=\"none\" problems=0"), "{line}");
    // A file that has changed is read.
    let changed = SERVERS.replace("servers.shop", "servers.store");
    place.put("user/.config/bowline/bowline.toml", &changed);
    gateway.signal(Signal::HUP);
    let line = gateway.message("store");
    assert!(line.contains("the configuration was reloaded") && line.contains("shop"), "{line}");
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.end().0, Some(0));
}

/// Sends a request without credentials, and returns the first line of the response.
fn status(url: &str, request: &str) -> String {
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        .expect("it reads");
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("it answers");
    line
}

#[test]
fn a_gateway_requires_the_token_of_the_user() {
    let place = Place::new();
    place.put("user/.config/bowline/bowline.toml", SERVERS);
    let mut gateway = Background::start(place.program(&["gateway", "--listen", "127.0.0.1:0"]));
    let url = url(&gateway.message("listening"));
    for request in ["POST /mcp", "GET /mcp", "GET /sse", "GET /metrics"] {
        let line = status(&url, request);
        assert!(line.starts_with("HTTP/1.1 401"), "{request}: {line}");
    }
    let (output, code) = Place::new().run(&["tools", &url]);
    assert_ne!(code, Some(0), "{output}");
    let (output, code) = place.run(&["tools", &url]);
    assert_eq!(code, Some(0), "{output}");
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.end().0, Some(0));
}

#[test]
fn clients_of_the_first_revision_call_tools_of_a_gateway() {
    let place = Place::new();
    place.put("user/.config/bowline/bowline.toml", SERVERS);
    let words = ["gateway", "--no-token", "--listen", "127.0.0.1:0"];
    let mut gateway = Background::start(place.program(&words));
    let url = url(&gateway.message("listening"));
    let stream = url.replace("/mcp", "/sse");
    let call = ["call", &stream, "shop__query", "sql=SELECT 40 + 2 AS answer", "--revision", "2024-11-05"];
    let (output, code) = place.run(&call);
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("42"), "{output}");
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.end().0, Some(0));
}

#[test]
fn a_served_server_has_metrics_behind_its_token() {
    let place = Place::new();
    let words = ["serve", "everything", "--http", "0"];
    let mut server = Background::start(place.program(&words));
    let url = server.line();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    assert!(get(address, "/metrics", "localhost").starts_with("HTTP/1.1 401"));
    let (output, code) = place.run(&["call", &url, "greet", "name=Ada"]);
    assert_eq!(code, Some(0), "{output}");
    let shown = place.program(&["token", "show"]).output().expect("the program can be started").stdout;
    let token = String::from_utf8(shown).expect("it is text");
    let page = get(address, "/metrics", &format!("localhost\r\nAuthorization: Bearer {}", token.trim()));
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    assert!(page.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{page}");
    for line in [
        "bowline_sessions_active 0",
        "bowline_streams 0",
        "bowline_store_up{engine=\"memory\"} 1",
        "bowline_store_conflicts_total 0",
        "bowline_store_unknown_total 0",
        "bowline_tasks{state=\"waiting\"} 0",
        "bowline_task_lapses_total 0",
        "bowline_bus_gaps_total 0",
    ] {
        assert!(page.contains(&format!("\n{line}\n")), "{line}: {page}");
    }
    for name in [
        "bowline_sweep_lag_seconds ",
        "bowline_task_queue_age_seconds ",
        "bowline_store_seconds_count{op=\"depth\"} ",
    ] {
        assert!(page.contains(&format!("\n{name}")), "{name}: {page}");
    }
    server.signal(Signal::INT);
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn a_gateway_with_a_store_has_its_metrics() {
    let place = Place::new();
    let keys = "[store]\nkeys_env = [\"STORE_KEY\"]\n[sessions]\nmode = \"store\"\n";
    let file = format!("[gateway]\nlisten = \"127.0.0.1:0\"\ntoken_env = \"GATE_TOKEN\"\n{keys}{SERVERS}");
    place.put("gateway.toml", &file);
    let config = place.path("gateway.toml").display().to_string();
    let mut command = place.program(&["gateway", "--config", &config, "--store", "sqlite:state.db"]);
    command.env("GATE_TOKEN", "s3cret-token").env("STORE_KEY", "11".repeat(32));
    let mut gateway = Background::start(command);
    let url = url(&gateway.message("listening"));
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let page = get(address, "/metrics", "localhost\r\nAuthorization: Bearer s3cret-token");
    assert!(page.contains("\nbowline_store_up{engine=\"sqlite\"} 1\n"), "{page}");
    assert!(page.contains("\nbowline_streams 0\n"), "{page}");
    gateway.signal(Signal::TERM);
    gateway.end();
}
