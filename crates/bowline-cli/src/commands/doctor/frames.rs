//! Whether every frame of the server is one that the protocol knows.

use super::{
    facts::{Facts, Seen, shortened},
    finding::{Finding, Level},
};
use bowline_client::Direction;
use bowline_types::{Method, MethodKind, Revision};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let advice = "the frame breaks the protocol: see the specification of the revision";
    let mut asked: HashSet<String> = HashSet::new();
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for Seen { direction, frame } in &facts.frames {
        match direction {
            Direction::Sent => {
                asked.extend(frame.get("id").filter(|_| frame.get("method").is_some()).map(Value::to_string));
            }
            Direction::Received => {
                for wrong in judge(frame, &asked, facts.revision) {
                    let place = shortened(&frame.to_string());
                    match found.iter_mut().find(|(known, _)| *known == wrong) {
                        Some((_, places)) => places.push(place),
                        None => found.push((wrong, vec![place])),
                    }
                }
            }
        }
    }
    let finding = |(what, places)| Finding::new(Level::Error, "bad-frame", what, advice).at_all(places);
    found.into_iter().filter_map(finding).collect()
}

/// Everything that is wrong with a frame of the server.
fn judge(frame: &Value, asked: &HashSet<String>, revision: Revision) -> BTreeSet<String> {
    let mut wrong = BTreeSet::new();
    if let Value::Array(messages) = frame {
        if revision != Revision::V2025_03_26 {
            wrong.insert(format!("a batch, which {revision} does not have"));
        }
        for message in messages {
            wrong.extend(judge(message, asked, revision));
        }
        return wrong;
    }
    let Some(members) = frame.as_object() else {
        wrong.insert("a frame that is no object".to_owned());
        return wrong;
    };
    if members.get("jsonrpc") != Some(&json!("2.0")) {
        wrong.insert("a frame without `\"jsonrpc\": \"2.0\"`".to_owned());
    }
    match (members.get("method"), members.get("result"), members.get("error")) {
        (Some(method), None, None) => wrong.extend(judge_message(method, members.get("id"), revision)),
        (None, Some(result), None) => {
            wrong.extend(judge_id(members.get("id"), asked));
            if !result.is_object() {
                wrong.insert("a result that is no object".to_owned());
            }
        }
        (None, None, Some(error)) => {
            if members.get("id").is_some_and(|id| !id.is_null()) {
                wrong.extend(judge_id(members.get("id"), asked));
            }
            if !error.get("code").is_some_and(Value::is_i64)
                || !error.get("message").is_some_and(Value::is_string)
            {
                wrong.insert("an error without an integer `code` and a text `message`".to_owned());
            }
        }
        _ => {
            wrong.insert("a frame that is neither a message nor one answer".to_owned());
        }
    }
    wrong
}

fn judge_id(id: Option<&Value>, asked: &HashSet<String>) -> Option<String> {
    let Some(id) = id else { return Some("an answer without an id".to_owned()) };
    if asked.contains(&id.to_string()) {
        return None;
    }
    let other = match id {
        Value::String(text) => text.clone(),
        other => json!(other.to_string()).to_string(),
    };
    Some(if asked.contains(&other) {
        "an answer whose id is a text for a number, or a number for a text".to_owned()
    } else {
        "an answer to nothing that was asked".to_owned()
    })
}

fn judge_message(method: &Value, id: Option<&Value>, revision: Revision) -> Option<String> {
    let Some(name) = method.as_str() else { return Some("a method that is no text".to_owned()) };
    let Some(known) = Method::parse(name) else {
        // Notifications of extensions are ignored by whoever does not know them.
        return id.map(|_| format!("the request `{name}`, which no revision has"));
    };
    if !known.direction_in(revision).is_some_and(bowline_types::Direction::from_server) {
        return Some(format!("`{name}`, which servers do not send in {revision}"));
    }
    match (known.kind(), id) {
        (MethodKind::Request, None) => Some(format!("the request `{name}` without an id")),
        (MethodKind::Notification, Some(_)) => Some(format!("the notification `{name}` with an id")),
        (MethodKind::Request, Some(_)) if name != "ping" => {
            Some(format!("`{name}`, although the client did not declare that it can"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "values are made where they are checked")]
    fn check_one(frame: Value, expected: &[&str]) {
        let asked = HashSet::from(["1".to_owned(), "\"a\"".to_owned()]);
        let wrong = judge(&frame, &asked, Revision::V2025_06_18);
        assert_eq!(wrong.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{frame}");
    }

    #[test]
    fn good_frames_pass() {
        check_one(json!({ "jsonrpc": "2.0", "id": 1, "result": {} }), &[]);
        check_one(json!({ "jsonrpc": "2.0", "id": "a", "error": { "code": -1, "message": "" } }), &[]);
        check_one(json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -1, "message": "" } }), &[]);
        check_one(json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": {} }), &[]);
        check_one(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }), &[]);
        check_one(json!({ "jsonrpc": "2.0", "method": "acme/news" }), &[]);
    }

    #[test]
    fn bad_frames_are_told() {
        check_one(json!({ "id": 1, "result": {} }), &["a frame without `\"jsonrpc\": \"2.0\"`"]);
        check_one(
            json!({ "jsonrpc": "2.0", "id": "1", "result": {} }),
            &["an answer whose id is a text for a number, or a number for a text"],
        );
        check_one(
            json!({ "jsonrpc": "2.0", "id": 7, "result": [] }),
            &["a result that is no object", "an answer to nothing that was asked"],
        );
        check_one(json!({ "jsonrpc": "2.0", "result": {} }), &["an answer without an id"]);
        check_one(
            json!({ "jsonrpc": "2.0", "id": 1, "result": {}, "error": {} }),
            &["a frame that is neither a message nor one answer"],
        );
        check_one(
            json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": "x" } }),
            &["an error without an integer `code` and a text `message`"],
        );
        check_one(
            json!({ "jsonrpc": "2.0", "id": 1, "method": "acme/do" }),
            &["the request `acme/do`, which no revision has"],
        );
        check_one(
            json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" }),
            &["`roots/list`, although the client did not declare that it can"],
        );
        check_one(
            json!({ "jsonrpc": "2.0", "method": "tools/list" }),
            &["`tools/list`, which servers do not send in 2025-06-18"],
        );
        check_one(json!([]), &["a batch, which 2025-06-18 does not have"]);
        check_one(json!(1), &["a frame that is no object"]);
    }

    #[test]
    fn the_same_mistake_is_told_once() {
        let mut facts = Facts::quiet();
        let frame = json!({ "jsonrpc": "2.0", "id": 9, "result": {} });
        facts.frames = vec![Seen { direction: Direction::Received, frame }; 2];
        let found = check(&facts);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].places.len(), 2);
    }
}
