//! `bowline config`: explain, check and import.

use crate::place::{Background, Place};
#[cfg(unix)]
use crate::pty::Pty;
use expect_test::expect;
use std::fs;

const MISTAKEN: &str = r#"
[gateway]
listen = "7337"

[servers.files]
comand = "bowline"

[servers.notes]
command = "npx -y notes"
"#;

#[test]
fn errors_are_reported_with_position_and_fix() {
    let place = Place::new();
    place.put("user/.config/bowline/bowline.toml", MISTAKEN);
    place.check(&["config", "check"], 8, &expect![[r#"
        error: /user/.config/bowline/bowline.toml:3:10: gateway.listen: expected an address and a port, got `7337`; write `listen = "127.0.0.1:7337"`
        error: /user/.config/bowline/bowline.toml:9:11: servers.notes.command: expected a program name, got a command line; write `command = "npx"` and `args = ["-y", "notes"]`
        error: /user/.config/bowline/bowline.toml:5:10: servers.files: missing `command` or `url`; no other file defines this server; write `command = "npx"` or `url = "https://example.com/mcp"`
        note: /user/.config/bowline/bowline.toml:6: servers.files.comand: unknown key, ignored; did you mean `command`?
        1 file, 0 servers, 3 errors
    "#]]);
    place.put("here/mcp.json", r#"{ "mcpServers": { "a": { "command": "x", "args": "y" } } }"#);
    place.check(
        &["config", "check", "--json", "mcp.json"],
        8,
        &expect![[r#"
        {
          "files": [
            "mcp.json"
          ],
          "servers": [],
          "mistakes": [
            {
              "file": "mcp.json",
              "line": 1,
              "column": 50,
              "field": "mcpServers.a.args",
              "message": "expected an array of strings, got a string",
              "help": "write `\"args\": [\"y\"]`"
            }
          ],
          "notes": []
        }
    "#]],
    );
}

#[test]
fn a_valid_configuration_passes() {
    let place = Place::new();
    place.check(
        &["config", "check"],
        3,
        &expect![[r#"
            error: no configuration found at `/here/bowline.toml` or `/user/.config/bowline/bowline.toml`
              name a file: `bowline config check FILE`
        "#]],
    );
    place.put(
        "here/.mcp.json",
        r#"{ "mcpServers": { "a": { "command": "x", "env": { "K": "${NOT_SET}" } } } }"#,
    );
    place.check(&["config", "check", ".mcp.json"], 8, &expect![[r#"
        error: .mcp.json:1:56: mcpServers.a.env.K: the variable `NOT_SET` is not set; set it, or write `${NOT_SET:-default}`
        1 file, 0 servers, 1 error
    "#]]);
    place.check(
        &["config", "check", "--allow-unset", ".mcp.json"],
        0,
        &expect![[r#"
            1 file, 1 server, 0 errors
        "#]],
    );
}

#[test]
fn the_effective_configuration_is_explained_without_secrets() {
    let place = Place::new();
    place.put(
        "user/.config/bowline/bowline.toml",
        "[servers.tickets]\nurl = \"https://tickets.example/mcp\"\nheaders = { Authorization = \"Bearer s3cret\" }\n",
    );
    place.put("here/bowline.toml", "[servers.shop]\ncommand = \"shop\"\nargs = [\"--token\", \"s3cret\"]\n");
    let (printed, code) = place.run(&["config", "explain"]);
    assert_eq!(code, Some(0));
    let servers = printed.split("[gateway]").next().expect("it has sections");
    expect![[r##"
        # Configuration files:
        #   /here/bowline.toml
        #   /user/.config/bowline/bowline.toml

        [servers.tickets]  # /user/.config/bowline/bowline.toml:1, bowline.toml
        url = "https://tickets.example/mcp"  # /user/.config/bowline/bowline.toml:2
        headers.Authorization = "***"  # /user/.config/bowline/bowline.toml:3
        enabled = true  # default
        start = "lazy"  # default
        share = "shared"  # default
        startup_timeout = "30s"  # default
        request_timeout = "1m"  # default
        idle_stop = "10m"  # default
        trusted = false  # default

        [servers.shop]  # /here/bowline.toml:1, bowline.toml, needs approval
        command = "shop"  # /here/bowline.toml:2
        args = ["--token","***"]  # /here/bowline.toml:3
        enabled = true  # default
        start = "lazy"  # default
        share = "shared"  # default
        startup_timeout = "30s"  # default
        request_timeout = "1m"  # default
        idle_stop = "10m"  # default
        trusted = false  # default

    "##]]
    .assert_eq(servers);
    let (printed, _) = place.run(&["config", "explain", "--json"]);
    assert!(!printed.contains("s3cret"), "{printed}");
    let printed: serde_json::Value = serde_json::from_str(&printed).expect("it is JSON");
    assert_eq!(printed["servers"][1]["needsApproval"], true);
}

const CURSOR: &str = r#"{ "mcpServers": {
  "gh": { "command": "npx", "args": ["-y", "gh"], "env": { "TOKEN": "${GH_TOKEN}", "KEY": "s3cret" }, "autoApprove": ["*"] },
  "self": { "url": "http://localhost:7337/mcp" },
  "docs": { "url": "https://docs.example/mcp", "headers": { "X-Key": "s3cret" } }
} }"#;

const VS_CODE: &str = r#"{
  "inputs": [{ "id": "gh-token", "type": "promptString", "password": true }],
  "servers": {
    "gh": { "command": "docker", "args": ["run", "gh"], "env": { "TOKEN": "${input:gh-token}" } },
    "docs": { "type": "http", "url": "https://docs.example/mcp", "headers": { "X-Key": "s3cret" } }
  }
}"#;

#[test]
fn servers_of_other_clients_are_imported_once() {
    let place = Place::new();
    place.put("user/.cursor/mcp.json", CURSOR);
    place.put("user/.config/Code/User/mcp.json", VS_CODE);
    let own = "# Mine.\n[servers.mine]\ncommand = \"mine\" # and this too\n";
    place.put("user/.config/bowline/bowline.toml", own);
    place.check(
        &["config", "import", "--dry-run"],
        0,
        &expect![[r##"
            # From VS Code: /user/.config/Code/User/mcp.json:4
            [servers.gh]
            command = "docker"
            args = ["run", "gh"]
            env = { TOKEN = "${GH_TOKEN}" }

            # From VS Code: /user/.config/Code/User/mcp.json:5
            [servers.docs]
            url = "https://docs.example/mcp"
            headers = { X-Key = "***" }

            # From Cursor: /user/.cursor/mcp.json:2
            [servers.gh-cursor]
            command = "npx"
            args = ["-y", "gh"]
            env = { KEY = "***", TOKEN = "${GH_TOKEN}" }
            warning: /user/.cursor/mcp.json:2: `gh` of Cursor: auto-approved tools are not imported; add an `allow` rule instead
            warning: /user/.cursor/mcp.json:3: `self` of Cursor skipped: it is this gateway
            warning: /user/.cursor/mcp.json:4: `docs` of Cursor skipped: your configuration already has this server
            dry run: nothing was written to `/user/.config/bowline/bowline.toml`
        "##]],
    );
    assert_eq!(place.get("user/.config/bowline/bowline.toml"), own);
    place.check(&["config", "import"], 0, &expect![[r#"
        gh: from VS Code, /user/.config/Code/User/mcp.json:4
        docs: from VS Code, /user/.config/Code/User/mcp.json:5
        gh-cursor: from Cursor, /user/.cursor/mcp.json:2
        warning: /user/.cursor/mcp.json:2: `gh` of Cursor: auto-approved tools are not imported; add an `allow` rule instead
        warning: /user/.cursor/mcp.json:3: `self` of Cursor skipped: it is this gateway
        warning: /user/.cursor/mcp.json:4: `docs` of Cursor skipped: your configuration already has this server
        saved the previous version as `/user/.config/bowline/bowline.toml.1.bak`
        updated `/user/.config/bowline/bowline.toml`, which is readable only by you; secrets in the imported files were copied into it
        `gh` uses an input of VS Code: set the environment variable GH_TOKEN to its value
    "#]]);
    expect![[r#"
        # Mine.
        [servers.mine]
        command = "mine" # and this too

        # From VS Code: /user/.config/Code/User/mcp.json:4
        [servers.gh]
        command = "docker"
        args = ["run", "gh"]
        env = { TOKEN = "${GH_TOKEN}" }

        # From VS Code: /user/.config/Code/User/mcp.json:5
        [servers.docs]
        url = "https://docs.example/mcp"
        headers = { X-Key = "s3cret" }

        # From Cursor: /user/.cursor/mcp.json:2
        [servers.gh-cursor]
        command = "npx"
        args = ["-y", "gh"]
        env = { KEY = "s3cret", TOKEN = "${GH_TOKEN}" }
    "#]]
    .assert_eq(&place.masked(&place.get("user/.config/bowline/bowline.toml")));
    assert_eq!(place.get("user/.config/bowline/bowline.toml.1.bak"), own);
    place.check(
        &["config", "import"],
        0,
        &expect![[r#"
            warning: /user/.config/Code/User/mcp.json:4: `gh` of VS Code skipped: your configuration already has this server
            warning: /user/.config/Code/User/mcp.json:5: `docs` of VS Code skipped: your configuration already has this server
            warning: /user/.cursor/mcp.json:2: `gh` of Cursor skipped: your configuration already has this server
            warning: /user/.cursor/mcp.json:3: `self` of Cursor skipped: it is this gateway
            warning: /user/.cursor/mcp.json:4: `docs` of Cursor skipped: your configuration already has this server
            nothing to import
        "#]],
    );
    place.check(
        &["config", "check", "--allow-unset"],
        0,
        &expect![[r#"
            1 file, 4 servers, 0 errors
        "#]],
    );
}

#[test]
fn a_file_with_errors_does_not_affect_others() {
    let place = Place::new();
    place.check(
        &["config", "import", "--dry-run"],
        0,
        &expect![[r#"
            nothing to import
        "#]],
    );
    assert_eq!(place.program(&["config", "import", "--dry-run"]).output().expect("it ends").stdout, b"");
    place.put("user/.cursor/mcp.json", CURSOR);
    place.put("user/.config/Code/User/mcp.json", "{");
    place.check(&["config", "import"], 3, &expect![[r#"
        gh: from Cursor, /user/.cursor/mcp.json:2
        docs: from Cursor, /user/.cursor/mcp.json:4
        warning: /user/.config/Code/User/mcp.json:1:1: expected `}` to close the object that begins here; close it with `}`
        warning: /user/.cursor/mcp.json:2: `gh` of Cursor: auto-approved tools are not imported; add an `allow` rule instead
        warning: /user/.cursor/mcp.json:3: `self` of Cursor skipped: it is this gateway
        updated `/user/.config/bowline/bowline.toml`, which is readable only by you; secrets in the imported files were copied into it
        error: 1 configuration files have errors
    "#]]);
}

#[test]
fn a_missing_config_file_is_an_error() {
    let place = Place::new();
    for words in [&["tools", "everything"][..], &["config", "explain"], &["config", "check"], &["gateway"]] {
        let (printed, code) = place.run(&[&["-c", "none.toml"], words].concat());
        assert_eq!(printed, "error: configuration file `none.toml` does not exist\n");
        assert_eq!(code, Some(3));
    }
    place.put("here/bad.toml", MISTAKEN);
    for words in [&["config", "explain"][..], &["config", "explain", "--json"]] {
        let (printed, code) = place.run(&[&["-c", "bad.toml"], words].concat());
        assert!(printed.contains("expected an address and a port"), "{printed}");
        assert_eq!(code, Some(3));
    }
}

#[cfg(unix)]
#[test]
fn imported_configuration_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.put("user/.cursor/mcp.json", CURSOR);
    place.check(&["config", "import", "--from", "cursr"], 2, &expect![[r#"
        error: expected one of claude-code, claude-desktop, cline, codex, copilot, cursor, gemini, goose, inspector, vs-code, windsurf, zed, got `cursr`
    "#]]);
    place.check(&["config", "import", "--from", "cursor", "--json"], 0, &expect![[r#"
        {
          "file": "/user/.config/bowline/bowline.toml",
          "written": true,
          "servers": [
            {
              "name": "gh",
              "from": "Cursor",
              "origin": "/user/.cursor/mcp.json:2"
            },
            {
              "name": "docs",
              "from": "Cursor",
              "origin": "/user/.cursor/mcp.json:4"
            }
          ]
        }
        warning: /user/.cursor/mcp.json:2: `gh` of Cursor: auto-approved tools are not imported; add an `allow` rule instead
        warning: /user/.cursor/mcp.json:3: `self` of Cursor skipped: it is this gateway
        updated `/user/.config/bowline/bowline.toml`, which is readable only by you; secrets in the imported files were copied into it
    "#]]);
    let file = fs::metadata(place.path("user/.config/bowline/bowline.toml")).expect("it was written");
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
}

#[cfg(unix)]
#[test]
fn an_endless_configuration_of_a_project_is_an_error() {
    let place = Place::new();
    let file = place.path("here/bowline.toml");
    let check = || {
        for words in [&["tools", "everything"][..], &["__complete", "--", "tools", ""], &["config", "check"]]
        {
            // The command terminates.
            let (printed, code) = place.run(words);
            if words[0] == "config" {
                assert_eq!(code, Some(8), "{printed}");
                assert!(printed.contains("expected a regular file, got a device or a pipe"), "{printed}");
            }
        }
        let (printed, code) = place.run(&["gateway", "--stdio"]);
        assert_eq!(code, Some(3), "{printed}");
    };
    std::os::unix::fs::symlink("/dev/zero", &file).expect("links can be made");
    check();
    std::fs::remove_file(&file).expect("it is ours");
    let made = rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR);
    made.expect("pipes can be made");
    check();
}

const CODEX: &str = r#"
model = "o9"

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs-server", "--query=x"]
env = { MODE = "fast" }
env_vars = ["DOCS_KEY"]
tool_timeout_sec = 90
enabled_tools = ["search"]

[mcp_servers.tickets]
url = "https://tickets.example/mcp"
bearer_token_env_var = "TICKETS_TOKEN"
http_headers = { X-Team = "a" }

[mcp_servers.gateway]
command = "bowline"
args = ["connect"]
"#;

#[test]
fn servers_of_codex_are_imported_with_warnings() {
    let place = Place::new();
    place.put("user/.codex/config.toml", CODEX);
    let sandboxed = r#"{ "mcpServers": { "boxed": { "command": "boxed", "sandboxEnabled": true, "autoApprove": ["*"] } } }"#;
    place.put("user/.cursor/mcp.json", sandboxed);
    place.check(&["config", "import", "--dry-run"], 0, &expect![[r##"
        # From Codex: /user/.codex/config.toml:4
        [servers.docs]
        command = "npx"
        args = ["-y", "docs-server", "--query=x"]
        env = { DOCS_KEY = "${DOCS_KEY:-***}", MODE = "***" }
        request_timeout = "90000ms"
        allow = ["search"]

        # From Codex: /user/.codex/config.toml:12
        [servers.tickets]
        url = "https://tickets.example/mcp"
        headers = { Authorization = "***${TICKETS_TOKEN}", X-Team = "***" }

        # From Cursor: /user/.cursor/mcp.json:1
        [servers.boxed]
        command = "boxed"
        warning: /user/.codex/config.toml:17: `gateway` of Codex skipped: it is this gateway
        warning: /user/.cursor/mcp.json:1: mcpServers.boxed.sandboxEnabled: `sandboxEnabled` has no effect: the server runs without a sandbox
        warning: /user/.cursor/mcp.json:1: `boxed` of Cursor: auto-approved tools are not imported; add an `allow` rule instead
        dry run: nothing was written to `/user/.config/bowline/bowline.toml`
    "##]]);
    place.check(&["config", "import", "--from", "codex"], 0, &expect![[r#"
        docs: from Codex, /user/.codex/config.toml:4
        tickets: from Codex, /user/.codex/config.toml:12
        warning: /user/.codex/config.toml:17: `gateway` of Codex skipped: it is this gateway
        updated `/user/.config/bowline/bowline.toml`, which is readable only by you; secrets in the imported files were copied into it
    "#]]);
    place.check(&["config", "import", "--from", "codex"], 0, &expect![[r#"
        warning: /user/.codex/config.toml:4: `docs` of Codex skipped: your configuration already has this server
        warning: /user/.codex/config.toml:12: `tickets` of Codex skipped: your configuration already has this server
        warning: /user/.codex/config.toml:17: `gateway` of Codex skipped: it is this gateway
        nothing to import
    "#]]);
    // A file without secrets is not said to have some.
    place.check(&["config", "import", "--from", "cursor"], 0, &expect![[r#"
        boxed: from Cursor, /user/.cursor/mcp.json:1
        warning: /user/.cursor/mcp.json:1: mcpServers.boxed.sandboxEnabled: `sandboxEnabled` has no effect: the server runs without a sandbox
        warning: /user/.cursor/mcp.json:1: `boxed` of Cursor: auto-approved tools are not imported; add an `allow` rule instead
        saved the previous version as `/user/.config/bowline/bowline.toml.1.bak`
        updated `/user/.config/bowline/bowline.toml`, which is readable only by you
    "#]]);
}

#[test]
fn a_literal_dollar_brace_stays_one_when_a_server_is_imported() {
    let place = Place::new();
    let codex = "[mcp_servers.docs]\ncommand = \"docs\"\nargs = [\"--template\", \"a${b}c\"]\n";
    place.put("user/.codex/config.toml", codex);
    let (text, code) = place.run(&["config", "import"]);
    assert_eq!(code, Some(0), "{text}");
    let written = std::fs::read_to_string(place.path("user/.config/bowline/bowline.toml"));
    let written = written.expect("it was written");
    assert!(written.contains(r#"args = ["--template", "a$${b}c"]"#), "{written}");
}

#[cfg(unix)]
#[test]
fn files_of_the_program_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    // Run with the widest umask.
    let (printed, code) =
        place.output(place.shell("umask 000; bowline tools everything > /dev/null && bowline token show"));
    assert_eq!(code, Some(0), "{printed}");
    // A gateway that was asked for an approval and for consent.
    let server = "command = \"bowline\"\nargs = [\"serve\", \"everything\"]\n";
    place.put(
        "user/.config/bowline/bowline.toml",
        &format!("[audit]\nfile = \"~/audit.jsonl\"\n[servers.mine]\n{server}"),
    );
    std::fs::set_permissions(
        place.path("user/.config/bowline/bowline.toml"),
        std::fs::Permissions::from_mode(0o600),
    )
    .expect("it is ours");
    place.put("here/bowline.toml", &format!("[servers.theirs]\n{server}"));
    let mut up = Pty::sized(place.shell("umask 000; exec bowline up --port 0"), 50, 120);
    up.expect("theirs>").enter("y");
    let mut call = Background::start(place.program(&["call", "up", "mine__echo", "message=hi"]));
    up.expect("mine>").enter("a");
    assert_eq!(call.line(), "hi");
    assert_eq!(call.end().0, Some(0));
    let mut open = vec![place.path("user"), place.path("login")];
    let mut files = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).expect("it is ours") {
            let path = entry.expect("it can be read").path();
            let found = path.metadata().expect("it is there");
            if found.is_dir() {
                open.push(path);
            } else {
                assert_eq!(found.permissions().mode() & 0o777, 0o600, "{}", path.display());
                files.push(place.masked(&path.display().to_string()));
            }
        }
    }
    for wanted in ["approvals", "audit", "token", "answers", "pins", "/login/"] {
        assert!(files.iter().any(|file| file.contains(wanted)), "{wanted}: {files:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_command_waits_for_a_start_as_long_as_configured() {
    let place = Place::new();
    let slow = "[servers.slow]\ncommand = \"sleep\"\nargs = [\"600\"]\nstartup_timeout = \"100ms\"\n";
    place.put("user/.config/bowline/bowline.toml", slow);
    place.check(
        &["tools", "slow"],
        6,
        &expect![[r"
            error: slow: starting the server timed out after 100ms
        "]],
    );
    place.check(
        &["tools", "slow", "--timeout", "200ms"],
        6,
        &expect![[r"
            error: slow: starting the server timed out after 200ms
        "]],
    );
}
