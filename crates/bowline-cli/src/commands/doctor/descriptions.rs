//! Checks descriptions: missing, short, or with hidden characters.

use super::{
    facts::{Facts, ListKind, name_of},
    finding::{Finding, Level},
};
use bowline_text::hidden_characters;
use serde_json::Value;

/// The minimum length of a description.
const SHORT: usize = 10;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let found = [hidden(facts), missing(facts), short(facts), parameters(facts), annotations(facts)];
    found.into_iter().flatten().collect()
}

/// Finds characters that a model sees and a person does not.
fn hidden(facts: &Facts) -> Option<Finding> {
    let mut places: Vec<String> = ListKind::ALL
        .into_iter()
        .flat_map(|kind| facts.list(kind))
        .filter(|entry| hides(entry))
        .map(name_of)
        .collect();
    if facts.instructions.as_ref().is_some_and(|text| hidden_characters(text) > 0) {
        places.push("instructions".to_owned());
    }
    let advice = "remove them: they can hide instructions to the model";
    Finding::new(Level::Error, "hidden-characters", "text contains invisible characters", advice)
        .at_all(places)
}

fn hides(value: &Value) -> bool {
    match value {
        Value::String(text) => hidden_characters(text) > 0,
        Value::Array(items) => items.iter().any(hides),
        Value::Object(members) => {
            members.iter().any(|(name, value)| hidden_characters(name) > 0 || hides(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn description(entry: &Value) -> &str {
    entry.get("description").and_then(Value::as_str).unwrap_or_default().trim()
}

fn missing(facts: &Facts) -> Option<Finding> {
    let places = facts.tools().filter(|tool| description(tool).is_empty()).map(name_of).collect();
    let advice = "describe what it does, when to use it and what it returns";
    Finding::new(Level::Warning, "no-description", "tool has no description", advice).at_all(places)
}

fn short(facts: &Facts) -> Option<Finding> {
    let is_short = |tool: &&Value| (1..SHORT).contains(&description(tool).chars().count());
    let places = facts.tools().filter(is_short).map(name_of).collect();
    Finding::new(
        Level::Hint,
        "short-description",
        "tool description is very short",
        "describe when to use it and what it returns",
    )
    .at_all(places)
}

fn parameters(facts: &Facts) -> Option<Finding> {
    let mut places = Vec::new();
    for tool in facts.tools() {
        let Some(properties) = tool.pointer("/inputSchema/properties").and_then(Value::as_object) else {
            continue;
        };
        let bare = properties.iter().filter(|(_, schema)| {
            description(schema).is_empty() && schema.get("$ref").is_none() && schema.get("enum").is_none()
        });
        places.extend(bare.map(|(name, _)| format!("{}.{}", name_of(tool), bowline_text::visible(name))));
    }
    Finding::new(
        Level::Hint,
        "undescribed-parameter",
        "parameter has no description",
        "describe its meaning and format, with an example",
    )
    .at_all(places)
}

fn annotations(facts: &Facts) -> Option<Finding> {
    let bare = |tool: &&Value| {
        let hint =
            |name: &str| tool.get("annotations").and_then(|annotations| annotations.get(name)).is_some();
        !hint("readOnlyHint") && !hint("destructiveHint")
    };
    let places = facts.tools().filter(bare).map(name_of).collect();
    let advice = "set `readOnlyHint` or `destructiveHint`: otherwise clients assume that the tool is destructive and ask for every call";
    Finding::new(Level::Hint, "no-annotations", "tool has no `readOnlyHint` or `destructiveHint`", advice)
        .at_all(places)
}

#[cfg(test)]
mod tests {
    use super::{super::finding::summary_lines, *};
    use expect_test::{Expect, expect};
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "an inline snapshot is made where it is checked")]
    fn check_one(tool: Value, expected: Expect) {
        expected.assert_eq(&summary_lines(&check(&Facts::with_tools(json!([tool])))));
    }

    #[test]
    fn a_well_described_tool_has_no_findings() {
        check_one(
            json!({
                "name": "a",
                "description": "Reads a file.\nGives its text.",
                "annotations": { "readOnlyHint": true },
                "inputSchema": { "properties": { "path": { "description": "Where it is." } } },
            }),
            expect![""],
        );
    }

    #[test]
    fn missing_descriptions_are_reported() {
        check_one(
            json!({ "name": "a", "inputSchema": { "properties": { "path": { "type": "string" } } } }),
            expect![[r"
                warning no-description: tool has no description [a]
                hint undescribed-parameter: parameter has no description [a.path]
                hint no-annotations: tool has no `readOnlyHint` or `destructiveHint` [a]"]],
        );
        check_one(
            json!({ "name": "a", "description": "Adds.", "annotations": { "readOnlyHint": true } }),
            expect!["hint short-description: tool description is very short [a]"],
        );
    }

    // V-100
    #[test]
    fn hidden_characters_are_reported() {
        check_one(
            json!({
                "name": "a",
                "description": "Adds two numbers.",
                "annotations": { "readOnlyHint": true },
                "inputSchema": { "properties": { "n": { "description": "A number.\u{e0041}\u{e0042}" } } },
            }),
            expect!["error hidden-characters: text contains invisible characters [a]"],
        );
        let mut facts = Facts::without_findings();
        facts.instructions = Some("a\u{202e}b".into());
        expect!["error hidden-characters: text contains invisible characters [instructions]"]
            .assert_eq(&summary_lines(&check(&facts)));
    }
}
