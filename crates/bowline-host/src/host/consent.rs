//! Questions of the policy about a call, put to the user of the caller through elicitation.

use super::Inner;
use crate::aggregate::{may_be_of, name_within};
use bowline_policy::{
    Audience, Covers, Gate, Granted, Headless, Question as PolicyQuestion, Scope, Verdict, describe_question,
};
use bowline_proto::{
    replay::{Answer, Question},
    service::{BoxFuture, Call, ClientView},
};
use bowline_types::{
    ElicitAction, ElicitParams, ElicitResult, ElicitSchema, EnumSchema, InputRequest, Method, RawJson, Tool,
};
use std::sync::{Arc, Mutex, PoisonError};

/// The key of the question among those of its call.
const KEY: &str = "bowline-consent";
/// The field of the form that says how long a yes holds.
const REMEMBER: &str = "remember";

/// Puts questions to the user of one caller. The first time, a question is only noted, and the call has to be made again
/// with the answer; then it is answered from the call.
pub(super) struct CallerGate<'a> {
    call: &'a Call,
    audience: Audience,
    asked: Mutex<Option<Question>>,
}

impl Inner {
    /// Who answers questions about this call, if that is its caller.
    pub(super) fn caller_gate<'a>(&self, call: &'a Call) -> Option<CallerGate<'a>> {
        let audience = self.ask_callers?;
        // The protocol lets no other request wait for input.
        let can_wait =
            matches!(call.method.known(), Some(Method::CallTool | Method::ReadResource | Method::GetPrompt));
        let can_ask = can_wait && call.client.capabilities().has_form_elicitation();
        can_ask.then(|| CallerGate { call, audience, asked: Mutex::default() })
    }
}

/// Servers that wait for an approval, known to whoever reads the configuration.
pub(crate) trait PendingServers: Send + Sync {
    /// Their names.
    fn names(&self) -> Vec<String>;

    /// The question whether this one may be used.
    fn question(&self, server: &str) -> Option<PolicyQuestion>;

    /// Approves the server that this question is about, or returns the reason why not. It reads files, so it must not run
    /// on a thread of the runtime.
    fn approve(&self, question: &PolicyQuestion) -> Result<(), String>;
}

/// What came of a call to a server that waits for an approval.
pub(super) enum Approval {
    /// It was approved just now.
    Approved,
    /// It was approved just now, and that is all that was called for.
    Done(String),
    /// The caller is asked.
    Asks(Box<Question>),
    /// It is not approved.
    Refused(String),
}

/// The tool that stands for a server that waits for an approval.
const APPROVE: &str = "approve_server";

async fn approve(pending: &Arc<dyn PendingServers>, question: PolicyQuestion) -> Result<(), String> {
    let pending = Arc::clone(pending);
    let approving = tokio::task::spawn_blocking(move || pending.approve(&question));
    approving.await.unwrap_or_else(|_| Err("the host is shutting down".to_owned()))
}

impl Inner {
    /// Has the server approved that a tool or prompt would be of; `None` if it waits for no approval.
    pub(super) async fn approve_owner(&self, call: &Call) -> Option<Approval> {
        // A custom method names no tool.
        call.method.known()?;
        let pending = self.pending.get()?;
        let shown = call.params.name().ok()?;
        let server = pending.names().into_iter().find(|server| may_be_of(self.max_name, server, &shown))?;
        let question = pending.question(&server)?;
        let gate = self.caller_gate(call);
        let verdict = match &gate {
            Some(gate) => gate.ask(question.clone()).await,
            None => Headless.ask(question.clone()).await,
        };
        Some(match verdict {
            Verdict::Allow(_) => match approve(pending, question).await {
                Ok(()) if shown == name_within(self.max_name, &server, APPROVE) => {
                    Approval::Done(format!("the server `{server}` is approved, and its tools are listed now"))
                }
                Ok(()) => Approval::Approved,
                Err(reason) => Approval::Refused(reason),
            },
            Verdict::Decline { reason, .. } => {
                let default = || format!("the server `{server}` was not approved");
                Approval::Refused(reason.unwrap_or_else(default))
            }
            Verdict::Cancel => Approval::Refused("the question was not answered".to_owned()),
            Verdict::Deferred => Approval::Asks(Box::new(gate?.into_asked()?)),
        })
    }

    /// A tool for each server that waits for an approval, for clients whose user can give it.
    pub(super) fn pending_tools(&self, client: &ClientView) -> Vec<Tool> {
        let can_approve =
            self.ask_callers == Some(Audience::SingleUser) && client.capabilities().has_form_elicitation();
        let Some(pending) = self.pending.get().filter(|_| can_approve) else { return Vec::new() };
        let tool = |server: String| {
            let schema = RawJson::from(serde_json::json!({ "type": "object" }));
            let about = format!(
                "The server `{server}` comes with the project and is not used before the user approves it. This asks the user."
            );
            Tool::new(name_within(self.max_name, &server, APPROVE), schema).description(about)
        };
        pending.names().into_iter().map(tool).collect()
    }
}

impl CallerGate<'_> {
    /// The question that has to be answered before the call can go on.
    pub(super) fn into_asked(self) -> Option<Question> {
        self.asked.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn decide(&self, question: &PolicyQuestion) -> Option<Verdict> {
        let choices = self.choices(question)?;
        let message = describe_question(question)?;
        let mut schema = ElicitSchema::new();
        if let Some(first) = choices.first() {
            let titled = choices.iter().map(|choice| (choice.value, choice.title));
            let field = EnumSchema::titled(titled).title("Remember this answer").with_default(first.value);
            schema = schema.field(REMEMBER, field);
        }
        let request = InputRequest::Elicit(ElicitParams::form(message, schema));
        let question = Question::new(KEY, request);
        if let Some(answer) = self.call.replay.answer(&question) {
            return Some(verdict(answer, &choices));
        }
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(question);
        Some(Verdict::Deferred)
    }

    /// The answers that may be chosen from; `None` if this caller may not answer the question at all.
    fn choices(&self, question: &PolicyQuestion) -> Option<Vec<Choice>> {
        let (scopes, covers): (&[Scope], &[Covers]) = match question {
            PolicyQuestion::Call { scopes, covers, .. } => (scopes, covers),
            PolicyQuestion::Access { scopes, .. } => (scopes, &[]),
            // An accepted definition is accepted for everybody, so one of many callers may not.
            PolicyQuestion::Changed { .. } | PolicyQuestion::New { .. } | PolicyQuestion::Start { .. } => {
                return (self.audience == Audience::SingleUser).then(Vec::new);
            }
            // A request of a server has a dialog of its own.
            _ => return None,
        };
        let is_known = self.audience == Audience::SingleUser || self.call.client.principal.is_some();
        // What an unknown caller answers must not hold for the next one.
        let is_offered = |choice: &&Choice| {
            let in_scope = scopes.contains(&choice.scope) && (is_known || choice.scope == Scope::Once);
            in_scope && (choice.covers == Covers::Tool || covers.contains(&choice.covers))
        };
        Some(CHOICES.iter().filter(is_offered).copied().collect())
    }
}

impl Gate for CallerGate<'_> {
    fn ask(&self, question: PolicyQuestion) -> BoxFuture<'_, Verdict> {
        match self.decide(&question) {
            Some(verdict) => Box::pin(std::future::ready(verdict)),
            None => Headless.ask(question),
        }
    }
}

/// One way to say yes.
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
