//! A realistic file of each dialect.

mod registry;

use bowline_config::{Scope, explain};
use expect_test::{Expect, expect};

use super::{load, show};

fn check(path: &str, scope: Scope, text: &str, expected: &Expect) {
    let config = load(&[(path, scope, text)]);
    let shown = show(&config);
    // V-57
    for text in [shown.as_str(), &format!("{config:?}")] {
        assert!(!text.contains("canary"), "a secret is shown: {text}");
        assert!(!text.contains("literal"), "a literal secret is shown: {text}");
    }
    expected.assert_eq(&shown);
}

#[test]
fn claude_desktop() {
    check(
        "claude_desktop_config.json",
        Scope::User,
        include_str!("../fixtures/claude_desktop_config.json"),
        &expect![[r#"
            [servers.everything]  # claude_desktop_config.json:4, mcpServers
            command = "npx"  # claude_desktop_config.json:5
            args = ["-y","@modelcontextprotocol/server-everything"]  # claude_desktop_config.json:6

            [servers.github]  # claude_desktop_config.json:8, mcpServers
            command = "docker"  # claude_desktop_config.json:9
            args = ["run","-i","--rm","-e","GITHUB_PERSONAL_ACCESS_TOKEN=***","ghcr.io/github/github-mcp-server"]  # claude_desktop_config.json:10
            env.GITHUB_PERSONAL_ACCESS_TOKEN = "***"  # claude_desktop_config.json:11

            [servers.linear]  # claude_desktop_config.json:13, mcpServers
            command = "npx"  # claude_desktop_config.json:14
            args = ["-y","mcp-remote@latest","https://mcp.linear.app/sse","--header","***"]  # claude_desktop_config.json:15
            Advice: claude_desktop_config.json:14: mcpServers.linear.command: `mcp-remote` is not needed; replace `command` and `args` with `"url": "https://mcp.linear.app/sse"` and `"headers": { "Authorization": "***" }`"#]],
    );
}

#[test]
fn claude_code_of_the_user() {
    check(
        ".claude.json",
        Scope::User,
        include_str!("../fixtures/claude_code.json"),
        &expect![[r#"
            [servers.sentry]  # .claude.json:4, mcpServers
            url = "https://mcp.sentry.dev/mcp"  # .claude.json:4

            [servers.docs]  # .claude.json:11, mcpServers
            command = "docs-server"  # .claude.json:11
            args = ["--local"]  # .claude.json:11
            always_load = true  # .claude.json:11
            Replaced: .claude.json:11: docs: replaces the server of the same name at .claude.json:5"#]],
    );
}

#[test]
fn claude_code_of_a_project() {
    check(
        ".mcp.json",
        Scope::Project,
        include_str!("../fixtures/project_mcp.json"),
        &expect![[r#"
            [servers.api]  # .mcp.json:3, mcpServers, needs approval, reads API_BASE, API_KEY
            url = "https://api.example.com/mcp"  # .mcp.json:5
            headers.Authorization = "***${API_KEY}"  # .mcp.json:6
            headers.X-Team = "***"  # .mcp.json:6
            headers_helper = ["/opt/bin/headers","--for","the shop"]  # .mcp.json:7
            oauth.client_id = "shop"  # .mcp.json:9
            oauth.metadata_url = "https://auth.example.com/.well-known/openid-configuration"  # .mcp.json:11
            oauth.scopes = ["read","write"]  # .mcp.json:8
            oauth.callback_port = 8765  # .mcp.json:8

            [servers.legacy]  # .mcp.json:15, mcpServers, needs approval
            url = "https://legacy.example.com/events"  # .mcp.json:15
            transport = "sse"  # .mcp.json:15

            [servers.docs]  # .mcp.json:16, mcpServers, needs approval
            command = "docs-server"  # .mcp.json:16
            args = ["--project"]  # .mcp.json:16

            [servers.loose]  # .mcp.json:17, mcpServers, needs approval
            command = "loose"  # .mcp.json:17
            Ignored: .mcp.json:17: mcpServers.loose.autoApprove: ignored: project files cannot skip approvals; set it in your user configuration"#]],
    );
}

#[test]
fn cursor() {
    let text = include_str!("../fixtures/cursor_mcp.json");
    check(
        "/srv/ada/shop/.cursor/mcp.json",
        Scope::Project,
        text,
        &expect![[r#"
            [servers.shop]  # /srv/ada/shop/.cursor/mcp.json:3, mcpServers, needs approval, reads API_KEY
            command = "/srv/ada/shop/bin/server"  # /srv/ada/shop/.cursor/mcp.json:5
            args = ["--name","shop","--cache","/srv/ada/.cache"]  # /srv/ada/shop/.cursor/mcp.json:6
            env.API_KEY = "${env:API_KEY}"  # /srv/ada/shop/.cursor/mcp.json:7
            env_file = "/srv/ada/shop/.env"  # /srv/ada/shop/.cursor/mcp.json:8
            cwd = "/srv/ada/shop/server"  # /srv/ada/shop/.cursor/mcp.json:9

            [servers.crm]  # /srv/ada/shop/.cursor/mcp.json:11, mcpServers, needs approval, reads CRM_SECRET
            url = "https://crm.example.com/mcp"  # /srv/ada/shop/.cursor/mcp.json:12
            oauth.client_id = "crm-client"  # /srv/ada/shop/.cursor/mcp.json:13
            oauth.client_secret = "${env:CRM_SECRET}"  # /srv/ada/shop/.cursor/mcp.json:13
            oauth.scopes = ["read","write"]  # /srv/ada/shop/.cursor/mcp.json:13"#]],
    );
}

#[test]
fn windsurf() {
    let text = include_str!("../fixtures/windsurf_mcp_config.json");
    check(
        "mcp_config.json",
        Scope::User,
        text,
        &expect![[r#"
            [servers.figma]  # mcp_config.json:3, mcpServers, reads FIGMA_TOKEN
            url = "https://mcp.figma.example/sse"  # mcp_config.json:3
            headers.X-Token = "${env:FIGMA_TOKEN}"  # mcp_config.json:3
            transport = "sse"  # mcp_config.json:3

            [servers.memory]  # mcp_config.json:4, mcpServers
            command = "npx"  # mcp_config.json:4
            args = ["-y","@modelcontextprotocol/server-memory"]  # mcp_config.json:4
            deny = ["delete_entities"]  # mcp_config.json:4"#]],
    );
}

#[test]
fn cline() {
    let text = include_str!("../fixtures/cline_mcp_settings.json");
    check(
        "cline_mcp_settings.json",
        Scope::User,
        text,
        &expect![[r#"
            [servers.weather]  # cline_mcp_settings.json:3, mcpServers
            command = "node"  # cline_mcp_settings.json:4
            args = ["/srv/ada/weather/build/index.js"]  # cline_mcp_settings.json:5
            env.API_KEY = "***"  # cline_mcp_settings.json:6
            enabled = true  # cline_mcp_settings.json:7
            request_timeout = "90s"  # cline_mcp_settings.json:9
            auto_approve = ["get_forecast"]  # cline_mcp_settings.json:8

            [servers.old]  # cline_mcp_settings.json:11, mcpServers, reads NOT_SET
            command = "old"  # cline_mcp_settings.json:11
            env.KEY = "${NOT_SET}"  # cline_mcp_settings.json:11
            enabled = false  # cline_mcp_settings.json:11
            auto_approve = ["a","b"]  # cline_mcp_settings.json:11

            [servers.remote]  # cline_mcp_settings.json:12, mcpServers
            url = "https://remote.example.com/mcp"  # cline_mcp_settings.json:12
            request_timeout = "1m"  # cline_mcp_settings.json:12"#]],
    );
}

#[test]
fn vs_code() {
    let text = include_str!("../fixtures/vscode_mcp.json");
    check(
        ".vscode/mcp.json",
        Scope::Project,
        text,
        &expect![[r#"
            [servers.perplexity]  # .vscode/mcp.json:8, VS Code, needs approval
            command = "npx"  # .vscode/mcp.json:10
            args = ["-y","server-perplexity-ask","--region=${input:region}"]  # .vscode/mcp.json:11
            env.NODE_OPTIONS = unset  # .vscode/mcp.json:12
            env.PERPLEXITY_API_KEY = "${input:perplexity-key}"  # .vscode/mcp.json:12
            env.RETRIES = "***"  # .vscode/mcp.json:12
            env_file = "/srv/ada/shop/web/.env"  # .vscode/mcp.json:13
            dev = …  # unknown key, ignored
            sandbox = …  # unknown key, ignored
            sandboxEnabled = …  # unknown key, ignored

            [servers.github]  # .vscode/mcp.json:18, VS Code, needs approval
            url = "https://api.githubcopilot.com/mcp/"  # .vscode/mcp.json:18

            [servers.socket]  # .vscode/mcp.json:19, VS Code, needs approval
            url = "unix:///run/server.sock#/mcp"  # .vscode/mcp.json:19
            Ignored: .vscode/mcp.json:15: servers.perplexity.sandboxEnabled: `sandboxEnabled` has no effect: the server runs without a sandbox
            Ignored: .vscode/mcp.json:16: servers.perplexity.sandbox: `sandbox` has no effect: the server runs without a sandbox"#]],
    );
}

#[test]
fn vs_code_in_its_settings() {
    let text =
        r#"{ "editor.fontSize": 12, "mcp": { "inputs": [], "servers": { "a": { "command": "a" } } } }"#;
    check(
        "settings.json",
        Scope::User,
        text,
        &expect![[r#"
        [servers.a]  # settings.json:1, VS Code
        command = "a"  # settings.json:1"#]],
    );
}

#[test]
fn zed() {
    check(
        "settings.json",
        Scope::User,
        include_str!("../fixtures/zed_settings.json"),
        &expect![[r#"
            [servers.flat]  # settings.json:4, Zed
            command = "npx"  # settings.json:4
            args = ["-y","flat-server"]  # settings.json:4
            env.TOKEN = "***"  # settings.json:4
            request_timeout = "90s"  # settings.json:4

            [servers.nested]  # settings.json:5, Zed
            command = "/usr/bin/nested"  # settings.json:7
            args = ["--stdio"]  # settings.json:7
            env.A = "***"  # settings.json:7
            source = …  # unknown key, ignored
            settings = …  # unknown key, ignored

            [servers.remote]  # settings.json:10, Zed
            url = "https://remote.example.com/mcp"  # settings.json:10
            headers.X-Key = "***"  # settings.json:10
            oauth.client_id = "zed"  # settings.json:10

            [servers.off]  # settings.json:11, Zed, reads UNSET
            command = "off"  # settings.json:11
            args = ["${UNSET}"]  # settings.json:11
            enabled = false  # settings.json:11
            Skipped: settings.json:12: context_servers.mcp-server-github: `mcp-server-github` is an extension of Zed, which only Zed can start; add its command to use it here"#]],
    );
}

#[test]
fn goose() {
    check(
        "config.yaml",
        Scope::User,
        include_str!("../fixtures/goose_config.yaml"),
        &expect![[r#"
            [servers.github]  # config.yaml:10, Goose, reads GITHUB_PERSONAL_ACCESS_TOKEN
            command = "npx"  # config.yaml:15
            args = ["-y","@modelcontextprotocol/server-github","--port","8080"]  # config.yaml:17
            env.GITHUB_PERSONAL_ACCESS_TOKEN = "***"  # config.yaml:25
            env.LD_PRELOAD = "***"  # config.yaml:23
            env.LOG_LEVEL = "***"  # config.yaml:22
            description = "GitHub integration"  # config.yaml:14
            enabled = true  # config.yaml:11
            request_timeout = "5m"  # config.yaml:26
            allow = ["search_code","get_issue"]  # config.yaml:27
            name = …  # unknown key, ignored

            [servers.remote]  # config.yaml:28, Goose
            url = "https://api.example.com/mcp"  # config.yaml:32
            headers.Authorization = "***${API_TOKEN}"  # config.yaml:34
            description = ""  # config.yaml:31
            enabled = true  # config.yaml:37
            request_timeout = "1m"  # config.yaml:38
            name = …  # unknown key, ignored

            [servers.older]  # config.yaml:39, Goose
            url = "https://older.example.com/events"  # config.yaml:39
            transport = "sse"  # config.yaml:39
            enabled = false  # config.yaml:39
            name = …  # unknown key, ignored
            Skipped: config.yaml:4: extensions.developer: `developer` has type `builtin`, which only Goose can run
            Danger: config.yaml:23: extensions.github.envs.LD_PRELOAD: `LD_PRELOAD` changes which code the program runs
            Skipped: config.yaml:40: extensions.script: `script` has type `inline_python`, which only Goose can run"#]],
    );
}

#[test]
fn bowline_toml_has_every_setting() {
    let config = load(&[
        ("/srv/ada/.config/bowline/bowline.toml", Scope::User, include_str!("../fixtures/bowline.toml")),
        (
            "/srv/ada/.config/bowline/claude_desktop_config.json",
            Scope::User,
            include_str!("../fixtures/claude_desktop_config.json"),
        ),
    ]);
    let errors: Vec<String> = config.errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, [""; 0]);
    let shown = explain(&config);
    assert!(!shown.contains("canary") && !shown.contains("literal"), "{shown}");
    expect![[r#"
        [servers.everything]  # /srv/ada/.config/bowline/claude_desktop_config.json:4, mcpServers
        command = "npx"  # /srv/ada/.config/bowline/claude_desktop_config.json:5
        args = ["-y","@modelcontextprotocol/server-everything"]  # /srv/ada/.config/bowline/claude_desktop_config.json:6
        enabled = false  # /srv/ada/.config/bowline/bowline.toml:40
        start = "lazy"  # default
        share = "shared"  # default
        startup_timeout = "30s"  # default
        request_timeout = "10s"  # /srv/ada/.config/bowline/bowline.toml:41
        idle_stop = "10m"  # default
        trusted = false  # default

        [servers.github]  # /srv/ada/.config/bowline/claude_desktop_config.json:8, mcpServers
        command = "docker"  # /srv/ada/.config/bowline/claude_desktop_config.json:9
        args = ["run","-i","--rm","-e","GITHUB_PERSONAL_ACCESS_TOKEN=***","ghcr.io/github/github-mcp-server"]  # /srv/ada/.config/bowline/claude_desktop_config.json:10
        env.GITHUB_PERSONAL_ACCESS_TOKEN = "***"  # /srv/ada/.config/bowline/claude_desktop_config.json:11
        enabled = true  # default
        start = "lazy"  # default
        share = "shared"  # default
        startup_timeout = "30s"  # default
        request_timeout = "1m"  # default
        idle_stop = "10m"  # default
        trusted = false  # default

        [servers.linear]  # /srv/ada/.config/bowline/claude_desktop_config.json:13, mcpServers
        command = "npx"  # /srv/ada/.config/bowline/claude_desktop_config.json:14
        args = ["-y","mcp-remote@latest","https://mcp.linear.app/sse","--header","***"]  # /srv/ada/.config/bowline/claude_desktop_config.json:15
        enabled = true  # default
        start = "lazy"  # default
        share = "shared"  # default
        startup_timeout = "30s"  # default
        request_timeout = "1m"  # default
        idle_stop = "10m"  # default
        trusted = false  # default

        [servers.files]  # /srv/ada/.config/bowline/bowline.toml:8, bowline.toml, reads NOTES_KEY
        command = "bowline"  # /srv/ada/.config/bowline/bowline.toml:9
        args = ["serve","files","/srv/ada/notes"]  # /srv/ada/.config/bowline/bowline.toml:10
        env.LOG = "***"  # /srv/ada/.config/bowline/bowline.toml:11
        env.NODE_OPTIONS = unset  # /srv/ada/.config/bowline/bowline.toml:12
        env.NOTES_KEY = "${NOTES_KEY:-***}"  # /srv/ada/.config/bowline/bowline.toml:11
        env_file = "/srv/ada/.config/bowline/.env"  # /srv/ada/.config/bowline/bowline.toml:13
        cwd = "/srv/ada/notes"  # /srv/ada/.config/bowline/bowline.toml:14
        description = "Notes in Markdown"  # /srv/ada/.config/bowline/bowline.toml:15
        enabled = true  # default
        start = "eager"  # /srv/ada/.config/bowline/bowline.toml:16
        share = "per-client"  # /srv/ada/.config/bowline/bowline.toml:17
        startup_timeout = "5s"  # /srv/ada/.config/bowline/bowline.toml:18
        request_timeout = "2m"  # /srv/ada/.config/bowline/bowline.toml:19
        idle_stop = "never"  # /srv/ada/.config/bowline/bowline.toml:20
        trusted = true  # /srv/ada/.config/bowline/bowline.toml:21
        allow = ["read_*","list_*"]  # /srv/ada/.config/bowline/bowline.toml:22
        deny = ["read_secret"]  # /srv/ada/.config/bowline/bowline.toml:23
        auto_approve = ["list_*"]  # /srv/ada/.config/bowline/bowline.toml:27
        always_load = true  # /srv/ada/.config/bowline/bowline.toml:28
        rename = {"read_file":"read"}  # /srv/ada/.config/bowline/bowline.toml:24
        describe = {"list_dir":"Lists a folder."}  # /srv/ada/.config/bowline/bowline.toml:25
        roots = ["/srv/ada/notes","file:///srv/shared"]  # /srv/ada/.config/bowline/bowline.toml:26
        revision = "2025-06-18"  # /srv/ada/.config/bowline/bowline.toml:29
        limits.memory = "512MiB"  # /srv/ada/.config/bowline/bowline.toml:30
        limits.cpu_time = "1m"  # /srv/ada/.config/bowline/bowline.toml:30
        limits.files = 256  # /srv/ada/.config/bowline/bowline.toml:30

        [servers.tracker]  # /srv/ada/.config/bowline/bowline.toml:32, bowline.toml
        url = "https://tracker.example.com/mcp"  # /srv/ada/.config/bowline/bowline.toml:33
        headers.Authorization = "***${input:tracker_token}"  # /srv/ada/.config/bowline/bowline.toml:34
        oauth.client_id = "bowline"  # /srv/ada/.config/bowline/bowline.toml:36
        oauth.scopes = ["read","write"]  # /srv/ada/.config/bowline/bowline.toml:36
        oauth.callback_port = 8765  # /srv/ada/.config/bowline/bowline.toml:36
        enabled = true  # default
        start = "lazy"  # default
        share = "shared"  # default
        startup_timeout = "30s"  # default
        request_timeout = "1m"  # default
        idle_stop = "10m"  # default
        trusted = false  # default

        [gateway]
        listen = "127.0.0.1:9000"  # /srv/ada/.config/bowline/bowline.toml:44
        path = "/gate"  # /srv/ada/.config/bowline/bowline.toml:45
        name = "bowline"  # default
        instructions = "Everything a shop needs."  # /srv/ada/.config/bowline/bowline.toml:46
        allowed_origins = ["https://app.example.com"]  # /srv/ada/.config/bowline/bowline.toml:47
        token_env = "BOWLINE_TOKEN"  # /srv/ada/.config/bowline/bowline.toml:48
        max_name = 60  # default
        max_questions = 10  # default
        max_sessions = 1000  # default
        session_idle = "12h"  # default
        max_connections = 10000  # default
        keep_alive = "3m"  # default
        max_retained_bytes = "256MiB"  # default
        shutdown_delay = "3s"  # default
        max_client_servers = 256  # default
        max_client_servers_per_user = 64  # default

        [sampling]
        max_tokens_per_call = 4096  # /srv/ada/.config/bowline/bowline.toml:63
        max_tokens_per_server = 200000  # /srv/ada/.config/bowline/bowline.toml:64
        timeout = "90s"  # /srv/ada/.config/bowline/bowline.toml:65
        providers.cloud = { kind = "anthropic", key_env = "CLOUD_KEY" }  # /srv/ada/.config/bowline/bowline.toml:71
        providers.local = { kind = "openai", base_url = "http://127.0.0.1:11434/v1" }  # /srv/ada/.config/bowline/bowline.toml:67
        models = { name = "llama-small", provider = "local", cost = 1, speed = 0.9, intelligence = 0.3 }  # /srv/ada/.config/bowline/bowline.toml:75
        models = { name = "large", provider = "cloud", cost = 0.2, speed = 0.5, intelligence = 1 }  # /srv/ada/.config/bowline/bowline.toml:82

        [audit]
        file = "/srv/ada/.config/bowline/audit.jsonl"  # /srv/ada/.config/bowline/bowline.toml:90
        max_bytes = "8MiB"  # /srv/ada/.config/bowline/bowline.toml:91
        keep = 3  # /srv/ada/.config/bowline/bowline.toml:92
        required = false  # default

        [store]
        namespace = "default"  # default

        [sessions]
        mode = "process"  # default
        resume = "store"  # default

        [tasks]
        after = "20s"  # default
        ttl = "1h"  # default

        [inspector]
        control = false  # default

        [disclosure]
        mode = "on"  # /srv/ada/.config/bowline/bowline.toml:95
        threshold_tokens = 12000  # /srv/ada/.config/bowline/bowline.toml:96

        [[rules]]  # /srv/ada/.config/bowline/bowline.toml:50
        effect = "deny"
        server = "files"
        tool = "write_*"
        arguments.path = "/etc/*"
        reason = "System files are not notes."

        [[rules]]  # /srv/ada/.config/bowline/bowline.toml:57
        effect = "allow"
        caller = "editor*"
        annotations.read_only = true
        annotations.open_world = false

        [[rules]]  # /srv/ada/.config/bowline/bowline.toml:98
        effect = "ask"
        action = "sample"
        server = "files"
    "#]].assert_eq(&shown);
}

#[test]
fn logins_in_files_of_other_programs() {
    let file = r#"{ "mcpServers": {
      "fixed": { "url": "https://fixed.example.com/mcp", "oauth": {
        "clientId": "app", "clientSecret": "${CRM_SECRET}",
        "authorizationUrl": "https://login.example.com/authorize", "tokenUrl": "https://login.example.com/token",
        "authorizationParams": { "audience": "notes", "access_type": "offline" } } },
      "plain": { "url": "https://plain.example.com/mcp", "oauth": false },
      "disabled": { "url": "https://disabled.example.com/mcp", "oauth": { "enabled": false, "clientId": "app" } },
      "usual": { "url": "https://usual.example.com/mcp", "oauth": true },
      "number": { "url": "https://number.example.com/mcp", "oauth": { "authorizationParams": { "audience": 7 } } }
    } }"#;
    check(
        ".mcp.json",
        Scope::User,
        file,
        &expect![[r#"
            [servers.fixed]  # .mcp.json:2, mcpServers, reads CRM_SECRET
            url = "https://fixed.example.com/mcp"  # .mcp.json:2
            oauth.client_id = "app"  # .mcp.json:3
            oauth.client_secret = "${CRM_SECRET}"  # .mcp.json:3
            oauth.authorization_url = "https://login.example.com/authorize"  # .mcp.json:4
            oauth.token_url = "https://login.example.com/token"  # .mcp.json:4
            oauth.authorization_params.access_type = "offline"  # .mcp.json:5
            oauth.authorization_params.audience = "notes"  # .mcp.json:5

            [servers.plain]  # .mcp.json:6, mcpServers
            url = "https://plain.example.com/mcp"  # .mcp.json:6
            auth = "none"  # .mcp.json:6

            [servers.disabled]  # .mcp.json:7, mcpServers
            url = "https://disabled.example.com/mcp"  # .mcp.json:7
            auth = "none"  # .mcp.json:7

            [servers.usual]  # .mcp.json:8, mcpServers
            url = "https://usual.example.com/mcp"  # .mcp.json:8
            oauth = …  # unknown key, ignored

            [servers.number]  # .mcp.json:9, mcpServers
            url = "https://number.example.com/mcp"  # .mcp.json:9
            oauth.authorization_params.audience = "7"  # .mcp.json:9"#]],
    );
    let zed = r#"{ "context_servers": {
      "plain": { "url": "https://plain.example.com/mcp", "oauth": false },
      "unknown": { "url": "https://unknown.example.com/mcp", "oauth": { "authorizationUrl": "https://a.example.com" } }
    } }"#;
    check(
        "settings.json",
        Scope::User,
        zed,
        &expect![[r#"
        [servers.plain]  # settings.json:2, Zed
        url = "https://plain.example.com/mcp"  # settings.json:2
        auth = "none"  # settings.json:2

        [servers.unknown]  # settings.json:3, Zed
        url = "https://unknown.example.com/mcp"  # settings.json:3
        oauth = …  # unknown key, ignored
        Unknown: settings.json:3: context_servers.unknown.oauth.authorizationUrl: unknown key, ignored"#]],
    );
    let vscode = r#"{ "servers": {
      "fixed": { "type": "http", "url": "https://fixed.example.com/mcp", "oauth": {
        "clientId": "app", "authorizationUrl": "https://login.example.com/authorize",
        "tokenUrl": "https://login.example.com/token", "authorizationParams": { "audience": "notes" } } },
      "plain": { "type": "http", "url": "https://plain.example.com/mcp", "oauth": false }
    } }"#;
    check(
        "/srv/ada/shop/.vscode/mcp.json",
        Scope::Project,
        vscode,
        &expect![[r#"
        [servers.fixed]  # /srv/ada/shop/.vscode/mcp.json:2, VS Code, needs approval
        url = "https://fixed.example.com/mcp"  # /srv/ada/shop/.vscode/mcp.json:2
        oauth.client_id = "app"  # /srv/ada/shop/.vscode/mcp.json:3
        oauth.authorization_url = "https://login.example.com/authorize"  # /srv/ada/shop/.vscode/mcp.json:3
        oauth.token_url = "https://login.example.com/token"  # /srv/ada/shop/.vscode/mcp.json:4
        oauth.authorization_params.audience = "notes"  # /srv/ada/shop/.vscode/mcp.json:4

        [servers.plain]  # /srv/ada/shop/.vscode/mcp.json:5, VS Code, needs approval
        url = "https://plain.example.com/mcp"  # /srv/ada/shop/.vscode/mcp.json:5
        auth = "none"  # /srv/ada/shop/.vscode/mcp.json:5"#]],
    );
}
