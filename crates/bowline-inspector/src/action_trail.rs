//! Writes actions of the page to the audit log: what was done, with the number of the key, and how it ended.

use crate::{action::Action, buffer::PAGE, inspector::Shared, keys::Holder, service::Failure};
use bowline_policy::audit::{Audit, Entry, Event};
use http::StatusCode;
use serde_json::value::RawValue;
use std::time::SystemTime;

/// An action in progress. If dropped before its end, it is logged as abandoned.
pub(crate) struct Trail(Option<(Audit, Box<Entry>)>);

impl Trail {
    /// Begins an entry. Refuses the action if it must be logged and cannot.
    pub(crate) async fn begin(shared: &Shared, holder: Holder, action: &Action) -> Result<Self, Failure> {
        let audit = shared.attached.get().and_then(|attached| attached.host.guard().audit());
        let Some(audit) = audit.cloned() else { return Ok(Self(None)) };
        // Signing out must always be possible.
        if !matches!(action, Action::SignOut { .. }) {
            let refused = |reason| Failure::new(StatusCode::SERVICE_UNAVAILABLE, reason);
            audit.ready().await.map_err(refused)?;
        }
        let (server, name) = subject(shared, action);
        let mut entry = Entry::new(SystemTime::now(), Event::Page, server, action.name());
        entry.client = Some(PAGE.to_owned());
        entry.key = Some(holder.number);
        entry.name = name;
        Ok(Self(Some((audit, Box::new(entry)))))
    }

    /// Logs how the action ended. A call ends later, with an entry of its own.
    pub(crate) fn end(mut self, failure: Option<&Failure>) {
        let outcome = failure.map_or_else(|| "ok".to_owned(), |failure| failure.error.error.clone());
        self.write(outcome);
    }

    fn write(&mut self, outcome: String) {
        if let Some((audit, mut entry)) = self.0.take() {
            entry.outcome = Some(outcome);
            audit.write(*entry);
        }
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        self.write("abandoned".to_owned());
    }
}

/// Returns the server that an action is about, and what it is about there.
fn subject(shared: &Shared, action: &Action) -> (String, Option<String>) {
    match action {
        Action::Send(request) => (request.server.clone(), name_in(&request.params)),
        Action::Resend(request) => {
            let head =
                shared.recorder.with_ring(|ring| ring.get(request.seq).map(|stored| stored.head.clone()));
            head.map(|head| (head.peer, head.name)).unwrap_or_default()
        }
        Action::Restart { server }
        | Action::Stop { server }
        | Action::Start { server }
        | Action::RunChecks { server } => (server.clone(), None),
        Action::Answer { question, .. } => {
            shared.questions.about(question).map(|(server, what)| (server, Some(what))).unwrap_or_default()
        }
        Action::AcceptPin { server, tool, .. } => (server.clone(), Some(tool.clone())),
        Action::Complete { server, name, .. } => (server.clone(), Some(name.clone())),
        Action::Subscribe { server, uri, .. } => (server.clone(), Some(uri.clone())),
        Action::Level { level } => (String::new(), level.clone()),
        Action::ForgetAnswer { id } => (String::new(), Some(id.clone())),
        Action::Roots { roots } => (String::new(), Some(roots.join(" "))),
        Action::Cancel { .. } | Action::Clear | Action::SignOut { .. } | Action::AskControl { .. } => {
            Default::default()
        }
    }
}

/// Returns the tool, prompt or URI in parameters.
fn name_in(params: &RawValue) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        name: Option<String>,
        uri: Option<String>,
    }
    let Named { name, uri } = serde_json::from_str(params.get()).ok()?;
    name.or(uri)
}
