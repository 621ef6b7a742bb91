//! Whether names are ones that every client takes.

use super::{
    facts::{Facts, ListKind, name_of},
    finding::{Finding, Level},
};
use serde_json::Value;

/// What the providers of models allow for the name of a function.
const LONGEST: usize = 64;
/// The same, once a client has put the server's name before it.
const LONGEST_WITH_PREFIX: usize = 60;
/// What the protocol recommends at most.
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
    let advice = "use letters, digits, `_` and `-` of ASCII: OpenAI, Anthropic and Gemini refuse a request with any other";
    Finding::new(Level::Warning, "name-characters", "a tool whose name some models refuse", advice)
        .at_all(tools_named(facts, |name| name.contains(strange)))
}

fn long(facts: &Facts) -> Option<Finding> {
    let level = if tools_named(facts, |name| name.len() > LONGEST_IN_PROTOCOL).is_empty() {
        Level::Warning
    } else {
        Level::Error
    };
    let what = format!("a tool whose name has more than {LONGEST} characters");
    Finding::new(level, "long-name", what, "shorten it: the providers of models refuse such names")
        .at_all(tools_named(facts, |name| name.len() > LONGEST))
}

/// Names that are too long only together with the server's.
fn long_with_prefix(facts: &Facts) -> Option<Finding> {
    let server = facts.info.as_ref().map_or(0, |(name, _)| name.len());
    let what = format!(
        "a tool whose name has more than {LONGEST_WITH_PREFIX} characters with the server's before it"
    );
    let advice = "shorten one of them: clients put the server's name before the tool's, and cut or drop what gets too long";
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
    Finding::new(Level::Error, "empty-name", "an entry whose name is empty", "give it a name")
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
    fn names_that_travel_are_not_mentioned() {
        check_one("read_file-2", expect![""]);
        check_one(&"x".repeat(55), expect![""]);
    }

    #[test]
    fn names_that_some_clients_refuse_are_told() {
        check_one(
            "files.read",
            expect!["warning name-characters: a tool whose name some models refuse [files.read]"],
        );
        check_one(
            "lire_é",
            expect!["warning name-characters: a tool whose name some models refuse [lire_é]"],
        );
        check_one("", expect!["error empty-name: an entry whose name is empty [tools/list]"]);
        check_one(
            &"x".repeat(56),
            expect![
                "hint long-name-with-prefix: a tool whose name has more than 60 characters with the server's before it […xxxxxx]"
            ],
        );
        check_one(
            &"x".repeat(65),
            expect!["warning long-name: a tool whose name has more than 64 characters […xxxxxxxxxxxxxxx]"],
        );
        check_one(
            &"x".repeat(129),
            expect![
                "error long-name: a tool whose name has more than 64 characters [……xxxxxxxxxxxxxxxxxxxxxxxxxxxxx]"
            ],
        );
    }
}
