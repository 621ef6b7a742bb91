//! One call to a server, over all its rounds.

use crate::upstream::{CallHandle, CallerKey, Instance, PendingQuestion, ServerTasks, TimeoutPause};
use bowline_client::{CallKey, Client, RelayWith, Relayed, TaskState};
use bowline_config::Share;
use bowline_proto::{
    replay::{Answer, Question},
    service::{BoxFuture, Call, MethodName, Notifier},
};
use bowline_types::{
    ClientCapabilities, ElicitResult, ElicitUrlParams, Implementation, InputRequest, InputRequests,
    LoggingLevel, Meta, Method, RawJson, RawMap, RpcError, UpdateTaskParams, error_code,
};
use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

/// The client's own timeout for a call. The timeout that applies is the one in [`UpstreamCall::next`], which pauses while a
/// user decides.
const ONE_HOUR: Duration = Duration::from_secs(3600);
/// The same for a call that may become a task, which ends with its `ttl`.
const ONE_DAY: Duration = Duration::from_secs(24 * 3600);

/// What is sent to the server in one attempt.
pub(crate) struct Attempt {
    pub(crate) method: MethodName,
    /// What is called, such as a tool. Used to attribute questions.
    pub(crate) subject: Box<str>,
    /// The parameters with the names that the server uses, without `_meta`.
    pub(crate) params: RawJson,
    /// The caller's metadata.
    pub(crate) meta: Meta,
    /// What the caller or the host can answer.
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) client_info: Option<Implementation>,
    /// Whether a server of 2025-11-25 makes the call a task.
    pub(crate) task: TaskWish,
    /// The task that is followed, instead of a call.
    pub(crate) follow: Option<Follow>,
    /// Whether the host may make the call a task, so that it wants to know the progress.
    pub(crate) may_be_hosted: bool,
}

/// A task of a server that the host waits for on behalf of its caller.
pub(crate) struct Follow {
    pub(crate) task_id: String,
    /// The state that the server sent last.
    pub(crate) known: Option<TaskState>,
    /// Keys of the questions that were answered, including those of `answers`.
    pub(crate) answered: BTreeSet<String>,
    /// Answers that are sent first.
    pub(crate) answers: RawMap,
    /// Whether the task is cancelled if nobody waits for it any more.
    pub(crate) cancels: bool,
}

/// Whether a server of 2025-11-25 makes a call a task. It does so only if it has tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskWish {
    /// It does not.
    Plain,
    /// It does, and the host waits for the task.
    Wait,
    /// It does, and the task is the reply. The caller may wish for how long it is kept.
    Create { ttl: Option<u64> },
}

/// What a server replied in one round of a call.
pub(crate) enum UpstreamReply {
    /// The result.
    Complete(RawJson),
    /// A modern server needs input and has to be called again with it.
    InputRequired { requests: InputRequests, state: Option<String> },
    /// The server made the call a task: the result that says so.
    Task(RawJson),
    /// The task that is followed asks.
    TaskAsks(Box<TaskState>),
    /// A legacy server asks during the call, which can be resumed with the answers.
    Asks(Vec<Question>),
    /// The call fails until the user has visited these URLs.
    UrlElicitationRequired(Vec<ElicitUrlParams>),
    /// An error.
    Failed(RpcError),
    /// The call fails until the user of the server has logged in.
    LoginNeeded(RpcError),
    /// No reply or progress within the timeout.
    TimedOut(RpcError),
}

/// A running call. Dropping it cancels it at the server.
pub(crate) struct UpstreamCall {
    pub(crate) instance: Arc<Instance>,
    relay: BoxFuture<'static, Result<Replied, CallFailure>>,
    handle: CallHandle,
    questions: mpsc::Receiver<PendingQuestion>,
    /// Questions that wait for an answer of the caller, by key.
    open: Vec<(String, InputRequest, oneshot::Sender<Answer>)>,
    /// How many questions were asked so far.
    asked: usize,
    slot: Slot,
    /// Questions of the followed task that were answered.
    answered: BTreeSet<String>,
    /// Exists if the time that the call takes is limited by somebody else.
    without_timeout: Option<TimeoutPause>,
}

/// The permit that a call holds in the quota of its caller at a shared server. Released while the call waits for a user.
type Slot = Arc<Mutex<Option<OwnedSemaphorePermit>>>;

fn set_slot(slot: &Slot, permit: Option<OwnedSemaphorePermit>) {
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = permit;
}

impl UpstreamCall {
    /// Prepares a call. It is sent when [`next`](Self::next) is first polled.
    pub(crate) fn new(instance: &Arc<Instance>, call: &Call, notifier: Notifier, attempt: Attempt) -> Self {
        let (handle, questions) = CallHandle::new(call, notifier);
        let wants_progress = call.progress_token.is_some() || attempt.may_be_hosted;
        let slot = Slot::default();
        // A per-client server has a single caller.
        let quota_key = (instance.spec.share == Share::Shared).then(|| CallerKey::quota(call));
        let answered = attempt.follow.as_ref().map(|follow| follow.answered.clone()).unwrap_or_default();
        let relay = relay(
            Arc::clone(&slot),
            Arc::clone(instance),
            (CallerKey::of(call), quota_key),
            handle.clone(),
            attempt,
            call.log_level,
            wants_progress,
        );
        Self {
            instance: Arc::clone(instance),
            relay: Box::pin(relay),
            handle,
            questions,
            open: Vec::new(),
            asked: 0,
            slot,
            answered,
            without_timeout: None,
        }
    }

    /// Lets the call go on without its caller: notifications go elsewhere, and whoever runs it limits its time.
    pub(crate) fn run_in_background(&mut self, notifier: Notifier) {
        self.handle.set_notifier(notifier);
        self.handle.repeat_progress();
        self.without_timeout = Some(self.handle.pause_timeout());
    }

    /// Returns the keys of the questions of the followed task that were answered.
    pub(crate) fn answered(&self) -> &BTreeSet<String> {
        &self.answered
    }

    /// Returns whether its caller cancelled it or disconnected.
    pub(super) fn is_abandoned(&self) -> bool {
        self.handle.notifier().is_cancelled()
    }

    /// Continues with the answers of the caller.
    pub(crate) fn resume<'a>(
        &mut self,
        notifier: Notifier,
        answers: impl Iterator<Item = (&'a str, &'a Answer)>,
    ) {
        self.handle.set_notifier(notifier);
        for (key, answer) in answers {
            let Some(place) = self.open.iter().position(|(known, ..)| known == key) else { continue };
            let (_, request, reply) = self.open.swap_remove(place);
            // Fails if the server has withdrawn its question.
            let _ = reply.send(for_server(&request, answer.clone()));
        }
        for (_, request, reply) in self.open.drain(..) {
            let _ = reply.send(for_server(&request, Err(RpcError::internal("the client did not answer"))));
        }
    }

    /// Waits for the reply of the server, a question, or the timeout.
    pub(crate) async fn next(&mut self) -> UpstreamReply {
        let timeout = self.instance.spec.timeout;
        loop {
            let deadline = self.handle.last_activity() + timeout;
            tokio::select! {
                biased;
                relayed = &mut self.relay => return match relayed {
                    Ok(Replied::Relayed(Relayed::Complete(result))) => UpstreamReply::Complete(result),
                    Ok(Replied::Relayed(Relayed::InputRequired { requests, state })) => {
                        UpstreamReply::InputRequired { requests, state }
                    }
                    Ok(Replied::Relayed(Relayed::Task(created))) => UpstreamReply::Task(created),
                    Ok(Replied::TaskAsks(state)) => UpstreamReply::TaskAsks(state),
                    Err(CallFailure { error, needs_login: true }) => UpstreamReply::LoginNeeded(error),
                    Err(CallFailure { error, .. }) => match error.url_elicitations() {
                        Some(urls) => UpstreamReply::UrlElicitationRequired(urls),
                        None => UpstreamReply::Failed(error),
                    },
                },
                Some(first) = self.questions.recv() => {
                    self.open(first);
                    // Questions that arrived together are asked together.
                    while let Ok(more) = self.questions.try_recv() {
                        self.open(more);
                    }
                    let questions =
                        self.open.iter().map(|(key, request, _)| Question::new(key.clone(), request.clone()));
                    let questions = questions.collect();
                    set_slot(&self.slot, None);
                    return UpstreamReply::Asks(questions);
                }
                () = tokio::time::sleep_until(deadline.into()) => {
                    if Instant::now() >= self.handle.last_activity() + timeout {
                        let name = &self.instance.name;
                        let reason = format!("the server `{name}` timed out: no reply or progress for {timeout:?}");
                        return UpstreamReply::TimedOut(RpcError::internal(reason));
                    }
                }
            }
        }
    }

    fn open(&mut self, PendingQuestion { request, reply }: PendingQuestion) {
        let key = format!("b{}", self.asked);
        self.asked += 1;
        self.open.push((key, request, reply));
    }
}

/// Converts the answer of a caller to what the server receives.
fn for_server(request: &InputRequest, answer: Answer) -> Answer {
    match request {
        InputRequest::Elicit(_) => answer.or_else(or_cancelled),
        InputRequest::CreateMessage(_) | InputRequest::ListRoots => answer,
    }
}

/// Turns an elicitation that could not be answered into a cancelled one, which every server can handle.
#[expect(clippy::needless_pass_by_value, reason = "the signature that `or_else` needs")]
pub(crate) fn or_cancelled(error: RpcError) -> Answer {
    tracing::debug!(%error, "an elicitation was not answered and counts as cancelled");
    RawJson::of(&ElicitResult::cancel()).map_err(|error| RpcError::internal(error.to_string()))
}

async fn relay(
    slot: Slot,
    instance: Arc<Instance>,
    (caller, quota_key): (CallerKey, Option<CallerKey>),
    handle: CallHandle,
    attempt: Attempt,
    log_level: Option<LoggingLevel>,
    wants_progress: bool,
) -> Result<Replied, CallFailure> {
    let starting = handle.pause_timeout();
    let (key, permit) =
        instance.running_calls.begin(caller, attempt.subject, handle.clone(), quota_key.as_ref()).await;
    set_slot(&slot, permit);
    let mut call_guard = CallGuard { instance: &instance, key, answered: false };
    let client = instance.client().await;
    let client = client.map_err(|error| CallFailure { error, needs_login: instance.needs_login() })?;
    drop(starting);
    let legacy = !client.revision().is_modern();
    if let Some(level) = log_level.filter(|_| legacy) {
        instance.request_logs(&client, level).await;
    }
    let mut with = RelayWith::default();
    with.key = Some(key);
    with.progress = wants_progress.then(|| {
        let handle = handle.clone();
        Arc::new(move |progress| handle.progress(progress)) as _
    });
    with.log_level = log_level.filter(|_| !legacy);
    with.meta = attempt.meta;
    with.capabilities = Some(attempt.capabilities);
    with.client_info = attempt.client_info;
    with.timeout = Some(if attempt.may_be_hosted { ONE_DAY } else { ONE_HOUR });
    with.max_total = attempt.may_be_hosted.then_some(ONE_DAY);
    let is_custom = attempt.method.known().is_none();
    let relayed = match attempt.follow {
        None => match attempt.task {
            TaskWish::Wait if has_tasks_2025(&client) => {
                let _pause = handle.pause_timeout();
                call_as_task(&client, &attempt.params, with).await
            }
            TaskWish::Create { ttl } if has_tasks_2025(&client) => {
                create_task(&client, &attempt.params, ttl, with).await.map(Replied::Relayed)
            }
            TaskWish::Plain | TaskWish::Wait | TaskWish::Create { .. } => {
                client.relay(attempt.method, attempt.params, with).await.map(Replied::Relayed)
            }
        },
        Some(follow) => {
            // The server has the task, so it need not report progress.
            let _pause = handle.pause_timeout();
            follow_task(&client, follow, with).await
        }
    };
    set_slot(&slot, None);
    call_guard.answered = relayed.as_ref().err().is_none_or(|error| error.as_rpc().is_some());
    instance.count(relayed.is_err());
    relayed.map_err(|error| CallFailure {
        needs_login: error.is_login_needed(),
        error: match error.as_rpc() {
            // Only the server knows whether a custom method exists.
            Some(error) if is_custom && error.code == error_code::METHOD_NOT_FOUND => error.clone(),
            Some(error) => for_caller(&instance.name, error),
            None => {
                let reason = instance.describe_error(&error);
                RpcError::internal(format!("the server `{}`: {reason}", instance.name))
            }
        },
    })
}

/// Why the relay future failed.
struct CallFailure {
    error: RpcError,
    /// Whether the call can succeed after a login.
    needs_login: bool,
}

/// What the relay future returns.
enum Replied {
    Relayed(Relayed),
    TaskAsks(Box<TaskState>),
}

fn has_tasks_2025(client: &Client) -> bool {
    ServerTasks::of(client) == ServerTasks::V2025_11_25
}

/// Calls a tool of a 2025-11-25 server as a task, and waits for it. Its questions arrive as those of any call.
async fn call_as_task(
    client: &Client,
    params: &RawJson,
    with: RelayWith,
) -> Result<Replied, bowline_client::Error> {
    let malformed = |error| bowline_client::Error::malformed("the created task", error);
    let created = match create_task(client, params, None, with.clone()).await? {
        Relayed::Task(created) => created,
        other @ (Relayed::InputRequired { .. } | Relayed::Complete(_)) => return Ok(Replied::Relayed(other)),
    };
    let known = TaskState::from_created(&created).map_err(malformed)?;
    let (task_id, known, answers) = (known.task.task_id.clone(), Some(known), RawMap::new());
    let follow = Follow { task_id, known, answered: BTreeSet::new(), answers, cancels: true };
    follow_task(client, follow, with).await
}

/// Calls a tool of a 2025-11-25 server with the wish for a task. A server may return the result nevertheless.
async fn create_task(
    client: &Client,
    params: &RawJson,
    ttl: Option<u64>,
    with: RelayWith,
) -> Result<Relayed, bowline_client::Error> {
    let malformed = |error| bowline_client::Error::malformed("the created task", error);
    let mut members = params.members().map_err(malformed)?;
    let wish = ttl.map_or_else(RawJson::empty_object, |ttl| serde_json::json!({ "ttl": ttl }).into());
    members.insert("task", wish);
    let params = RawJson::of(&members).map_err(malformed)?;
    Ok(match client.relay(Method::CallTool, params, with).await? {
        Relayed::Complete(created) if created.members().map_err(malformed)?.contains_key("task") => {
            Relayed::Task(created)
        }
        other => other,
    })
}

/// Waits for a task until it ends or asks. Dropping the future cancels the task, unless the caller knows it.
async fn follow_task(
    client: &Client,
    follow: Follow,
    with: RelayWith,
) -> Result<Replied, bowline_client::Error> {
    let Follow { task_id, known, answered, answers, cancels } = follow;
    let mut guard = TaskGuard { client, task_id: &task_id, armed: cancels };
    if !answers.is_empty() {
        let params = RawJson::of(&UpdateTaskParams::new(&task_id, answers))
            .map_err(|error| bowline_client::Error::misuse(error.to_string()))?;
        client.relay(Method::UpdateTask, params, with.clone()).await?;
    }
    let state = client.follow_task(&task_id, known, answered, with).await;
    // If the server does not know the task, there is nothing to cancel.
    guard.armed &= state.as_ref().is_err_and(|error| !error.is_task_gone());
    let state = state?;
    match state.outcome {
        Some(Ok(result)) => Ok(Replied::Relayed(Relayed::Complete(result))),
        Some(Err(error)) => Err(error.into()),
        None if state.is_done() => Err(RpcError::internal("the task was cancelled").into()),
        None => Ok(Replied::TaskAsks(Box::new(state))),
    }
}

/// Cancels a task at its server when dropped while armed.
struct TaskGuard<'a> {
    client: &'a Client,
    task_id: &'a str,
    armed: bool,
}

impl Drop for TaskGuard<'_> {
    fn drop(&mut self) {
        if self.armed {
            drop(self.client.task(self.task_id).cancel_on_drop());
        }
    }
}

/// Converts an error of a server to one of the host. Codes about connections and versions concern the connection of the
/// server, not that of the caller. So do scopes: a server must not choose what a caller asks its issuer for.
pub(crate) fn for_caller(server: &str, error: &RpcError) -> RpcError {
    let about_the_connection = matches!(
        error.code,
        error_code::PARSE_ERROR
            | error_code::INVALID_REQUEST
            | error_code::METHOD_NOT_FOUND
            | error_code::HEADER_MISMATCH
            | error_code::MISSING_CLIENT_CAPABILITY
            | error_code::UNSUPPORTED_PROTOCOL_VERSION
            | error_code::INSUFFICIENT_SCOPE
    );
    if about_the_connection {
        return RpcError::internal(format!("the server `{server}`: {}", error.message));
    }
    error.clone()
}

/// Removes a call from the running ones when dropped.
struct CallGuard<'a> {
    instance: &'a Instance,
    key: CallKey,
    answered: bool,
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        self.instance.running_calls.end(self.key, self.answered);
    }
}

impl fmt::Debug for UpstreamCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamCall").field("instance", &self.instance).finish_non_exhaustive()
    }
}
