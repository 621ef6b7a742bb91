//! Turns questions of the gate into what the page shows, and its answers into verdicts.

use super::{Answer, AnswerCovers, AnswerScope, Asks, DiffLine};
use crate::{
    form::{check, plan},
    render::{Shown, link_target},
};
use bowline_policy::{Action, Covers, Edit, Granted, Question, Scope, Verdict, audit::Redactor};
use bowline_types::RawJson;
use serde::Serialize;
use serde_json::Value;

/// The largest sampling request and response that is kept after the answer.
const MAX_KEPT: usize = 64 * 1024;

impl From<Scope> for AnswerScope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Once => Self::Once,
            Scope::Run => Self::Run,
            Scope::Project => Self::Project,
            Scope::Always => Self::Always,
        }
    }
}

impl From<AnswerScope> for Scope {
    fn from(scope: AnswerScope) -> Self {
        match scope {
            AnswerScope::Once => Self::Once,
            AnswerScope::Run => Self::Run,
            AnswerScope::Project => Self::Project,
            AnswerScope::Always => Self::Always,
        }
    }
}

impl From<Covers> for AnswerCovers {
    fn from(covers: Covers) -> Self {
        match covers {
            Covers::Tool => Self::Tool,
            Covers::ReadOnlyTools => Self::ReadOnlyTools,
            Covers::Server => Self::Server,
        }
    }
}

impl From<AnswerCovers> for Covers {
    fn from(covers: AnswerCovers) -> Self {
        match covers {
            AnswerCovers::Tool => Self::Tool,
            AnswerCovers::ReadOnlyTools => Self::ReadOnlyTools,
            AnswerCovers::Server => Self::Server,
        }
    }
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Returns the lines of a difference.
pub(crate) fn diff_lines(diff: &str) -> Vec<DiffLine> {
    let line = |line: &str| {
        // Each line begins with its mark and a space.
        let (change, text) = match line.split_at_checked(2) {
            Some(("+ ", text)) => ("added", text),
            Some(("- ", text)) => ("removed", text),
            Some(("  ", text)) => ("same", text),
            _ => ("same", line),
        };
        DiffLine { change: change.into(), text: Shown::line(text) }
    };
    diff.lines().map(line).collect()
}

/// Returns what a question asks. `None` for kinds that are unknown here.
pub(super) fn asks(question: &Question, redactor: &Redactor) -> Option<Asks> {
    Some(match question {
        Question::Start { origin, description, .. } => Asks::Start {
            origin: bowline_text::visible(origin),
            description: description.iter().map(|line| Shown::line(line)).collect(),
        },
        Question::Call { tool, title, arguments, annotations, .. } => Asks::Call {
            tool: Shown::line(tool),
            title: title.as_deref().map(Shown::line),
            arguments: Shown::text(&redactor.message(arguments.as_str()).0),
            hints: crate::queries::hints(annotations.as_ref()),
        },
        Question::Access { action, name, .. } => Asks::Access {
            action: if *action == Action::Prompt { "prompt".into() } else { "read".into() },
            name: Shown::line(&redactor.uri(name)),
        },
        Question::Changed { tool, diff, .. } => {
            Asks::Changed { tool: Shown::line(tool), diff: diff_lines(diff) }
        }
        Question::New { tool, definition, .. } => {
            Asks::New { tool: Shown::line(tool), definition: Shown::text(definition) }
        }
        Question::Sample { request, .. } => Asks::Sample { request: json(request) },
        Question::SampleResult { result, .. } => Asks::SampleResult { result: json(result) },
        Question::Form { message, schema, .. } => {
            Asks::Form { message: Shown::text(message), plan: Box::new(plan(&json(schema))) }
        }
        Question::Visit { message, url, .. } => {
            Asks::Visit { message: Shown::text(message), target: link_target(url.as_str()) }
        }
        Question::Roots { roots, .. } => {
            Asks::Roots { roots: roots.iter().map(|root| Shown::line(root.uri.as_str())).collect() }
        }
        _ => return None,
    })
}

/// Masks what only an answer needs.
pub(super) fn mask(asks: &mut Asks, redactor: &Redactor) {
    match asks {
        Asks::Sample { request: value } | Asks::SampleResult { result: value } => {
            let (text, _) = redactor.message(&value.to_string());
            *value = serde_json::from_str(&text).unwrap_or_default();
        }
        Asks::Visit { message, target } => {
            let url = target.url.take();
            target.text = Shown::line(&redactor.uri(url.as_deref().unwrap_or(&target.text.text)));
            *message = Shown::text(&redactor.text(&message.text));
        }
        Asks::Form { message, .. } => *message = Shown::text(&redactor.text(&message.text)),
        // They are masked for everybody, or describe what was configured.
        Asks::Call { .. }
        | Asks::Access { .. }
        | Asks::Start { .. }
        | Asks::Changed { .. }
        | Asks::New { .. }
        | Asks::Roots { .. } => {}
    }
}

/// Forgets what is too large to be kept after the answer.
pub(super) fn shrink(asks: &mut Asks) {
    if let Asks::Sample { request: value } | Asks::SampleResult { result: value } = asks
        && value.to_string().len() > MAX_KEPT
    {
        *value = Value::Null;
    }
}

/// Returns the scopes and covers that an answer may have.
pub(super) fn choices(question: &Question) -> (Vec<Scope>, Vec<Covers>) {
    match question {
        Question::Call { scopes, covers, .. } => (scopes.clone(), covers.clone()),
        Question::Access { scopes, .. }
        | Question::Sample { scopes, .. }
        | Question::Roots { scopes, .. } => (scopes.clone(), Vec::new()),
        _ => (Vec::new(), Vec::new()),
    }
}

/// Turns an answer into a verdict. The error says what is wrong with it.
pub(super) fn verdict(question: &Question, answer: Answer) -> Result<Verdict, String> {
    let (scopes, covers_allowed) = choices(question);
    let scope_of = |scope: AnswerScope| {
        let scope = Scope::from(scope);
        if scope == Scope::Once || scopes.contains(&scope) {
            Ok(scope)
        } else {
            Err("this question cannot be answered for that long".to_owned())
        }
    };
    let (scope, covers, edit, opened) = match answer {
        Answer::Cancel => return Ok(Verdict::Cancel),
        Answer::Decline { scope } => return Ok(Verdict::Decline { scope: scope_of(scope)?, reason: None }),
        Answer::Allow { scope, covers, edit, opened } => {
            (scope_of(scope)?, Covers::from(covers), edit, opened)
        }
    };
    if covers != Covers::Tool && !covers_allowed.contains(&covers) {
        return Err("the answer to this question cannot cover that much".into());
    }
    let invalid = |error: serde_json::Error| format!("the edited value is invalid: {error}");
    let edit = match (question, edit) {
        (Question::Sample { .. }, Some(edit)) => {
            Some(Edit::Request(Box::new(serde_json::from_value(edit).map_err(invalid)?)))
        }
        (Question::SampleResult { .. }, Some(edit)) => {
            Some(Edit::Result(Box::new(serde_json::from_value(edit).map_err(invalid)?)))
        }
        (Question::Form { schema, .. }, edit) => {
            let content = RawJson::of(&edit.unwrap_or_else(|| Value::Object(serde_json::Map::new())))
                .map_err(invalid)?;
            let schema = RawJson::of(schema).map_err(invalid)?;
            if let Some(problem) = check(&schema, &content).first() {
                return Err(format!("{}: {}", problem.pointer, problem.message));
            }
            Some(Edit::Form(content.members().map_err(invalid)?))
        }
        (_, None) => None,
        (_, Some(_)) => return Err("this question has nothing to edit".into()),
    };
    let opened = opened && matches!(question, Question::Visit { .. });
    Ok(Verdict::Allow(Granted { scope, lasts: None, covers, edit, opened }))
}
