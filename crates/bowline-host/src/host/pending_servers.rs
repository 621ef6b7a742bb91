//! Servers that wait for an approval, which callers can give.

use super::asker::Asker;
use crate::aggregate::{may_be_of, name_within};
use bowline_policy::{Audience, Gate, Headless, Question as PolicyQuestion, Verdict};
use bowline_proto::{
    replay::Question,
    service::{Call, ClientView},
};
use bowline_types::{RawJson, Tool};
use std::sync::Arc;

/// The servers that wait for an approval. Implemented by the gateway, which reads the configuration.
pub(crate) trait PendingServers: Send + Sync {
    /// Returns their names.
    fn names(&self) -> Vec<String>;

    /// Returns the question whether a server may be used.
    fn question(&self, server: &str) -> Option<PolicyQuestion>;

    /// Approves the server that a question is about. Returns the reason if that fails. Reads files, so it must not run on a
    /// thread of the runtime.
    fn approve(&self, question: &PolicyQuestion) -> Result<(), String>;
}

/// The result of a call to a server that waits for an approval.
pub(super) enum Approval {
    /// The server is approved now, and the call can continue.
    Approved,
    /// The server is approved now, which is what the call was for. Contains the text of the result.
    ApprovedByTool(String),
    /// The caller has to be asked.
    Asks(Box<Question>),
    /// The server is not approved.
    Refused(String),
}

/// The name of the tool that is listed for a server that waits for an approval.
const APPROVE: &str = "approve_server";

async fn approve(pending: &Arc<dyn PendingServers>, question: PolicyQuestion) -> Result<(), String> {
    let pending = Arc::clone(pending);
    let approving = tokio::task::spawn_blocking(move || pending.approve(&question));
    approving.await.unwrap_or_else(|_| Err("the host is shutting down".to_owned()))
}

impl Asker {
    /// Asks for approval of the server that a tool or prompt belongs to. Returns `None` if no such server waits for one.
    pub(super) async fn approve_owner(&self, call: &Call, max_name: usize) -> Option<Approval> {
        // A custom method names no tool.
        call.method.known()?;
        let pending = self.pending.get()?;
        let shown = call.params.name().ok()?;
        let server = pending.names().into_iter().find(|server| may_be_of(max_name, server, &shown))?;
        let question = pending.question(&server)?;
        let gate = self.caller_gate(call);
        let verdict = match &gate {
            Some(gate) => gate.ask(question.clone()).await,
            None => Headless.ask(question.clone()).await,
        };
        Some(match verdict {
            Verdict::Allow(_) => match approve(pending, question).await {
                Ok(()) if shown == name_within(max_name, &server, APPROVE) => Approval::ApprovedByTool(
                    format!("the server `{server}` is approved; its tools are now listed"),
                ),
                Ok(()) => Approval::Approved,
                Err(reason) => Approval::Refused(reason),
            },
            Verdict::Decline { reason, .. } => {
                let default = || format!("the server `{server}` was not approved");
                Approval::Refused(reason.unwrap_or_else(default))
            }
            Verdict::Cancel => Approval::Refused("the question was not answered".to_owned()),
            Verdict::Deferred => Approval::Asks(Box::new(gate?.into_question()?)),
        })
    }

    /// Returns a tool for each server that waits for an approval, for clients whose user can give it.
    pub(super) fn pending_tools(&self, client: &ClientView, max_name: usize) -> Vec<Tool> {
        let can_approve =
            self.ask_callers == Some(Audience::SingleUser) && client.capabilities().has_form_elicitation();
        let Some(pending) = self.pending.get().filter(|_| can_approve) else { return Vec::new() };
        let tool = |server: String| {
            let schema = RawJson::from(serde_json::json!({ "type": "object" }));
            let description = format!(
                "The server `{server}` is defined by the project and must be approved before it is used. This tool asks the user."
            );
            Tool::new(name_within(max_name, &server, APPROVE), schema).description(description)
        };
        pending.names().into_iter().map(tool).collect()
    }
}
