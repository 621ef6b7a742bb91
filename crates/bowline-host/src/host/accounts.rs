//! Servers at which a caller has no account yet: sends the caller's user to the page that connects one.

use super::{Host, Inner, asker::with_origin, result};
use crate::{
    aggregate::{may_be_of, name_within},
    upstream::{CallerKey, HttpUpstream, Instance, account_of},
};
use bowline_client::BoxFuture;
use bowline_http::auth::{Login, Scopes};
use bowline_proto::{
    replay::Question,
    service::{Call, Outcome, Reply},
};
use bowline_types::{
    CallToolResult, ElicitAction, ElicitParams, ElicitResult, ElicitUrlParams, InputRequest, RawJson,
    RpcError, Tool,
};
use std::sync::Arc;

/// The pages on which users connect their accounts. Implemented by the gateway, which serves them.
pub(crate) trait AccountPages: Send + Sync {
    /// Returns the URL of the page for an account at a server; `None` if it cannot be served. The login asks for `scopes` too.
    fn link(&self, server: &str, account: &str, scopes: &Scopes) -> Option<String>;

    /// Waits until the account is connected, or nobody expects that any more.
    fn connected(&self, server: &str, account: &str) -> BoxFuture<'static, ()>;
}

/// The name of the tool that is listed for a server at which the caller has no account.
const CONNECT: &str = "connect_account";
/// The key of the question that sends a user to the page.
const KEY: &str = "connect_account";

/// What happens to a call at a server at which its caller has no account.
pub(super) enum Connecting {
    /// The caller has to open the page.
    Asks(Box<Question>),
    /// The account is connected, which is what the call was for. Contains the text of the result.
    Connected(String),
    /// The call fails.
    Failed(RpcError),
    /// The call is refused with this reason.
    Refused(String),
    /// The account is connected by now; the call can start again.
    Retry,
}

impl Host {
    /// Lets callers connect their accounts at servers with an account for each user.
    pub(crate) fn set_account_pages(&self, pages: Arc<dyn AccountPages>) {
        let _ = self.inner.account_pages.set(pages);
    }

    /// Returns how to log in to a server for an account; `None` if the server has no accounts of users.
    pub(crate) fn user_login(
        &self,
        server: &str,
        account: &str,
        login: Login,
    ) -> Option<Result<HttpUpstream, String>> {
        let members = self.inner.router.members();
        let member = members.iter().find(|member| *member.name == *server)?;
        Some(member.spec.user_logins.as_ref()?(account, login))
    }

    /// Lets the instances of an account start again, now with its login.
    pub(crate) fn account_connected(&self, server: &str, account: &str) {
        for member in self.inner.router.members().iter().filter(|member| *member.name == *server) {
            for instance in member.all() {
                if instance.account().as_deref() == Some(account) {
                    instance.login_stored();
                }
            }
        }
    }
}

impl Inner {
    /// Handles a call that was not routed: its server may wait for an account of the caller. `None` if no such server does.
    pub(super) async fn connect_owner(&self, call: &Call) -> Option<Connecting> {
        call.method.known()?;
        self.account_pages.get()?;
        let shown = call.params.name().ok()?;
        let max_name = self.router.max_name;
        let tenant = CallerKey::tenant(call);
        let members = self.router.members();
        let mut owners = members
            .iter()
            .filter(|member| member.spec.user_logins.is_some() && may_be_of(max_name, &member.name, &shown));
        let instance = owners.find_map(|member| {
            let instance = member.instance(&tenant);
            let is_tool = shown == name_within(max_name, &member.name, CONNECT);
            (is_tool || instance.needs_login()).then_some(instance)
        })?;
        let is_tool = shown == name_within(max_name, &instance.name, CONNECT);
        if is_tool && !instance.needs_login() {
            // It may have been connected by an earlier round, or never have been started.
            return match instance.client().await {
                Ok(_) => Some(Connecting::Connected(connected_text(&instance.name))),
                Err(error) if !instance.needs_login() => Some(Connecting::Failed(error)),
                Err(_) => self.connect(call, &instance, is_tool).await,
            };
        }
        self.connect(call, &instance, is_tool).await
    }

    /// Asks the user of a call that was sent to a server, and failed because of the login. `None` if the server has no accounts of users.
    pub(super) async fn connect_again(
        &self,
        call: &Call,
        instance: &Arc<Instance>,
        error: &RpcError,
    ) -> Option<Connecting> {
        instance.account()?;
        match answer_of(call) {
            None => self.connect(call, instance, false).await,
            // The user has just been there. To send the user there again would not help, and the call would never end.
            Some(ElicitAction::Accept) => Some(Connecting::Refused(format!(
                "the account that is connected does not suffice for this call: {}",
                error.message
            ))),
            Some(action) => Some(Connecting::Refused(not_connected(&instance.name, action))),
        }
    }

    /// Waits until the user of a call has connected an account, if the user agreed in the round before.
    pub(super) async fn wait_for_account(&self, call: &Call, instance: &Instance) {
        if answer_of(call) == Some(ElicitAction::Accept)
            && let (Some(pages), Some(account)) = (self.account_pages.get(), instance.account())
        {
            pages.connected(&instance.name, &account).await;
        }
    }

    /// Asks the user of a call to connect an account, or waits for it if the user agreed in an earlier round.
    pub(super) async fn connect(
        &self,
        call: &Call,
        instance: &Arc<Instance>,
        is_tool: bool,
    ) -> Option<Connecting> {
        let pages = self.account_pages.get()?;
        let account = account_of(call.client.principal.as_deref()?)?;
        let name = &instance.name;
        match answer_of(call) {
            None => {}
            Some(ElicitAction::Accept) => {
                pages.connected(name, &account).await;
                return Some(match instance.client().await {
                    Ok(_) if is_tool => Connecting::Connected(connected_text(name)),
                    Ok(_) => Connecting::Retry,
                    Err(_) => Connecting::Refused(format!(
                        "no account was connected at the server `{name}` in time; call again"
                    )),
                });
            }
            Some(action) => return Some(Connecting::Refused(not_connected(name, action))),
        }
        let url = pages.link(&instance.name, &account, &instance.needed_scopes())?;
        if !call.client.capabilities().has_url_elicitation() {
            return Some(Connecting::Refused(format!(
                "the server `{name}` needs an account of the user: the user has to open {url} in a browser; call again after that"
            )));
        }
        let params = ElicitUrlParams::new("this server needs your account; connect it on this page", url);
        let request = with_origin(instance, InputRequest::Elicit(ElicitParams::Url(params)));
        if call.client.revision.is_modern() {
            return Some(Connecting::Asks(Box::new(Question::new(KEY.to_owned(), request))));
        }
        let InputRequest::Elicit(ElicitParams::Url(params)) = request else { return None };
        // Clients of 2025-11-25 know this error and when to call again.
        Some(Connecting::Failed(RpcError::url_elicitation_required(vec![params])))
    }

    /// Returns a tool for each server that waits for an account of the caller.
    pub(super) fn connect_tools(&self, tenant: &CallerKey) -> Vec<Tool> {
        if self.account_pages.get().is_none() || tenant.user().and_then(|user| account_of(&user)).is_none() {
            return Vec::new();
        }
        let members = self.router.members();
        let waiting = members
            .iter()
            .filter(|member| member.spec.user_logins.is_some() && member.instance(tenant).needs_login());
        let tool = |server: &str| {
            let schema = RawJson::from(serde_json::json!({ "type": "object" }));
            let description = format!(
                "Connects the account of the user at the server `{server}`, which needs one. Its tools are listed after that."
            );
            Tool::new(name_within(self.router.max_name, server, CONNECT), schema).description(description)
        };
        waiting.map(|member| tool(&member.name)).collect()
    }

    /// Returns how a call ends that its user has to connect an account for.
    pub(super) fn connecting_outcome(call: &Call, connecting: Connecting) -> Result<Outcome, Box<Question>> {
        Ok(match connecting {
            Connecting::Asks(question) => return Err(question),
            Connecting::Connected(text) => {
                Outcome::Complete(Reply::Tool(Box::new(CallToolResult::text(text))))
            }
            Connecting::Failed(error) => Outcome::Failed(error),
            Connecting::Refused(reason) => result::refused(&call.method, &reason),
            Connecting::Retry => {
                result::refused(&call.method, "the account of the user is connected now; call again")
            }
        })
    }
}

/// Returns how the user answered in the round before, if the user was sent to the page.
fn answer_of(call: &Call) -> Option<ElicitAction> {
    let (_, answer) = call.replay.answers().find(|(key, _)| *key == KEY)?;
    let answer = answer.clone().ok().and_then(|answer| answer.decode::<ElicitResult>().ok());
    Some(answer.map_or(ElicitAction::Cancel, |answer| answer.action))
}

fn not_connected(server: &str, action: ElicitAction) -> String {
    let verb = if action == ElicitAction::Decline { "declined to connect" } else { "cancelled connecting" };
    format!("the user {verb} an account at the server `{server}`")
}

fn connected_text(server: &str) -> String {
    format!("your account at the server `{server}` is connected; its tools are now listed")
}
