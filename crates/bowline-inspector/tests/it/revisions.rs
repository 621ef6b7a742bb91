//! One call on every revision.

use crate::support::{post, site, site_with};
use bowline_inspector::query::Grade;
use bowline_policy::{Policy, Rule};
use bowline_types::Revision;
use http::StatusCode;
use serde_json::{Value, json};

fn send(tool: &str, revision: &str) -> Value {
    let params = json!({"name":tool,"arguments":{"text":"hello"}});
    json!({"action":"send","server":"demo","method":"tools/call","params":params,"revision":revision})
}

#[tokio::test]
async fn a_call_is_sent_over_a_connection_that_speaks_the_revision() {
    let site = site(None).await;
    let overview = site.query(json!({"query":"overview"})).await;
    assert_eq!(overview["revisions"], json!(Revision::ALL.map(Revision::as_str)));
    let before = site.host.status().len();
    for revision in Revision::ALL.map(Revision::as_str) {
        let (status, sent) = site.act(send("echo", revision)).await;
        assert_eq!(status, StatusCode::OK, "{sent}");
        let call = sent["call"].as_u64().unwrap();
        let result = site.result(call).await;
        assert_eq!(result["parts"][0]["source"]["text"], "hello ", "{revision}: {result}");
        let tree = site.query(json!({"query":"call","call":call})).await;
        let children = tree["root"]["children"].as_array().unwrap();
        let upstream = children.iter().find(|child| child["head"]["method"] == "tools/call").unwrap();
        assert_eq!(upstream["head"]["revision"], revision, "{tree}");
        assert_eq!(upstream["end"]["status"], "done", "{tree}");
    }
    // The connection that clients share is as it was.
    let status = site.host.status();
    assert_eq!(status.len(), before);
    assert_eq!(status[0].revision, Some(Revision::LATEST));
    assert_eq!((status[0].starts, status[0].calls), (1, 0));
}

#[tokio::test]
async fn a_message_is_sent_again_with_another_revision() {
    let site = site(None).await;
    let first = site.call("echo", json!({"text":"hunter2-secret"})).await;
    site.result(first).await;
    let (status, sent) =
        site.act(json!({"action":"resend","seq":first,"revision":Revision::V2025_03_26.as_str()})).await;
    assert_eq!(status, StatusCode::OK, "{sent}");
    let call = sent["call"].as_u64().unwrap();
    // The secret that the page does not see is sent.
    assert_eq!(site.result(call).await["parts"][0]["source"]["text"], "*** ");
    let tree = site.query(json!({"query":"call","call":call})).await.to_string();
    assert!(tree.contains(r#""revision":"2025-03-26""#), "{tree}");
}

#[tokio::test]
async fn rules_and_grades_hold_on_every_revision() {
    let policy = Policy::new([Rule::deny().tool("erase"), Rule::allow().tool("*")]);
    let site = site_with(None, policy, |options| options).await;
    let view = site.key(Grade::View).await;
    let refused = site.send(post("/api/act", Some(&view), &send("echo", "2025-06-18"))).await;
    assert_eq!(refused.0, StatusCode::FORBIDDEN);
    let (status, error) = site.act(send("echo", "2024-01-01")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(error["error"].as_str().unwrap().contains("got `2024-01-01`"), "{error}");
    let (_, sent) = site.act(send("erase", "2025-06-18")).await;
    let call = sent["call"].as_u64().unwrap();
    assert_ne!(site.result(call).await["verdict"], "done");
    let tree = site.query(json!({"query":"call","call":call})).await.to_string();
    assert!(!tree.contains(r#""leg":"server""#), "{tree}");
}
