//! Rules, decisions in advance, pins and the audit log.

use crate::support::{Site, post, site_guarded};
use bowline_inspector::query::Grade;
use bowline_policy::{
    Answers, Definition, PinKey, Pins, Policy, Rule,
    audit::{Audit, AuditArguments, AuditSettings},
};
use bowline_types::{RawJson, Tool};
use http::StatusCode;
use serde_json::{Value, json};

fn policy() -> Policy {
    Policy::new([
        Rule::deny().tool("erase").origin("bowline.toml:3"),
        Rule::ask().tool("wait").origin("shop/bowline.toml:7"),
        Rule::allow().tool("*").origin("bowline.toml:9"),
    ])
}

async fn decide(site: &Site, kind: &str, name: &str) -> Value {
    let query = json!({"query":"decide","server":"demo","kind":kind,"name":name,"arguments":{"text":"x"}});
    site.query(query).await
}

#[tokio::test]
async fn what_if_names_the_rule_and_runs_nothing() {
    let site = site_guarded(None, |guard| guard.policy(policy()), |options| options).await;
    let rules = site.query(json!({"query":"rules"})).await;
    assert_eq!(rules["consent"], "ask");
    assert_eq!(
        rules["rules"][0],
        json!({"effect":"deny","text":"deny * erase (bowline.toml:3)","origin":"bowline.toml:3"})
    );
    let before = site.query(json!({"query":"calls","after":0})).await["heads"].as_array().unwrap().len();
    for (tool, effect, rule, origin) in [
        ("erase", "deny", 0, "bowline.toml:3"),
        ("wait", "ask", 1, "shop/bowline.toml:7"),
        ("echo", "allow", 2, "bowline.toml:9"),
    ] {
        let decided = decide(&site, "tool", tool).await;
        assert_eq!(
            (&decided["effect"], &decided["by"], &decided["rule"], &decided["origin"]),
            (&json!(effect), &json!("rule"), &json!(rule), &json!(origin)),
            "{decided}"
        );
    }
    let read = decide(&site, "resource", "note:///a").await;
    assert_eq!((&read["effect"], &read["by"]), (&json!("allow"), &json!("default")), "{read}");
    let unknown = json!({"query":"decide","server":"demo","kind":"tool","name":"nothing"});
    assert_eq!(site.send(post("/api/query", Some(&site.key), &unknown)).await.0, StatusCode::NOT_FOUND);
    // Nobody was asked, nothing was sent.
    let after = site.query(json!({"query":"calls","after":0})).await["heads"].as_array().unwrap().len();
    assert_eq!(after, before);
    assert_eq!(site.query(json!({"query":"inbox"})).await["waiting"], json!([]));
}

#[tokio::test]
async fn a_changed_tool_shows_its_difference_and_is_accepted_as_shown() {
    let pins = Pins::in_memory();
    let earlier =
        |name: &str| Definition::of(&Tool::new(name, RawJson::empty_object()).description("Earlier"));
    pins.accept(&PinKey::from("demo"), &[earlier("echo"), earlier("gone")]).unwrap();
    let site = site_guarded(None, |guard| guard.policy(policy()).pins(pins), |options| options).await;
    let pins = site.query(json!({"query":"pins"})).await;
    let tools = pins["servers"][0]["tools"].as_array().unwrap();
    let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    assert_eq!((&tool("echo")["state"], &tool("gone")["state"]), (&json!("changed"), &json!("removed")));
    let diff = tool("echo")["diff"].to_string();
    assert!(diff.contains("Earlier") && diff.contains("Says it again"), "{diff}");
    let decided = decide(&site, "tool", "echo").await;
    assert_eq!((&decided["effect"], &decided["pin"]), (&json!("ask"), &json!("changed")), "{decided}");
    let accept =
        |digest: &Value| json!({"action":"accept_pin","server":"demo","tool":"echo","digest":digest});
    let digest = tool("echo")["digest"].clone();
    let view = site.key(Grade::View).await;
    let refused = site.send(post("/api/act", Some(&view), &accept(&digest))).await;
    assert_eq!(refused.0, StatusCode::FORBIDDEN);
    // A definition that nobody has seen is not accepted.
    assert_eq!(site.act(accept(&json!("sha256:0"))).await.0, StatusCode::CONFLICT);
    assert_eq!(decide(&site, "tool", "echo").await["pin"], "changed");
    assert_eq!(site.act(accept(&digest)).await.0, StatusCode::OK);
    let decided = decide(&site, "tool", "echo").await;
    assert_eq!((&decided["effect"], &decided["pin"]), (&json!("allow"), &json!("same")), "{decided}");
}

#[tokio::test]
async fn the_audit_log_is_shown_masked_and_filtered() {
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditSettings::new(folder.path().join("audit.jsonl")).arguments(AuditArguments::Redacted);
    let audit = Audit::open(settings).unwrap();
    let log = audit.clone();
    let site = site_guarded(None, |guard| guard.policy(policy()).audit(log), |options| options).await;
    for text in ["first", "second hunter2-secret"] {
        let call = site.call("echo", json!({"text":text})).await;
        site.result(call).await;
    }
    audit.flush();
    let query = |more: Value| {
        let mut query = json!({"query":"audit"});
        query.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        query
    };
    let page = site.query(query(json!({"event":"decision"}))).await;
    let lines = page["lines"].as_array().unwrap();
    assert_eq!((lines.len(), &page["is_on"], &page["next"]), (2, &json!(true), &Value::Null), "{page}");
    assert_eq!(lines[0]["entry"]["arguments"]["text"], "second ***");
    assert!(!page.to_string().contains("hunter2"));
    let found = site.query(query(json!({"text":"FIRST"}))).await;
    // The decision and the end of the call.
    assert_eq!(found["lines"].as_array().unwrap().len(), 2, "{found}");
    let none = site.query(query(json!({"server":"other"}))).await;
    assert_eq!(none["lines"], json!([]));
    let all = site.query(query(json!({}))).await["lines"].as_array().unwrap().len();
    let first = site.query(query(json!({"limit":1}))).await;
    let rest = site.query(query(json!({"before":first["next"]}))).await;
    assert_eq!(rest["lines"].as_array().unwrap().len() + 1, all);
    let view = site.key(Grade::View).await;
    let (_, page) = site.send(post("/api/query", Some(&view), &query(json!({"event":"decision"})))).await;
    assert!(page["lines"][0]["entry"].get("arguments").is_none(), "{page}");
    // Nor are they found by a search, and what is shown is.
    let search =
        |text: &str| post("/api/query", Some(&view), &query(json!({"event":"decision","text":text})));
    for (text, lines) in [("first", 0), ("ECHO", 2)] {
        let (_, page) = site.send(search(text)).await;
        assert_eq!(page["lines"].as_array().unwrap().len(), lines, "{text}: {page}");
    }
}

#[tokio::test]
async fn a_search_in_a_long_audit_log_goes_on_to_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let line = |server: &str, length: usize| {
        let reason = "x".repeat(length);
        format!("{}\n", json!({"event":"decision","server":server,"reason":reason}))
    };
    // More than a page reads, and lines that are longer than what is read at a time.
    let mut log = line("wanted", 10);
    log.extend((0..22_000).map(|number| line("demo", 200 + number % 300)));
    log += &line("demo", 600_000);
    log.extend((0..100).map(|number| line("demo", number)));
    log += &"x".repeat(300_000);
    assert!(log.len() > 8 << 20);
    std::fs::write(&path, log).unwrap();
    let audit = Audit::open(AuditSettings::new(&path)).unwrap();
    let site = site_guarded(None, |guard| guard.policy(policy()).audit(audit), |options| options).await;
    let (mut before, mut pages) = (Value::Null, 0);
    let found = loop {
        let query = json!({"query":"audit","server":"wanted","before":before});
        let page = site.query(query).await;
        pages += 1;
        match page["lines"].as_array().unwrap().as_slice() {
            [] if page["next"].is_u64() => before = page["next"].clone(),
            lines => break lines.to_vec(),
        }
    };
    assert_eq!(found.len(), 1, "after {pages} pages");
    assert_eq!((found[0]["at"].as_u64(), &found[0]["entry"]["server"]), (Some(0), &json!("wanted")));
    assert!(pages > 1, "one page reads a part of the log");
}

#[tokio::test]
async fn remembered_answers_are_listed_and_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let answers = Answers::open(folder.path().join("answers.json")).unwrap();
    let guard = |guard: bowline_policy::GuardBuilder| guard.policy(policy()).answers(answers.clone());
    let site = site_guarded(None, guard, |options| options).await;
    let list = || site.query(json!({"query":"answers"}));
    assert_eq!(list().await["answers"], json!([]));
    let client = bowline_client::Client::connect(site.handle.clone()).await.unwrap();
    for (scope, text) in [("always", "a"), ("run", "b")] {
        let client = client.clone();
        let call = tokio::spawn(async move { client.call("demo__wait", json!({"text":text})).await });
        let inbox = site.until(json!({"query":"inbox"}), |inbox| inbox["waiting"][0].is_object()).await;
        let question = inbox["waiting"][0]["id"].clone();
        let answer = json!({"kind":"decline","scope":scope});
        let (status, reply) = site.act(json!({"action":"answer","question":question,"answer":answer})).await;
        assert_eq!(status, StatusCode::OK, "{reply}");
        let _ = call.await.unwrap();
        let kept = list().await["answers"].clone();
        let answer = &kept[0];
        assert_eq!((&answer["effect"], &answer["server"]), (&json!("deny"), &json!("demo")), "{kept}");
        assert_eq!(
            (&answer["what"]["text"], &answer["this_run"]),
            (&json!("call wait"), &json!(scope == "run"))
        );
        let forget = json!({"action":"forget_answer","id":answer["id"]});
        let view = site.key(Grade::View).await;
        assert_eq!(site.send(post("/api/act", Some(&view), &forget)).await.0, StatusCode::FORBIDDEN);
        assert_eq!(list().await["answers"].as_array().unwrap().len(), 1);
        assert_eq!(site.act(forget.clone()).await.0, StatusCode::OK);
        assert_eq!(list().await["answers"], json!([]));
        assert_eq!(site.act(forget).await.0, StatusCode::NOT_FOUND);
    }
    assert!(answers.kept().unwrap().is_empty());
}
