//! Checks that names are accepted by all clients.

use super::{
    facts::{Facts, ListKind, name_of},
    finding::{Finding, Level},
};
use serde_json::Value;

/// The maximum length of a function name at model providers.
const LONGEST: usize = 64;
/// The maximum length with the server name as a prefix.
const LONGEST_WITH_PREFIX: usize = 60;
/// The maximum length that the protocol recommends.
const LONGEST_IN_PROTOCOL: usize = 128;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let found = [characters(facts), long(facts), long_with_prefix(facts), empty(facts)];
    found.into_iter().flatten().collect()
}

fn tools_named(facts: &Facts, wrong: impl Fn(&str) -> bool) -> Vec<String> {
    let is_wrong = |tool: &&Value| tool.get("name").and_then(Value::as_str).is_some_and(&wrong);
    facts.tools().filter(is_wrong).map(name_of).collect()
}

fn characters(facts: &Facts) -> Option<Finding> {
    let strange = |letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '_' | '-');
    let advice =
        "use only ASCII letters, digits, `_` and `-`: OpenAI, Anthropic and Gemini reject other characters";
    Finding::new(Level::Warning, "name-characters", "tool name is rejected by some model providers", advice)
        .at_all(tools_named(facts, |name| name.contains(strange)))
}

fn long(facts: &Facts) -> Option<Finding> {
    let level = if tools_named(facts, |name| name.len() > LONGEST_IN_PROTOCOL).is_empty() {
        Level::Warning
    } else {
        Level::Error
    };
    let what = format!("tool name has more than {LONGEST} characters");
    Finding::new(level, "long-name", what, "shorten it: model providers reject longer names")
        .at_all(tools_named(facts, |name| name.len() > LONGEST))
}

/// Finds names that are too long only with the server name as a prefix.
fn long_with_prefix(facts: &Facts) -> Option<Finding> {
    let server = facts.info.as_ref().map_or(0, |(name, _)| name.len());
    let what =
        format!("tool name has more than {LONGEST_WITH_PREFIX} characters with the server name as a prefix");
    let advice =
        "shorten one of them: clients prefix tool names with the server name and cut or drop long names";
    Finding::new(Level::Hint, "long-name-with-prefix", what, advice).at_all(tools_named(facts, |name| {
        name.len() <= LONGEST && name.len() + server + 1 > LONGEST_WITH_PREFIX
    }))
}

fn empty(facts: &Facts) -> Option<Finding> {
    let nameless = ListKind::ALL.into_iter().flat_map(|kind| {
        let is_empty = move |entry: &&Value| {
            entry.get("name").and_then(Value::as_str).is_some_and(|name| name.trim().is_empty())
        };
        facts.list(kind).filter(is_empty).map(move |_| kind.method().to_owned())
    });
    Finding::new(Level::Error, "empty-name", "entry with an empty name", "give it a name")
        .at_all(nameless.collect())
}

#[cfg(test)]
mod tests {
    use super::{super::finding::summary_lines, *};
    use expect_test::{Expect, expect};
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "an inline snapshot is made where it is checked")]
    fn check_one(name: &str, expected: Expect) {
        let facts = Facts::with_tools(json!([{ "name": name }]));
        expected.assert_eq(&summary_lines(&check(&facts)).replace(&"x".repeat(50), "…"));
    }

    #[test]
    fn portable_names_have_no_findings() {
        check_one("read_file-2", expect![""]);
        check_one(&"x".repeat(55), expect![""]);
    }

    #[test]
    fn names_that_some_clients_reject_are_reported() {
        check_one(
            "files.read",
            expect!["warning name-characters: tool name is rejected by some model providers [files.read]"],
        );
        check_one(
            "lire_é",
            expect!["warning name-characters: tool name is rejected by some model providers [lire_é]"],
        );
        check_one("", expect!["error empty-name: entry with an empty name [tools/list]"]);
        check_one(
            &"x".repeat(56),
            expect![
                "hint long-name-with-prefix: tool name has more than 60 characters with the server name as a prefix […xxxxxx]"
            ],
        );
        check_one(
            &"x".repeat(65),
            expect!["warning long-name: tool name has more than 64 characters […xxxxxxxxxxxxxxx]"],
        );
        check_one(
            &"x".repeat(129),
            expect![
                "error long-name: tool name has more than 64 characters [……xxxxxxxxxxxxxxxxxxxxxxxxxxxxx]"
            ],
        );
    }
}
