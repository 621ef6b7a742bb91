//! Checks the handshake: supported revisions, early messages, and server information.

use super::{
    facts::{Facts, shortened},
    finding::{Finding, Level},
};
use bowline_client::Direction;
use bowline_types::Revision;
use serde_json::Value;

/// The maximum length of instructions.
const INSTRUCTIONS: usize = 8_000;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let mut found = revisions(facts);
    found.extend(early(facts));
    found.extend(identity(facts));
    found
}

fn revisions(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    let answered: Vec<Revision> = facts
        .revisions
        .iter()
        .filter_map(|(revision, agreed)| (agreed.as_ref() == Ok(revision)).then_some(*revision))
        .collect();
    let Some(newest) = answered.last() else { return found };
    if *newest < Revision::V2025_06_18 {
        let what = format!("the newest supported revision is {newest}");
        let advice = "update the SDK: clients drop support for revisions before 2025-06-18 first";
        found.push(Finding::new(Level::Warning, "old-revision", what, advice));
    } else if *newest < Revision::LATEST {
        let what = format!("the newest revision, {}, is not supported", Revision::LATEST);
        let advice = "no action needed yet: clients fall back to an older revision";
        found.push(Finding::new(Level::Hint, "newest-revision", what, advice));
    }
    let gone: Vec<String> = facts
        .revisions
        .iter()
        .filter(|(revision, agreed)| revision.is_legacy() && revision < newest && agreed.is_err())
        .map(|(revision, agreed)| {
            let reason = agreed.as_ref().err().map_or("", String::as_str);
            format!("{revision}: {}", shortened(reason))
        })
        .collect();
    let what = "older clients cannot connect";
    let advice = "respond to `initialize` with the requested revision if it is supported, and with the newest one otherwise";
    // Supporting only the modern era is a valid choice. Failing in some legacy revisions is not.
    let any_legacy = answered.iter().any(|revision| revision.is_legacy());
    found
        .extend(Finding::new(Level::Hint, "older-clients", what, advice).at_all(gone).filter(|_| any_legacy));
    found
}

/// Finds messages before the response to `initialize`. Only logs and pings are allowed.
fn early(facts: &Facts) -> Option<Finding> {
    let mut early = Vec::new();
    let mut asked = Value::Null;
    for seen in &facts.frames {
        let method = seen.frame.get("method").and_then(Value::as_str);
        match seen.direction {
            Direction::Sent if method == Some("initialize") => {
                asked = seen.frame.get("id").cloned().unwrap_or_default();
            }
            Direction::Sent => {}
            Direction::Received if method.is_none() && seen.frame.get("id") == Some(&asked) => break,
            Direction::Received => {
                let allowed = ["ping", "notifications/message"];
                early.extend(
                    method.filter(|method| !allowed.contains(method)).map(|method| format!("`{method}`")),
                );
            }
        }
    }
    let advice = "send only logs and pings before `notifications/initialized`";
    let finding =
        Finding::new(Level::Error, "early-messages", "sends messages before initialization", advice);
    finding.at_all(early).filter(|_| facts.revision.is_legacy())
}

fn identity(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    let empty = facts.info.as_ref().is_none_or(|(name, version)| name.is_empty() || version.is_empty());
    if empty {
        let advice = "set `serverInfo`: clients display it, and bug reports need it";
        found.push(Finding::new(Level::Hint, "no-identity", "no name and version", advice));
    }
    let length = facts.instructions.as_ref().map_or(0, |text| text.chars().count());
    if length > INSTRUCTIONS {
        let what = format!("instructions have {length} characters");
        let advice = "shorten them: every conversation includes them";
        found.push(Finding::new(Level::Hint, "long-instructions", what, advice));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{
        super::{facts::Seen, finding::summary_lines},
        *,
    };
    use expect_test::{Expect, expect};
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "an inline snapshot is made where it is checked")]
    fn check_one(change: impl FnOnce(&mut Facts), expected: Expect) {
        let mut facts = Facts::without_findings();
        facts.revisions = Revision::ALL.map(|revision| (revision, Ok(revision))).to_vec();
        change(&mut facts);
        expected.assert_eq(&summary_lines(&check(&facts)));
    }

    #[test]
    fn missing_revisions_are_reported() {
        check_one(|_| {}, expect![""]);
        check_one(
            |facts| facts.revisions[4].1 = Err("method not found".into()),
            expect!["hint newest-revision: the newest revision, 2026-07-28, is not supported []"],
        );
        check_one(
            |facts| {
                for place in 2..5 {
                    facts.revisions[place].1 = Ok(Revision::V2025_03_26);
                }
            },
            expect!["warning old-revision: the newest supported revision is 2025-03-26 []"],
        );
        check_one(
            |facts| facts.revisions[0].1 = Err("no\nway".into()),
            expect!["hint older-clients: older clients cannot connect [2024-11-05: no way]"],
        );
    }

    #[test]
    fn early_messages_are_reported() {
        let sent = |frame| Seen { direction: Direction::Sent, frame, number: None };
        let received = |frame| Seen { direction: Direction::Received, frame, number: None };
        check_one(
            |facts| {
                facts.frames = vec![
                    sent(json!({ "id": 1, "method": "initialize" })),
                    received(json!({ "method": "notifications/message" })),
                    received(json!({ "id": 1, "method": "roots/list" })),
                    received(json!({ "id": 1, "result": {} })),
                    received(json!({ "method": "notifications/tools/list_changed" })),
                ];
            },
            expect!["error early-messages: sends messages before initialization [`roots/list`]"],
        );
    }

    #[test]
    fn missing_server_information_is_reported() {
        check_one(
            |facts| {
                facts.info = Some(("x".into(), String::new()));
                facts.instructions = Some("x".repeat(8_001));
            },
            expect![[r"
                hint no-identity: no name and version []
                hint long-instructions: instructions have 8001 characters []"]],
        );
    }
}
