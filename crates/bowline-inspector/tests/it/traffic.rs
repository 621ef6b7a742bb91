//! Calls, their trees, their results, and what is masked.

use crate::support::{Site, get, post, site};
use bowline_types::Revision;
use http::StatusCode;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Writes a tree as lines: leg, peer, kind, what, status.
fn lines(node: &Value, indent: usize, out: &mut String) {
    let head = &node["head"];
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let what = head["method"].as_str().map_or_else(|| text(&head["name"]), str::to_owned);
    let end = if head["status"].is_string() { head } else { &node["end"] };
    let (leg, peer, kind) = (text(&head["leg"]), text(&head["peer"]), text(&head["kind"]));
    let _ = writeln!(out, "{:indent$}{leg} {peer} {kind} {what}: {}", "", text(&end["status"]));
    for child in node["children"].as_array().unwrap() {
        lines(child, indent + 2, out);
    }
}

async fn tree(site: &Site, call: u64) -> String {
    let reply = site.query(json!({"query":"call","call":call})).await;
    let mut out = String::new();
    lines(&reply["root"], 0, &mut out);
    out
}

fn first_text(result: &Value) -> &str {
    result["parts"][0]["source"]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn both_legs_of_a_call_are_one_tree_in_every_revision() {
    for revision in Revision::ALL {
        let site = site(Some(revision)).await;
        let call = site.call("echo", json!({"text":"hello"})).await;
        let result = site.result(call).await;
        assert_eq!(result["verdict"], "done", "{revision}: {result}");
        assert_eq!(first_text(&result), "hello ", "{revision}");
        let tree = tree(&site, call).await;
        let start = "client page request tools/call: done\n  host demo policy ";
        assert!(tree.starts_with(start), "{revision}:\n{tree}");
        assert!(tree.ends_with("  server demo request tools/call: done\n"), "{revision}:\n{tree}");
    }
}

#[tokio::test]
async fn an_elicitation_nests_in_both_eras() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let site = site(Some(revision)).await;
        let call = site.call("ask", json!({"text":"go"})).await;
        let inbox = site.until(json!({"query":"inbox"}), |inbox| inbox["waiting"][0].is_object()).await;
        let question = &inbox["waiting"][0];
        assert_eq!(
            (&question["asks"]["kind"], &question["call"]),
            (&json!("form"), &json!(call)),
            "{revision}"
        );
        let fields = question["asks"]["plan"]["root"]["input"]["fields"].as_array().unwrap();
        let content: serde_json::Map<_, _> =
            fields.iter().map(|field| (field["name"].as_str().unwrap().to_owned(), json!(true))).collect();
        let answer = json!({"kind":"allow","edit":content});
        let answered = site.act(json!({"action":"answer","question":question["id"],"answer":answer})).await;
        assert_eq!(answered.0, StatusCode::OK, "{}", answered.1);
        let result = site.result(call).await;
        assert_eq!(first_text(&result), "answered true", "{revision}");
        let tree = tree(&site, call).await;
        assert!(tree.contains("  host demo question fill in a form: allowed\n"), "{revision}:\n{tree}");
        if revision == Revision::V2025_06_18 {
            let nested = "  server demo request tools/call: done\n    \
                          server demo request elicitation/create: accepted\n";
            assert!(tree.contains(nested), "{tree}");
        } else {
            assert_eq!(tree.matches("server demo request tools/call").count(), 2, "{tree}");
        }
    }
}

#[tokio::test]
async fn secrets_are_masked_in_messages_and_copies_and_not_found() {
    let site = site(None).await;
    let arguments = json!({"text":"say hunter2-secret","api_key":"topsecretvalue"});
    let call = site.call("echo", arguments).await;
    site.result(call).await;
    let message = site.query(json!({"query":"message","seq":call})).await;
    let text = message["text"].as_str().unwrap();
    assert!(!text.contains("hunter2") && !text.contains("topsecretvalue"), "{text}");
    assert!(message["masked"].as_u64() >= Some(2));
    for form in ["command", "curl", "json", "transcript"] {
        let copied = site.query(json!({"query":"copy","seq":call,"as":form})).await;
        let text = copied["text"].as_str().unwrap();
        assert!(!text.contains("hunter2") && text.contains("***"), "{form}: {text}");
        // The result repeats the value where no name marks it; only the transcript has the result.
        assert!(form == "transcript" || !text.contains("topsecretvalue"), "{form}: {text}");
    }
    for text in ["hunter2", "topsecret"] {
        let found = site.query(json!({"query":"find","text":text})).await;
        assert!(!found["seqs"].as_array().unwrap().contains(&json!(call)), "{text} {found}");
    }
    let found = site.query(json!({"query":"find","text":"SAY "})).await;
    assert!(found["seqs"].as_array().unwrap().contains(&json!(call)), "{found}");
}

#[tokio::test]
async fn a_copied_command_is_inert() {
    let site = site(None).await;
    let call = site.call("echo", json!({"text":"'; rm -rf / #\n\u{1b}[2J"})).await;
    site.result(call).await;
    let copied = site.query(json!({"query":"copy","seq":call,"as":"command"})).await;
    let text = copied["text"].as_str().unwrap();
    assert!(text.starts_with("bowline call up "), "{text}");
    assert_eq!(text.lines().count(), 1);
    assert!(!text.contains('\u{1b}'));
}

#[tokio::test]
async fn cancel_cancels_and_clear_forgets() {
    let site = site(None).await;
    let call = site.call("wait", json!({"text":"x"})).await;
    assert_eq!(site.query(json!({"query":"result","call":call})).await["verdict"], "running");
    assert_eq!(site.act(json!({"action":"cancel","call":call})).await.0, StatusCode::OK);
    assert_eq!(site.result(call).await["verdict"], "cancelled");
    assert_eq!(site.act(json!({"action":"cancel","call":call})).await.0, StatusCode::NOT_FOUND);
    assert_eq!(site.act(json!({"action":"clear"})).await.0, StatusCode::OK);
    let message = post("/api/query", Some(&site.key), &json!({"query":"message","seq":call}));
    assert_eq!(site.send(message).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_stream_starts_with_the_launch_and_resumes_at_its_cursor() {
    let site = site(None).await;
    let call = site.call("echo", json!({"text":"one"})).await;
    site.result(call).await;
    let last = site.query(json!({"query":"overview"})).await["buffer"]["last"].as_u64().unwrap();
    let mut body = site.raw(get(&format!("/api/events?after={last}"), Some(&site.key))).await.into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    let lines = first.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
    assert!(lines[0]["run"].is_string() && lines[1]["changed"].is_object(), "{lines:?}");
    assert!(!lines.iter().any(|line| line.get("heads").is_some()), "{lines:?}");
    let next = site.call("echo", json!({"text":"two"})).await;
    loop {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let text = String::from_utf8(frame.to_vec()).unwrap();
        assert!(!text.contains(&format!("\"seq\":{last},")));
        if text.contains(&format!("\"seq\":{next},")) {
            break;
        }
    }
    assert!(site.send(get("/api/events?after=x", Some(&site.key))).await.0.is_client_error());
}

#[tokio::test]
async fn a_form_a_check_and_the_entries_describe_a_tool() {
    let site = site(None).await;
    let entries = site.query(json!({"query":"entries"})).await;
    let items = entries["servers"][0]["items"].as_array().unwrap();
    let echo = items.iter().find(|item| item["name"] == "echo").unwrap();
    assert_eq!((&echo["hints"], &echo["required"]), (&json!(["read-only"]), &json!(1)));
    let with = |members: Value| {
        let mut item = json!({"server":"demo","kind":"tool","name":"echo"});
        item.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        item
    };
    let plan = site.query(with(json!({"query":"form"}))).await;
    let fields = plan["root"]["input"]["fields"].as_array().unwrap();
    assert!(fields.iter().any(|field| field["name"] == "text" && field["required"] == true), "{plan}");
    let checked = site.query(with(json!({"query":"check","value":{"text":1}}))).await;
    assert_eq!(checked["problems"][0]["pointer"], "/text", "{checked}");
    let checked = site.query(with(json!({"query":"check","value":{"text":"a"}}))).await;
    assert_eq!(checked["problems"], json!([]));
}

#[tokio::test]
async fn resend_makes_a_new_call_for_the_same_tool() {
    let site = site(None).await;
    let call = site.call("echo", json!({"text":"one","api_key":"k"})).await;
    site.result(call).await;
    let (status, sent) = site.act(json!({"action":"resend","seq":call})).await;
    assert_eq!(status, StatusCode::OK, "{sent}");
    assert_eq!(first_text(&site.result(sent["call"].as_u64().unwrap()).await), "one k");
    let (_, sent) = site.act(json!({"action":"resend","seq":call,"arguments":{"text":"two"}})).await;
    assert_eq!(first_text(&site.result(sent["call"].as_u64().unwrap()).await), "two ");
}
