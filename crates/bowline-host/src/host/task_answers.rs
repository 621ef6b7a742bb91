//! Answers questions of a task that its caller cannot answer and the host can.

use super::{
    asker::{Asker, CallerView},
    upstream_task::{invalid_task, send, task_params},
};
use crate::{
    bridge::{for_caller, or_cancelled},
    upstream::Instance,
};
use bowline_client::Client;
use bowline_proto::service::Call;
use bowline_types::{
    InputRequest, InputRequests, Method, RawJson, RawMap, RpcError, TaskExt, UpdateTaskParams,
};
use futures_util::future::join_all;
use std::sync::Arc;

/// A task of a server of 2026-07-28 whose questions the host answers.
pub(super) struct HostAnswers {
    pub(super) asker: Arc<Asker>,
    pub(super) instance: Arc<Instance>,
    /// The request for its state that showed the questions.
    pub(super) call: Call,
    pub(super) client: Client,
    /// The id at the server.
    pub(super) id: String,
}

impl HostAnswers {
    async fn send(&self, method: Method, params: RawJson) -> Result<RawJson, RpcError> {
        let sent = send(&self.asker, &self.instance, &self.call, &self.client, method, params).await?;
        sent.map_err(|error| for_caller(&self.instance.name, &error))
    }

    /// Answers questions, and sends the answers. The task is cancelled if there is no answer that its server could be sent.
    pub(super) async fn answer(&self, mut questions: InputRequests) -> Result<(), RpcError> {
        let invalid = |error: serde_json::Error| invalid_task(&self.instance.name, &error);
        // They may have been answered since they were read.
        let task: TaskExt =
            self.send(Method::GetTask, task_params(&self.id)).await?.decode().map_err(invalid)?;
        let open = task.input_requests.unwrap_or_default();
        questions.retain(|key, _| open.iter().any(|(open, _)| open == key));
        if questions.is_empty() {
            return Ok(());
        }
        let caller = CallerView::of(&self.call);
        let answers = questions.iter().map(|(key, question)| async move {
            let answer = self.asker.answer(&self.instance, caller, question.clone(), None).await;
            let is_elicitation = matches!(question, InputRequest::Elicit(_));
            let answer = if is_elicitation { answer.or_else(or_cancelled) } else { answer };
            answer.map(|answer| (key.to_owned(), answer))
        });
        let mut given = RawMap::new();
        for answer in join_all(answers).await {
            match answer {
                Ok((key, answer)) => {
                    given.insert(key, answer);
                }
                Err(error) => {
                    // An answer cannot be an error, and the task would wait for ever.
                    self.send(Method::CancelTask, task_params(&self.id)).await?;
                    return Err(error);
                }
            }
        }
        let params = RawJson::of(&UpdateTaskParams::new(self.id.as_str(), given)).map_err(invalid)?;
        self.send(Method::UpdateTask, params).await.map(drop)
    }
}
