//! Decides about requests of servers: sampling, elicitation, roots.

use bowline_types::{
    CreateMessageParams, CreateMessageResult, ElicitFormParams, ElicitParams, ElicitResult, ElicitSchema,
    ElicitUrlParams, InputRequest, PrimitiveSchema, Root, StringFormat,
};

use super::call::{request, topic};
use super::decide::{cancelled, declined, deferred};
use super::decision_log::DecisionLog;
use super::permit::{Refusal, RefusalKind};
use super::{Facts, Guard};
use crate::gate::{Edit, Granted, Question, Scope, Verdict};
use crate::headless::refusal;
use crate::rule::Effect;
use crate::rules::{Action, DecidedBy};
use bowline_client::ShownUrl;
use bowline_text::asks_for_secret;

/// The maximum number of fields of a form.
const MAX_FIELDS: usize = 100;

/// The permission to send a request to a model.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "what the model is asked may have been edited"]
#[non_exhaustive]
pub struct Sampling {
    /// The request, as the server sent it or as the user changed it.
    pub request: CreateMessageParams,
    /// Whether the user must also review the response, because they reviewed only this request.
    review: bool,
}

impl Guard {
    /// Decides whether a server may send a request to a model.
    pub async fn sample(&self, facts: &Facts<'_>, asked: CreateMessageParams) -> Result<Sampling, Refusal> {
        let decision_log = DecisionLog::begin(self, facts, Action::Sample, "", None);
        let decision = self.policy().decide(&request(facts, Action::Sample, ""));
        let permission = self
            .decide_or_ask(facts, decision, topic(facts, Action::Sample, None), &[], |why, scopes| {
                Question::Sample {
                    server: facts.server.to_owned(),
                    request: Box::new(asked.clone()),
                    why,
                    scopes,
                }
            })
            .await;
        let permission = permission.and_then(|permission| match permission.granted.edit {
            None => Ok((asked, permission.by, permission.reason, permission.granted.scope)),
            Some(Edit::Request(edited)) => Ok((
                *edited,
                permission.by,
                "edited and allowed when asked".to_owned(),
                permission.granted.scope,
            )),
            Some(Edit::Result(_) | Edit::Form(_)) => Err(wrong_kind_of_answer()),
        });
        match permission {
            Ok((request, by, reason, scope)) => {
                decision_log.allowed(by, &reason);
                Ok(Sampling { request, review: by == DecidedBy::Gate && scope == Scope::Once })
            }
            Err(refusal) => Err(decision_log.refused(refusal)),
        }
    }

    /// Decides whether the response of the model may be sent to the server, and returns it.
    pub async fn sampled(
        &self,
        facts: &Facts<'_>,
        sampling: &Sampling,
        result: CreateMessageResult,
    ) -> Result<CreateMessageResult, Refusal> {
        if !sampling.review {
            return Ok(result);
        }
        let decision_log = DecisionLog::begin(self, facts, Action::Sample, "", None);
        let question =
            Question::SampleResult { server: facts.server.to_owned(), result: Box::new(result.clone()) };
        let verdict = match self.put(facts, question).await {
            Ok(Verdict::Allow(Granted { edit: None, .. })) => Ok((result, "the answer was allowed")),
            Ok(Verdict::Allow(Granted { edit: Some(Edit::Result(edited)), .. })) => {
                Ok((*edited, "the answer was edited and allowed"))
            }
            Ok(Verdict::Allow(_)) => Err(wrong_kind_of_answer()),
            Ok(Verdict::Decline { reason, .. }) => Err(declined(reason)),
            Ok(Verdict::Cancel) => Err(cancelled()),
            Ok(Verdict::Deferred) => Err(deferred()),
            Err(refusal) => Err(refusal),
        };
        match verdict {
            Ok((result, reason)) => {
                decision_log.allowed(DecidedBy::Gate, reason);
                Ok(result)
            }
            Err(refusal) => Err(decision_log.refused(refusal)),
        }
    }

    /// Passes a question of a server to the user. Returns a decline if the user declines, or if a rule or limit
    /// prevents the question. Refuses a question that is not safe to show.
    ///
    /// A rule that allows cannot answer: only the user can.
    pub async fn elicit(&self, facts: &Facts<'_>, asked: ElicitParams) -> Result<ElicitResult, Refusal> {
        let (decision_log, answer) = match asked {
            ElicitParams::Form(form) => {
                let decision_log = DecisionLog::begin(self, facts, Action::Form, "", None);
                (decision_log, self.fill(facts, form).await)
            }
            ElicitParams::Url(page) => {
                let decision_log = DecisionLog::begin(self, facts, Action::Visit, &page.url, None);
                (decision_log, self.visit(facts, &page).await)
            }
        };
        match answer {
            Ok((result, reason)) => {
                decision_log.allowed(DecidedBy::Gate, reason);
                Ok(result)
            }
            Err(refusal) => match decision_log.refused(refusal) {
                refusal if refusal.kind() == RefusalKind::Unsafe => Err(refusal),
                refusal if refusal.kind() == RefusalKind::Cancelled => Ok(ElicitResult::cancel()),
                _ => Ok(ElicitResult::decline()),
            },
        }
    }

    /// Decides whether the roots may be sent to a server.
    pub async fn roots(&self, facts: &Facts<'_>, roots: &[Root]) -> Result<(), Refusal> {
        let decision_log = DecisionLog::begin(self, facts, Action::Roots, "", None);
        let decision = self.policy().decide(&request(facts, Action::Roots, ""));
        let permission = self
            .decide_or_ask(facts, decision, topic(facts, Action::Roots, None), &[], |why, scopes| {
                Question::Roots { server: facts.server.to_owned(), roots: roots.to_vec(), why, scopes }
            })
            .await;
        match permission {
            Ok(permission) => {
                decision_log.allowed(permission.by, &permission.reason);
                Ok(())
            }
            Err(refusal) => Err(decision_log.refused(refusal)),
        }
    }

    /// Returns whether a rule asks before roots are sent to a server.
    pub fn asks_about_roots(&self, facts: &Facts<'_>) -> bool {
        let decision = self.policy().decide(&request(facts, Action::Roots, ""));
        decision.effect == Effect::Ask && decision.by == DecidedBy::Rule
    }

    /// Decides whether configured roots may be sent to a server if nobody can be asked. The configuration counts as
    /// consent, unless a rule denies or asks.
    pub fn disclose(&self, facts: &Facts<'_>, roots: &[Root]) -> Result<(), Refusal> {
        let decision_log = DecisionLog::begin(self, facts, Action::Roots, "", None);
        let decision = self.policy().decide(&request(facts, Action::Roots, ""));
        match decision.effect {
            Effect::Deny => {
                Err(decision_log.refused(Refusal::new(RefusalKind::Denied, decision.by, decision.reason)))
            }
            Effect::Ask if decision.by == DecidedBy::Rule => {
                let (server, roots, scopes) = (facts.server.to_owned(), roots.to_vec(), Vec::new());
                let question = Question::Roots { server, roots, why: decision.reason, scopes };
                Err(decision_log.refused(declined(Some(refusal(&question)))))
            }
            Effect::Ask | Effect::Allow => {
                decision_log.allowed(DecidedBy::Check, "configured for this server");
                Ok(())
            }
        }
    }

    /// Decides whether a question of a server may be forwarded to the caller, whose host asks its user. Refuses what a
    /// rule denies and what is not safe to show.
    pub fn forward(&self, facts: &Facts<'_>, asked: &InputRequest) -> Result<(), Refusal> {
        let (action, name) = match asked {
            InputRequest::Elicit(ElicitParams::Form(_)) => (Action::Form, ""),
            InputRequest::Elicit(ElicitParams::Url(page)) => (Action::Visit, page.url.as_str()),
            InputRequest::CreateMessage(_) => (Action::Sample, ""),
            InputRequest::ListRoots => (Action::Roots, ""),
        };
        let decision_log = DecisionLog::begin(self, facts, action, name, None);
        let checked = self.refuse_denied(facts, action, name).and_then(|()| match asked {
            InputRequest::Elicit(ElicitParams::Form(form)) => check_form(&form.requested_schema),
            InputRequest::Elicit(ElicitParams::Url(page)) => self.check_page(facts, page).map(drop),
            InputRequest::CreateMessage(_) | InputRequest::ListRoots => Ok(()),
        });
        match checked {
            Ok(()) => {
                decision_log.allowed(DecidedBy::Check, "left to the caller");
                Ok(())
            }
            Err(refusal) => Err(decision_log.refused(refusal)),
        }
    }

    async fn fill(
        &self,
        facts: &Facts<'_>,
        form: ElicitFormParams,
    ) -> Result<(ElicitResult, &'static str), Refusal> {
        self.refuse_denied(facts, Action::Form, "")?;
        let ElicitFormParams { message, requested_schema: schema, .. } = form;
        check_form(&schema)?;
        let question =
            Question::Form { server: facts.server.to_owned(), message, schema: Box::new(schema.clone()) };
        match self.put(facts, question).await? {
            Verdict::Allow(Granted { edit: Some(Edit::Form(content)), .. }) => {
                bowline_client::check_form(&schema, &content)
                    .map_err(|error| not_safe(format!("invalid answer: {error}")))?;
                Ok((ElicitResult::accept(content), "filled in"))
            }
            Verdict::Allow(_) => Err(wrong_kind_of_answer()),
            Verdict::Decline { reason, .. } => Err(declined(reason)),
            Verdict::Cancel => Err(cancelled()),
            Verdict::Deferred => Err(deferred()),
        }
    }

    async fn visit(
        &self,
        facts: &Facts<'_>,
        page: &ElicitUrlParams,
    ) -> Result<(ElicitResult, &'static str), Refusal> {
        self.refuse_denied(facts, Action::Visit, &page.url)?;
        let url = self.check_page(facts, page)?;
        let question = Question::Visit {
            server: facts.server.to_owned(),
            message: page.message.clone(),
            url: url.clone(),
        };
        match self.put(facts, question).await? {
            Verdict::Allow(Granted { edit: None, opened: true, .. }) => {
                return Ok((ElicitResult::consent(), "the page was opened"));
            }
            Verdict::Allow(Granted { edit: None, .. }) => {}
            Verdict::Allow(_) => return Err(wrong_kind_of_answer()),
            Verdict::Decline { reason, .. } => return Err(declined(reason)),
            Verdict::Cancel => return Err(cancelled()),
            Verdict::Deferred => return Err(deferred()),
        }
        let Some(opener) = &self.opener else {
            return Ok((ElicitResult::consent(), "the page may be visited"));
        };
        match opener.open(&url).await {
            Ok(()) => Ok((ElicitResult::consent(), "the page was opened")),
            Err(error) => {
                // Do not report success for a page that was not opened.
                tracing::warn!(%error, "the page could not be opened");
                let reason = format!("the page could not be opened: {error}");
                Err(Refusal::new(RefusalKind::Cancelled, DecidedBy::Check, reason))
            }
        }
    }

    /// Checks that a page is safe to show, and that no rule denies its URL in any spelling.
    fn check_page(&self, facts: &Facts<'_>, page: &ElicitUrlParams) -> Result<ShownUrl, Refusal> {
        let url = ShownUrl::parse(&page.url).map_err(|error| not_safe(error.to_string()))?;
        self.refuse_denied(facts, Action::Visit, &url.normalized())?;
        Ok(url)
    }

    /// Returns why a resource must not be read, if a rule denies it. Does not ask, and does not write to the audit log.
    pub fn denied_reading(&self, facts: &Facts<'_>, uri: &str) -> Option<Refusal> {
        self.refuse_denied(facts, Action::Read, uri).err()
    }

    fn refuse_denied(&self, facts: &Facts<'_>, action: Action, name: &str) -> Result<(), Refusal> {
        let decision = self.policy().decide(&request(facts, action, name));
        match decision.effect {
            Effect::Deny => Err(Refusal::new(RefusalKind::Denied, decision.by, decision.reason)),
            Effect::Allow | Effect::Ask => Ok(()),
        }
    }
}

fn check_form(schema: &ElicitSchema) -> Result<(), Refusal> {
    if schema.properties.len() > MAX_FIELDS {
        return Err(not_safe(format!("expected a form of at most {MAX_FIELDS} fields")));
    }
    match schema.properties.iter().find(|(name, field)| is_for_secret(name, field)) {
        Some((name, _)) => {
            Err(not_safe(format!("a form must not ask for secrets, but `{name}` looks like one")))
        }
        None => Ok(()),
    }
}

fn is_for_secret(name: &str, field: &PrimitiveSchema) -> bool {
    let (title, format) = match field {
        PrimitiveSchema::String(schema) => (schema.title.as_deref(), schema.format.as_ref()),
        PrimitiveSchema::Number(schema) => (schema.title.as_deref(), None),
        // A choice from a list is not a secret.
        PrimitiveSchema::Boolean(_) | PrimitiveSchema::Enum(_) | PrimitiveSchema::MultiSelect(_) => {
            return false;
        }
        _ => return asks_for_secret(name),
    };
    asks_for_secret(name)
        || title.is_some_and(asks_for_secret)
        || format.is_some_and(|format: &StringFormat| asks_for_secret(format.as_str()))
}

fn not_safe(reason: String) -> Refusal {
    Refusal::new(RefusalKind::Unsafe, DecidedBy::Check, reason)
}

/// The gate returned an answer for another kind of question.
fn wrong_kind_of_answer() -> Refusal {
    not_safe("the approval does not match the question".to_owned())
}
