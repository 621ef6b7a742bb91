//! Writes logins and refreshes of servers to the audit log.

use bowline_http::auth::{Event, Login};
use bowline_policy::audit::{self, Audit, Entry};
use std::{sync::Arc, time::SystemTime};

/// Records what a login does, if there is an audit log. `account` is that of a user; `None` if all callers share one.
pub(super) fn audited(login: Login, audit: Option<&Audit>, server: &str, account: Option<&str>) -> Login {
    let Some(audit) = audit.cloned() else { return login };
    let (server, account): (Arc<str>, Option<Arc<str>>) = (server.into(), account.map(Into::into));
    login.on_event(move |event| {
        if let Some(entry) = entry(event, &server, account.as_deref()) {
            audit.write(entry);
        }
    })
}

/// Returns the entry of an event. `None` for steps on the way.
fn entry(event: &Event, server: &str, account: Option<&str>) -> Option<Entry> {
    let login = |is_step_up: bool| if is_step_up { "step-up" } else { "login" };
    let (method, outcome) = match event {
        Event::LoggedIn { is_step_up, .. } => (login(*is_step_up), "ok".to_owned()),
        Event::LoginFailed { is_step_up, reason } => (login(*is_step_up), reason.clone()),
        Event::Refreshed { .. } => ("refresh", "ok".to_owned()),
        Event::RefreshRefused { reason, .. } | Event::RefreshFailed { reason, .. } => {
            ("refresh", reason.clone())
        }
        Event::NotStored { reason } => ("refresh", format!("the new token cannot be stored: {reason}")),
        Event::IssuerChanged { .. } => ("login", event.to_string()),
        _ => return None,
    };
    let mut entry = Entry::new(SystemTime::now(), audit::Event::Login, server, method);
    (entry.outcome, entry.name) = (Some(outcome), account.map(str::to_owned));
    // The account of a user is its issuer and subject.
    let user: Option<(String, String)> = account.and_then(|account| serde_json::from_str(account).ok());
    entry.principal = user.map(|(_, subject)| subject);
    match event {
        Event::LoggedIn { issuer, granted, token_digest, .. }
        | Event::Refreshed { issuer, granted, token_digest } => {
            entry.issuer = Some(issuer.to_string());
            entry.scopes = Some(granted.to_string());
            entry.token_digest = Some(token_digest.clone());
        }
        Event::RefreshRefused { issuer, .. }
        | Event::RefreshFailed { issuer, .. }
        | Event::IssuerChanged { from: issuer } => entry.issuer = Some(issuer.to_string()),
        _ => {}
    }
    Some(entry)
}
