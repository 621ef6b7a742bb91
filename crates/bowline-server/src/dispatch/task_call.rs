//! Calls of tools that are tasks or become tasks.

use super::{
    Core, catch_panic,
    errors::{not_a_task, panicked},
    needs_input,
};
use crate::{
    Ctx,
    handler::Running,
    round::{Finished, Log, Round},
    tasks::{Admission, Attempt, Loaded, Submission},
    tool::ReadyTool,
    transport::unix_time,
};
use bowline_proto::{
    params::Params,
    replay::Replay,
    service::{BoxFuture, Call, Notifier, Outcome},
};
use bowline_types::{CallToolResult, Method, RawJson, RpcError};
use std::sync::Arc;

/// How the round of a handler ended.
pub(crate) enum RoundEnd {
    /// With the outcome of the call, or with questions.
    Outcome(Outcome),
    /// The handler continues as a task.
    Detaches(Replay),
    /// The handler continues after this time.
    Sleeps { time: std::time::Duration, replay: Replay },
    /// There was no handler to run, and what was done is in the record.
    Written,
}

impl Core {
    /// Answers a call of a tool that is or may become a task.
    pub(super) async fn call_as_task(
        self: &Arc<Self>,
        tool: Arc<ReadyTool>,
        mut call: Call,
        notifier: Notifier,
        admission: Admission,
    ) -> Outcome {
        let (Some(table), Some(task)) = (&self.tasks, &tool.task) else {
            return Outcome::Failed(not_a_task(&tool.name));
        };
        let submission = Submission { core: self, tool: &tool, task, call: &call.clone(), ttl: None };
        let submitted = match admission {
            Admission::AtOnce(ttl) => {
                if let Err(error) = call.replay.redeem(&self.profile.consumed, unix_time) {
                    return Outcome::Failed(error);
                }
                table.submit(Submission { ttl, ..submission }, &call.replay, None).await
            }
            Admission::Inline | Admission::After(_) | Admission::Later => {
                let ctx = match self.begin(&mut call, notifier) {
                    Ok(ctx) => ctx,
                    Err(error) => return Outcome::Failed(error),
                };
                if admission == Admission::Later {
                    ctx.log_of_round().may_detach();
                }
                let arguments = match call.params.arguments() {
                    Ok(arguments) => arguments.unwrap_or_else(RawJson::empty_object),
                    Err(error) => return Outcome::Failed(error),
                };
                let round = Arc::clone(self).plain_round(Arc::clone(&tool), ctx.clone(), arguments);
                let mut round: BoxFuture<'static, RoundEnd> = Box::pin(round);
                let end = match admission {
                    Admission::After(time) => match tokio::time::timeout(time, &mut round).await {
                        Ok(end) => end,
                        Err(_) => match table.hand_over(submission, &ctx, round).await {
                            Ok(accepted) => return accepted,
                            // The record cannot be written: the call continues as a plain call.
                            Err(round) => round.await,
                        },
                    },
                    _ => round.await,
                };
                match end {
                    RoundEnd::Outcome(outcome) => return outcome,
                    RoundEnd::Detaches(replay) => table.submit(submission, &replay, None).await,
                    RoundEnd::Sleeps { .. } | RoundEnd::Written => Err(not_a_task(&tool.name)),
                }
            }
        };
        submitted.unwrap_or_else(Outcome::Failed)
    }

    /// Runs a handler that may become a task.
    async fn plain_round(self: Arc<Self>, tool: Arc<ReadyTool>, ctx: Ctx, arguments: RawJson) -> RoundEnd {
        let round = async {
            let running = tool.call(ctx.clone(), arguments);
            self.end_round(&tool, &ctx, running, true).await
        };
        let on_panic = || RoundEnd::Outcome(Outcome::Failed(panicked(&tool.name)));
        catch_panic(round).await.unwrap_or_else(on_panic)
    }

    /// Runs one round of a task. Attempts pass no middleware, but the guard and the scopes of the tool are checked again.
    pub(crate) async fn run_round(self: &Arc<Self>, attempt: &Arc<Attempt>, loaded: Loaded) -> RoundEnd {
        let Loaded { record, input, replay } = loaded;
        let name = record.tool.clone();
        let round = async {
            let failed = |error| RoundEnd::Outcome(Outcome::Failed(error));
            let params = match task_params(&record, &input) {
                Ok(params) => params,
                Err(error) => return failed(error),
            };
            let client = Arc::new(record.caller.to_client());
            let mut call = Call::new(Method::CallTool, params.clone(), Arc::clone(&client));
            if let Some(token) = &record.caller.token {
                call.extensions.insert(Arc::new(token.to_caller()));
            }
            let tool = match self.find_tool(&call) {
                Ok(tool) => tool,
                Err(error) => return failed(error),
            };
            let log = Log::new(replay);
            log.enter(attempt);
            let notifier = Notifier::new(Arc::clone(attempt) as _);
            let ctx = Ctx::new(client, params, notifier, self.registry.clone(), log, call.extensions);
            let running = tool.call(ctx.clone(), input);
            self.end_round(&tool, &ctx, running, false).await
        };
        let on_panic = || RoundEnd::Outcome(Outcome::Failed(panicked(&name)));
        catch_panic(round).await.unwrap_or_else(on_panic)
    }

    /// Polls a handler to the end of its round. Plain rounds have the limits of plain calls.
    async fn end_round(
        &self,
        tool: &ReadyTool,
        ctx: &Ctx,
        running: Running<CallToolResult>,
        is_plain: bool,
    ) -> RoundEnd {
        let done = match running {
            Running::Ready(done) => done,
            Running::Pending(future) => match Round::new(future, ctx.log_of_round()).await {
                Finished::Done(done) => done,
                // The call may have become a task while it ran.
                Finished::Asks(asked) if is_plain && ctx.task_id().is_none() => {
                    return RoundEnd::Outcome(match self.asks::<()>(asked, &tool.name, ctx.client()) {
                        Ok(Finished::Asks(asked)) => needs_input(asked),
                        Ok(_) => Outcome::Failed(not_a_task(&tool.name)),
                        Err(error) => Outcome::Failed(error),
                    });
                }
                Finished::Asks(asked) => return RoundEnd::Outcome(needs_input(asked)),
                Finished::Detaches(replay) => return RoundEnd::Detaches(replay),
                Finished::Sleeps { time, replay } => return RoundEnd::Sleeps { time, replay },
            },
        };
        RoundEnd::Outcome(self.end_tool(tool, done, ctx))
    }
}

/// Returns the params of a task's call, as its handler sees them.
fn task_params(record: &bowline_proto::task::TaskRecord, input: &RawJson) -> Result<Params, RpcError> {
    let wrong = |error: serde_json::Error| RpcError::internal(error.to_string());
    let mut params = bowline_types::RawMap::new();
    params.insert("name", RawJson::of(&record.tool).map_err(wrong)?);
    params.insert("arguments", input.clone());
    if let Some(meta) = &record.caller.meta {
        params.insert("_meta", meta.clone());
    }
    Params::parse(RawJson::of(&params).map_err(wrong)?)
}
