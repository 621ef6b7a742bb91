//! `tasks/result` of 2025-11-25: waits for the end of a task, and asks the caller what the task asks.

use super::{
    Inner,
    asker::{Answerer, CallerView, with_origin},
    call_record::CallRecord,
    result,
    route::Route,
    upstream_task::UpstreamTask,
};
use crate::{
    bridge::{Follow, UpstreamReply, or_cancelled},
    upstream::Instance,
};
use bowline_proto::{
    replay::{Answer, Question},
    service::{Call, Notifier, Outcome, Reply},
    task::view_2025,
};
use bowline_server::transport::is_unanswered;
use bowline_types::{
    Adapt as _, CallToolResult, InputRequest, InputRequests, Method, RawJson, RawMap, Revision, RpcError,
};
use futures_util::future::join_all;
use std::{
    collections::{BTreeSet, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{
        Notify,
        broadcast::{self, error::RecvError},
    },
    time::timeout,
};

/// How many cancellations those who wait may miss before they look at the record.
const MAX_MISSED: usize = 64;
/// How often the record is looked at while a result is waited for, because another process may cancel the task.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(10);

/// A request of a caller for the result of a task.
pub(super) struct ResultRequest<'a> {
    pub(super) call: &'a Call,
    pub(super) notifier: &'a Notifier,
    pub(super) route: &'a Route,
    /// The id that the caller knows.
    pub(super) sealed: &'a str,
    /// The id at the server.
    pub(super) id: &'a str,
}

impl Inner {
    /// Waits for the end of a task. The task goes on if the caller gives up.
    pub(super) async fn wait_for_task(
        &self,
        request: &ResultRequest<'_>,
    ) -> Result<CallToolResult, RpcError> {
        let ResultRequest { call, notifier, route, sealed, id } = *request;
        let mut answered = BTreeSet::new();
        loop {
            let (task_id, answered_before) = (id.to_owned(), answered.clone());
            let follow = Follow {
                task_id,
                known: None,
                answered: answered_before,
                answers: RawMap::new(),
                cancels: false,
            };
            let mut upstream_call =
                self.follow(route, call, notifier, follow, &mut CallRecord::new(&self.telemetry))?;
            let asks = loop {
                match upstream_call.next().await {
                    UpstreamReply::Complete(json) => return finished(route, sealed, &json),
                    UpstreamReply::TaskAsks(task) => break task.questions,
                    UpstreamReply::Asks(questions) => {
                        let answers = questions.into_iter().map(|Question { key, request, .. }| async {
                            let answer = put(notifier, sealed, call.client.revision, request).await;
                            (key, answer)
                        });
                        let answers: Vec<(String, Answer)> = join_all(answers).await;
                        if let Some(error) = answers.iter().find_map(|(_, answer)| unanswered(answer)) {
                            return Err(error);
                        }
                        let answers = answers.iter().map(|(key, answer)| (&**key, answer));
                        upstream_call.resume(notifier.clone(), answers);
                    }
                    UpstreamReply::Failed(error)
                    | UpstreamReply::LoginNeeded(error)
                    | UpstreamReply::TimedOut(error) => return Err(error),
                    UpstreamReply::InputRequired { .. }
                    | UpstreamReply::Task(_)
                    | UpstreamReply::UrlElicitationRequired(_) => {
                        let name = &route.instance.name;
                        return Err(RpcError::internal(format!(
                            "the server `{name}` sent an invalid result"
                        )));
                    }
                }
            };
            drop(upstream_call);
            // Another request for the same result may be asking already.
            let ended = self.asking.ended.notified();
            let Some(_asking) = self.asking.begin(&asking_key(&route.instance, id)) else {
                ended.await;
                continue;
            };
            // It may have got the answers meanwhile.
            let client = route.instance.client().await?;
            let task = UpstreamTask { inner: self, route, call, client, id };
            let mut open = task.open_questions().await?;
            open.retain(|key, _| !answered.contains(key));
            answered.extend(asks.iter().chain(&open).map(|(key, _)| key.to_owned()));
            let answers = self.ask_about_task(request, open).await?;
            if !answers.is_empty() {
                task.update(answers).await?;
            }
        }
    }

    /// Returns the answers to questions of a task. Those of the caller are asked on the stream of the request.
    async fn ask_about_task(
        &self,
        request: &ResultRequest<'_>,
        questions: InputRequests,
    ) -> Result<RawMap, RpcError> {
        let ResultRequest { call, notifier, route, sealed, .. } = *request;
        let (instance, caller) = (&route.instance, CallerView::of(call));
        let asked = questions.iter().map(|(key, question)| async move {
            let is_elicitation = matches!(question, InputRequest::Elicit(_));
            let answer = match self.asker.answerer(instance, caller, question) {
                Answerer::Caller => {
                    let question = with_origin(instance, question.clone());
                    put(notifier, sealed, call.client.revision, question).await
                }
                Answerer::Host => self.asker.answer(instance, caller, question.clone(), None).await,
                Answerer::Nobody(error) => Err(error),
            };
            if let Some(error) = unanswered(&answer) {
                return Err(error);
            }
            let answer = if is_elicitation { answer.or_else(or_cancelled) } else { answer };
            Ok((key.to_owned(), answer?))
        });
        let mut answers = RawMap::new();
        for answer in join_all(asked).await {
            let (key, answer) = answer?;
            answers.insert(key, answer);
        }
        Ok(answers)
    }
}

/// Returns the error of a question that was not answered, which stays open.
pub(super) fn unanswered(answer: &Answer) -> Option<RpcError> {
    answer.as_ref().err().filter(|error| is_unanswered(error)).cloned()
}

/// Puts a question to a caller, as a message that belongs to its task.
pub(super) async fn put(
    notifier: &Notifier,
    task: &str,
    revision: Revision,
    mut request: InputRequest,
) -> Answer {
    let invalid = |error: serde_json::Error| RpcError::internal(error.to_string());
    request.adapt(revision);
    let mut params: RawMap = match request.params() {
        Some(params) => params.decode().map_err(invalid)?,
        None => RawMap::new(),
    };
    let own = params.get("_meta").and_then(|meta| meta.decode().ok());
    params.insert("_meta", RawJson::of(&view_2025::related(task, own)).map_err(invalid)?);
    notifier.request(request.method().as_str(), Some(RawJson::of(&params).map_err(invalid)?)).await
}

/// Returns the result of a task under the id that the caller knows.
pub(super) fn finished(route: &Route, sealed: &str, json: &RawJson) -> Result<CallToolResult, RpcError> {
    match result::outcome(route, &Method::CallTool.into(), json) {
        Outcome::Complete(Reply::Tool(mut found)) => {
            found.meta = Some(view_2025::related(sealed, found.meta.take()));
            Ok(*found)
        }
        Outcome::Failed(error) => Err(error),
        Outcome::Complete(_) | Outcome::NeedsInput(_) => {
            Err(RpcError::internal("the result is not that of a tool"))
        }
    }
}

/// The tasks whose questions are being asked, so that two requests for one result do not ask the same. Other processes are not
/// known; the first answer counts.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    tasks: Arc<Mutex<HashSet<String>>>,
    /// Notified when one has been asked.
    pub(super) ended: Arc<Notify>,
    /// The ids, as callers know them, of tasks that were cancelled.
    cancelled: broadcast::Sender<Arc<str>>,
}

impl Default for Asking {
    fn default() -> Self {
        Self { tasks: Arc::default(), ended: Arc::default(), cancelled: broadcast::Sender::new(MAX_MISSED) }
    }
}

impl Asking {
    /// Begins to ask, unless somebody does.
    pub(super) fn begin(&self, key: &str) -> Option<AskingGuard> {
        let is_free = self.tasks.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned());
        is_free.then(|| AskingGuard { asking: self.clone(), key: key.to_owned() })
    }

    /// Tells those who wait for a task that it was cancelled.
    pub(super) fn tell_cancelled(&self, sealed: &str) {
        // That nobody waits is not an error.
        let _ = self.cancelled.send(sealed.into());
    }

    /// Returns the cancellations from now on.
    pub(super) fn cancellations(&self) -> Cancellations {
        Cancellations(self.cancelled.subscribe())
    }
}

pub(super) struct AskingGuard {
    asking: Asking,
    key: String,
}

impl Drop for AskingGuard {
    fn drop(&mut self) {
        self.asking.tasks.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
        self.asking.ended.notify_waiters();
    }
}

/// Returns the key of a task at its server. Other instances of the server may use the same id.
pub(super) fn asking_key(instance: &Instance, id: &str) -> String {
    format!("{} {id}", instance.id)
}

/// The cancellations that this process handles.
pub(super) struct Cancellations(broadcast::Receiver<Arc<str>>);

impl Cancellations {
    /// Returns true when a task is cancelled, and false when its record has to be looked at, because another process may have
    /// cancelled it.
    pub(super) async fn next(&mut self, sealed: &str) -> bool {
        let heard = async {
            loop {
                match self.0.recv().await {
                    Ok(cancelled) if *cancelled == *sealed => return true,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => return false,
                    Err(RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        timeout(LOOKED_AT_EVERY, heard).await.unwrap_or(false)
    }
}
