//! Makes a decision: rules, stored answers, limits, then the gate.

use std::time::Duration;

use super::permit::{Refusal, RefusalKind};
use super::{Facts, Guard};
use crate::answers::{Answered, Topic};
use crate::gate::{Covers, Granted, Question, Scope, Verdict};
use crate::rule::Effect;
use crate::rules::{DecidedBy, Decision};
use crate::store::StoreError;

/// The maximum duration of a stored answer.
const MAX_LASTING: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

/// A permission.
pub(super) struct Permission {
    pub(super) by: DecidedBy,
    pub(super) reason: String,
    pub(super) granted: Granted,
}

impl Permission {
    fn new(by: DecidedBy, reason: impl Into<String>) -> Self {
        Self { by, reason: reason.into(), granted: Granted::default() }
    }
}

impl Guard {
    /// Decides after the policy, using stored answers. Answers that cover any of `wider` count, too.
    pub(super) async fn decide_or_ask(
        &self,
        facts: &Facts<'_>,
        decision: Decision,
        topic: Topic,
        wider: &[Covers],
        question: impl FnOnce(String, Vec<Scope>) -> Question,
    ) -> Result<Permission, Refusal> {
        let Decision { effect, by, reason, .. } = decision;
        match effect {
            Effect::Allow => return Ok(Permission::new(by, reason)),
            Effect::Deny => return Err(Refusal::new(RefusalKind::Denied, by, reason)),
            Effect::Ask => {}
        }
        if let Some(permission) = self.remembered(facts, &topic, wider).await {
            return permission;
        }
        let lock = self.question_lock(topic.action, &topic.server, topic.name.as_deref().unwrap_or_default());
        let _lock = lock.lock().await;
        // The previous holder of the lock may have stored the answer.
        if let Some(permission) = self.remembered(facts, &topic, wider).await {
            return permission;
        }
        let mut scopes = vec![Scope::Once, Scope::Run];
        if self.answers.path().is_some() {
            scopes.extend(facts.project.map(|_| Scope::Project));
            scopes.push(Scope::Always);
        }
        match self.put(facts, question(reason, scopes)).await? {
            Verdict::Allow(granted) => {
                let covers = if wider.contains(&granted.covers) { granted.covers } else { Covers::Tool };
                let topic = topic.widened(covers, facts.identity);
                self.remember(facts, topic, Answered::Allow, granted.scope, granted.lasts).await;
                Ok(Permission { by: DecidedBy::Gate, reason: "allowed when asked".to_owned(), granted })
            }
            Verdict::Decline { scope, reason } => {
                self.remember(facts, topic, Answered::Deny, scope, None).await;
                Err(declined(reason))
            }
            Verdict::Cancel => Err(cancelled()),
            Verdict::Deferred => Err(deferred()),
        }
    }

    /// Returns the stored answer for this topic or a wider one. An answer for this topic takes precedence.
    pub(super) async fn remembered(
        &self,
        facts: &Facts<'_>,
        topic: &Topic,
        wider: &[Covers],
    ) -> Option<Result<Permission, Refusal>> {
        let answers = self.answers.clone();
        let mut topics = vec![topic.clone()];
        topics.extend(wider.iter().map(|covers| topic.widened(*covers, facts.identity)));
        let (project, now) = (facts.project.map(ToOwned::to_owned), self.now());
        let find = move || {
            for topic in &topics {
                if let Some(found) = answers.find(topic, project.as_deref(), now)? {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        };
        let found = blocking(find).await;
        match found {
            Err(refusal) => Some(Err(refusal)),
            Ok(None) => None,
            Ok(Some(Answered::Allow)) => {
                Some(Ok(Permission::new(DecidedBy::Remembered, "allowed when asked before")))
            }
            Ok(Some(Answered::Deny)) => {
                let reason = "declined when asked before";
                Some(Err(Refusal::new(RefusalKind::Denied, DecidedBy::Remembered, reason)))
            }
        }
    }

    /// Stores an answer. It applies even if it cannot be stored.
    async fn remember(
        &self,
        facts: &Facts<'_>,
        topic: Topic,
        answer: Answered,
        scope: Scope,
        lasts: Option<Duration>,
    ) {
        if scope == Scope::Once {
            return;
        }
        let (answers, now) = (self.answers.clone(), self.now());
        let project = facts.project.map(ToOwned::to_owned);
        let expires = lasts.and_then(|lasts| now.checked_add(lasts.min(MAX_LASTING)));
        let kept =
            blocking(move || answers.remember(&topic, answer, scope, project.as_deref(), expires, now)).await;
        if let Err(refusal) = kept {
            tracing::warn!(reason = refusal.reason(), "an answer could not be remembered");
        }
    }

    /// Asks a question, unless too many of its server are unanswered.
    pub(super) async fn put(&self, facts: &Facts<'_>, question: Question) -> Result<Verdict, Refusal> {
        // A caller that answers for itself is asked once per call, because of its own call.
        if let Some(gate) = facts.gate {
            return Ok(gate.ask(question).await);
        }
        let is_of_server = question.is_asked_by_server();
        let ticket = self.questions.admit(question.server(), self.now()).map_err(|reason| {
            let reason = match question.why() {
                Some(why) => format!("approval is needed ({why}), but {reason}"),
                None => reason,
            };
            Refusal::new(RefusalKind::Limited, DecidedBy::Limit, reason)
        })?;
        let mut withdrawn = self.withdrawn.subscribe();
        let verdict = tokio::select! {
            biased;
            _ = withdrawn.wait_for(|withdrawn| *withdrawn) => Verdict::Cancel,
            verdict = async { self.gate.ask(question).await } => verdict,
        };
        match &verdict {
            Verdict::Allow(_) | Verdict::Deferred => ticket.answered(),
            // Otherwise a server could keep asking a user who always declines.
            Verdict::Decline { .. } if !is_of_server => ticket.answered(),
            Verdict::Decline { .. } | Verdict::Cancel => {}
        }
        Ok(verdict)
    }
}

pub(super) fn deferred() -> Refusal {
    Refusal::new(RefusalKind::Deferred, DecidedBy::Gate, "the caller is asked")
}

pub(super) fn declined(reason: Option<String>) -> Refusal {
    let reason = reason.unwrap_or_else(|| "declined when asked".to_owned());
    Refusal::new(RefusalKind::Declined, DecidedBy::Gate, reason)
}

pub(super) fn cancelled() -> Refusal {
    Refusal::new(RefusalKind::Cancelled, DecidedBy::Gate, "the question was not answered")
}

/// Runs file operations on a blocking thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Refusal> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| Refusal::unusable(&error)),
        Err(error) => Err(Refusal::new(RefusalKind::Unsafe, DecidedBy::Check, error.to_string())),
    }
}
