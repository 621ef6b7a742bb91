//! The state of a call between two rounds, which its caller carries.

use crate::tap::current_call;
use bowline_proto::{
    replay::{OpenQuestions, Question, Replay},
    service::{Call, Outcome},
};
use bowline_types::{Id, RawJson, RawMap, RpcError};
use serde::{Deserialize, Serialize};

/// The key of the round state in the replay of a call.
const ROUND_STATE: &str = "host";

/// State of a call between two rounds. The client carries it, sealed, so only this host can read or forge it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RoundState {
    pub(super) completed_rounds: u32,
    /// Key of the call in `ParkedCalls` if a legacy upstream is waiting for the answer.
    pub(super) parked_call: Option<String>,
    /// The `requestState` of a modern server, which is called again with it.
    pub(super) upstream_state: Option<String>,
    /// The task of a modern server that waits for the answers.
    pub(super) upstream_task: Option<String>,
    /// Keys of the questions of that task that were answered in earlier rounds.
    pub(super) answered: Vec<String>,
    /// What the host has already answered itself.
    pub(super) answers: RawMap,
    /// Keys of the questions that are elicitations.
    pub(super) elicitations: Vec<String>,
    /// The questions are URLs to visit. Their answers are not sent to the server.
    pub(super) is_url_elicitation: bool,
    /// The host asks whether the call is allowed. Nothing was sent to the server.
    pub(super) is_consent: bool,
    /// The [`Route::target`] of the call. A retry must have the same.
    pub(super) target: String,
    /// The connection and id of this round, if somebody watches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) origin: Option<(u64, Id)>,
}

impl RoundState {
    pub(super) fn new(completed_rounds: u32, target: String) -> Self {
        Self {
            completed_rounds,
            parked_call: None,
            upstream_state: None,
            upstream_task: None,
            answered: Vec::new(),
            answers: RawMap::new(),
            elicitations: Vec::new(),
            is_url_elicitation: false,
            is_consent: false,
            target,
            origin: current_call().map(|call| (call.connection, call.id)),
        }
    }

    /// Returns the state that the retry of a caller brings back.
    pub(super) fn of(call: &Call) -> Option<Self> {
        call.replay.kept(ROUND_STATE).and_then(|state| state.decode().ok())
    }
}

/// Returns the outcome that asks the caller.
pub(super) fn ask(questions: Vec<Question>, state: &RoundState) -> Result<Outcome, RpcError> {
    let mut replay = Replay::default();
    replay.keep(ROUND_STATE, RawJson::of(state).map_err(|error| RpcError::internal(error.to_string()))?);
    Ok(Outcome::NeedsInput(Box::new(OpenQuestions { questions, replay })))
}
