//! Checks that every frame of the server is valid.

use super::{
    facts::{Facts, Seen, shortened},
    finding::{Finding, Level},
};
use bowline_client::Direction;
use bowline_types::{Method, MethodKind, Revision};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let advice = "the frame violates the protocol; see the specification of this revision";
    let mut asked: HashSet<String> = HashSet::new();
    let mut found: Vec<(String, Vec<String>, Vec<u64>)> = Vec::new();
    for Seen { direction, frame, number } in &facts.frames {
        match direction {
            Direction::Sent => {
                asked.extend(frame.get("id").filter(|_| frame.get("method").is_some()).map(Value::to_string));
            }
            Direction::Received => {
                for wrong in check_frame(frame, &asked, facts.revision) {
                    let place = shortened(&frame.to_string());
                    match found.iter_mut().find(|(known, ..)| *known == wrong) {
                        Some((_, places, numbers)) => {
                            places.push(place);
                            numbers.extend(number);
                        }
                        None => found.push((wrong, vec![place], number.iter().copied().collect())),
                    }
                }
            }
        }
    }
    let finding = |(what, places, messages)| {
        let finding = Finding::new(Level::Error, "bad-frame", what, advice).at_all(places);
        finding.map(|finding| Finding { messages, ..finding })
    };
    found.into_iter().filter_map(finding).collect()
}

/// Returns everything that is wrong with a frame.
fn check_frame(frame: &Value, asked: &HashSet<String>, revision: Revision) -> BTreeSet<String> {
    let mut wrong = BTreeSet::new();
    if let Value::Array(messages) = frame {
        if revision != Revision::V2025_03_26 {
            wrong.insert(format!("batch, which {revision} does not support"));
        }
        for message in messages {
            wrong.extend(check_frame(message, asked, revision));
        }
        return wrong;
    }
    let Some(members) = frame.as_object() else {
        wrong.insert("frame is not an object".to_owned());
        return wrong;
    };
    if members.get("jsonrpc") != Some(&json!("2.0")) {
        wrong.insert("frame without `\"jsonrpc\": \"2.0\"`".to_owned());
    }
    match (members.get("method"), members.get("result"), members.get("error")) {
        (Some(method), None, None) => wrong.extend(check_message(method, members.get("id"), revision)),
        (None, Some(result), None) => {
            wrong.extend(check_id(members.get("id"), asked));
            if !result.is_object() {
                wrong.insert("result is not an object".to_owned());
            }
        }
        (None, None, Some(error)) => {
            if members.get("id").is_some_and(|id| !id.is_null()) {
                wrong.extend(check_id(members.get("id"), asked));
            }
            if !error.get("code").is_some_and(Value::is_i64)
                || !error.get("message").is_some_and(Value::is_string)
            {
                wrong.insert("error without an integer `code` and a string `message`".to_owned());
            }
        }
        _ => {
            wrong.insert("frame is neither a request, a notification nor a response".to_owned());
        }
    }
    wrong
}

fn check_id(id: Option<&Value>, asked: &HashSet<String>) -> Option<String> {
    let Some(id) = id else { return Some("response without an id".to_owned()) };
    if asked.contains(&id.to_string()) {
        return None;
    }
    let other = match id {
        Value::String(text) => text.clone(),
        other => json!(other.to_string()).to_string(),
    };
    Some(if asked.contains(&other) {
        "response id has the wrong type (string instead of number, or vice versa)".to_owned()
    } else {
        "response to an unknown request".to_owned()
    })
}

fn check_message(method: &Value, id: Option<&Value>, revision: Revision) -> Option<String> {
    let Some(name) = method.as_str() else { return Some("method is not a string".to_owned()) };
    let Some(known) = Method::parse(name) else {
        // Unknown notifications may belong to extensions and are ignored.
        return id.map(|_| format!("unknown request `{name}`"));
    };
    if !known.direction_in(revision).is_some_and(bowline_types::Direction::from_server) {
        return Some(format!("`{name}` must not be sent by servers in {revision}"));
    }
    match (known.kind(), id) {
        (MethodKind::Request, None) => Some(format!("request `{name}` without an id")),
        (MethodKind::Notification, Some(_)) => Some(format!("notification `{name}` with an id")),
        (MethodKind::Request, Some(_)) if name != "ping" => {
            Some(format!("`{name}` sent although the client did not declare the capability"))
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
        let wrong = check_frame(&frame, &asked, Revision::V2025_06_18);
        assert_eq!(wrong.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{frame}");
    }

    #[test]
    fn valid_frames_have_no_findings() {
        check_one(json!({ "jsonrpc": "2.0", "id": 1, "result": {} }), &[]);
        check_one(json!({ "jsonrpc": "2.0", "id": "a", "error": { "code": -1, "message": "" } }), &[]);
        check_one(json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -1, "message": "" } }), &[]);
        check_one(json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": {} }), &[]);
        check_one(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }), &[]);
        check_one(json!({ "jsonrpc": "2.0", "method": "acme/news" }), &[]);
    }

    #[test]
    fn invalid_frames_are_reported() {
        check_one(json!({ "id": 1, "result": {} }), &["frame without `\"jsonrpc\": \"2.0\"`"]);
        check_one(
            json!({ "jsonrpc": "2.0", "id": "1", "result": {} }),
            &["response id has the wrong type (string instead of number, or vice versa)"],
        );
        check_one(
            json!({ "jsonrpc": "2.0", "id": 7, "result": [] }),
            &["response to an unknown request", "result is not an object"],
        );
        check_one(json!({ "jsonrpc": "2.0", "result": {} }), &["response without an id"]);
        check_one(
            json!({ "jsonrpc": "2.0", "id": 1, "result": {}, "error": {} }),
            &["frame is neither a request, a notification nor a response"],
        );
        check_one(
            json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": "x" } }),
            &["error without an integer `code` and a string `message`"],
        );
        check_one(json!({ "jsonrpc": "2.0", "id": 1, "method": "acme/do" }), &["unknown request `acme/do`"]);
        check_one(
            json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" }),
            &["`roots/list` sent although the client did not declare the capability"],
        );
        check_one(
            json!({ "jsonrpc": "2.0", "method": "tools/list" }),
            &["`tools/list` must not be sent by servers in 2025-06-18"],
        );
        check_one(json!([]), &["batch, which 2025-06-18 does not support"]);
        check_one(json!(1), &["frame is not an object"]);
    }

    #[test]
    fn the_same_finding_is_reported_once() {
        let mut facts = Facts::without_findings();
        let frame = json!({ "jsonrpc": "2.0", "id": 9, "result": {} });
        facts.frames = vec![Seen { direction: Direction::Received, frame, number: None }; 2];
        let found = check(&facts);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].places.len(), 2);
    }
}
