//! Questions of the policy: who answers, once, and what a click allows.

use crate::support::{site, site_with};
use bowline_policy::{Policy, Rule};
use http::StatusCode;
use serde_json::json;

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
