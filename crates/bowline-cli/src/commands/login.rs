//! `bowline login`: logs in to a server with OAuth, and stores the tokens.

use crate::{
    client_handlers::TerminalUser,
    commands::whoami::{self, StoredLogin},
    context::Context,
    failure::{Code, Failure},
    login::{browser, invalid, store, with_paste},
    screen::Screen,
    signals::ShutdownSignals,
    target::Target,
};
use bowline_http::auth::{CallbackHost, DevicePrompt, Error, Event, Lenient, Login, Secret, StoreKey};
use bowline_text::visible;
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// A URL or a configured server
    #[arg(value_name = "TARGET")]
    target: String,
    /// Print the URL instead of opening a browser, and read the redirected URL from the terminal
    #[arg(long)]
    no_browser: bool,
    /// Log in with a browser on another device: print a page and a code to enter there
    #[arg(long, conflicts_with_all = ["no_browser", "callback_port", "callback_host"])]
    device: bool,
    /// Ask for this scope instead of those that the server names; can be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// Use this client id instead of registering a client
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Use the client secret in this environment variable; it is stored with the tokens
    #[arg(long, value_name = "VARIABLE", requires = "client_id")]
    client_secret_env: Option<String>,
    /// Use this client ID metadata document if the authorization server supports it
    #[arg(long, value_name = "URL")]
    client_metadata_url: Option<String>,
    /// Use this authorization server, exactly as it publishes its issuer
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,
    /// Receive the redirect on this port
    #[arg(long, value_name = "PORT")]
    callback_port: Option<u16>,
    /// Host of the redirect URI: `127.0.0.1` or `localhost`
    #[arg(long, value_name = "HOST", value_parser = callback_host)]
    callback_host: Option<CallbackHost>,
    /// Bind the tokens to a key that is created for this login (DPoP), and fail if the authorization server does not support it
    #[arg(long)]
    dpop: bool,
    /// Name of the account, if you have several at this server
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// Allow an exception from the rules, for a server that breaks them; can be repeated
    #[arg(long = "allow-exception", value_name = "EXCEPTION", value_parser = exception)]
    exceptions: Vec<Lenient>,
}

fn exception(text: &str) -> Result<Lenient, String> {
    text.parse()
}

fn callback_host(text: &str) -> Result<CallbackHost, String> {
    let known = [CallbackHost::Address, CallbackHost::Localhost];
    known
        .into_iter()
        .find(|host| host.as_str() == text)
        .ok_or_else(|| "expected `127.0.0.1` or `localhost`".to_owned())
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let target = Target::named(&arguments.target, context)?;
    let (page, mut settings) = target.for_login()?;
    let store = store(context)?;
    if let Some(id) = arguments.client_id {
        // A configured secret belongs to the configured client.
        (settings.client_id, settings.client_secret, settings.machine) = (Some(id), None, None);
    }
    if let Some(variable) = &arguments.client_secret_env {
        let secret = context.environment.variables.variable(variable).filter(|secret| !secret.is_empty());
        let secret = secret.ok_or_else(|| {
            Failure::misused(format!(
                "environment variable `{variable}` is not set; expected a client secret"
            ))
        })?;
        // Later commands do not have the variable, and refresh the tokens with the secret.
        (settings.client_secret, settings.keep_secret) = (Some(Secret::new(secret)), true);
    }
    if !arguments.scopes.is_empty() {
        settings.scopes = arguments.scopes;
    }
    settings.client_document = arguments.client_metadata_url.or(settings.client_document);
    settings.issuer = arguments.issuer.or(settings.issuer);
    settings.callback_port = arguments.callback_port.or(settings.callback_port);
    settings.callback_host = arguments.callback_host.or(settings.callback_host);
    settings.account = arguments.account;
    settings.dpop |= arguments.dpop;
    settings.exceptions.extend(arguments.exceptions);

    let screen = context.screen;
    let login = if arguments.device {
        Login::device(move |prompt| show_code(screen, prompt))
    } else {
        let mut browser = browser(&settings, context);
        if context.allows_input() {
            browser = with_paste(browser, &TerminalUser::new(context.screen));
        }
        if arguments.no_browser {
            browser = browser.without_opening();
        }
        Login::agent(browser)
    };
    let login = settings.apply(login).map_err(invalid)?.store(store.clone());
    let login = login.on_event(move |event| {
        // The page to visit and the result are printed anyway.
        if !matches!(event, Event::Visiting { .. } | Event::LoggedIn { .. } | Event::LoginFailed { .. }) {
            screen.note(&visible(&event.to_string()));
        }
    });
    let server = page.resolve_headers().await?.login(login);
    let signals = ShutdownSignals::listen()?;
    tokio::select! {
        account = server.log_in() => drop(account?),
        () = signals.received(1) => return Err(Failure::new(Code::Interrupted, "interrupted")),
    }
    let failed = |error: Error| Failure::new(Code::Failed, error.to_string());
    let key = StoreKey::new(server.url(), settings.account.as_deref().unwrap_or_default()).map_err(failed)?;
    let login = StoredLogin::load(&store, key).await.map_err(failed)?;
    whoami::print(&login.into_iter().collect::<Vec<_>>(), context)
}

/// Prints what the user has to do on another device.
fn show_code(screen: Screen, prompt: &DevicePrompt) {
    let minutes = prompt.lifetime.div_ceil(60);
    screen.note(&visible(&format!("To log in, open this page on any device within {minutes} min:")));
    screen.note("");
    screen.note(&visible(&format!("  {}", prompt.url)));
    screen.note("");
    screen.note(&visible(&format!("and enter the code {}", prompt.user_code)));
}
