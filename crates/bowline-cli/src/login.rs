//! Logins of HTTP targets: where tokens are kept, and how the user is asked.

pub(crate) use crate::login_key::sealing_key;

use crate::{
    client_handlers::TerminalUser,
    context::Context,
    failure::{Code, Failure},
    screen::TransientHold,
};
use bowline_host::{LaunchError, LoginSettings, LoginStorage};
use bowline_http::auth::{Browser, Error, Event, FileStore, Login, Redirect, UserAgent, Visit};
use bowline_proto::service::BoxFuture;
use bowline_text::visible;
use std::path::PathBuf;

/// Returns the browser with the callback of these settings. Its messages go to standard error.
pub(crate) fn browser(settings: &LoginSettings, context: &Context) -> Browser {
    let screen = context.screen;
    let mut browser = Browser::new().on_message(move |text| {
        for line in text.lines() {
            screen.note(&visible(line));
        }
    });
    if let Some(port) = settings.callback_port {
        browser = browser.callback_port(port);
    }
    if let Some(host) = settings.callback_host {
        browser = browser.callback_host(host);
    }
    browser
}

/// Returns the login of commands that use a server: stored tokens, and at a terminal a question whether to log in.
pub(crate) fn for_commands(
    settings: &LoginSettings,
    server: &str,
    context: &Context,
) -> Result<Login, Failure> {
    let login = if context.interactive() {
        let user = TerminalUser::new(context.screen);
        let browser = with_paste(browser(settings, context), &user);
        Login::agent(AskFirst { server: server.to_owned(), user, browser })
    } else {
        Login::stored()
    };
    let screen = context.screen;
    let storage = folder(context)
        .map(|folder| Ok::<_, Failure>(LoginStorage::at(folder).sealed_with(sealing_key(context)?)));
    let storage = storage.transpose()?;
    let login = settings.apply_in(login, storage.as_ref()).map_err(invalid)?;
    Ok(login.on_event(move |event| {
        if let Event::Interrupted | Event::IssuerChanged { .. } | Event::NotStored { .. } = event {
            screen.warn(&visible(&event.to_string()));
        }
    }))
}

/// Converts the error of settings that cannot be used.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
pub(crate) fn invalid(error: LaunchError) -> Failure {
    Failure::new(Code::Config, error.to_string())
}

/// Lets the user paste the redirected URL at the terminal if no browser can be opened.
pub(crate) fn with_paste(browser: Browser, user: &TerminalUser) -> Browser {
    let user = user.clone();
    browser.paste(move || {
        let user = user.clone();
        async move { user.line("redirected URL:\n").await }
    })
}

/// Returns the folder of the stored logins. `None` without a home directory.
fn folder(context: &Context) -> Option<PathBuf> {
    context.environment.state_dir().map(|folder| folder.join("credentials"))
}

/// Returns the stored logins of this user.
pub(crate) fn store(context: &Context) -> Result<FileStore, Failure> {
    let folder = folder(context).ok_or_else(|| {
        Failure::new(Code::Failed, "cannot store logins without a home directory")
            .advise("set HOME or XDG_STATE_HOME")
    })?;
    let storage = LoginStorage::at(folder).sealed_with(sealing_key(context)?);
    storage.open().map_err(|error| Failure::new(Code::Config, error.to_string()))
}

/// Asks at the terminal before a browser is opened: nobody expects one from a command that lists tools.
#[derive(Debug)]
struct AskFirst {
    server: String,
    user: TerminalUser,
    browser: Browser,
}

impl UserAgent for AskFirst {
    fn prepare<'a>(&'a self, bound: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn Redirect>, Error>> {
        Box::pin(async move {
            let redirect = self.browser.prepare(bound).await?;
            let (server, user) = (self.server.clone(), self.user.clone());
            Ok(Box::new(Asked { redirect, server, user }) as Box<dyn Redirect>)
        })
    }
}

struct Asked {
    redirect: Box<dyn Redirect>,
    server: String,
    user: TerminalUser,
}

impl Redirect for Asked {
    fn redirect_uri(&self) -> &str {
        self.redirect.redirect_uri()
    }

    fn visit(self: Box<Self>, visit: Visit) -> BoxFuture<'static, Result<String, Error>> {
        Box::pin(async move {
            let server = visible(&self.server);
            let scopes =
                if visit.scopes().is_empty() { String::new() } else { format!(" for {}", visit.scopes()) };
            let issuer = visible(visit.issuer().as_str());
            let prompt = format!("`{server}` needs a login at {issuer}{scopes}. Log in now? [y/n] ");
            // The line that shows how long the command has been waiting would cover the prompt.
            let _hold = TransientHold::new();
            let answer = self.user.line(&prompt).await.map_err(|error| Error::visit(error.to_string()))?;
            if !matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
                return Err(Error::visit("you declined it"));
            }
            self.redirect.visit(visit).await
        })
    }
}
