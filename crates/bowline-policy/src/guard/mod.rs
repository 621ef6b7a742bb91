//! The guard: checks pins, rules, remembered answers and limits, asks the user, and writes the audit log.

mod call;
mod decide;
mod decision_log;
mod permit;
mod preview;
mod question;
mod task;

use bowline_types::RawJson;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::SystemTime;
use tokio::sync::watch;

use super::answers::Answers;
use super::definition::Definition;
use super::gate::Gate;
use super::headless::Headless;
use super::limit::{QuestionLimit, Questions};
use super::pins::Pins;
use super::rules::{Action, Caller, Policy, Trust};
use crate::audit::Audit;
use bowline_client::Opener;

pub use permit::{Ended, Permit, Refusal, RefusalKind};
pub use preview::Preview;
pub use question::Sampling;
pub use task::TaskFacts;

/// The clock of the guard.
pub type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// The context of an action: the caller, the server and the project.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// The server, by its configured name.
    pub server: &'a str,
    /// Whether the user trusts the server.
    pub trust: Trust,
    /// The caller.
    pub caller: Caller<'a>,
    /// The project, if there is one; usually its path.
    pub project: Option<&'a str>,
    /// The identity of the server: a digest of its command line or URL. Pins belong to it rather than to the name,
    /// which two configurations can use for different servers. Without it they belong to the name.
    pub identity: Option<&'a str>,
    /// The gate for questions about this action, instead of the guard's own.
    pub gate: Option<&'a dyn Gate>,
}

/// A call to decide about.
#[derive(Clone, Copy, Debug)]
pub struct CallFacts<'a> {
    /// The context.
    pub facts: Facts<'a>,
    /// The current definition of the tool.
    pub definition: &'a Definition,
    /// The arguments that will be sent.
    pub arguments: &'a RawJson,
}

/// What happens with new tools of a known server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NewTools {
    /// They are pinned.
    Accept,
    /// They are pinned and logged.
    #[default]
    Report,
    /// They are pinned after the user was asked.
    Ask,
}

/// Decides whether an action is allowed, and asks the user if necessary.
///
/// ```
/// use bowline_policy::{CallFacts, Definition, Facts, Guard, Policy, Rule};
/// use bowline_types::{RawJson, Tool};
///
/// # async fn run() {
/// let guard = Guard::builder().policy(Policy::new([Rule::allow().server("files").tool("read")])).build();
/// let read = Definition::of(&Tool::new("read", RawJson::empty_object()));
/// let facts = Facts { server: "files", ..Facts::default() };
/// let arguments = RawJson::empty_object();
/// let permit = guard.check(&CallFacts { facts, definition: &read, arguments: &arguments }).await;
/// assert!(permit.is_ok());
/// # }
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run());
/// ```
pub struct Guard {
    policy: RwLock<Arc<Policy>>,
    gate: Arc<dyn Gate>,
    answers: Answers,
    pins: Option<Pins>,
    new_tools: NewTools,
    questions: Questions,
    audit: Option<Audit>,
    opener: Option<Arc<dyn Opener>>,
    clock: Clock,
    /// Concurrent identical questions wait for the first of them.
    question_locks: Mutex<HashMap<QuestionKey, Weak<tokio::sync::Mutex<()>>>>,
    /// Set when no more questions may be asked.
    withdrawn: watch::Sender<bool>,
}

type QuestionKey = (Action, String, String);

impl Guard {
    /// Returns the gate for questions.
    pub fn gate(&self) -> &dyn Gate {
        &*self.gate
    }

    /// Returns a builder.
    pub fn builder() -> GuardBuilder {
        GuardBuilder {
            policy: Policy::default(),
            gate: Arc::new(Headless),
            answers: Answers::in_memory(),
            pins: None,
            new_tools: NewTools::default(),
            limit: QuestionLimit::default(),
            audit: None,
            opener: None,
            clock: Arc::new(SystemTime::now),
        }
    }

    /// Replaces the policy. Earlier decisions stay valid.
    pub fn set_policy(&self, policy: Policy) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// Withdraws open questions and asks no more. They count as not answered.
    pub fn withdraw_questions(&self) {
        self.withdrawn.send_replace(true);
    }

    /// Returns the number of questions of a server that were declined because of the limit.
    pub fn declined_questions(&self, server: &str) -> u64 {
        self.questions.declined(server)
    }

    /// Returns the audit log, if there is one.
    pub fn audit(&self) -> Option<&Audit> {
        self.audit.as_ref()
    }

    /// Returns the stored answers.
    pub fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Returns the pins, if definitions are compared.
    pub fn pins(&self) -> Option<&Pins> {
        self.pins.as_ref()
    }

    /// Returns the present policy.
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn now(&self) -> SystemTime {
        (self.clock)()
    }

    /// Returns the lock that identical questions share.
    fn question_lock(&self, action: Action, server: &str, name: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut question_locks = self.question_locks.lock().unwrap_or_else(PoisonError::into_inner);
        question_locks.retain(|_, lock| lock.strong_count() > 0);
        let key = (action, server.to_owned(), name.to_owned());
        if let Some(lock) = question_locks.get(&key).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::default();
        question_locks.insert(key, Arc::downgrade(&lock));
        lock
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Guard")
            .field("policy", &self.policy)
            .field("answers", &self.answers)
            .field("pins", &self.pins)
            .field("audit", &self.audit)
            .finish_non_exhaustive()
    }
}

/// Configures a [`Guard`].
#[must_use = "it does nothing until it is built"]
pub struct GuardBuilder {
    policy: Policy,
    gate: Arc<dyn Gate>,
    answers: Answers,
    pins: Option<Pins>,
    new_tools: NewTools,
    limit: QuestionLimit,
    audit: Option<Audit>,
    opener: Option<Arc<dyn Opener>>,
    clock: Clock,
}

impl GuardBuilder {
    /// Sets the rules. Default: none.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the gate for questions. Default: [`Headless`].
    pub fn gate(mut self, gate: impl Gate + 'static) -> Self {
        self.gate = Arc::new(gate);
        self
    }

    /// Sets the store of answers. Default: in memory.
    pub fn answers(mut self, answers: Answers) -> Self {
        self.answers = answers;
        self
    }

    /// Sets the store of pins. Default: none, so changes of definitions are not detected.
    pub fn pins(mut self, pins: Pins) -> Self {
        self.pins = Some(pins);
        self
    }

    /// Sets what happens with new tools of known servers.
    pub fn new_tools(mut self, new_tools: NewTools) -> Self {
        self.new_tools = new_tools;
        self
    }

    /// Sets the limit on unanswered questions of one server.
    pub fn question_limit(mut self, limit: QuestionLimit) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the audit log. Default: none.
    pub fn audit(mut self, audit: Audit) -> Self {
        self.audit = Some(audit);
        self
    }

    /// Sets what opens URLs after consent. Default: they are not opened, only shown by the gate.
    pub fn opener(mut self, opener: impl Opener + 'static) -> Self {
        self.opener = Some(Arc::new(opener));
        self
    }

    /// Sets the clock. Default: the system clock.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Builds the guard.
    pub fn build(self) -> Guard {
        Guard {
            policy: RwLock::new(Arc::new(self.policy)),
            gate: self.gate,
            answers: self.answers,
            pins: self.pins,
            new_tools: self.new_tools,
            questions: Questions::new(self.limit),
            audit: self.audit,
            opener: self.opener,
            clock: self.clock,
            question_locks: Mutex::default(),
            withdrawn: watch::Sender::new(false),
        }
    }
}

impl fmt::Debug for GuardBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("GuardBuilder")
            .field("policy", &self.policy)
            .field("answers", &self.answers)
            .field("pins", &self.pins)
            .field("new_tools", &self.new_tools)
            .field("limit", &self.limit)
            .field("audit", &self.audit)
            .finish_non_exhaustive()
    }
}
