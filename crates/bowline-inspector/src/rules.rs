//! Answers queries about the policy: rules, decisions in advance, pins and the audit log; and accepts definitions.

use crate::{
    inbox::diff_lines,
    inspector::Shared,
    queries::attached,
    query::{
        AuditLine, AuditPage, AuditRequest, DecideRequest, Decided, Grade, ItemKind, PinState, PinsView,
        RuleView, Rules, ServerPins, ToolPinView,
    },
    render::Shown,
    service::Failure,
};
use bowline_host::{AcceptError, ToolPin, ToolPinStatus};
use bowline_policy::{
    Action, PinStatus, Rule,
    audit::{Redactor, read_tail},
};
use bowline_types::RawJson;
use http::StatusCode;
use serde_json::Value;
use std::path::Path;

/// How many lines of the audit log a page has at most.
const MAX_LINES: usize = 200;
/// How much of the log is read at a time, and for one page.
const CHUNK: u64 = 256 * 1024;
const MAX_READ: u64 = 4 * 1024 * 1024;

/// Returns the rules.
pub(crate) fn rules(shared: &Shared) -> Result<Rules, Failure> {
    let policy = attached(shared)?.host.guard().policy();
    let view = |rule: &Rule| RuleView {
        effect: rule.effect().to_string(),
        text: bowline_text::visible(&shared.redactor.text(&rule.to_string())),
        origin: rule.written_at().map(bowline_text::visible),
    };
    Ok(Rules {
        rules: policy.rules().iter().map(view).collect(),
        unasked: policy.unasked().iter().map(view).collect(),
        consent: policy.consents().to_string(),
    })
}

/// Says what would be decided about a call.
pub(crate) async fn decide(shared: &Shared, request: DecideRequest) -> Result<Decided, Failure> {
    let host = &attached(shared)?.host;
    let action = match request.kind {
        ItemKind::Tool => Action::Call,
        ItemKind::Resource | ItemKind::Template => Action::Read,
        ItemKind::Prompt => Action::Prompt,
    };
    let invalid = |error: serde_json::Error| Failure::invalid(format!("`arguments` is invalid: {error}"));
    let arguments = match &request.arguments {
        Some(arguments) => RawJson::parse(arguments.get().to_owned()).map_err(invalid)?,
        None => RawJson::empty_object(),
    };
    let (server, name) = (&request.server, &request.name);
    let preview = host.preview(server, action, name, &arguments, request.client.as_deref()).await;
    let preview = preview.ok_or_else(|| {
        let (server, name) = (bowline_text::visible(server), bowline_text::visible(name));
        Failure::not_found(format!("the server `{server}` does not offer `{name}`"))
            .advise("start the server, so that it lists what it offers")
    })?;
    let policy = host.guard().policy();
    let rule = preview.rule.and_then(|place| policy.rules().get(place));
    Ok(Decided {
        effect: preview.effect.to_string(),
        by: preview.by.as_str().to_owned(),
        reason: bowline_text::visible(&shared.redactor.text(&preview.reason)),
        rule: preview.rule,
        origin: rule.and_then(Rule::written_at).map(bowline_text::visible),
        pin: preview.pin.map(|pin| match pin {
            PinStatus::Same => PinState::Same,
            PinStatus::Changed { .. } => PinState::Changed,
            _ => PinState::New,
        }),
    })
}

/// Returns the accepted definitions.
pub(crate) async fn pins(shared: &Shared) -> Result<PinsView, Failure> {
    let pins = attached(shared)?.host.pins().await;
    let pins = pins.map_err(|error| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let view = |ToolPin { tool, listed, status, .. }: ToolPin| {
        let (state, diff) = match status {
            ToolPinStatus::Same => (PinState::Same, Vec::new()),
            ToolPinStatus::New => (PinState::New, Vec::new()),
            ToolPinStatus::Changed { diff } => (PinState::Changed, diff_lines(&diff)),
            ToolPinStatus::Removed => (PinState::Removed, Vec::new()),
            _ => (PinState::Unknown, Vec::new()),
        };
        ToolPinView { label: Shown::line(&tool), name: tool, state, digest: listed, diff }
    };
    let servers = pins.into_iter().map(|pinned| ServerPins {
        server: pinned.server,
        tools: pinned.tools.into_iter().map(view).collect(),
    });
    Ok(PinsView { servers: servers.collect() })
}

/// Accepts the definition of a tool that the page has shown.
pub(crate) async fn accept_pin(
    shared: &Shared,
    server: &str,
    tool: &str,
    digest: &str,
) -> Result<(), Failure> {
    let accepted = attached(shared)?.host.accept_pin(server, tool, digest).await;
    accepted.map_err(|error| match error {
        AcceptError::Unknown => {
            let (server, tool) = (bowline_text::visible(server), bowline_text::visible(tool));
            Failure::not_found(format!(
                "the server `{server}` has no tool `{tool}` whose definition can be accepted"
            ))
        }
        AcceptError::Changed => {
            Failure::new(StatusCode::CONFLICT, "the definition changed since it was shown")
                .advise("look at the difference again")
        }
        AcceptError::Store(error) => Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        other => Failure::new(StatusCode::INTERNAL_SERVER_ERROR, format!("{other:?}")),
    })?;
    shared.recorder.entries_changed();
    Ok(())
}

/// Returns the latest lines of the audit log.
pub(crate) async fn audit(
    shared: &Shared,
    grade: Grade,
    request: AuditRequest,
) -> Result<AuditPage, Failure> {
    let Some(audit) = attached(shared)?.host.guard().audit().cloned() else {
        return Ok(AuditPage { is_on: false, lines: Vec::new(), next: None });
    };
    let redactor = shared.redactor.clone();
    let failed = |error: String| {
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the audit log cannot be read: {error}"))
    };
    let turn = std::sync::Arc::clone(&shared.searches).acquire_owned().await;
    let turn = turn.map_err(|error| failed(error.to_string()))?;
    // Files are read, which other requests must not wait for.
    let read = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        page(audit.path(), &request, grade, &redactor)
    });
    read.await.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
}

fn page(
    path: &Path,
    request: &AuditRequest,
    grade: Grade,
    redactor: &Redactor,
) -> std::io::Result<AuditPage> {
    let limit = request.limit.unwrap_or(MAX_LINES).clamp(1, MAX_LINES);
    let text = request.text.as_deref().map(str::to_ascii_lowercase);
    let mut page = AuditPage { is_on: true, lines: Vec::new(), next: None };
    let length = match std::fs::metadata(path) {
        Ok(file) => file.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(page),
        Err(error) => return Err(error),
    };
    let mut end = request.before.map_or(length, |before| before.min(length));
    let stop = end.saturating_sub(MAX_READ);
    while end > 0 {
        if end <= stop {
            page.next = Some(end);
            break;
        }
        let lines = read_tail(path, Some(end), CHUNK)?;
        // A line that is longer than what is read at a time is passed over.
        end = lines.last().map_or_else(|| end.saturating_sub(CHUNK), |first| first.at);
        for line in lines {
            // It was masked when it was written; meanwhile more is known.
            let mut masked = redactor.message(&line.text).0;
            let mut entry: Value = match serde_json::from_str(&masked) {
                Ok(entry) => entry,
                // It may be a part of a line, with arguments.
                Err(_) if grade == Grade::View => continue,
                Err(_) => Value::String(masked.clone()),
            };
            // Removed before the search, which would tell what is in them.
            if let (Grade::View, Some(members)) = (grade, entry.as_object_mut())
                && members.remove("arguments").is_some()
            {
                masked = entry.to_string();
            }
            if text.as_ref().is_some_and(|text| !masked.to_ascii_lowercase().contains(text.as_str())) {
                continue;
            }
            let is = |name: &str, wanted: &Option<String>| {
                wanted.as_ref().is_none_or(|wanted| entry.get(name).and_then(Value::as_str) == Some(wanted))
            };
            if !is("server", &request.server) || !is("event", &request.event) {
                continue;
            }
            page.lines.push(AuditLine { at: line.at, entry });
            if page.lines.len() >= limit {
                page.next = Some(line.at).filter(|at| *at > 0);
                return Ok(page);
            }
        }
    }
    Ok(page)
}
