//! Prints the findings as text or JSON.

use super::{
    facts::{Facts, List},
    finding::{Finding, Level},
    lists,
};
use crate::{context::Context, failure::Failure, screen::Tone};
use bowline_text::visible;
use serde_json::{Value, json};
use std::time::Duration;

/// The maximum number of places per finding.
const SHOWN: usize = 5;

pub(super) fn print_report(
    name: &str,
    facts: &Facts,
    findings: &[Finding],
    context: &Context,
) -> Result<(), Failure> {
    if context.json() {
        return context.screen.json(&json(name, facts, findings));
    }
    for (label, value) in summary(name, facts) {
        context
            .screen
            .line(&format!("{} {value}", context.screen.paint(Tone::Faint, &format!("{label:<12}"))))?;
    }
    print_findings(findings, context)
}

/// Prints the findings of a server that could not be connected to.
pub(super) fn print_unreachable(name: &str, findings: &[Finding], context: &Context) -> Result<(), Failure> {
    if context.json() {
        return context.screen.json(&json!({ "target": name, "findings": findings }));
    }
    context.screen.line(&format!(
        "{} {}",
        context.screen.paint(Tone::Faint, &format!("{:<12}", "server")),
        visible(name)
    ))?;
    print_findings(findings, context)
}

fn print_findings(findings: &[Finding], context: &Context) -> Result<(), Failure> {
    for finding in findings {
        context.screen.line("")?;
        for line in lines(finding, context) {
            context.screen.line(&line)?;
        }
    }
    context.screen.line("")?;
    context.screen.line(&total(findings))
}

fn summary(name: &str, facts: &Facts) -> Vec<(&'static str, String)> {
    let server = match &facts.info {
        Some((server, version)) => visible(&format!("{server} {version}")).trim_end().to_owned(),
        None => visible(name),
    };
    let answered: Vec<&str> = facts
        .revisions
        .iter()
        .filter(|(revision, agreed)| agreed.as_ref() == Ok(revision))
        .map(|(revision, _)| revision.as_str())
        .collect();
    let capabilities: Vec<&str> =
        facts.capabilities.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let capabilities =
        if capabilities.is_empty() { "none".to_owned() } else { visible(&capabilities.join(", ")) };
    let offers: Vec<String> =
        facts.lists.iter().filter(|list| list.declared || !list.items.is_empty()).map(counted).collect();
    let tokens = lists::tokens(facts);
    let offers = if offers.is_empty() { "nothing".to_owned() } else { offers.join(", ") };
    let mut times = vec![format!("connected in {}", milliseconds(facts.opened))];
    times.extend(facts.ping.map(|ping| format!("ping {}", milliseconds(ping))));
    if let Some((after, _)) = facts.process.as_ref().and_then(|process| process.ended) {
        times.push(format!("exited after {}", milliseconds(after)));
    }
    vec![
        ("server", server),
        ("revisions", format!("{} (used: {})", answered.join(", "), facts.revision)),
        ("capabilities", capabilities),
        ("offers", if tokens == 0 { offers } else { format!("{offers}; about {tokens} tokens") }),
        ("times", times.join(", ")),
    ]
}

fn counted(list: &List) -> String {
    let count = list.items.len();
    format!("{count} {}{}", list.kind.one(), if count == 1 { "" } else { "s" })
}

fn milliseconds(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

fn lines(finding: &Finding, context: &Context) -> Vec<String> {
    let tone = match finding.level {
        Level::Error => Tone::Bad,
        Level::Warning => Tone::Warning,
        Level::Hint => Tone::Name,
    };
    let level = context.screen.paint(tone, finding.level.name());
    let mut lines = vec![format!("{level} [{}]: {}", finding.check, visible(&finding.what))];
    if !finding.places.is_empty() {
        let shown: Vec<String> = finding.places.iter().take(SHOWN).map(|place| visible(place)).collect();
        let more = match finding.places.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        // Names share a line; other places get a line each.
        if shown.iter().all(|place| !place.contains([' ', ','])) {
            lines.push(format!("  in {}{more}", shown.join(", ")));
        } else {
            lines.extend(shown.iter().map(|place| format!("  in {place}")));
            lines.extend((!more.is_empty()).then(|| format!("  {}", more.trim_start())));
        }
    }
    lines.push(format!("  {}", context.screen.paint(Tone::Faint, finding.advice)));
    lines
}

fn count(findings: &[Finding], level: Level) -> usize {
    findings.iter().filter(|finding| finding.level == level).count()
}

fn total(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "no problems found".to_owned();
    }
    let counted = |level: Level| {
        let count = count(findings, level);
        format!("{count} {}{}", level.name(), if count == 1 { "" } else { "s" })
    };
    format!("{}, {}, {}", counted(Level::Error), counted(Level::Warning), counted(Level::Hint))
}

fn json(name: &str, facts: &Facts, findings: &[Finding]) -> Value {
    let revisions: Vec<Value> = facts
        .revisions
        .iter()
        .map(|(revision, agreed)| match agreed {
            Ok(agreed) => json!({ "asked": revision, "agreed": agreed }),
            Err(reason) => json!({ "asked": revision, "failed": reason }),
        })
        .collect();
    let offers: serde_json::Map<String, Value> =
        facts.lists.iter().map(|list| (list.kind.member().to_owned(), list.items.len().into())).collect();
    let ended = facts.process.as_ref().map(|process| {
        let after = process.ended.map(|(after, _)| after.as_secs_f64() * 1000.0);
        json!({ "endedAfter": after, "stderrLines": process.stderr_lines })
    });
    json!({
        "target": name,
        "server": facts.info.as_ref().map(|(name, version)| json!({ "name": name, "version": version })),
        "revision": facts.revision,
        "revisions": revisions,
        "capabilities": facts.capabilities,
        "offers": offers,
        "tokens": lists::tokens(facts),
        "milliseconds": {
            "firstFrame": facts.first_frame.map(|time| time.as_secs_f64() * 1000.0),
            "opened": facts.opened.as_secs_f64() * 1000.0,
            "ping": facts.ping.map(|time| time.as_secs_f64() * 1000.0),
        },
        "process": ended,
        "findings": findings,
        "counts": {
            "error": count(findings, Level::Error),
            "warning": count(findings, Level::Warning),
            "hint": count(findings, Level::Hint),
        },
    })
}
