//! Sends questions of the policy about a call to its caller, through elicitation.

use super::asker::{Asker, CallerView};
use crate::upstream::CallHandle;
use bowline_policy::{
    Audience, Covers, Gate, Granted, Headless, Question as PolicyQuestion, Scope, Verdict, describe_question,
};
use bowline_proto::{
    replay::{Answer, Question},
    service::{BoxFuture, Call},
};
use bowline_text::visible;
use bowline_types::{
    CreateMessageParams, ElicitAction, ElicitParams, ElicitResult, ElicitSchema, EnumSchema, InputRequest,
    Method,
};
use std::{
    fmt::Write as _,
    sync::{Mutex, PoisonError},
};

/// The key of the question in its call. Keys of questions about requests of the server begin with it.
pub(super) const KEY: &str = "bowline-consent";
/// The maximum number of characters of a sampling request that the user is shown.
const MAX_SHOWN: usize = 4000;
/// The form field that says how long a permission lasts.
const REMEMBER: &str = "remember";

/// Asks the user of a caller. A question is first deferred: the caller makes the call again with the answer, and the gate then
/// takes the answer from the call.
pub(super) struct CallerGate<'a> {
    call: &'a Call,
    key: String,
    audience: Audience,
    deferred: Mutex<Option<Question>>,
}

impl Asker {
    /// Returns the gate that asks the caller, if questions about this call go there.
    pub(super) fn caller_gate<'a>(&self, call: &'a Call) -> Option<CallerGate<'a>> {
        self.gate_with_key(call, KEY.to_owned())
    }

    /// Returns the gate that asks the caller about a request of a modern server, which has this key.
    pub(super) fn request_gate<'a>(&self, call: &'a Call, key: &str) -> Option<CallerGate<'a>> {
        self.gate_with_key(call, format!("{KEY}-{key}"))
    }

    /// Returns the gate that asks the caller about a request of a legacy server, while the call runs.
    pub(super) fn running_call_gate<'a>(&self, call: &'a CallHandle) -> Option<RunningCallGate<'a>> {
        let audience = self.ask_callers?;
        let client = CallerView::of_handle(call).client();
        let is_known = audience == Audience::SingleUser || client.principal.is_some();
        client.capabilities().has_form_elicitation().then_some(RunningCallGate { call, audience, is_known })
    }

    fn gate_with_key<'a>(&self, call: &'a Call, key: String) -> Option<CallerGate<'a>> {
        let audience = self.ask_callers?;
        // The protocol allows no other request to ask for input.
        let can_wait =
            matches!(call.method.known(), Some(Method::CallTool | Method::ReadResource | Method::GetPrompt));
        let can_ask = can_wait && call.client.capabilities().has_form_elicitation();
        can_ask.then(|| CallerGate { call, key, audience, deferred: Mutex::default() })
    }
}

impl CallerGate<'_> {
    /// Returns the question that has to be answered before the call can continue.
    pub(super) fn into_question(self) -> Option<Question> {
        self.deferred.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn decide(&self, question: &PolicyQuestion) -> Option<Verdict> {
        let is_known = self.audience == Audience::SingleUser || self.call.client.principal.is_some();
        let choices = choices(question, self.audience, is_known)?;
        let question = Question::new(self.key.clone(), form(question, &choices)?);
        if let Some(answer) = self.call.replay.answer(&question) {
            return Some(verdict(answer, &choices));
        }
        *self.deferred.lock().unwrap_or_else(PoisonError::into_inner) = Some(question);
        Some(Verdict::Deferred)
    }
}

/// Returns the form that asks a question.
fn form(question: &PolicyQuestion, choices: &[Choice]) -> Option<InputRequest> {
    let message = match question {
        PolicyQuestion::Sample { server, request, why, .. } => describe_sampling(server, request, why),
        other => describe_question(other)?,
    };
    let mut schema = ElicitSchema::new();
    if let Some(first) = choices.first() {
        let titled = choices.iter().map(|choice| (choice.value, choice.title));
        let field = EnumSchema::titled(titled).title("Remember this answer").with_default(first.value);
        schema = schema.field(REMEMBER, field);
    }
    Some(InputRequest::Elicit(ElicitParams::form(message, schema)))
}

fn describe_sampling(server: &str, request: &CreateMessageParams, why: &str) -> String {
    let mut text = format!(
        "[{}] Send this to a model of the gateway? The server gets the response. ({})\n",
        visible(server),
        visible(why)
    );
    let mut left = MAX_SHOWN;
    let mut part = |role: &str, part: &str| {
        if left == 0 {
            return;
        }
        let shown: String = visible(part).chars().take(left).collect();
        left = left.saturating_sub(shown.chars().count() + role.len() + 3);
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{role}: {shown}");
        if left == 0 {
            text.push_str("...");
        }
    };
    if let Some(prompt) = &request.system_prompt {
        part("system", prompt);
    }
    for message in &request.messages {
        for block in message.content.as_slice() {
            part(message.role.as_str(), block.as_text().unwrap_or("(content that is not text)"));
        }
    }
    text
}

/// Returns the answers to choose from; `None` if this caller may not answer the question.
fn choices(question: &PolicyQuestion, audience: Audience, is_known: bool) -> Option<Vec<Choice>> {
    let (scopes, covers): (&[Scope], &[Covers]) = match question {
        PolicyQuestion::Call { scopes, covers, .. } => (scopes, covers),
        PolicyQuestion::Access { scopes, .. } => (scopes, &[]),
        // Models and folders are those of the operator; one of many callers cannot allow their use.
        PolicyQuestion::Sample { scopes, .. } | PolicyQuestion::Roots { scopes, .. }
            if audience == Audience::SingleUser =>
        {
            (scopes, &[])
        }
        // An accepted definition applies to all callers, so one of many must not accept it.
        PolicyQuestion::Changed { .. } | PolicyQuestion::New { .. } | PolicyQuestion::Start { .. } => {
            return (audience == Audience::SingleUser).then(Vec::new);
        }
        // Other requests of servers are not about the call.
        _ => return None,
    };
    // The answer of an anonymous caller must not apply to the next one.
    let is_offered = |choice: &&Choice| {
        let in_scope = scopes.contains(&choice.scope) && (is_known || choice.scope == Scope::Once);
        in_scope && (choice.covers == Covers::Tool || covers.contains(&choice.covers))
    };
    Some(CHOICES.iter().filter(is_offered).copied().collect())
}

/// Asks the user of a caller while the call runs.
pub(super) struct RunningCallGate<'a> {
    call: &'a CallHandle,
    audience: Audience,
    is_known: bool,
}

impl Gate for RunningCallGate<'_> {
    fn ask(&self, question: PolicyQuestion) -> BoxFuture<'_, Verdict> {
        let choices = choices(&question, self.audience, self.is_known);
        let asked = choices.and_then(|choices| Some((form(&question, &choices)?, choices)));
        match (question, asked) {
            (PolicyQuestion::SampleResult { .. }, _) => Box::pin(std::future::ready(Verdict::allow())),
            (_, Some((request, choices))) => {
                Box::pin(async move { verdict(&self.call.ask(request).await, &choices) })
            }
            (question, None) => Headless.ask(question),
        }
    }
}

impl Gate for CallerGate<'_> {
    fn ask(&self, question: PolicyQuestion) -> BoxFuture<'_, Verdict> {
        if matches!(question, PolicyQuestion::SampleResult { .. }) {
            // The user was told that the server gets the response.
            return Box::pin(std::future::ready(Verdict::allow()));
        }
        match self.decide(&question) {
            Some(verdict) => Box::pin(std::future::ready(verdict)),
            None => Headless.ask(question),
        }
    }
}

/// One way to allow a call.
#[derive(Clone, Copy, Debug)]
struct Choice {
    value: &'static str,
    title: &'static str,
    scope: Scope,
    covers: Covers,
}

const fn choice(value: &'static str, title: &'static str, scope: Scope, covers: Covers) -> Choice {
    Choice { value, title, scope, covers }
}

const CHOICES: [Choice; 6] = [
    choice("once", "Allow this once", Scope::Once, Covers::Tool),
    choice("run", "Allow until the gateway stops", Scope::Run, Covers::Tool),
    choice("project", "Allow always in this project", Scope::Project, Covers::Tool),
    choice("always", "Allow always", Scope::Always, Covers::Tool),
    choice(
        "read_only_tools",
        "Allow all read-only tools of this server, always",
        Scope::Always,
        Covers::ReadOnlyTools,
    ),
    choice("server", "Allow everything from this server, always", Scope::Always, Covers::Server),
];

fn verdict(answer: &Answer, choices: &[Choice]) -> Verdict {
    let failed = |why: &dyn std::fmt::Display| {
        let reason = Some(format!("the client could not ask its user: {why}"));
        Verdict::Decline { scope: Scope::Once, reason }
    };
    let result = match answer {
        Ok(result) => result,
        Err(error) => return failed(&error.message),
    };
    let result: ElicitResult = match result.decode() {
        Ok(result) => result,
        Err(error) => return failed(&error),
    };
    match result.action {
        ElicitAction::Accept => {}
        ElicitAction::Decline => return Verdict::decline(),
        ElicitAction::Cancel => return Verdict::Cancel,
    }
    let chosen = match result.content.unwrap_or_default().decode::<String>(REMEMBER) {
        Ok(chosen) => chosen,
        Err(error) => return failed(&error),
    };
    let Some(chosen) = chosen else { return Verdict::allow() };
    match choices.iter().find(|choice| choice.value == chosen) {
        Some(Choice { scope, covers, .. }) => {
            Verdict::Allow(Granted { scope: *scope, covers: *covers, ..Granted::default() })
        }
        None => failed(&format!("`{chosen}` is not one of the choices")),
    }
}
