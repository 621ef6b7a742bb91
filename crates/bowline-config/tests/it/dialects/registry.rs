//! Entries of the MCP registry.

use super::*;

#[test]
fn registry_npm() {
    // V-130
    check(
        "server.json",
        Scope::User,
        include_str!("../../fixtures/server_npm.json"),
        &expect![[r#"
            [servers."io.github.ada/search"]  # server.json:3, server.json, needs approval, reads SEARCH_KEY
            command = "npx"  # server.json:9
            args = ["-y","@ada/search@1.0.2","start","--region","eu","--safe","/srv"]  # server.json:9
            env.LOG_LEVEL = "***"  # server.json:25
            env.SEARCH_KEY = "{SEARCH_KEY}"  # server.json:24
            description = "Searches the web"  # server.json:5
            title = …  # unknown key, ignored
            version = …  # unknown key, ignored
            repository = …  # unknown key, ignored
            "$schema" = …  # unknown key, ignored
            _meta = …  # unknown key, ignored
            Command: server.json:9: packages[0]: published by io.github.ada; runs `npx -y @ada/search@1.0.2 start --region eu --safe /srv`"#]],
    );
}

#[test]
fn registry_container_in_the_older_spelling() {
    check(
        "server.json",
        Scope::User,
        include_str!("../../fixtures/server_oci.json"),
        &expect![[r#"
            [servers."io.github.ada/database"]  # server.json:2, server.json, needs approval, reads DB_PASSWORD
            command = "docker"  # server.json:6
            args = ["run","-i","--rm","-e","DB_PASSWORD","--mount","type=bind,src={source_path},dst=/project","--network","host","ghcr.io/ada/database:3.1.0","/project"]  # server.json:6
            env.DB_PASSWORD = "{DB_PASSWORD}"  # server.json:25
            description = "A database"  # server.json:3
            version_detail = …  # unknown key, ignored
            Command: server.json:6: packages[0]: published by io.github.ada; runs `docker run -i --rm -e DB_PASSWORD --mount type=bind,src={source_path},dst=/project --network host ghcr.io/ada/database:3.1.0 /project`"#]],
    );
}

#[test]
fn registry_prefers_a_remote() {
    check(
        "server.json",
        Scope::User,
        include_str!("../../fixtures/server_remote.json"),
        &expect![[r#"
            [servers."com.example/hybrid"]  # server.json:2, server.json, needs approval
            url = "https://www.example.com/mcp"  # server.json:11
            headers.Authorization = "Bearer {token}"  # server.json:15
            headers.X-API-Key = "{X-API-Key}"  # server.json:14
            headers.X-Region = "***"  # server.json:16
            description = "Local and remote"  # server.json:3
            version = …  # unknown key, ignored"#]],
    );
}

#[test]
fn registry_runtimes() {
    let package = |kind: &str, more: &str| {
        format!(
            r#"{{ "name": "a/b", "packages": [{{ "registryType": "{kind}", "identifier": "pkg", "version": "1.2.3"{more} }}] }}"#
        )
    };
    let argument = r#", "packageArguments": [{ "type": "positional", "value": "go" }]"#;
    let runs = |kind: &str, more: &str| {
        let config = load(&[("server.json", Scope::User, &package(kind, more))]);
        let notices: Vec<&str> = config.notices.iter().map(|notice| notice.message.as_str()).collect();
        format!("{kind}: {}\n", notices.join(" | "))
    };
    let mut shown = String::new();
    for kind in ["npm", "pypi", "oci", "nuget", "cargo", "mcpb"] {
        shown.push_str(&runs(kind, argument));
    }
    for hint in ["bunx", "pipx", "podman"] {
        shown.push_str(&runs("npm", &format!(r#", "runtimeHint": "{hint}""#)));
    }
    shown.push_str(&runs(
        "npm",
        r#", "transport": { "type": "streamable-http", "url": "http://127.0.0.1:80/" }"#,
    ));
    shown.push_str(&runs(
        "npm",
        r#", "runtimeHint": "npx", "runtimeArguments": [{ "type": "named", "name": "-c", "value": "id" }]"#,
    ));
    expect![[r#"
        npm: published by a; runs `npx -y pkg@1.2.3 go`
        pypi: published by a; runs `uvx pkg@1.2.3 go`
        oci: published by a; runs `docker run -i --rm pkg:1.2.3 go`
        nuget: published by a; runs `dnx pkg@1.2.3 --yes -- go`
        cargo: install it first with `cargo install --locked pkg@1.2.3` | published by a; runs `pkg go`
        mcpb: bundles are not supported; install it and add its command | `a/b` has no supported package or remote
        npm: published by a; runs `bunx pkg@1.2.3`
        npm: published by a; runs `pipx run pkg==1.2.3`
        npm: published by a; runs `podman run -i --rm pkg:1.2.3`
        npm: the package is an HTTP server; start it and add its URL | `a/b` has no supported package or remote
        npm: `npx -c` runs code from its arguments | published by a; runs `npx -y -c id pkg@1.2.3`
    "#]].assert_eq(&shown);
}
