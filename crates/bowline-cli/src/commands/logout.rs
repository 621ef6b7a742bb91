//! `bowline logout`: revokes and deletes stored tokens.

use crate::{
    context::Context,
    failure::{Code, Failure},
    login::store,
    target::Target,
};
use bowline_host::LoginSettings;
use bowline_http::auth::{LoggedOut, Login, Store, StoreKey};
use bowline_text::visible;
use clap::Args;
use serde_json::json;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// A URL or a configured server
    #[arg(value_name = "TARGET", required_unless_present = "all", conflicts_with = "all")]
    target: Option<String>,
    /// Log out of all servers
    #[arg(long)]
    all: bool,
    /// Name of the account, if you have several at this server
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    account: Option<String>,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let store = store(context)?;
    let failed = |error: bowline_http::auth::Error| Failure::new(Code::Failed, error.to_string());
    let (keys, settings) = match &arguments.target {
        Some(target) => {
            let (page, settings) = Target::named(target, context)?.for_login()?;
            let account = arguments.account.unwrap_or_default();
            (vec![StoreKey::new(page.url(), &account).map_err(failed)?], settings)
        }
        None => (store.list().await.map_err(failed)?, LoginSettings::default()),
    };
    let mut ended = Vec::new();
    for key in keys {
        let mut settings = settings.clone();
        settings.account = Some(key.account().to_owned());
        let login = settings.apply(Login::stored()).store(store.clone());
        let server = bowline_http::http(key.server()).login(login);
        let outcome = match server.log_out().await? {
            LoggedOut::Revoked => "revoked",
            LoggedOut::Deleted => "deleted",
            _ => "not logged in",
        };
        ended.push((key, outcome));
    }
    if context.json() {
        let ended: Vec<_> = ended
            .iter()
            .map(|(key, outcome)| json!({ "server": key.server(), "account": key.account(), "outcome": outcome }))
            .collect();
        return context.screen.json(&json!(ended));
    }
    if ended.is_empty() {
        return context.screen.line("no logins are stored");
    }
    for (key, outcome) in ended {
        context.screen.line(&format!("{}: {outcome}", visible(&key.to_string())))?;
    }
    Ok(())
}
