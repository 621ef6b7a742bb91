//! The guard: checks pins, rules, remembered answers and limits, asks the user, and writes the audit log.

mod call;
mod permit;
mod question;
mod settle;
mod trail;

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
pub use question::Sampling;

/// Where the guard has the time from.
pub type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// On whose behalf, with which server, and where.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// The server, by the name the user gave it.
    pub server: &'a str,
    /// Whether the user trusts it.
    pub trust: Trust,
    /// On whose behalf.
    pub caller: Caller<'a>,
    /// The project, where there is one; usually the path of its folder.
    pub project: Option<&'a str>,
    /// What the server is: a digest of its command line or URL. Pins belong to it rather than to the name, which two
    /// configurations may use for different servers. Without it they belong to the name.
    pub identity: Option<&'a str>,
    /// Who answers questions about this, instead of the guard's own gate.
    pub gate: Option<&'a dyn Gate>,
}

/// A call that is about to be made.
#[derive(Clone, Copy, Debug)]
pub struct CallFacts<'a> {
    /// On whose behalf, with which server, and where.
    pub facts: Facts<'a>,
    /// The tool as its server lists it now.
    pub definition: &'a Definition,
    /// The arguments as they will be sent.
    pub arguments: &'a RawJson,
}

/// What happens with tools that a known server did not have when it was first met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NewTools {
    /// They are pinned.
    Accept,
    /// They are pinned, and told in the logs.
    #[default]
    Report,
    /// They are not pinned before someone was asked.
    Ask,
}

/// Decides whether something may happen, and asks where it has to.
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
    /// Those who would ask the same wait for the first of them.
    question_locks: Mutex<HashMap<QuestionKey, Weak<tokio::sync::Mutex<()>>>>,
    /// Set when nobody is to be asked any more.
    withdrawn: watch::Sender<bool>,
}

type QuestionKey = (Action, String, String);

impl Guard {
    /// A guard to be set up.
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

    /// Puts another policy in the place of the one that holds. What was decided stays decided.
    pub fn set_policy(&self, policy: Policy) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// Withdraws the questions that are open, and asks none from now on: they count as not answered.
    pub fn withdraw_questions(&self) {
        self.withdrawn.send_replace(true);
    }

    /// How many questions of a server were declined because it caused too many.
    pub fn declined_questions(&self, server: &str) -> u64 {
        self.questions.declined(server)
    }

    /// Where decisions and calls are written, if anywhere.
    pub fn audit(&self) -> Option<&Audit> {
        self.audit.as_ref()
    }

    fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn now(&self) -> SystemTime {
        (self.clock)()
    }

    /// The lock that those who would ask the same share.
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

/// Sets a [`Guard`] up.
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
    /// The rules; without it, the defaults alone.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Where questions go; without it, [nowhere](Headless).
    pub fn gate(mut self, gate: impl Gate + 'static) -> Self {
        self.gate = Arc::new(gate);
        self
    }

    /// Where answers are kept; without it, in memory.
    pub fn answers(mut self, answers: Answers) -> Self {
        self.answers = answers;
        self
    }

    /// Where definitions are pinned; without it, changes are not noticed.
    pub fn pins(mut self, pins: Pins) -> Self {
        self.pins = Some(pins);
        self
    }

    /// What happens with new tools of known servers.
    pub fn new_tools(mut self, new_tools: NewTools) -> Self {
        self.new_tools = new_tools;
        self
    }

    /// How many questions of one server may be unanswered.
    pub fn question_limit(mut self, limit: QuestionLimit) -> Self {
        self.limit = limit;
        self
    }

    /// Where decisions and calls are written; without it, nowhere.
    pub fn audit(mut self, audit: Audit) -> Self {
        self.audit = Some(audit);
        self
    }

    /// What opens pages after the user has agreed; without it, the gate has shown them, and that is all.
    pub fn opener(mut self, opener: impl Opener + 'static) -> Self {
        self.opener = Some(Arc::new(opener));
        self
    }

    /// Where the time comes from; without it, from the system.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The guard.
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
