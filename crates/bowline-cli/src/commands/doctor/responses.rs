//! Checks the responses to requests with a known correct response.

use super::{
    facts::{Answer, Facts, Probe, ProbeKind},
    finding::{Finding, Level},
};
use bowline_types::error_code::{INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND};
use serde_json::{Value, json};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<Finding> = facts.probes.iter().filter_map(evaluate).collect();
    found.extend(cursors(facts));
    found.extend(calls(facts));
    found
}

/// Groups failed calls by reason.
fn calls(facts: &Facts) -> Vec<Finding> {
    let mut failed: Vec<(&str, Vec<String>)> = Vec::new();
    for call in &facts.calls {
        let Some(reason) = &call.failed else { continue };
        match failed.iter_mut().find(|(known, _)| known == reason) {
            Some((_, tools)) => tools.push(call.tool.clone()),
            None => failed.push((reason, vec![call.tool.clone()])),
        }
    }
    let advice = "respond to every call, and return results that match the tool's `outputSchema`";
    let finding = |(reason, tools)| Finding::new(Level::Error, "bad-call", reason, advice).at_all(tools);
    failed.into_iter().filter_map(finding).collect()
}

fn evaluate(probe: &Probe) -> Option<Finding> {
    let expected = |codes: &str, level: Level, check: &'static str, asked: &str, advice: &'static str| {
        let what = format!("{asked}: expected {codes}, got {}", probe.answer.describe());
        Some(Finding::new(level, check, what, advice))
    };
    let code = match &probe.answer {
        Answer::Error { code, .. } => Some(*code),
        Answer::Result(_) | Answer::None(_) => None,
    };
    let is_none = matches!(probe.answer, Answer::None(_));
    match probe.kind {
        ProbeKind::CallWithoutName | ProbeKind::UnknownPrompt if code == Some(INVALID_PARAMS) => None,
        ProbeKind::Ping if matches!(probe.answer, Answer::Result(_)) => None,
        ProbeKind::Ping => expected(
            "an empty result",
            Level::Error,
            "ping",
            "`ping`",
            "respond to pings: clients close the connection otherwise",
        ),
        ProbeKind::UnknownMethod if code == Some(METHOD_NOT_FOUND) => None,
        ProbeKind::UnknownMethod => expected(
            "error -32601",
            Level::Error,
            "unknown-method",
            "unknown method",
            "clients use this code to detect features, and newer clients to detect the protocol era",
        ),
        ProbeKind::CallWithoutName => expected(
            "error -32602",
            if is_none { Level::Error } else { Level::Warning },
            "invalid-params",
            "`tools/call` without a name",
            "validate the parameters and return this code",
        ),
        // Revisions up to 2025-06-18 allow both.
        ProbeKind::UnknownTool if code == Some(INVALID_PARAMS) || is_tool_error(&probe.answer) => None,
        ProbeKind::UnknownTool => expected(
            "error -32602",
            if is_none { Level::Error } else { Level::Warning },
            "unknown-tool",
            "unknown tool",
            "return this code, so that clients can tell it from an error of the tool",
        ),
        ProbeKind::UnknownPrompt => expected(
            "error -32602",
            if code.is_some() { Level::Hint } else { Level::Warning },
            "unknown-prompt",
            "unknown prompt",
            "return this code",
        ),
        ProbeKind::UnknownResource if matches!(code, Some(INVALID_PARAMS | RESOURCE_NOT_FOUND)) => None,
        ProbeKind::UnknownResource => expected(
            "error -32002 or, from 2026-07-28, -32602",
            if code.is_some() { Level::Hint } else { Level::Warning },
            "unknown-resource",
            "unknown resource",
            "return this code: an empty result looks like an empty resource",
        ),
        ProbeKind::BadCursor(_) => None,
        ProbeKind::AliveAfterwards if !is_none => None,
        ProbeKind::AliveAfterwards => expected(
            "a response",
            Level::Error,
            "dead-afterwards",
            "request after invalid requests",
            "do not close the connection after an invalid request",
        ),
    }
}

/// Finds lists that accept an invalid cursor.
fn cursors(facts: &Facts) -> Option<Finding> {
    let taken = |probe: &Probe| match (probe.kind, &probe.answer) {
        (ProbeKind::BadCursor(_), Answer::Error { code: INVALID_PARAMS, .. }) => None,
        (ProbeKind::BadCursor(kind), _) => Some(kind.method().to_owned()),
        _ => None,
    };
    let what = "an invalid cursor is not rejected with error -32602";
    let advice = "reject it: a client with an outdated cursor would read the first page again";
    Finding::new(Level::Hint, "bad-cursor", what, advice)
        .at_all(facts.probes.iter().filter_map(taken).collect())
}

fn is_tool_error(answer: &Answer) -> bool {
    matches!(answer, Answer::Result(result) if result.get("isError").unwrap_or(&Value::Null) == &json!(true))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            facts::{Call, ListKind},
            finding::summary_lines,
        },
        *,
    };
    use expect_test::{Expect, expect};

    #[expect(clippy::needless_pass_by_value, reason = "an inline snapshot is made where it is checked")]
    fn check_one(kind: ProbeKind, answer: Answer, expected: Expect) {
        let mut facts = Facts::without_findings();
        facts.probes.push(Probe { kind, answer });
        expected.assert_eq(&summary_lines(&check(&facts)));
    }

    fn error(code: i64) -> Answer {
        Answer::Error { code, message: "no".into() }
    }

    #[test]
    fn correct_responses_have_no_findings() {
        let good = [
            (ProbeKind::Ping, Answer::Result(json!({}))),
            (ProbeKind::UnknownMethod, error(-32601)),
            (ProbeKind::CallWithoutName, error(-32602)),
            (ProbeKind::UnknownTool, error(-32602)),
            (ProbeKind::UnknownTool, Answer::Result(json!({ "isError": true }))),
            (ProbeKind::UnknownPrompt, error(-32602)),
            (ProbeKind::UnknownResource, error(-32002)),
            (ProbeKind::BadCursor(ListKind::Tools), error(-32602)),
            (ProbeKind::AliveAfterwards, Answer::Result(json!({}))),
        ];
        for (kind, answer) in good {
            check_one(kind, answer, expect![""]);
        }
    }

    #[test]
    fn wrong_responses_are_reported() {
        check_one(
            ProbeKind::UnknownMethod,
            error(-32600),
            expect!["error unknown-method: unknown method: expected error -32601, got error -32600 (no) []"],
        );
        check_one(
            ProbeKind::CallWithoutName,
            Answer::None("no response within 5 s".into()),
            expect![
                "error invalid-params: `tools/call` without a name: expected error -32602, got no response (no response within 5 s) []"
            ],
        );
        check_one(
            ProbeKind::UnknownTool,
            Answer::Result(json!({ "content": [] })),
            expect!["warning unknown-tool: unknown tool: expected error -32602, got a result []"],
        );
        check_one(
            ProbeKind::UnknownResource,
            Answer::Result(json!({})),
            expect![
                "warning unknown-resource: unknown resource: expected error -32002 or, from 2026-07-28, -32602, got a result []"
            ],
        );
        check_one(
            ProbeKind::BadCursor(ListKind::Tools),
            Answer::Result(json!({})),
            expect!["hint bad-cursor: an invalid cursor is not rejected with error -32602 [tools/list]"],
        );
        check_one(
            ProbeKind::Ping,
            error(-32601),
            expect!["error ping: `ping`: expected an empty result, got error -32601 (no) []"],
        );
    }

    #[test]
    fn results_that_violate_the_schema_are_reported() {
        let mut facts = Facts::without_findings();
        facts.calls.push(Call { tool: "now".into(), failed: None });
        facts.calls.push(Call { tool: "then".into(), failed: Some("/at: expected a text".into()) });
        facts.calls.push(Call { tool: "when".into(), failed: Some("/at: expected a text".into()) });
        facts.calls.push(Call { tool: "why".into(), failed: Some("no answer".into()) });
        expect![[r"
            error bad-call: /at: expected a text [then, when]
            error bad-call: no answer [why]"]]
        .assert_eq(&summary_lines(&check(&facts)));
    }
}
