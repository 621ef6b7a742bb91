//! Which login a server of a gateway uses: that of one account, or that of the user who calls.

use super::{
    HttpUpstream, LaunchError, LoginSettings, LoginStorage, Upstream,
    login_audit::audited,
    login_consent::{AskLogin, ConsentAgent},
};
use bowline_client::{BoxFuture, Connect, Error, Inbox, Restart, Transport};
use bowline_config::{AuthMode, Share, UpstreamConfig};
use bowline_http::auth::{Browser, Login, Networks};
use bowline_policy::audit::Audit;
use bowline_types::Era;
use std::{path::Path, sync::Arc};

/// Returns how to reach a server with the account of a user, or of nobody.
pub(crate) type UserTargets = Arc<dyn Fn(Option<&str>) -> Arc<dyn Connect> + Send + Sync>;

/// Returns the server with a login for an account, to log in with.
pub(crate) type UserLogins = Arc<dyn Fn(&str, Login) -> Result<HttpUpstream, String> + Send + Sync>;

/// The logins that the servers of a gateway may use.
#[derive(Clone)]
pub(crate) struct Credentials {
    /// Where logins are stored.
    pub(crate) storage: LoginStorage,
    /// Whether several users call the gateway. Then no login is used unless the entry of a server says whose.
    pub(crate) is_shared: bool,
    /// Asks the user of this machine whether to log in; `None` if nobody can be asked.
    pub(crate) asks: Option<AskLogin>,
    /// Where logins and refreshes are recorded.
    pub(crate) audit: Option<Audit>,
}

impl Credentials {
    /// The logins of the only user, who is never asked.
    pub(super) fn of_one_user(folder: &Path) -> Self {
        Self { storage: LoginStorage::at(folder), is_shared: false, asks: None, audit: None }
    }

    /// Builds the upstream of a server with a URL.
    pub(super) fn apply(&self, entry: &UpstreamConfig, http: HttpUpstream) -> Result<Upstream, LaunchError> {
        let Some(mut settings) = LoginSettings::from_config(entry)? else {
            if self.is_shared && entry.settings.auth == Some(AuthMode::User) {
                return Err(LaunchError::new(
                    "`auth = \"user\"` conflicts with an `Authorization` header or `headers_helper`, which all users \
                     would share; remove one of them",
                ));
            }
            return Ok(Upstream::to(http));
        };
        if self.is_shared {
            // The server names URLs, and must not lead the gateway into its own network. A configured issuer may be there.
            settings.networks = Networks::Public;
        }
        match entry.settings.auth {
            None if self.is_shared => Ok(Upstream::to(http)),
            Some(AuthMode::User) if self.is_shared => self.per_user(entry, &settings, http),
            _ => {
                let login = settings.apply_in(self.login(entry, &settings), Some(&self.storage))?;
                let login = audited(login, self.audit.as_ref(), &entry.name, None);
                let mut upstream = Upstream::to(http.login(login));
                if settings.machine.is_none() {
                    upstream.login_advice = Some(login_advice(&entry.name, None).into());
                }
                Ok(upstream)
            }
        }
    }

    fn login(&self, entry: &UpstreamConfig, settings: &LoginSettings) -> Login {
        let Some(ask) = self.asks.as_ref().filter(|_| !self.is_shared) else { return Login::stored() };
        // The page is opened after the user was asked.
        let mut browser = Browser::new().without_opening().on_message(|_| {});
        if let Some(port) = settings.callback_port {
            browser = browser.callback_port(port);
        }
        if let Some(host) = settings.callback_host {
            browser = browser.callback_host(host);
        }
        Login::agent(ConsentAgent::new(&entry.name, &entry.identity(), Arc::clone(ask), browser))
    }

    /// Each user has an account of their own, so each caller has an instance of their own.
    fn per_user(
        &self,
        entry: &UpstreamConfig,
        settings: &LoginSettings,
        http: HttpUpstream,
    ) -> Result<Upstream, LaunchError> {
        if settings.machine.is_some() {
            let reason = "`auth = \"user\"` needs logins of users; a machine credential is one for all: set `auth = \"shared\"`";
            return Err(LaunchError::new(reason));
        }
        let (settings, storage, name) = (settings.clone(), self.storage.clone(), entry.name.clone());
        let audit = self.audit.clone();
        let nobody = Nobody(format!(
            "`{name}` uses one account for each user, and this caller is not a user whom the gateway knows; \
             callers need a token of an issuer in `[gateway.auth]`"
        ));
        let mut upstream = Upstream::to(nobody.clone());
        let log_in = move |account: &str, login: Login| {
            let settings = LoginSettings { account: Some(account.to_owned()), ..settings.clone() };
            let login = settings.apply_in(login, Some(&storage)).map_err(|error| error.to_string())?;
            Ok(http.clone().login(audited(login, audit.as_ref(), &name, Some(account))))
        };
        upstream.user_logins = Some(Arc::new(log_in.clone()));
        upstream.user_targets = Some(Arc::new(move |account| {
            let Some(account) = account else { return Arc::new(nobody.clone()) };
            match log_in(account, Login::stored()) {
                Ok(target) => Arc::new(target),
                Err(error) => Arc::new(Nobody(error)),
            }
        }));
        Ok(upstream)
    }
}

/// Sets who shares an upstream: with an account for each user, no instance is shared.
pub(super) fn share(upstream: &Upstream, configured: Share) -> Share {
    if upstream.user_targets.is_some() { Share::PerClient } else { configured }
}

/// Returns the name of the account of a principal: its issuer and subject. A user has the same account with every client.
/// `None` if the principal is not a user of an issuer.
pub(crate) fn account_of(principal: &str) -> Option<String> {
    let parts: Vec<Option<String>> = serde_json::from_str(principal).ok()?;
    match parts.as_slice() {
        // Without a user, the client takes the place of the subject. A client is not a user.
        [Some(issuer), Some(subject), client]
            if !issuer.is_empty() && !subject.is_empty() && client.as_ref() != Some(subject) =>
        {
            serde_json::to_string(&[issuer, subject]).ok()
        }
        _ => None,
    }
}

/// Returns the issuer and the subject of an account that [`account_of`] named.
pub(crate) fn user_of_account(account: &str) -> Option<(String, String)> {
    serde_json::from_str(account).ok()
}

/// Returns how to log in to a server.
pub(crate) fn login_advice(name: &str, account: Option<&str>) -> String {
    let word = |text: &str| {
        let text = bowline_text::visible(text);
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_./:-".contains(letter);
        if !text.is_empty() && text.chars().all(is_plain) {
            text
        } else {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
    };
    match account {
        None => format!("run `bowline login {}`", word(name)),
        Some(account) => format!(
            "on the machine of the gateway, run `bowline login {} --account {}`",
            word(name),
            word(account)
        ),
    }
}

/// A server that cannot be used.
#[derive(Clone)]
struct Nobody(String);

impl Connect for Nobody {
    fn connect(&self, _: Inbox) -> BoxFuture<'_, bowline_client::Result<Box<dyn Transport>>> {
        Box::pin(std::future::ready(Err(Error::unreachable(self.0.clone()))))
    }

    fn restart(&self) -> Restart {
        Restart::Never
    }

    fn known_era(&self) -> Option<Era> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_belongs_to_issuer_and_subject() {
        let account = |principal: &str| account_of(principal);
        let ada = account(r#"["https://as.example","ada","app"]"#);
        assert_eq!(ada.as_deref(), Some(r#"["https://as.example","ada"]"#));
        assert_eq!(account(r#"["https://as.example","ada",null]"#), ada);
        assert_ne!(account(r#"["https://other.example","ada","app"]"#), ada);
        // A client that acts for itself is not a user of the same name.
        assert_eq!(account(r#"["https://as.example","ada","ada"]"#), None);
        for nobody in
            ["", "token", r#""ada""#, r#"["https://as.example"]"#, r#"["","ada","app"]"#, "[null,\"a\",null]"]
        {
            assert_eq!(account(nobody), None, "{nobody}");
        }
    }

    #[test]
    fn the_advice_can_be_pasted() {
        assert_eq!(login_advice("notes", None), "run `bowline login notes`");
        assert_eq!(
            login_advice("my notes", Some(r#"["https://as.example","a'b"]"#)),
            r#"on the machine of the gateway, run `bowline login 'my notes' --account '["https://as.example","a'\''b"]'`"#
        );
    }
}
