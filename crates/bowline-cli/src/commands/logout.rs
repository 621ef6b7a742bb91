//! `bowline logout`: revokes and deletes stored tokens.

use crate::{
    context::Context,
    failure::{Code, Failure},
    login::{invalid, store},
    target::Target,
};
use bowline_config::Launch;
use bowline_host::LoginSettings;
use bowline_http::auth::{FileStore, LoggedOut, Login, Store, StoreKey};
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
    let logins = if let Some(target) = &arguments.target {
        let (page, settings) = Target::named(target, context)?.for_login()?;
        let account = arguments.account.unwrap_or_default();
        vec![(StoreKey::new(page.url(), &account).map_err(failed)?, settings)]
    } else {
        let keys = store.list().await.map_err(failed)?;
        let with_settings = |key: StoreKey| {
            let settings = settings_of(&key, context);
            (key, settings)
        };
        keys.into_iter().map(with_settings).collect()
    };
    let mut ended = Vec::new();
    let mut is_incomplete = false;
    for (key, settings) in logins {
        let outcome = match log_out(&key, settings, &store).await {
            Ok(LoggedOut::Revoked) => "revoked".to_owned(),
            Ok(LoggedOut::Deleted) => "deleted".to_owned(),
            Ok(_) => "not logged in".to_owned(),
            // The other records are independent of this one.
            Err(failure) => {
                is_incomplete = true;
                format!("failed: {}", failure.sentence)
            }
        };
        ended.push((key, outcome));
    }
    print(&ended, context)?;
    if is_incomplete {
        return Err(Failure::new(Code::Failed, "some logins are still stored"));
    }
    Ok(())
}

/// Revokes and deletes one login.
async fn log_out(
    key: &StoreKey,
    mut settings: LoginSettings,
    store: &FileStore,
) -> Result<LoggedOut, Failure> {
    settings.account = Some(key.account().to_owned());
    if let Ok(Some(record)) = store.load(key).await {
        settings.exceptions.extend(record.exceptions);
    }
    // Tokens of a machine are revoked like those of a user.
    settings.machine = None;
    let login = settings.apply(Login::stored()).map_err(invalid)?.store(store.clone());
    Ok(bowline_http::http(key.server()).login(login).log_out().await?)
}

/// Returns the settings of the configured server with this URL, whose client may have a secret.
fn settings_of(key: &StoreKey, context: &Context) -> LoginSettings {
    let entries = context.environment.config().upstreams.iter().filter(|entry| !entry.needs_approval());
    let mut settings = entries.filter_map(|entry| {
        let Launch::Url(launch) = &entry.launch else { return None };
        let same = StoreKey::new(launch.url.expose(), "").is_ok_and(|other| other.server() == key.server());
        same.then(|| LoginSettings::from_config(entry).ok().flatten()).flatten()
    });
    settings.next().unwrap_or_default()
}

fn print(ended: &[(StoreKey, String)], context: &Context) -> Result<(), Failure> {
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
        context.screen.line(&format!("{}: {}", visible(&key.to_string()), visible(outcome)))?;
    }
    Ok(())
}
