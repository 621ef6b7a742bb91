//! Asks the user of this machine before a login, through the gate that asks about calls.

use bowline_client::BoxFuture;
use bowline_http::auth::{Browser, Error, Redirect, UserAgent, Visit};
use bowline_text::visible;
use bowline_types::ElicitUrlParams;
use std::{fmt, sync::Arc};

/// A page that the user has to visit to log in to a server.
pub(crate) struct LoginPage {
    pub(crate) server: Arc<str>,
    /// What the server is, as for the definitions of its tools.
    pub(crate) identity: Arc<str>,
    pub(crate) page: ElicitUrlParams,
}

/// Asks the user whether to log in, and opens the page if the user agrees. The error says why it was not opened.
pub(crate) type AskLogin = Arc<dyn Fn(LoginPage) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// Asks before it waits for a redirect; nothing is opened unasked.
pub(super) struct ConsentAgent {
    server: Arc<str>,
    identity: Arc<str>,
    ask: AskLogin,
    browser: Browser,
}

impl ConsentAgent {
    /// `browser` receives the redirect, and opens nothing itself.
    pub(super) fn new(server: &str, identity: &str, ask: AskLogin, browser: Browser) -> Self {
        Self { server: server.into(), identity: identity.into(), ask, browser }
    }
}

impl UserAgent for ConsentAgent {
    fn prepare<'a>(&'a self, bound: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn Redirect>, Error>> {
        Box::pin(async move {
            let redirect = self.browser.prepare(bound).await?;
            let (server, identity) = (Arc::clone(&self.server), Arc::clone(&self.identity));
            Ok(Box::new(Asking { redirect, server, identity, ask: Arc::clone(&self.ask) })
                as Box<dyn Redirect>)
        })
    }
}

impl fmt::Debug for ConsentAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsentAgent").field("server", &self.server).finish_non_exhaustive()
    }
}

/// A login that the user has not agreed to yet.
struct Asking {
    redirect: Box<dyn Redirect>,
    server: Arc<str>,
    identity: Arc<str>,
    ask: AskLogin,
}

impl Redirect for Asking {
    fn redirect_uri(&self) -> &str {
        self.redirect.redirect_uri()
    }

    fn visit(self: Box<Self>, visit: Visit) -> BoxFuture<'static, Result<String, Error>> {
        Box::pin(async move {
            let issuer = visible(visit.issuer().as_str());
            let scopes = if visit.scopes().is_empty() {
                String::new()
            } else {
                format!(" for {}", visible(&visit.scopes().to_string()))
            };
            let message = format!("a call needs a login at {issuer}{scopes}");
            let page = ElicitUrlParams::new(message, visit.url());
            let (server, identity) = (Arc::clone(&self.server), Arc::clone(&self.identity));
            (self.ask)(LoginPage { server, identity, page }).await.map_err(Error::visit)?;
            self.redirect.visit(visit).await
        })
    }
}
