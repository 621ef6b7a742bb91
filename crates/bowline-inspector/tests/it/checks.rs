//! Checks of a server, and the messages they lead to.

use crate::support::{post, site};
use bowline_client::Direction;
use bowline_inspector::{
    CheckFinding, CheckWatch, Checker,
    query::{FindingLevel, Grade},
};
use bowline_server::BoxFuture;
use http::StatusCode;
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// Finds a bad response on a connection of its own.
struct Finds;

impl Checker for Finds {
    fn check(
        &self,
        server: String,
        watch: CheckWatch,
    ) -> BoxFuture<'static, Result<Vec<CheckFinding>, String>> {
        Box::pin(async move {
            let connection = watch.connection();
            connection.frame(Direction::Sent, br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
            let bad = connection
                .frame(Direction::Received, br#"{"jsonrpc":"2.0","id":1,"result":{"a":"hunter2-secret"}}"#);
            let what = format!("`{server}` answers hunter2-secret");
            let mut finding = CheckFinding::new(FindingLevel::Error, "bad-ping", what, "answer with nothing");
            finding.messages = vec![bad];
            Ok(vec![finding])
        })
    }
}

#[tokio::test]
async fn checks_lead_to_messages() {
    let site = site(None).await;
    let query = json!({"query":"checks","server":"demo"});
    let run = |server: &str| json!({"action":"run_checks","server":server});
    let view = site.query(query.clone()).await;
    assert_eq!((&view["is_available"], &view["state"]), (&json!(false), &json!("none")));
    assert_eq!(site.act(run("demo")).await.0, StatusCode::CONFLICT);
    site.inspector.set_checker(Arc::new(Finds));
    assert_eq!(site.act(run("nobody")).await.0, StatusCode::NOT_FOUND);
    let looks = site.key(Grade::View).await;
    assert_eq!(site.send(post("/api/act", Some(&looks), &run("demo"))).await.0, StatusCode::FORBIDDEN);
    assert_eq!(site.act(run("demo")).await.0, StatusCode::OK);
    let view = site.until(query, |view| view["state"] == "done").await;
    let finding = &view["findings"][0];
    assert_eq!(finding["what"]["text"], "`demo` answers ***");
    let message = site.query(json!({"query":"message","seq":finding["messages"][0]})).await;
    assert_eq!((&message["head"]["method"], &message["head"]["peer"]), (&json!("ping"), &json!("demo")));
}

/// Panics while it checks.
struct Panics;

impl Checker for Panics {
    fn check(&self, _: String, _: CheckWatch) -> BoxFuture<'static, Result<Vec<CheckFinding>, String>> {
        Box::pin(async { panic!("a check failed") })
    }
}

#[tokio::test]
async fn checks_that_panic_have_failed() {
    let site = site(None).await;
    site.inspector.set_checker(Arc::new(Panics));
    assert_eq!(site.act(json!({"action":"run_checks","server":"demo"})).await.0, StatusCode::OK);
    let query = json!({"query":"checks","server":"demo"});
    let ended = site.until(query, |view| view["state"] != "running");
    let view = tokio::time::timeout(Duration::from_secs(60), ended).await.expect("the checks end");
    assert_eq!(view["state"], "failed", "{view}");
    assert!(view["problem"]["text"].as_str().unwrap().contains("panicked"), "{view}");
}
