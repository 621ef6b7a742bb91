//! Decides about requests about a task: the call that became the task was allowed before.

use super::permit::{Permit, Refusal, RefusalKind};
use super::{Facts, Guard};
use crate::audit::{Entry, Event};
use crate::definition::Definition;
use crate::rule::Effect;
use crate::rules::{Action, Caller, DecidedBy, Decision, Request};

/// A request about a task.
#[derive(Clone, Copy, Debug)]
pub struct TaskFacts<'a> {
    /// The server of the task, and who asks.
    pub facts: Facts<'a>,
    /// The method of the request, such as `tasks/get`.
    pub method: &'a str,
    /// The tool whose call became the task.
    pub definition: &'a Definition,
    /// A digest that identifies the task in the audit log. The id itself may give access to the task.
    pub task: &'a str,
}

impl TaskFacts<'_> {
    fn entry(&self, guard: &Guard) -> Entry {
        let entry = Entry::new(guard.now(), Event::Task, self.facts.server, self.method);
        let mut entry = entry.by(&self.facts.caller);
        entry.name = Some(self.definition.name().to_owned());
        entry.task = Some(self.task.to_owned());
        entry
    }
}

impl Guard {
    /// Decides whether a caller may still ask about a task: not if its tool is denied by now, whatever the arguments are. A rule that
    /// allows some arguments keeps all tasks of its tool available. Does not ask. The permit, or the refusal, is one line of the audit log.
    pub async fn check_task(&self, request: &TaskFacts<'_>) -> Result<Permit, Refusal> {
        if let Some(audit) = &self.audit
            && let Err(reason) = audit.ready().await
        {
            let refusal = Refusal::new(RefusalKind::Limited, DecidedBy::Check, reason);
            return Err(self.refuse_task(request, refusal));
        }
        let decision = self.decide_task(&request.facts, request.definition);
        if decision.effect == Effect::Deny {
            let refusal = Refusal::new(RefusalKind::Denied, decision.by, decision.reason);
            return Err(self.refuse_task(request, refusal));
        }
        let entry = self.audit.is_some().then(|| Box::new(request.entry(self)));
        Ok(Permit::new(decision.by, decision.reason, self.audit.as_ref(), &self.clock, entry))
    }

    /// Returns why a caller must not be notified of a task any more, if a rule denies its tool by now. Does not write to the audit log: for
    /// what is sent without a request.
    pub fn denied_task(&self, facts: &Facts<'_>, definition: &Definition) -> Option<Refusal> {
        let decision = self.decide_task(facts, definition);
        (decision.effect == Effect::Deny)
            .then(|| Refusal::new(RefusalKind::Denied, decision.by, decision.reason))
    }

    fn decide_task(&self, facts: &Facts<'_>, definition: &Definition) -> Decision {
        let annotations = definition.annotations();
        let request = super::call::request(facts, Action::Call, definition.name());
        self.policy().decide_without_arguments(&Request { annotations, ..request })
    }

    fn refuse_task(&self, request: &TaskFacts<'_>, refusal: Refusal) -> Refusal {
        if let Some(audit) = &self.audit {
            let mut entry = request.entry(self);
            (entry.decision, entry.by) = (Some("deny"), Some(refusal.by()));
            entry.reason = Some(refusal.reason().to_owned());
            audit.write(entry);
        }
        refusal
    }

    /// Writes a request to the audit log that concerns no task of a server: the list of tasks, or a `task` that does not exist, or
    /// not for this caller.
    pub fn log_task_request(&self, caller: &Caller<'_>, method: &str, task: Option<String>, outcome: &str) {
        if let Some(audit) = &self.audit {
            let mut entry = Entry::new(self.now(), Event::Task, "", method).by(caller);
            entry.task = task;
            entry.outcome = Some(outcome.to_owned());
            audit.write(entry);
        }
    }
}
