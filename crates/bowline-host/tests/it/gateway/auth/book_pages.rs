//! The configuration that the book shows works.

use super::*;

/// A page of the book.
fn page(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../docs/{name}.md", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The TOML blocks of a page.
fn blocks(name: &str) -> Vec<String> {
    let page = page(name);
    let blocks = page.split("```toml\n").skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// The TOML blocks of the page about gateways for teams.
fn team_page() -> Vec<String> {
    blocks("team")
}

/// Replaces variables, which a test does not have.
fn without_variables(text: &str) -> String {
    let mut parts = text.split("${");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "value" + part.split_once('}').expect("a variable ends").1)
}

#[tokio::test]
async fn the_configuration_of_the_pages_about_logins_works() {
    for (name, count) in [("login", 3), ("identity-providers", 8)] {
        let blocks = blocks(name);
        assert!(blocks.len() >= count, "{name} has {} blocks", blocks.len());
        for block in blocks {
            let config = config(&without_variables(&block));
            assert_eq!(config.errors, [], "{block}");
            let warnings: Vec<String> = config.notices.iter().map(|notice| format!("{notice:?}")).collect();
            assert_eq!(warnings, Vec::<String>::new(), "{block}");
            let folder = super::Folder::new("auth-pages");
            let mut builder = Gateway::builder(config).folder(folder.path());
            if !block.contains("[gateway.auth]") {
                // The gateway of one user.
                builder = builder.serves(None);
            }
            let gateway = builder.build().unwrap();
            let problems: Vec<String> = gateway.problems().iter().map(ToString::to_string).collect();
            assert_eq!(problems, Vec::<String>::new(), "{block}");
            gateway.close().await;
        }
    }
}

#[test]
fn the_pages_about_logins_list_every_exception() {
    for name in ["login", "identity-providers"] {
        let page = page(name);
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let names: Vec<&str> =
            bowline_http::auth::Lenient::ALL.iter().map(|lenient| lenient.as_str()).collect();
        let listed: Vec<&str> = rows.filter(|row| names.contains(row)).collect();
        assert_eq!(listed, names, "{name}");
    }
}

#[tokio::test]
async fn the_configuration_of_the_team_page_works() {
    let blocks = team_page();
    assert!(blocks.len() >= 4);
    for block in &blocks {
        assert_eq!(config(block).errors, [], "{block}");
    }
    let answer = |name: &'static str| Tool::new(name).handler(move || name);
    let notes = Far::with(Server::new("notes").tool(answer("read_file")).tool(answer("write_file"))).await;
    let sql = Tool::new("query").handler(|Query { sql }: Query| sql);
    let database = Far::with(Server::new("database").tool(sql)).await;
    let issuer = Issuer::new("auth-team");
    let (keys, log) = (issuer.folder.path().join("keys.json"), issuer.folder.path().join("audit.jsonl"));
    // The servers, the keys and the log of this test take the place of those of the page.
    let mut text = blocks.last().unwrap().clone();
    for (written, here) in [
        ("command = \"bowline\"\nargs = [\"serve\", \"files\"", format!("url = \"{}\"\n#", notes.url)),
        ("command = \"bowline\"\nargs = [\"serve\", \"database\"", format!("url = \"{}\"\n#", database.url)),
        ("scopes = [\"mcp\"]", format!("scopes = [\"mcp\"]\njwks_file = {:?}", keys.to_str().unwrap())),
        ("\"/var/log/bowline/audit.jsonl\"", format!("{:?}", log.to_str().unwrap())),
    ] {
        assert!(text.contains(written), "{written}");
        text = text.replacen(written, &here, 1);
    }
    let gateway = build(&text);
    assert_eq!(gateway.problems(), []);
    let request = |uri: &str| post(None).uri(uri.to_owned());
    let endpoint = gateway.http().unwrap();
    let check = async |claims: Value, tool: &str, arguments: Value, expected: &str| {
        let token = issuer.token(&claims);
        let reply = {
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
                "name": tool, "arguments": arguments, "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {} } } });
            let request = request("http://mcp.example.com/mcp")
                .header("authorization", format!("Bearer {token}"))
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", tool)
                .header("host", "mcp.example.com");
            let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
            let body = endpoint.respond(request).await.into_body().collect().await.unwrap().to_bytes();
            serde_json::from_slice::<Value>(&body).unwrap()
        };
        let text = reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}"));
        assert!(text.contains(expected), "{claims} {tool}: {reply}");
    };
    let reader = || json!({ "scope": "mcp notes:read" });
    check(reader(), "notes__read_file", json!({}), "read_file").await;
    check(reader(), "notes__write_file", json!({}), "Log in with the scope `notes:write`.").await;
    let writer = || json!({ "scope": "mcp notes:write" });
    check(writer(), "notes__write_file", json!({}), "write_file").await;
    check(writer(), "notes__read_file", json!({}), "read_file").await;
    check(writer(), "database__query", json!({ "sql": "select 1" }), "Ask for the group").await;
    let operator = || json!({ "groups": ["operators"] });
    check(operator(), "database__query", json!({ "sql": "select 1" }), "select 1").await;
    let salaries = json!({ "sql": "select * from salaries" });
    check(operator(), "database__query", salaries, "Do not query salaries.").await;
    gateway.host().guard().audit().unwrap().flush();
    let log = std::fs::read_to_string(log).unwrap();
    assert_eq!(log.lines().filter(|line| line.contains(r#""event":"decision""#)).count(), 7, "{log}");
    assert!(log.lines().all(|line| line.contains(r#""principal":"ada""#)), "{log}");
    gateway.close().await;
}

#[derive(Deserialize, JsonSchema)]
struct Query {
    sql: String,
}
