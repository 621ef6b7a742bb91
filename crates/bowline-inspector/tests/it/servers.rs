//! When servers start, and who is taken for the page.

use crate::support::{post, site, site_guarded};
use bowline_client::Client;
use bowline_host::{Start, Upstream};
use bowline_inspector::query::Grade;
use bowline_policy::{
    Policy, Rule,
    audit::{Audit, AuditSettings},
};
use bowline_server::{Server, Tool};
use http::StatusCode;
use serde_json::{Value, json};

fn other() -> Upstream {
    let server = Server::new("other").tool(Tool::new("look").handler(|| "seen".to_owned()));
    Upstream::from(server.build().unwrap()).start(Start::Lazy)
}

fn state(overview: &Value, server: &str) -> Value {
    let servers = overview["servers"].as_array().unwrap();
    servers.iter().find(|known| known["name"] == server).map_or(Value::Null, |known| known["state"].clone())
}

#[tokio::test]
async fn a_query_starts_no_server_and_an_action_does() {
    let site = site(None).await;
    site.host.add("other", other());
    let tool = json!({"server":"other","kind":"tool","name":"look"});
    for query in
        [json!({"query":"overview"}), json!({"query":"server","server":"other"}), json!({"query":"entries"})]
    {
        site.query(query).await;
    }
    for (query, value) in [("form", Value::Null), ("check", json!({}))] {
        let mut body = tool.clone();
        body["query"] = json!(query);
        if !value.is_null() {
            body["value"] = value;
        }
        let (status, _) = site.send(post("/api/query", Some(&site.key), &body)).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{query}");
    }
    assert_eq!(state(&site.query(json!({"query":"overview"})).await, "other"), "idle");
    // A key that only looks does not start it either.
    let view = site.key(Grade::View).await;
    let start = json!({"action":"start","server":"other"});
    assert_eq!(site.send(post("/api/act", Some(&view), &start)).await.0, StatusCode::FORBIDDEN);
    assert_eq!(state(&site.query(json!({"query":"overview"})).await, "other"), "idle");
    assert_eq!(site.act(start).await.0, StatusCode::OK);
    assert_eq!(state(&site.query(json!({"query":"overview"})).await, "other"), "ready");
    let entries = site.query(json!({"query":"entries"})).await;
    assert!(entries.to_string().contains("look"), "{entries}");
    site.host.stop_server("other").await;
    let params = json!({"name":"look","arguments":{}});
    let send = json!({"action":"send","server":"other","method":"tools/call","params":params});
    let (status, sent) = site.act(send).await;
    assert_eq!(status, StatusCode::OK, "{sent}");
    assert_eq!(site.result(sent["call"].as_u64().unwrap()).await["verdict"], "done");
}

#[tokio::test]
async fn a_client_that_calls_itself_page_is_not_the_page() {
    let site = site(None).await;
    let client = Client::builder().name("page").connect(site.handle.clone()).await.unwrap();
    client.tools().await.unwrap();
    let call = site.call("echo", json!({"text":"hello"})).await;
    site.result(call).await;
    let calls = site.query(json!({"query":"calls","after":0,"limit":10000})).await;
    let requests = calls["heads"].as_array().unwrap().iter();
    let requests = requests.filter(|head| head["leg"] == "client" && head["kind"] == "request");
    let who: Vec<_> = requests.map(|head| (head["method"].clone(), head["peer"].clone())).collect();
    assert!(who.contains(&(json!("tools/call"), json!("page"))), "{who:?}");
    assert!(who.contains(&(json!("tools/list"), json!("page (a client)"))), "{who:?}");
    let overview = site.query(json!({"query":"overview"})).await;
    assert_eq!(overview["clients"][0]["name"], "page (a client)", "{overview}");
    assert_eq!(overview["clients"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn actions_of_the_page_are_in_the_audit_with_the_number_of_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let audit = Audit::open(AuditSettings::new(&path)).unwrap();
    let policy = Policy::new([Rule::allow().tool("*")]);
    let log = audit.clone();
    let site = site_guarded(None, |guard| guard.policy(policy).audit(log), |options| options).await;
    let call = site.call("echo", json!({"text":"hello"})).await;
    site.result(call).await;
    assert_eq!(site.act(json!({"action":"restart","server":"nobody"})).await.0, StatusCode::NOT_FOUND);
    assert_eq!(site.act(json!({"action":"sign_out"})).await.0, StatusCode::OK);
    audit.flush();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains(&site.key), "{text}");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let actions: Vec<_> = lines.filter(|line| line["event"] == "page").collect();
    let fields = |line: &Value| {
        ["client", "key", "server", "method", "name", "outcome"].map(|name| line[name].clone())
    };
    let nothing = Value::Null;
    let expected = [
        [json!("page"), json!(1), json!("demo"), json!("send"), json!("echo"), json!("ok")],
        [
            json!("page"),
            json!(1),
            json!("nobody"),
            json!("restart"),
            nothing.clone(),
            json!("there is no server `nobody` that can be controlled here"),
        ],
        [json!("page"), json!(1), nothing.clone(), json!("sign_out"), nothing, json!("ok")],
    ];
    assert_eq!(actions.iter().map(fields).collect::<Vec<_>>(), expected);
}
