//! `bowline whoami`: shows the stored logins without their tokens.

use crate::{
    context::Context,
    failure::{Code, Failure},
    login::store,
    screen::Tone,
    target::{self, Target},
};
use bowline_http::auth::{
    ClientId, ClientOrigin, Error, FileStore, Lenient, Scheme, Scopes, Store, StoreKey, TokenSet,
};
use bowline_text::{rfc3339, visible};
use clap::Args;
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// A URL or a configured server [default: all logins]
    #[arg(value_name = "TARGET")]
    target: Option<String>,
    /// Show only this account
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let store = store(context)?;
    let failed = |error: Error| Failure::new(Code::Failed, error.to_string());
    let server = match &arguments.target {
        Some(target) => {
            let (page, _) = Target::named(target, context)?.for_login()?;
            Some(StoreKey::new(page.url(), "").map_err(failed)?)
        }
        None => None,
    };
    let mut logins = Vec::new();
    for key in store.list().await.map_err(failed)? {
        if server.as_ref().is_some_and(|server| server.server() != key.server()) {
            continue;
        }
        if arguments.account.as_ref().is_some_and(|account| account != key.account()) {
            continue;
        }
        logins.extend(StoredLogin::load(&store, key).await.map_err(failed)?);
    }
    match &arguments.target {
        Some(target) if logins.is_empty() => {
            let sentence = format!("not logged in to `{}`", visible(target));
            Err(Failure::new(Code::Denied, sentence).advise(target::login_advice(
                target,
                arguments.account.as_deref(),
                &Scopes::default(),
            )))
        }
        _ => print(&logins, context),
    }
}

/// A login in the store.
#[derive(Debug)]
pub(crate) struct StoredLogin {
    key: StoreKey,
    tokens: TokenSet,
    /// The exceptions that the login was allowed.
    exceptions: Vec<Lenient>,
    /// Whether the secret of the client is stored too.
    has_secret: bool,
    path: PathBuf,
}

impl StoredLogin {
    /// Reads a login. `None` if the record has no tokens.
    pub(crate) async fn load(store: &FileStore, key: StoreKey) -> Result<Option<Self>, Error> {
        let Some(record) = store.load(&key).await? else { return Ok(None) };
        let Some(tokens) = record.tokens.clone() else { return Ok(None) };
        let client = record.registration(&tokens.issuer);
        let has_secret = client.is_some_and(|client| client.secret.is_some());
        let path = store.path(&key);
        Ok(Some(Self { key, tokens, exceptions: record.exceptions, has_secret, path }))
    }

    fn to_json(&self) -> Value {
        let tokens = &self.tokens;
        json!({
            "server": self.key.server(),
            "account": self.key.account(),
            "issuer": tokens.issuer.as_str(),
            "resource": tokens.resource.as_str(),
            "clientId": tokens.client_id.as_ref().map(ClientId::as_str),
            "clientOrigin": tokens.origin.as_str(),
            "scopes": tokens.granted.iter().collect::<Vec<_>>(),
            "expires": tokens.expires.map(|end| rfc3339(UNIX_EPOCH + Duration::from_secs(end))),
            "renewable": tokens.refresh_token.is_some(),
            "bound": tokens.scheme == Scheme::Dpop,
            "exceptions": self.exceptions.iter().map(|exception| exception.as_str()).collect::<Vec<_>>(),
            "file": self.path,
        })
    }

    /// The lines of the text form: names of at most eight characters, and values.
    fn rows(&self) -> Vec<(&'static str, String)> {
        let tokens = &self.tokens;
        let account = match self.key.account() {
            "" => "default".to_owned(),
            account => visible(account),
        };
        let origin = match tokens.origin {
            ClientOrigin::Configured if self.has_secret => "configured, its secret is stored",
            ClientOrigin::Configured => "configured",
            ClientOrigin::Document => "metadata document",
            _ => "registered by this login",
        };
        let client = tokens.client_id.as_ref().map_or_else(|| "none".to_owned(), |id| visible(id.as_str()));
        let scopes =
            if tokens.granted.is_empty() { "not listed".to_owned() } else { tokens.granted.to_string() };
        let mut rows = vec![
            ("server", visible(self.key.server())),
            ("account", account),
            ("issuer", visible(tokens.issuer.as_str())),
            ("client", format!("{client} ({origin})")),
            ("scopes", visible(&scopes)),
            ("expires", self.expiry()),
            ("file", visible(&self.path.display().to_string())),
        ];
        if tokens.scheme == Scheme::Dpop {
            rows.push(("key", "the tokens work only with the key in this file (DPoP)".to_owned()));
        }
        if !self.exceptions.is_empty() {
            let names: Vec<&str> = self.exceptions.iter().map(|exception| exception.as_str()).collect();
            rows.push(("allowed", names.join(", ")));
        }
        rows
    }

    fn expiry(&self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let state = match self.tokens.expires {
            None => "when the server refuses it".to_owned(),
            Some(end) if end <= now => "expired".to_owned(),
            Some(end) => format!("in {}", duration(end - now)),
        };
        match &self.tokens.refresh_token {
            Some(_) => format!("{state}; renewed when needed"),
            None => format!("{state}; then log in again"),
        }
    }
}

/// Prints logins as text or JSON.
pub(crate) fn print(logins: &[StoredLogin], context: &Context) -> Result<(), Failure> {
    let screen = context.screen;
    if context.json() {
        return screen.json(&Value::Array(logins.iter().map(StoredLogin::to_json).collect()));
    }
    if logins.is_empty() {
        return screen.line("no logins are stored");
    }
    for (index, login) in logins.iter().enumerate() {
        if index > 0 {
            screen.line("")?;
        }
        for (name, value) in login.rows() {
            screen.line(&format!(
                "{}{}{value}",
                screen.paint(Tone::Heading, name),
                " ".repeat(9 - name.len())
            ))?;
        }
    }
    Ok(())
}

/// Formats seconds in the largest unit that fits.
fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_http::auth::Record;

    #[test]
    fn a_login_shows_whether_its_tokens_are_bound_to_a_key() {
        for (scheme, is_bound) in [("Bearer", false), ("DPoP", true)] {
            let record = json!({ "version": 1, "registrations": [], "tokens": {
                "issuer": "https://as.example", "resource": "https://mcp.example/mcp", "origin": "dynamic",
                "access_token": "canary", "scheme": scheme, "key": "canary", "issued": 1, "asked": "", "granted": "",
                "token_endpoint": "https://as.example/token",
            } });
            let tokens = Record::from_json(&record.to_string()).unwrap().tokens.unwrap();
            let key = StoreKey::new("https://mcp.example/mcp", "").unwrap();
            let login = StoredLogin {
                key,
                tokens,
                exceptions: Vec::new(),
                has_secret: false,
                path: "login.json".into(),
            };
            assert_eq!(login.to_json()["bound"], is_bound);
            assert_eq!(login.rows().iter().any(|(name, _)| *name == "key"), is_bound);
            assert!(!format!("{} {:?}", login.to_json(), login.rows()).contains("canary"));
        }
    }
}
