//! Decides about calling tools, reading resources and fetching prompts.

use super::decide::{Permission, blocking, cancelled, declined, deferred};
use super::decision_log::DecisionLog;
use super::permit::{Permit, Refusal, RefusalKind};
use super::{CallFacts, Facts, Guard, NewTools};
use crate::answers::Topic;
use crate::audit::{Entry, Event};
use crate::definition::{Definition, Digest};
use crate::gate::{Covers, Question, Verdict};
use crate::pins::{Difference, DifferenceKind, PinKey, PinStatus, Pins};
use crate::rule::Effect;
use crate::rules::{Action, DecidedBy, Decision, Request};

impl Guard {
    /// Decides whether a tool may be called: compares it with its pin, then applies the policy and stored answers, and
    /// asks if necessary.
    ///
    /// Dropping the future withdraws the question.
    pub async fn check(&self, call: &CallFacts<'_>) -> Result<Permit, Refusal> {
        let name = call.definition.name();
        self.audit_ready(&call.facts, Action::Call, name).await?;
        let decision_log = DecisionLog::begin(self, &call.facts, Action::Call, name, Some(call.arguments));
        match self.decide_call(call).await {
            Ok(permission) => Ok(self.permit(permission, decision_log)),
            Err(refusal) => Err(decision_log.refused(refusal)),
        }
    }

    /// Decides whether a resource may be read ([`Action::Read`], by its URI), a prompt fetched ([`Action::Prompt`], by
    /// its name) or a custom method called ([`Action::Call`], by its name). Other actions are refused.
    ///
    /// Rules treat a custom method as a tool without annotations, so it may change things.
    pub async fn access(&self, facts: &Facts<'_>, action: Action, name: &str) -> Result<Permit, Refusal> {
        self.audit_ready(facts, action, name).await?;
        let decision_log = DecisionLog::begin(self, facts, action, name, None);
        if !matches!(action, Action::Read | Action::Prompt | Action::Call) {
            let reason = format!("`{}` is not an access", action.as_str());
            return Err(decision_log.refused(Refusal::new(RefusalKind::Unsafe, DecidedBy::Check, reason)));
        }
        let decision = self.policy().decide(&request(facts, action, name));
        let topic = topic(facts, action, Some(name));
        let permission = self
            .decide_or_ask(facts, decision, topic, &[], |why, scopes| Question::Access {
                server: facts.server.to_owned(),
                action,
                name: name.to_owned(),
                client: facts.caller.client.map(ToOwned::to_owned),
                why,
                scopes,
            })
            .await;
        match permission {
            Ok(permission) => Ok(self.permit(permission, decision_log)),
            Err(refusal) => Err(decision_log.refused(refusal)),
        }
    }

    /// Waits until the audit log can record the decision. Refuses the action if the log is required and cannot.
    async fn audit_ready(&self, facts: &Facts<'_>, action: Action, name: &str) -> Result<(), Refusal> {
        let Some(audit) = &self.audit else { return Ok(()) };
        match audit.ready().await {
            Ok(()) => Ok(()),
            // The refusal is logged too, which shows whether the log is writable again.
            Err(reason) => {
                let refusal = Refusal::new(RefusalKind::Limited, DecidedBy::Check, reason);
                Err(DecisionLog::begin(self, facts, action, name, None).refused(refusal))
            }
        }
    }

    /// Checks the tools that a server lists. The tools of a new server are pinned. For a known server, returns and logs
    /// the differences from its pins, and handles new tools as configured.
    ///
    /// Call this after every complete read of the list, before its tools are called.
    pub async fn listed(
        &self,
        facts: &Facts<'_>,
        definitions: &[Definition],
    ) -> Result<Vec<Difference>, Refusal> {
        let Some(pins) = &self.pins else { return Ok(Vec::new()) };
        let key = PinKey::of(facts);
        let server = facts.server;
        // Another process may have pinned the server in the meantime.
        refresh(pins).await?;
        let first = !pins.contains_server(&key);
        let differences = if first { Vec::new() } else { pins.compare(&key, definitions) };
        for difference in &differences {
            self.log_pin_change(server, &difference.tool, describe(&difference.kind));
        }
        let is_new = |definition: &&Definition| {
            first || (self.new_tools != NewTools::Ask && pins.status(&key, definition) == PinStatus::New)
        };
        let new: Vec<Definition> = definitions.iter().filter(is_new).cloned().collect();
        let has_changed = |difference: &Difference| matches!(difference.kind, DifferenceKind::Changed { .. });
        let takes_over = pins.contains_name(&key) && !differences.iter().any(has_changed);
        if first || takes_over || !new.is_empty() {
            add(pins, &key, new).await?;
        }
        Ok(differences)
    }

    async fn decide_call(&self, call: &CallFacts<'_>) -> Result<Permission, Refusal> {
        let CallFacts { facts, definition, arguments } = call;
        let (decision, topic, wider) = self.policy_about(call);
        // A denied tool needs no review of its changes.
        if decision.effect != Effect::Deny {
            self.check_pin(facts, definition).await?;
        }
        self.decide_or_ask(facts, decision, topic, wider, |why, scopes| Question::Call {
            server: facts.server.to_owned(),
            client: facts.caller.client.map(ToOwned::to_owned),
            covers: wider.to_vec(),
            tool: definition.name().to_owned(),
            title: definition.title().map(ToOwned::to_owned),
            arguments: (*arguments).clone(),
            annotations: definition.annotations().cloned(),
            why,
            scopes,
        })
        .await
    }

    /// Returns what the policy says about a call, and which stored answers apply to it.
    pub(super) fn policy_about(&self, call: &CallFacts<'_>) -> (Decision, Topic, &'static [Covers]) {
        let CallFacts { facts, definition, arguments } = call;
        let decision = self.policy().decide(&Request {
            annotations: definition.annotations(),
            arguments: Some(arguments),
            ..request(facts, Action::Call, definition.name())
        });
        let topic = Topic {
            definition: Some(definition.digest().clone()),
            arguments: decision.by_arguments.then(|| Digest::of(arguments)),
            ..topic(facts, Action::Call, Some(definition.name()))
        };
        // An answer that covers more than one tool applies where no rule decides. A rule that asks still asks.
        let wider: &[Covers] = match (decision.by, definition.claims_read_only()) {
            (DecidedBy::Default, true) => &[Covers::ReadOnlyTools, Covers::Server],
            (DecidedBy::Default, false) => &[Covers::Server],
            _ => &[],
        };
        (decision, topic, wider)
    }

    /// Checks the pin of a tool. A changed tool is not called before the user has seen the changes.
    async fn check_pin(&self, facts: &Facts<'_>, definition: &Definition) -> Result<(), Refusal> {
        let Some(pins) = &self.pins else { return Ok(()) };
        let (server, tool, key) = (facts.server, definition.name(), PinKey::of(facts));
        if pins.status(&key, definition) == PinStatus::Same {
            return Ok(());
        }
        let lock = self.question_lock(Action::Call, server, tool);
        let _lock = lock.lock().await;
        // Another process or task may have accepted it in the meantime.
        refresh(pins).await?;
        let mut status = pins.status(&key, definition);
        if status == PinStatus::New {
            self.log_pin_change(server, tool, describe(&DifferenceKind::New));
        }
        if status == PinStatus::First || (status == PinStatus::New && self.new_tools != NewTools::Ask) {
            add(pins, &key, vec![definition.clone()]).await?;
            status = pins.status(&key, definition);
        }
        let question = match status {
            PinStatus::Same => return Ok(()),
            PinStatus::First | PinStatus::New => Question::New {
                server: server.to_owned(),
                tool: tool.to_owned(),
                definition: definition.pretty().to_owned(),
            },
            PinStatus::Changed { diff } => {
                // The list was read before, which logged the change.
                self.audit_pin_change(server, tool, "its definition has changed");
                Question::Changed { server: server.to_owned(), tool: tool.to_owned(), diff }
            }
        };
        match self.put(facts, question).await? {
            Verdict::Allow(_) => {
                tracing::info!(server, tool, "the definition of a tool was accepted");
                self.audit_pin_change(server, tool, "its definition was accepted");
            }
            Verdict::Decline { reason, .. } => {
                let default = || format!("the definition of `{tool}` has changed, and was not accepted");
                return Err(declined(Some(reason.unwrap_or_else(default))));
            }
            Verdict::Cancel => return Err(cancelled()),
            Verdict::Deferred => return Err(deferred()),
        }
        let (pins, definition) = (pins.clone(), definition.clone());
        blocking(move || pins.accept(&key, &[definition])).await
    }

    fn log_pin_change(&self, server: &str, tool: &str, what: &str) {
        if what == describe(&DifferenceKind::New) && self.new_tools == NewTools::Accept {
            return;
        }
        tracing::warn!(
            server,
            tool,
            what,
            "the definition of a tool changed since it was approved; run `bowline pins diff`"
        );
        self.audit_pin_change(server, tool, what);
    }

    fn audit_pin_change(&self, server: &str, tool: &str, what: &str) {
        if let Some(audit) = &self.audit {
            let mut entry = Entry::new(self.now(), Event::Pin, server, "tools/list");
            entry.name = Some(tool.to_owned());
            entry.reason = Some(what.to_owned());
            audit.write(entry);
        }
    }

    fn permit(&self, permission: Permission, decision_log: DecisionLog) -> Permit {
        let entry = decision_log.allowed(permission.by, &permission.reason);
        Permit::new(permission.by, permission.reason, self.audit.as_ref(), &self.clock, entry)
    }
}

async fn refresh(pins: &Pins) -> Result<(), Refusal> {
    let pins = pins.clone();
    blocking(move || pins.refresh()).await
}

async fn add(pins: &Pins, key: &PinKey, definitions: Vec<Definition>) -> Result<(), Refusal> {
    let (pins, key) = (pins.clone(), key.clone());
    blocking(move || pins.add(&key, &definitions)).await
}

fn describe(kind: &DifferenceKind) -> &'static str {
    match kind {
        DifferenceKind::New => "it is new",
        DifferenceKind::Removed => "it was removed",
        DifferenceKind::Changed { .. } => "its definition has changed",
    }
}

pub(super) fn request<'a>(facts: &Facts<'a>, action: Action, name: &'a str) -> Request<'a> {
    Request {
        action,
        server: facts.server,
        trust: facts.trust,
        caller: facts.caller,
        name,
        annotations: None,
        arguments: None,
    }
}

pub(super) fn topic(facts: &Facts<'_>, action: Action, name: Option<&str>) -> Topic {
    Topic {
        action,
        server: facts.server.to_owned(),
        name: name.map(ToOwned::to_owned),
        definition: None,
        arguments: None,
        principal: facts.caller.principal.map(ToOwned::to_owned),
        covers: Covers::Tool,
        identity: None,
    }
}
