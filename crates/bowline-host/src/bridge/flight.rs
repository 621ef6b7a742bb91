//! One call to a server, from the first round to its end.

use super::pilot::{Asking, Pilot};
use crate::upstream::{CallerKey, Instance};
use bowline_client::{CallKey, RelayWith, Relayed};
use bowline_config::Share;
use bowline_proto::{
    replay::{Answer, Question},
    service::{BoxFuture, Call, MethodName, Notifier},
};
use bowline_types::{
    ClientCapabilities, ElicitResult, ElicitUrlParams, Implementation, InputRequest, InputRequests, Meta,
    RawJson, RpcError, error_code,
};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

/// What a call is sent with.
pub(crate) struct Leg {
    pub(crate) method: MethodName,
    /// What is called, such as a tool, for telling apart what asks from what does not.
    pub(crate) subject: Box<str>,
    /// The parameters as the server knows them, without `_meta`.
    pub(crate) params: RawJson,
    /// The caller's metadata that is for the server.
    pub(crate) meta: Meta,
    /// What the caller and the host together can be asked.
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) client_info: Option<Implementation>,
}

/// How a round of a call ended.
pub(crate) enum Landing {
    /// With its result.
    Done(RawJson),
    /// A modern server needs input; it is called anew with it.
    Needs { requests: InputRequests, state: Option<String> },
    /// A legacy server asks; the call waits.
    Asks(Vec<Question>),
    /// It fails until the user has visited these pages.
    Visits(Vec<ElicitUrlParams>),
    /// With an error.
    Failed(RpcError),
    /// With nothing, for too long.
    Silent(RpcError),
}

/// A call under way. Dropping it cancels it at the server.
pub(crate) struct Flight {
    pub(crate) instance: Arc<Instance>,
    relay: BoxFuture<'static, Result<Relayed, RpcError>>,
    pilot: Pilot,
    asked: mpsc::Receiver<Asking>,
    /// Questions that were put to the caller, by their keys.
    open: Vec<(String, InputRequest, oneshot::Sender<Answer>)>,
    questions: usize,
    slot: Slot,
}

/// The place that a call takes among those of its caller at a shared server. A call that waits for a user takes none.
type Slot = Arc<Mutex<Option<OwnedSemaphorePermit>>>;

fn fill(slot: &Slot, permit: Option<OwnedSemaphorePermit>) {
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = permit;
}

impl Flight {
    /// A call that begins when it is first waited for.
    pub(crate) fn new(instance: &Arc<Instance>, call: &Call, notifier: Notifier, leg: Leg) -> Self {
        let (pilot, asked) = Pilot::new(Arc::clone(&call.client), notifier);
        let wants_progress = call.progress_token.is_some();
        let slot = Slot::default();
        let relay = relay(
            Arc::clone(&slot),
            Arc::clone(instance),
            CallerKey::of(call),
            pilot.clone(),
            leg,
            call.log_level,
            wants_progress,
        );
        Self {
            instance: Arc::clone(instance),
            relay: Box::pin(relay),
            pilot,
            asked,
            open: Vec::new(),
            questions: 0,
            slot,
        }
    }

    /// Whether its caller has gone.
    pub(super) fn is_abandoned(&self) -> bool {
        self.pilot.notifier().is_cancelled()
    }

    /// Goes on with what the caller answered.
    pub(crate) fn resume<'a>(
        &mut self,
        notifier: Notifier,
        answers: impl Iterator<Item = (&'a str, &'a Answer)>,
    ) {
        self.pilot.board(notifier);
        for (key, answer) in answers {
            let Some(place) = self.open.iter().position(|(known, ..)| known == key) else { continue };
            let (_, request, reply) = self.open.swap_remove(place);
            // The server may have taken its question back meanwhile.
            let _ = reply.send(acceptable(&request, answer.clone()));
        }
        for (_, request, reply) in self.open.drain(..) {
            let _ = reply.send(acceptable(&request, Err(RpcError::internal("the client gave no answer"))));
        }
    }

    /// Waits for the next thing to happen.
    pub(crate) async fn next(&mut self) -> Landing {
        let silence = self.instance.spec.silence;
        loop {
            let deadline = self.pilot.heard() + silence;
            tokio::select! {
                biased;
                done = &mut self.relay => return match done {
                    Ok(Relayed::Complete(result)) => Landing::Done(result),
                    Ok(Relayed::InputRequired { requests, state }) => Landing::Needs { requests, state },
                    Err(error) => match error.url_elicitations() {
                        Some(pages) => Landing::Visits(pages),
                        None => Landing::Failed(error),
                    },
                },
                Some(first) = self.asked.recv() => {
                    self.open(first);
                    // Questions that came together are put together.
                    while let Ok(more) = self.asked.try_recv() {
                        self.open(more);
                    }
                    let questions =
                        self.open.iter().map(|(key, request, _)| Question::new(key.clone(), request.clone()));
                    let questions = questions.collect();
                    fill(&self.slot, None);
                    return Landing::Asks(questions);
                }
                () = tokio::time::sleep_until(deadline.into()) => {
                    if Instant::now() >= self.pilot.heard() + silence {
                        let reason = format!("`{}` said nothing for {silence:?}", self.instance.name);
                        return Landing::Silent(RpcError::internal(reason));
                    }
                }
            }
        }
    }

    fn open(&mut self, Asking { request, reply }: Asking) {
        let key = format!("b{}", self.questions);
        self.questions += 1;
        self.open.push((key, request, reply));
    }
}

fn acceptable(request: &InputRequest, answer: Answer) -> Answer {
    match request {
        InputRequest::Elicit(_) => answer.or_else(unanswered),
        InputRequest::CreateMessage(_) | InputRequest::ListRoots => answer,
    }
}

/// A user who could not be asked has not agreed to anything; a server is told so in its own words.
#[expect(clippy::needless_pass_by_value, reason = "it stands behind `or_else`")]
pub(crate) fn unanswered(error: RpcError) -> Answer {
    tracing::debug!(%error, "a question was not answered and counts as cancelled");
    RawJson::of(&ElicitResult::cancel()).map_err(|error| RpcError::internal(error.to_string()))
}

async fn relay(
    slot: Slot,
    instance: Arc<Instance>,
    caller: CallerKey,
    pilot: Pilot,
    leg: Leg,
    log_level: Option<bowline_types::LoggingLevel>,
    wants_progress: bool,
) -> Result<Relayed, RpcError> {
    let waiting = pilot.pause();
    // One that is not shared has one caller only.
    if instance.spec.share == Share::Shared {
        let permit = instance.quota.enter(&CallerKey::quota(pilot.client())).await;
        fill(&slot, permit);
    }
    let key = instance.flights.take_off(caller, leg.subject, pilot.clone()).await;
    let mut aloft = Aloft { instance: &instance, key, answered: false };
    let client = instance.client().await?;
    drop(waiting);
    let legacy = !client.revision().is_modern();
    if let Some(level) = log_level.filter(|_| legacy) {
        instance.listen_to_logs(&client, level).await;
    }
    let mut with = RelayWith::default();
    with.key = Some(key);
    with.progress = wants_progress.then(|| {
        let pilot = pilot.clone();
        Arc::new(move |progress| pilot.progress(progress)) as _
    });
    with.log_level = log_level.filter(|_| !legacy);
    with.meta = leg.meta;
    with.capabilities = Some(leg.capabilities);
    with.client_info = leg.client_info;
    // The host has a clock of its own, which stands still while a user thinks.
    with.timeout = Some(FOREVER);
    let is_custom = leg.method.known().is_none();
    let relayed = client.relay(leg.method, leg.params, with).await;
    fill(&slot, None);
    aloft.answered = relayed.as_ref().err().is_none_or(|error| error.as_rpc().is_some());
    instance.count(relayed.is_err());
    relayed.map_err(|error| match error.as_rpc() {
        // Whether there is such a method is for the server to say.
        Some(error) if is_custom && error.code == error_code::METHOD_NOT_FOUND => error.clone(),
        Some(error) => foreign(&instance.name, error),
        None => RpcError::internal(format!("the server `{}`: {error}", instance.name)),
    })
}

/// An error of a server as one of the host. Codes by which connections and versions are managed are about the server's
/// connection, not the caller's.
fn foreign(server: &str, error: &RpcError) -> RpcError {
    let about_the_connection = matches!(
        error.code,
        error_code::PARSE_ERROR
            | error_code::INVALID_REQUEST
            | error_code::METHOD_NOT_FOUND
            | error_code::HEADER_MISMATCH
            | error_code::MISSING_CLIENT_CAPABILITY
            | error_code::UNSUPPORTED_PROTOCOL_VERSION
    );
    if about_the_connection {
        return RpcError::internal(format!("the server `{server}`: {}", error.message));
    }
    error.clone()
}

/// As long as a call may take altogether.
const FOREVER: std::time::Duration = std::time::Duration::from_secs(3600);

/// Takes a call off those that run when it is over, however it ends.
struct Aloft<'a> {
    instance: &'a Instance,
    key: CallKey,
    answered: bool,
}

impl Drop for Aloft<'_> {
    fn drop(&mut self) {
        self.instance.flights.land(self.key, self.answered);
    }
}

impl fmt::Debug for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flight").field("instance", &self.instance).finish_non_exhaustive()
    }
}
