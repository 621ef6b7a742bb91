//! Checks the lists of a server: declared capabilities, entries, and size.

use super::{
    facts::{Answer, Facts, List, ListKind, name_of},
    finding::{Finding, Level},
};
use bowline_search::estimate_tokens;
use bowline_types::{Prompt, RawJson, Resource, ResourceTemplate, Tool, error_code::METHOD_NOT_FOUND};
use serde_json::Value;
use std::collections::BTreeMap;

/// With more tools, models choose worse and some clients cut the list.
const MANY_TOOLS: usize = 40;
/// The maximum size of all tools, in tokens.
const MANY_TOKENS: usize = 10_000;
/// The maximum size of one tool, in tokens.
const LARGE_TOOL: usize = 1_500;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<Finding> = facts
        .lists
        .iter()
        .flat_map(|list| [answer(list), malformed(list), duplicates(list)].into_iter().flatten())
        .collect();
    found.extend(size(facts));
    found
}

/// Checks a list against the declared capabilities.
fn answer(list: &List) -> Option<Finding> {
    let method = list.kind.method();
    match (&list.failed, list.declared) {
        (None, false) if !list.items.is_empty() => {
            let what = format!(
                "`{method}` returns {} entries, but `{}` is not declared",
                list.items.len(),
                list.kind.capability()
            );
            Some(Finding::new(
                Level::Warning,
                "undeclared-list",
                what,
                "declare the capability: most clients do not request the list otherwise",
            ))
        }
        (None, _) | (Some(_), false) => None,
        // Many servers with resources do not implement templates.
        (Some(Answer::Error { code: METHOD_NOT_FOUND, .. }), true) if list.kind == ListKind::Templates => {
            let what = format!("`{method}` returns error -32601, but `resources` is declared");
            Some(Finding::new(
                Level::Hint,
                "no-templates",
                what,
                "return an empty list: some clients treat the error as a failure",
            ))
        }
        (Some(failed), true) => {
            let what = format!(
                "`{method}` returns {}, but `{}` is declared",
                failed.describe(),
                list.kind.capability()
            );
            Some(Finding::new(
                Level::Error,
                "broken-list",
                what,
                "return a list, even if it is empty, or do not declare the capability",
            ))
        }
    }
}

/// Finds entries that clients cannot parse.
fn malformed(list: &List) -> Option<Finding> {
    let unreadable = |entry: &&Value| {
        let raw = RawJson::from((*entry).clone());
        match list.kind {
            ListKind::Tools => raw.decode::<Tool>().is_err(),
            ListKind::Prompts => raw.decode::<Prompt>().is_err(),
            ListKind::Resources => raw.decode::<Resource>().is_err(),
            ListKind::Templates => raw.decode::<ResourceTemplate>().is_err(),
        }
    };
    let what = format!("`{}` has malformed entries", list.kind.method());
    let advice = "fix them: clients drop such entries or the whole list";
    let places = list.items.iter().filter(unreadable).map(name_of).collect();
    Finding::new(Level::Error, "bad-entry", what, advice).at_all(places)
}

/// Finds duplicate entries.
fn duplicates(list: &List) -> Option<Finding> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in &list.items {
        if let Some(name) = entry.get(list.kind.key()).and_then(Value::as_str) {
            *counts.entry(name).or_default() += 1;
        }
    }
    let what = format!("more than one {} with the same `{}`", list.kind.one(), list.kind.key());
    let places = counts
        .into_iter()
        .filter(|(_, count)| *count > 1)
        .map(|(name, _)| bowline_text::visible(name))
        .collect();
    Finding::new(Level::Error, "duplicate", what, "rename or remove duplicates: only one of them can be used")
        .at_all(places)
}

/// Checks the size of the tool list.
fn size(facts: &Facts) -> Vec<Finding> {
    let sizes: Vec<(String, usize)> =
        facts.tools().map(|tool| (name_of(tool), estimate_tokens(tool.to_string()))).collect();
    let total: usize = sizes.iter().map(|(_, size)| size).sum();
    let mut found = Vec::new();
    if sizes.len() > MANY_TOOLS {
        let what = format!("{} tools", sizes.len());
        let advice = "offer fewer tools, or let users choose sets: some clients cut the list at 40 to 128, and models choose worse among many";
        found.push(Finding::new(Level::Warning, "many-tools", what, advice));
    }
    if total > MANY_TOKENS {
        let what = format!("the tools use about {total} tokens in every conversation");
        found.push(Finding::new(Level::Warning, "many-tokens", what, "shorten descriptions and schemas"));
    }
    let large: Vec<String> = sizes
        .iter()
        .filter(|(_, size)| *size > LARGE_TOOL)
        .map(|(name, size)| format!("{name} ({size} tokens)"))
        .collect();
    let advice = "shorten its description and schema, or split it";
    found.extend(Finding::new(Level::Hint, "large-tool", "tool definition is large", advice).at_all(large));
    found
}

/// Returns the total size of the tools in tokens.
pub(super) fn tokens(facts: &Facts) -> usize {
    facts.tools().map(|tool| estimate_tokens(tool.to_string())).sum()
}

#[cfg(test)]
mod tests {
    use super::{super::finding::summary_lines, *};
    use expect_test::{Expect, expect};
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "an inline snapshot is made where it is checked")]
    fn check_one(list: List, expected: Expect) {
        let mut facts = Facts::without_findings();
        facts.lists.push(list);
        expected.assert_eq(&summary_lines(&check(&facts)));
    }

    #[expect(clippy::needless_pass_by_value, reason = "values are made where they are checked")]
    fn list(kind: ListKind, items: Value) -> List {
        List { kind, declared: true, items: items.as_array().cloned().unwrap_or_default(), failed: None }
    }

    fn failed(kind: ListKind, code: i64) -> List {
        List { failed: Some(Answer::Error { code, message: "no".into() }), ..list(kind, json!([])) }
    }

    fn tool(name: &str) -> Value {
        json!({ "name": name, "inputSchema": { "type": "object" } })
    }

    #[test]
    fn lists_must_match_the_capabilities() {
        check_one(list(ListKind::Tools, json!([tool("a")])), expect![""]);
        let undeclared = List { declared: false, ..list(ListKind::Tools, json!([tool("a")])) };
        check_one(
            undeclared,
            expect![
                "warning undeclared-list: `tools/list` returns 1 entries, but `tools` is not declared []"
            ],
        );
        check_one(List { declared: false, ..failed(ListKind::Tools, -32601) }, expect![""]);
        check_one(
            failed(ListKind::Prompts, -32601),
            expect![
                "error broken-list: `prompts/list` returns error -32601 (no), but `prompts` is declared []"
            ],
        );
        check_one(
            failed(ListKind::Templates, -32601),
            expect![
                "hint no-templates: `resources/templates/list` returns error -32601, but `resources` is declared []"
            ],
        );
    }

    #[test]
    fn malformed_and_duplicate_entries_are_reported() {
        check_one(
            list(ListKind::Tools, json!([tool("a"), tool("a"), { "name": "b" }, {}])),
            expect![[r"
                error bad-entry: `tools/list` has malformed entries [b, (unnamed)]
                error duplicate: more than one tool with the same `name` [a]"]],
        );
        check_one(
            list(ListKind::Resources, json!([{ "name": "x", "uri": "a:1" }, { "name": "x", "uri": "a:2" }])),
            expect![""],
        );
    }

    #[test]
    fn oversized_tool_lists_are_reported() {
        let many: Vec<Value> = (0..41).map(|number| tool(&format!("t{number}"))).collect();
        check_one(list(ListKind::Tools, many.into()), expect!["warning many-tools: 41 tools []"]);
        let mut large = tool("large");
        large["description"] = "word ".repeat(1_600).into();
        check_one(
            list(ListKind::Tools, json!([large])),
            expect!["hint large-tool: tool definition is large [large (1615 tokens)]"],
        );
    }
}
