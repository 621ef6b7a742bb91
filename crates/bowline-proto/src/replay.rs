//! Questions of a call, their answers, and the sealed state in which the client carries both.
//!
//! A handler that needs an answer is dropped and run again with it. Between the rounds the answers are kept in the
//! session (legacy) or, sealed, in `requestState` (modern). An answer is bound to a digest of its question: if the
//! handler asks something else with the same key, the answer is not used. Only a question whose key the author chose
//! can be answered in advance, by a client that sends answers without a state.

use crate::{
    seal::{KeyRing, SealError, digest, sealed_len},
    service::BoxFuture,
};
use bowline_json::canonical;
use bowline_types::{InputRequest, Method, RawJson, RpcError};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

/// The digest of a question.
pub type Fingerprint = [u8; 16];

/// A question for the client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Question {
    /// Key of the question within its call.
    pub key: String,
    /// The request.
    pub request: InputRequest,
    /// Digest that the answer is bound to.
    pub fingerprint: Fingerprint,
    /// Whether an answer that was sent in advance is accepted.
    pub named: bool,
}

impl Question {
    /// Creates a question.
    pub fn new(key: impl Into<String>, request: InputRequest) -> Self {
        let text = serde_json::to_vec(&request).unwrap_or_default();
        let fingerprint = shorten(digest(&[&text]));
        Self { key: key.into(), request, fingerprint, named: false }
    }

    /// Creates a question with a key that clients may know, so that they can answer it in advance.
    pub fn named(key: impl Into<String>, request: InputRequest) -> Self {
        Self { named: true, ..Self::new(key, request) }
    }
}

fn shorten(full: [u8; 32]) -> Fingerprint {
    let mut short = [0; 16];
    short.copy_from_slice(&full[..16]);
    short
}

/// What earlier rounds of a call answered and kept. It does not allocate if there is nothing.
#[derive(Clone, Debug, Default)]
pub struct Replay(Option<Box<Learned>>);

#[derive(Clone, Debug, Default)]
struct Learned {
    answers: Vec<Answered>,
    ahead: BTreeMap<String, RawJson>,
    kept: Vec<(String, RawJson)>,
    rounds: u32,
    /// The state this was opened from, which is good for one call.
    state: Option<Arc<OpenedState>>,
}

/// A state that was opened and may not be used yet. Clones of a call share it, so that a call made twice on the way to
/// its handler is still one use.
#[derive(Debug)]
pub struct OpenedState {
    id: [u8; 16],
    expires: u64,
    fresh: OnceLock<bool>,
    claimant: OnceLock<[u8; 16]>,
}

impl OpenedState {
    /// Returns the name of the state, the same in every process.
    pub fn id(&self) -> &[u8; 16] {
        &self.id
    }

    /// Returns when the state expires, in seconds since the epoch.
    pub fn expires(&self) -> u64 {
        self.expires
    }

    /// Returns the token of the call that uses the state, which `random` makes at the first use.
    pub fn claimant(&self, random: impl FnOnce() -> [u8; 16]) -> [u8; 16] {
        *self.claimant.get_or_init(random)
    }
}

/// Decides, for all processes that share the keys, which call may use a state.
pub trait UsedStates: Send + Sync + fmt::Debug {
    /// Marks a state as used by its [claimant](OpenedState::claimant). False if another call used it before.
    ///
    /// Fails if nobody knows; the call is then refused.
    fn redeem<'a>(&'a self, state: &'a OpenedState) -> BoxFuture<'a, Result<bool, RpcError>>;
}

#[derive(Clone, Debug)]
struct Answered {
    key: String,
    fingerprint: Fingerprint,
    answer: Answer,
}

/// The answer of the client: a result, or in the legacy era an error.
pub type Answer = Result<RawJson, RpcError>;

impl Replay {
    /// Creates the replay of a call whose client sends answers before any question.
    pub fn ahead(responses: &RawJson) -> Result<Self, RpcError> {
        Ok(Self(Some(Box::new(Learned { ahead: answers(responses)?, ..Learned::default() }))))
    }

    fn learned(&mut self) -> &mut Learned {
        self.0.get_or_insert_default()
    }

    /// Iterates over the digests of the questions that were answered under `key`.
    pub fn fingerprints<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Fingerprint> {
        let answers = self.0.iter().flat_map(|learned| &learned.answers);
        answers.filter(move |known| known.key == key).map(|known| &known.fingerprint)
    }

    /// Uses an answer that was sent in advance for `question`, and for no other question.
    pub fn claim(&mut self, question: &Question) {
        if question.named
            && let Some(answer) = self.0.as_mut().and_then(|learned| learned.ahead.remove(&question.key))
        {
            self.record(question, Ok(answer));
        }
    }

    /// Returns the answer to exactly this `question`.
    pub fn answer(&self, question: &Question) -> Option<&Answer> {
        let same = |known: &&Answered| known.key == question.key && known.fingerprint == question.fingerprint;
        self.0.as_ref()?.answers.iter().find(same).map(|known| &known.answer)
    }

    /// Iterates over all answers and the keys of their questions.
    pub fn answers(&self) -> impl Iterator<Item = (&str, &Answer)> {
        self.0.iter().flat_map(|learned| &learned.answers).map(|known| (&*known.key, &known.answer))
    }

    /// Iterates over all answers with the keys and digests of their questions.
    pub fn answered(&self) -> impl Iterator<Item = (&str, &Fingerprint, &Answer)> {
        let answers = self.0.iter().flat_map(|learned| &learned.answers);
        answers.map(|known| (&*known.key, &known.fingerprint, &known.answer))
    }

    /// Iterates over the values that earlier rounds kept.
    pub fn kept_values(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.0.iter().flat_map(|learned| &learned.kept).map(|(key, value)| (&**key, value))
    }

    /// Adds an answer that was stored with the digest of its question.
    pub fn restore(&mut self, key: &str, fingerprint: Fingerprint, answer: Answer) {
        self.learned().insert(key.to_owned(), fingerprint, answer);
    }

    /// Adds the answer to `question`.
    pub fn record(&mut self, question: &Question, answer: Answer) {
        self.learned().insert(question.key.clone(), question.fingerprint, answer);
    }

    /// Returns a value that an earlier round kept.
    pub fn kept(&self, key: &str) -> Option<&RawJson> {
        self.0.as_ref()?.kept.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// Keeps a value for later rounds.
    pub fn keep(&mut self, key: &str, value: RawJson) {
        let kept = &mut self.learned().kept;
        kept.retain(|(known, _)| known != key);
        kept.push((key.to_owned(), value));
    }

    /// Consumes the state that this was opened from, if any. Call it right before the handler runs, so that a call that was
    /// refused earlier can be repeated.
    ///
    /// Fails with -32602 if the state was used before or has expired.
    pub fn redeem(&self, consumed: &Mutex<Consumed>, now: fn() -> u64) -> Result<(), RpcError> {
        let Some(state) = self.0.as_ref().and_then(|learned| learned.state.as_ref()) else { return Ok(()) };
        let now = now();
        if state.expires <= now {
            return Err(expired());
        }
        let take = || {
            let mut consumed = consumed.lock().unwrap_or_else(PoisonError::into_inner);
            consumed.take(state.id, state.expires, now)
        };
        if *state.fresh.get_or_init(take) { Ok(()) } else { Err(used()) }
    }

    /// Returns whether this was opened from a state that was not used yet.
    pub fn has_unused_state(&self) -> bool {
        let state = self.0.as_ref().and_then(|learned| learned.state.as_ref());
        state.is_some_and(|state| state.fresh.get().is_none())
    }

    /// Uses up the state this was opened from, for all processes. [`Self::redeem`] then accepts it.
    ///
    /// Fails with -32602 if the state was used before or has expired.
    pub async fn redeem_with(&self, used: &dyn UsedStates, now: fn() -> u64) -> Result<(), RpcError> {
        let Some(state) = self.0.as_ref().and_then(|learned| learned.state.as_ref()) else { return Ok(()) };
        if state.expires <= now() {
            return Err(expired());
        }
        if !used.redeem(state).await? {
            return Err(self::used());
        }
        state.fresh.get_or_init(|| true);
        Ok(())
    }

    /// Returns the number of completed rounds.
    pub fn rounds(&self) -> u32 {
        self.0.as_ref().map_or(0, |learned| learned.rounds)
    }

    /// Counts a round as completed.
    pub fn advance(&mut self) {
        self.learned().rounds += 1;
    }
}

impl Learned {
    fn insert(&mut self, key: String, fingerprint: Fingerprint, answer: Answer) {
        self.answers.retain(|known| known.key != key || known.fingerprint != fingerprint);
        self.answers.push(Answered { key, fingerprint, answer });
    }
}

/// The questions of a call that needs input, and its state.
#[derive(Clone, Debug)]
pub struct OpenQuestions {
    /// The questions of this round; never empty.
    pub questions: Vec<Question>,
    /// Answers and values of the rounds so far.
    pub replay: Replay,
}

/// The principal and request that a sealed state belongs to. It cannot be opened for others.
#[derive(Debug)]
pub struct Binding([u8; 32]);

impl Binding {
    /// Creates the binding of a request: its principal, its method, and the parameters that identify it.
    ///
    /// `subject` is the tool, prompt or URI; `arguments` may be spelled in any key order.
    pub fn new(principal: Option<&str>, method: Method, subject: &str, arguments: Option<&RawJson>) -> Self {
        let arguments = arguments.map(|arguments| canonical::digest(arguments, digest)).unwrap_or_default();
        let presence: &[u8] = if principal.is_some() { b"known" } else { b"unknown" };
        let principal = principal.unwrap_or_default().as_bytes();
        let parts = [presence, principal, method.as_str().as_bytes(), subject.as_bytes(), &arguments];
        Self(digest(&parts))
    }
}

/// Maximum length of `requestState`.
pub const MAX_STATE: usize = 16 * 1024;

#[derive(Serialize, Deserialize)]
struct Sealed {
    expires: u64,
    id: [u8; 16],
    rounds: u32,
    asked: Vec<(String, Fingerprint)>,
    answers: Vec<(String, Fingerprint, RawJson)>,
    kept: Vec<(String, RawJson)>,
}

/// Seals the state and the questions of a call until `expires` (seconds since the epoch).
pub fn seal(
    keys: &KeyRing,
    random: &[u8; 32],
    binding: &Binding,
    asked: &OpenQuestions,
    expires: u64,
) -> Result<String, RpcError> {
    let mut id = [0; 16];
    id.copy_from_slice(&random[..16]);
    let plain = written(asked, id, expires)?;
    Ok(keys.seal(random, &binding.0, &plain))
}

/// Fails when what a call knows between two rounds is more than [`MAX_STATE`] when it is sealed. Revisions that do not
/// seal it have the same limit, so that a handler works in all of them or in none.
pub fn check_size(asked: &OpenQuestions) -> Result<(), RpcError> {
    written(asked, [0; 16], u64::MAX).map(drop)
}

fn written(asked: &OpenQuestions, id: [u8; 16], expires: u64) -> Result<Vec<u8>, RpcError> {
    let replay = &asked.replay;
    let learned = replay.0.iter();
    let sealed = Sealed {
        expires,
        id,
        rounds: replay.rounds(),
        asked: asked.questions.iter().map(|question| (question.key.clone(), question.fingerprint)).collect(),
        answers: learned
            .flat_map(|learned| &learned.answers)
            .filter_map(|known| Some((known.key.clone(), known.fingerprint, known.answer.clone().ok()?)))
            .collect(),
        kept: replay.0.as_ref().map(|learned| learned.kept.clone()).unwrap_or_default(),
    };
    let plain = serde_json::to_vec(&sealed).map_err(|error| RpcError::internal(error.to_string()))?;
    let length = sealed_len(plain.len());
    if length > MAX_STATE {
        return Err(RpcError::internal(format!(
            "the state between two questions takes {length} bytes, more than the {MAX_STATE} allowed; keep less with \
             `ctx.once`, such as a key to what is stored elsewhere",
        )));
    }
    Ok(plain)
}

/// Opens a state that the client returned with its answers, and adds them to its log. It is used up by
/// [`Replay::redeem`].
///
/// Fails with -32602 if the state was altered, has expired, or belongs to another principal or request.
pub fn open(
    keys: &KeyRing,
    binding: &Binding,
    state: &str,
    responses: Option<&RawJson>,
    now: u64,
) -> Result<Replay, RpcError> {
    let refuse = |reason: &'static str| RpcError::invalid_params(reason);
    if state.len() > MAX_STATE {
        return Err(refuse("`requestState` is too long"));
    }
    let plain = keys.open(&binding.0, state, MAX_STATE).map_err(|error| match error {
        SealError::Malformed => refuse("`requestState` was not created by this server"),
        SealError::UnknownKey => refuse("`requestState` was sealed with a key no longer in use"),
        SealError::Forged => refuse("`requestState` was altered or belongs to another request"),
    })?;
    let sealed: Sealed = serde_json::from_slice(&plain)
        .map_err(|_| refuse("`requestState` was not created by this server"))?;
    if sealed.expires <= now {
        return Err(expired());
    }
    let state = OpenedState {
        id: sealed.id,
        expires: sealed.expires,
        fresh: OnceLock::new(),
        claimant: OnceLock::new(),
    };
    let mut learned = Learned {
        kept: sealed.kept,
        rounds: sealed.rounds,
        state: Some(Arc::new(state)),
        ..Learned::default()
    };
    for (key, fingerprint, answer) in sealed.answers {
        learned.insert(key, fingerprint, Ok(answer));
    }
    let mut responses = responses.map(answers).transpose()?.unwrap_or_default();
    for (key, fingerprint) in sealed.asked {
        if let Some(answer) = responses.remove(&key) {
            learned.insert(key, fingerprint, Ok(answer));
        }
    }
    Ok(Replay(Some(Box::new(learned))))
}

fn expired() -> RpcError {
    RpcError::invalid_params("`requestState` has expired; start the call again")
}

fn used() -> RpcError {
    RpcError::invalid_params("`requestState` was used before; start the call again")
}

fn answers(responses: &RawJson) -> Result<BTreeMap<String, RawJson>, RpcError> {
    responses.decode().map_err(|error| RpcError::invalid_params(format!("`inputResponses`: {error}")))
}

/// The states that were used, until they expire. Each state can be used once.
#[derive(Debug)]
pub struct Consumed {
    limit: usize,
    used: HashSet<[u8; 16]>,
    order: VecDeque<(u64, [u8; 16])>,
}

impl Default for Consumed {
    fn default() -> Self {
        Self::with_limit(100_000)
    }
}

impl Consumed {
    /// Creates a record of at most `limit` states. Beyond that the oldest are dropped before they expire.
    pub fn with_limit(limit: usize) -> Self {
        Self { limit, used: HashSet::new(), order: VecDeque::new() }
    }

    /// Marks a state as used; false if it was used before.
    fn take(&mut self, id: [u8; 16], expires: u64, now: u64) -> bool {
        while self.order.front().is_some_and(|(expires, _)| *expires <= now) || self.order.len() >= self.limit
        {
            let Some((_, id)) = self.order.pop_front() else { break };
            self.used.remove(&id);
        }
        let fresh = self.used.insert(id);
        if fresh {
            self.order.push_back((expires, id));
        }
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::Key;

    fn keys() -> KeyRing {
        KeyRing::new(Key::new([7; 32]))
    }

    fn binding(principal: Option<&str>, arguments: &'static str) -> Binding {
        Binding::new(principal, Method::CallTool, "pay", Some(&RawJson::parse(arguments).unwrap()))
    }

    fn asked() -> OpenQuestions {
        let mut replay = Replay::default();
        replay.keep("order", RawJson::parse("42").unwrap());
        OpenQuestions { questions: vec![Question::new("q0", InputRequest::ListRoots)], replay }
    }

    fn open_with(state: &str, binding: &Binding, now: u64) -> Result<Replay, RpcError> {
        let responses = RawJson::parse(r#"{"q0":{"roots":[]},"other":{}}"#).unwrap();
        open(&keys(), binding, state, Some(&responses), now)
    }

    #[test]
    fn a_state_restores_the_log_and_accepts_only_answers_to_its_questions() {
        let binding = binding(Some("ada"), r#"{"a":1,"b":[{"y":1,"x":2}]}"#);
        let state = seal(&keys(), &[1; 32], &binding, &asked(), 1000).unwrap();
        // The same arguments in another order are the same request.
        let again = self::binding(Some("ada"), r#"{"b":[{"x":2,"y":1}],"a":1}"#);
        let replay = open_with(&state, &again, 999).unwrap();
        assert_eq!(replay.kept("order").unwrap().as_str(), "42");
        assert_eq!(
            replay.answer(&asked().questions[0]).unwrap().as_ref().unwrap().as_str(),
            r#"{"roots":[]}"#
        );
        assert_eq!(replay.0.unwrap_or_default().answers.len(), 1);
    }

    #[test]
    fn a_state_opens_only_for_its_principal_and_request() {
        // proves: MRTR-10, MRTR-11, MRTR-12, ELIF-37, ELIF-39
        let binding = binding(Some("ada"), "{}");
        let state = seal(&keys(), &[1; 32], &binding, &asked(), 1000).unwrap();
        let refused = |binding: &Binding, now| open_with(&state, binding, now).unwrap_err().message;
        let foreign = "`requestState` was altered or belongs to another request";
        assert_eq!(refused(&self::binding(Some("bob"), "{}"), 1), foreign);
        assert_eq!(refused(&self::binding(None, "{}"), 1), foreign);
        assert_eq!(refused(&self::binding(Some("ada"), r#"{"a":1}"#), 1), foreign);
        assert_eq!(refused(&binding, 1000), "`requestState` has expired; start the call again");
        for position in 0..state.len() {
            let mut bytes = state.clone().into_bytes();
            bytes[position] = if bytes[position] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(bytes).unwrap();
            assert!(open_with(&altered, &binding, 1).is_err(), "altered at {position}");
        }
    }

    #[test]
    fn arguments_beyond_the_range_of_numbers_are_bound_too() {
        for odd in ["1e999", r#""\ud800""#] {
            let binding = |amount: u32| {
                let arguments = RawJson::parse(format!(r#"{{"odd":{odd},"amount":{amount}}}"#)).unwrap();
                Binding::new(None, Method::CallTool, "pay", Some(&arguments))
            };
            let state = seal(&keys(), &[1; 32], &binding(1), &asked(), 1000).unwrap();
            assert!(open_with(&state, &binding(1000), 1).is_err(), "{odd}");
            assert!(open_with(&state, &binding(1), 1).is_ok(), "{odd}");
        }
    }

    #[test]
    fn a_state_is_used_once() {
        // proves: MRTR-17
        let binding = binding(None, "{}");
        let state = seal(&keys(), &[1; 32], &binding, &asked(), 1000).unwrap();
        let consumed = Mutex::default();
        let opened = || open(&keys(), &binding, &state, None, 1).unwrap();
        let (first, second, late) = (opened(), opened(), opened());
        // The same call, repeated by a middleware.
        let again = first.clone();
        assert!(first.redeem(&consumed, || 1).is_ok());
        assert!(again.redeem(&consumed, || 1).is_ok());
        let used = "`requestState` was used before; start the call again";
        assert_eq!(second.redeem(&consumed, || 1).unwrap_err().message, used);
        assert_eq!(opened().redeem(&consumed, || 1).unwrap_err().message, used);
        // By then it may have been forgotten that the state was used.
        let expired = "`requestState` has expired; start the call again";
        assert_eq!(late.redeem(&Mutex::default(), || 1000).unwrap_err().message, expired);
    }

    #[test]
    fn integers_of_any_size_are_distinguished_in_the_binding() {
        let binding = |amount: &str| {
            let arguments = RawJson::parse(format!(r#"{{"amount":{amount}}}"#)).unwrap();
            Binding::new(None, Method::CallTool, "pay", Some(&arguments))
        };
        let one = binding("100000000000000000000000000000001");
        let state = seal(&keys(), &[1; 32], &one, &asked(), 1000).unwrap();
        assert!(open_with(&state, &binding("100000000000000000000000000000002"), 1).is_err());
        assert!(open_with(&state, &one, 1).is_ok());
    }

    #[test]
    fn an_answer_counts_only_for_its_question() {
        let mut replay = Replay::default();
        let question = Question::new("q0", InputRequest::ListRoots);
        replay.record(&question, Ok(RawJson::null()));
        assert!(replay.answer(&question).is_some());
        let other = Question { fingerprint: [0; 16], ..question.clone() };
        assert!(replay.answer(&other).is_none());
        // Two questions with the same key and different texts each have an answer.
        replay.record(&other, Ok(RawJson::empty_object()));
        assert_eq!(replay.answer(&question).unwrap().as_ref().unwrap().as_str(), "null");
        assert_eq!(replay.answer(&other).unwrap().as_ref().unwrap().as_str(), "{}");
    }

    #[test]
    fn an_answer_given_ahead_counts_for_the_first_question_of_its_name() {
        let responses = RawJson::parse(r#"{"who":{"roots":[]},"q0":{"roots":[]},"other":{}}"#).unwrap();
        let mut replay = Replay::ahead(&responses).unwrap();
        let mut answered = |question: &Question| {
            replay.claim(question);
            replay.answer(question).is_some()
        };
        let who = Question::named("who", InputRequest::ListRoots);
        assert!(answered(&who));
        assert!(answered(&who));
        assert!(!answered(&Question { fingerprint: [0; 16], ..who }));
        assert!(!answered(&Question::new("q0", InputRequest::ListRoots)));
        assert!(Replay::ahead(&RawJson::parse("[]").unwrap()).is_err());
    }
}
