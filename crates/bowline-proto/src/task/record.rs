//! What a store keeps of one task.

use crate::{
    caller::Caller,
    replay::{Answer, Fingerprint, Question, Replay},
    scope::Scopes,
    service::ClientView,
};
use bowline_types::{InputRequest, ProgressToken, RawJson, RawMap, Revision, RpcError};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, sync::Arc};

/// The format that this version writes. It reads this one and older ones.
pub const RECORD_FORMAT: u32 = 1;

/// Values above this length, in bytes, have a record of their own instead of being part of the task's record.
pub const MAX_INLINE_BYTES: usize = 8 * 1024;

/// A value of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// The value.
    Inline(RawJson),
    /// The value is in a record of its own.
    Stored,
}

/// Where a task stands. `Working` is a task that runs and one that waits for its turn: the store knows which.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// The task runs or waits to run.
    Working,
    /// The task waits for answers.
    Asking,
    /// The task ended.
    Done(Ending),
    /// The task was cancelled.
    Cancelled,
}

/// How a task ended: as its call would have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// With a result.
    Result {
        /// Whether it is marked as an error (`isError`).
        is_error: bool,
        /// The result.
        body: Body,
    },
    /// With a JSON-RPC error.
    Error(RpcError),
}

/// The caller of a task, as later rounds need it. It contains no token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskCaller {
    /// The revision of the call.
    pub revision: Revision,
    /// The authenticated user, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// What the client declared.
    pub capabilities: RawJson,
    /// Name and version of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<RawJson>,
    /// What the access token said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenFacts>,
    /// The token under which the caller wants progress (2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_token: Option<ProgressToken>,
    /// The `_meta` of the call that handlers see, such as `traceparent`: without the members of the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<RawJson>,
}

/// What an access token said about its bearer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenFacts {
    issuer: String,
    subject: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    scopes: String,
    implied: String,
}

impl TokenFacts {
    fn of(caller: &Caller) -> Self {
        let text = |scopes: &Scopes| scopes.iter().collect::<Vec<_>>().join(" ");
        Self {
            issuer: caller.issuer().to_owned(),
            subject: caller.subject().to_owned(),
            client_id: caller.client_id().map(str::to_owned),
            scopes: text(caller.scopes()),
            implied: text(caller.implied_scopes()),
        }
    }

    /// Returns the caller, without claims and without token.
    pub fn to_caller(&self) -> Caller {
        let mut caller = Caller::new(self.issuer.as_str(), self.subject.as_str())
            .with_scopes(Scopes::parse(&self.scopes))
            .with_implied_scopes(Scopes::parse(&self.implied));
        if let Some(client_id) = &self.client_id {
            caller = caller.with_client_id(client_id.as_str());
        }
        caller
    }
}

impl TaskCaller {
    /// Keeps what later rounds need of a client and of its verified token. Name and version of the client are left out if
    /// they have more than [`MAX_INLINE_BYTES`].
    pub fn of(client: &ClientView, caller: Option<&Arc<Caller>>) -> Self {
        Self {
            revision: client.revision,
            principal: client.principal.as_deref().map(str::to_owned),
            capabilities: client.raw_capabilities().clone(),
            info: client.raw_info().filter(|info| info.as_bytes().len() <= MAX_INLINE_BYTES).cloned(),
            token: caller.map(|caller| TokenFacts::of(caller)),
            progress_token: None,
            meta: None,
        }
    }

    /// Returns the client as it was when it made the call.
    pub fn to_client(&self) -> ClientView {
        let principal = self.principal.as_deref().map(Arc::from);
        ClientView::new(self.revision, principal, self.capabilities.clone(), self.info.clone())
    }
}

/// A question that waits for an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskQuestion {
    /// The key on the wire: unique in the life of the task.
    pub key: String,
    /// The key that the handler uses.
    pub name: String,
    /// The digest that the answer is bound to.
    pub fingerprint: Fingerprint,
    /// The request.
    pub request: RawJson,
    /// Until when a connection of 2025-11-25 is putting the question to the client, in milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub put_until: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl TaskQuestion {
    /// Returns the request. `None` if a newer version wrote one that this version does not know.
    pub fn input_request(&self) -> Option<InputRequest> {
        self.request.decode().ok()
    }
}

/// An answer of the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskAnswer {
    /// The key on the wire. Answers from before the task existed have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The key that the handler uses.
    pub name: String,
    /// The digest of the question.
    pub fingerprint: Fingerprint,
    /// The result of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Body>,
    /// The error of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RpcError>,
}

/// How far the work has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskProgress {
    /// Progress so far.
    pub progress: f64,
    /// Total, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
}

/// What is known of a task whose work another system does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskJob {
    /// When the other system was last asked, in milliseconds since the epoch. 0 if that has not happened.
    #[serde(default)]
    pub polled_at: u64,
    /// Whether the task was cancelled and the other system has not confirmed that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancels: bool,
    /// How often cancelling the work at the other system failed.
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub tries: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_none_yet(number: &u32) -> bool {
    *number == 0
}

/// One task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// The format; see [`RECORD_FORMAT`].
    pub format: u32,
    /// The id.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The version of the tool's code.
    #[serde(default)]
    pub version: u32,
    /// Whether the task runs again after an attempt crashed.
    pub resumes: bool,
    /// Who made the call.
    pub caller: TaskCaller,
    /// The arguments.
    pub input: Body,
    /// When the task was created, in milliseconds since the epoch.
    pub created_at: u64,
    /// When it last changed.
    pub updated_at: u64,
    /// How long it is kept after its creation, in milliseconds. A task that has not ended by then fails.
    pub ttl_ms: u64,
    /// Where it stands.
    pub state: TaskState,
    /// The status message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<TaskProgress>,
    /// How many rounds ended with questions.
    #[serde(default)]
    pub rounds: u32,
    /// How many questions the task has asked.
    #[serde(default)]
    pub asked: u32,
    /// The questions without an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<TaskQuestion>,
    /// The answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<TaskAnswer>,
    /// Small values that earlier rounds kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<(String, RawJson)>,
    /// Set if another system does the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<TaskJob>,
    /// Members of newer versions.
    #[serde(flatten)]
    pub extra: BTreeMap<String, serde_json::Value>,
}

/// Why a record cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum UnreadableRecord {
    /// A newer version wrote it in this format.
    NewerFormat(u32),
    /// It is not a task.
    Malformed(serde_json::Error),
}

impl fmt::Display for UnreadableRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NewerFormat(format) => {
                write!(f, "the task was written in format {format}; this version reads up to {RECORD_FORMAT}")
            }
            Self::Malformed(error) => write!(f, "the record of the task cannot be read: {error}"),
        }
    }
}

impl std::error::Error for UnreadableRecord {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NewerFormat(_) => None,
            Self::Malformed(error) => Some(error),
        }
    }
}

impl TaskRecord {
    /// Creates a task that waits to run. `replay` has what plain rounds of the same call learned before.
    pub fn new(id: String, tool: String, caller: TaskCaller, input: Body, replay: &Replay) -> Self {
        let answers = replay.answered().map(|(name, fingerprint, answer)| TaskAnswer {
            key: None,
            name: name.to_owned(),
            fingerprint: *fingerprint,
            result: answer.as_ref().ok().map(|result| Body::Inline(result.clone())),
            error: answer.as_ref().err().cloned(),
        });
        Self {
            format: RECORD_FORMAT,
            id,
            tool,
            version: 1,
            resumes: false,
            caller,
            input,
            created_at: 0,
            updated_at: 0,
            ttl_ms: 0,
            state: TaskState::Working,
            status: None,
            progress: None,
            rounds: replay.rounds(),
            asked: 0,
            questions: Vec::new(),
            answers: answers.collect(),
            kept: replay.kept_values().map(|(name, value)| (name.to_owned(), value.clone())).collect(),
            job: None,
            extra: BTreeMap::new(),
        }
    }

    /// Returns whether the job still has to be cancelled in the other system.
    pub fn cancels_outside(&self) -> bool {
        self.job.as_ref().is_some_and(|job| job.cancels)
    }

    /// Reads a record.
    pub fn decode(value: &[u8]) -> Result<Self, UnreadableRecord> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let Format { format } = serde_json::from_slice(value).map_err(UnreadableRecord::Malformed)?;
        if format > RECORD_FORMAT {
            return Err(UnreadableRecord::NewerFormat(format));
        }
        serde_json::from_slice(value).map_err(UnreadableRecord::Malformed)
    }

    /// Writes the record.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns whether the task has ended.
    pub fn is_terminal(&self) -> bool {
        matches!(self.state, TaskState::Done(_) | TaskState::Cancelled)
    }

    /// Returns the name of the code that runs the task: `index@2`.
    pub fn queue(&self) -> String {
        format!("{}@{}", self.tool, self.version)
    }

    /// Returns the keys of the answers that have a record of their own.
    pub fn stored_answers(&self) -> impl Iterator<Item = &str> {
        let stored = |answer: &&TaskAnswer| answer.result == Some(Body::Stored);
        self.answers.iter().filter(stored).filter_map(|answer| answer.key.as_deref())
    }

    /// Returns what earlier rounds learned. `stored` returns the answers that have a record of their own.
    pub fn replay(&self, stored: impl Fn(&str) -> Option<RawJson>) -> Replay {
        let mut replay = Replay::default();
        for known in &self.answers {
            let answer: Option<Answer> = match (&known.result, &known.error) {
                (Some(Body::Inline(result)), _) => Some(Ok(result.clone())),
                (Some(Body::Stored), _) => known.key.as_deref().and_then(&stored).map(Ok),
                (None, Some(error)) => Some(Err(error.clone())),
                (None, None) => None,
            };
            if let Some(answer) = answer {
                replay.restore(&known.name, known.fingerprint, answer);
            }
        }
        for (name, value) in &self.kept {
            replay.keep(name, value.clone());
        }
        for _ in 0..self.rounds {
            replay.advance();
        }
        replay
    }

    /// Returns the suggested interval of polls, in milliseconds: longer for older tasks.
    pub fn poll_interval_ms(&self, now: u64) -> u64 {
        (now.saturating_sub(self.created_at) / 20).clamp(500, 5000)
    }

    /// Returns the question with this key on the wire, if it waits for an answer.
    pub fn question(&self, key: &str) -> Option<&TaskQuestion> {
        self.questions.iter().find(|question| question.key == key)
    }

    pub(super) fn ask(&mut self, question: &Question) {
        self.asked += 1;
        self.questions.push(TaskQuestion {
            key: format!("q{}", self.asked),
            name: question.key.clone(),
            fingerprint: question.fingerprint,
            request: RawJson::of(&question.request).unwrap_or_else(|_| RawJson::empty_object()),
            put_until: 0,
        });
    }
}

impl TaskRecord {
    /// Keeps the responses whose keys are questions without an answer. The others are ignored.
    pub fn responses(&self, responses: &RawMap) -> Vec<(String, RawJson)> {
        let known = responses.iter().filter(|(key, _)| self.question(key).is_some());
        known.map(|(key, response)| (key.to_owned(), response.clone())).collect()
    }
}
