//! Questions of the policy: who answers, once, and what a click allows.

use crate::support::{site, site_with};
use bowline_host::{Start, Upstream};
use bowline_policy::{Action, Policy, Rule};
use bowline_server::{Resource, Server};
use http::StatusCode;
use serde_json::{Value, json};

#[tokio::test]
async fn a_click_is_the_consent_that_a_rule_asks_for_but_denials_hold() {
    let site = site(None).await;
    let call = site.call("erase", json!({"text":"x"})).await;
    assert_eq!(site.result(call).await["parts"][0]["source"]["text"], "erased x");
    let policy = Policy::new([Rule::deny().tool("erase"), Rule::allow().tool("*")]);
    let denying = site_with(None, policy, |options| options).await;
    let call = denying.call("erase", json!({"text":"x"})).await;
    let result = denying.result(call).await;
    assert_ne!(result["verdict"], "done", "{result}");
}

#[tokio::test]
async fn one_answer_counts() {
    let site = site(None).await;
    let call = site.call("ask", json!({"text":"go"})).await;
    let inbox = site.until(json!({"query":"inbox"}), |inbox| inbox["waiting"][0].is_object()).await;
    let id = inbox["waiting"][0]["id"].clone();
    let answer = json!({"action":"answer","question":id,"answer":{"kind":"decline"}});
    let wrong = json!({"action":"answer","question":id,"answer":{"kind":"allow","scope":"always","edit":{}}});
    assert_eq!(site.act(wrong).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(site.act(answer.clone()).await.0, StatusCode::OK);
    assert_eq!(site.act(answer).await.0, StatusCode::CONFLICT);
    site.result(call).await;
    let inbox = site.query(json!({"query":"inbox"})).await;
    assert_eq!((&inbox["waiting"], &inbox["answered"][0]["by"]), (&json!([]), &json!("page")));
    assert_eq!(inbox["answered"][0]["allowed"], json!(false));
}

#[tokio::test]
async fn a_question_is_withdrawn_when_its_call_ends() {
    let site = site(None).await;
    let call = site.call("ask", json!({"text":"go"})).await;
    site.until(json!({"query":"inbox"}), |inbox| inbox["waiting"][0].is_object()).await;
    assert_eq!(site.act(json!({"action":"cancel","call":call})).await.0, StatusCode::OK);
    let inbox = site.until(json!({"query":"inbox"}), |inbox| inbox["waiting"] == json!([])).await;
    assert_eq!(inbox["answered"][0]["by"], "nobody");
}

#[tokio::test]
async fn a_click_for_one_server_is_no_consent_for_another() {
    let policy = Policy::new([Rule::ask().action(Action::Read), Rule::allow().tool("*")]);
    let site = site_with(None, policy, |options| options).await;
    let other = Server::new("other").resource(Resource::new("note:///diary", "diary").text("dear diary"));
    site.host.add("other", Upstream::from(other.build().unwrap()).start(Start::Eager));
    let listed = |entries: &Value| entries.to_string().contains("note:///diary");
    let entries = site.until(json!({"query":"entries"}), listed).await;
    let items = entries["servers"].as_array().unwrap().iter().find(|server| server["server"] == "other");
    let uri = items.unwrap()["items"][0]["gateway_name"].clone();
    let read = |server: &str, uri: &Value| json!({"action":"send","server":server,"method":"resources/read","params":{"uri":uri}});
    let (status, sent) = site.act(read("demo", &uri)).await;
    assert_eq!(status, StatusCode::OK, "{sent}");
    let inbox = site.until(json!({"query":"inbox"}), |inbox| inbox["waiting"][0].is_object()).await;
    assert_eq!(inbox["waiting"][0]["server"], "other");
    // The same question about the same resource would wait for the answer to this one.
    assert_eq!(site.act(json!({"action":"cancel","call":sent["call"]})).await.0, StatusCode::OK);
    site.until(json!({"query":"inbox"}), |inbox| inbox["waiting"] == json!([])).await;
    let (_, sent) = site.act(read("other", &json!("note:///diary"))).await;
    let result = site.result(sent["call"].as_u64().unwrap()).await;
    assert!(result.to_string().contains("dear diary"), "{result}");
}
