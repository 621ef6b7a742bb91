//! A call that becomes a task is one tree, with what was said about the task.

use crate::support::site;
use bowline_types::Revision;
use serde_json::{Value, json};

/// Collects what a tree says about tasks, in order.
fn notes(node: &Value, found: &mut Vec<(u64, String, String)>) {
    let heads = [&node["head"], &node["end"]].into_iter().chain(node["notices"].as_array().unwrap());
    for head in heads.filter(|head| head["task"].is_object()) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (seq, method) = (head["seq"].as_u64().unwrap(), text(&head["method"]));
        found.push((seq, method, text(&head["task"]["status"])));
    }
    for child in node["children"].as_array().unwrap() {
        notes(child, found);
    }
}

#[tokio::test]
async fn a_call_that_becomes_a_task_is_one_tree() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let site = site(Some(revision)).await;
        let call = site.call("job", json!({"text":"bread, hunter2-secret"})).await;
        let result = site.result(call).await;
        assert_eq!(result["parts"][0]["source"]["text"], "made bread, ***", "{revision}: {result}");
        let tree = site.query(json!({"query":"call","call":call})).await;
        assert!(!tree.to_string().contains("hunter2"));
        let mut found = Vec::new();
        notes(&tree["root"], &mut found);
        found.sort();
        let (first, last) = (found.first().unwrap(), found.iter().rfind(|(.., status)| !status.is_empty()));
        assert_eq!((first.1.as_str(), first.2.as_str()), ("tools/call", "working"), "{revision}: {found:?}");
        assert_eq!(last.unwrap().2, "completed", "{revision}: {found:?}");
        assert!(found.iter().any(|(_, method, _)| method.starts_with("tasks/")), "{revision}: {found:?}");
        assert_eq!(result["task"]["status"], "completed", "{revision}: {result}");
    }
}

#[tokio::test]
async fn other_results_are_no_tasks() {
    let site = site(None).await;
    let call = site.call("echo", json!({"text":"{\"taskId\":\"x\"}"})).await;
    let result = site.result(call).await;
    assert_eq!(result.get("task"), None, "{result}");
}
