//! How to log in to a configured server.

use super::LaunchError;
use bowline_config::{Launch, OauthConfig, Text, UpstreamConfig};
use bowline_http::auth::{CallbackHost, FileStore, Login, Secret};
use bowline_text::visible;
use std::path::Path;

/// The settings of a login with OAuth.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LoginSettings {
    /// The name of the account; `None` for the default one.
    pub account: Option<String>,
    /// The id of a client that was registered by hand.
    pub client_id: Option<String>,
    /// The secret of that client.
    pub client_secret: Option<Secret>,
    /// The URL of a client ID metadata document.
    pub client_document: Option<String>,
    /// The authorization server to use.
    pub issuer: Option<String>,
    /// The scopes to ask for; empty for those that the server names.
    pub scopes: Vec<String>,
    /// The port that receives the redirect.
    pub callback_port: Option<u16>,
    /// The host of the redirect URI.
    pub callback_host: Option<CallbackHost>,
}

impl LoginSettings {
    /// Returns the settings of a configured server. `None` if it has no URL, or if its entry has credentials.
    pub fn from_config(entry: &UpstreamConfig) -> Result<Option<Self>, LaunchError> {
        let Launch::Url(launch) = &entry.launch else { return Ok(None) };
        let has_own = launch.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        if has_own || launch.headers_helper.is_some() {
            return Ok(None);
        }
        launch
            .oauth
            .as_ref()
            .map_or_else(|| Ok(Some(Self::default())), |oauth| Self::of_config(oauth).map(Some))
    }

    fn of_config(oauth: &OauthConfig) -> Result<Self, LaunchError> {
        let text = |text: &Text| text.expose().to_owned();
        let issuer = oauth.metadata_url.as_ref().map(|url| issuer_of(url.expose())).transpose();
        Ok(Self {
            client_id: oauth.client_id.as_ref().map(text),
            client_secret: oauth.client_secret.as_ref().map(|secret| Secret::new(secret.expose())),
            issuer: issuer.map_err(LaunchError::new)?,
            scopes: oauth.scopes.clone(),
            callback_port: oauth.callback_port,
            ..Self::default()
        })
    }

    /// Applies the settings to a login, and keeps its tokens in a folder.
    ///
    /// Without a folder, or if it cannot be created, they are kept in memory. A folder that exists and cannot be used is an
    /// error.
    pub fn apply_in(&self, login: Login, folder: Option<&Path>) -> Result<Login, LaunchError> {
        let login = self.apply(login);
        let Some(folder) = folder else { return Ok(login) };
        match FileStore::at(folder) {
            Ok(store) => Ok(login.store(store)),
            Err(_) if !folder.exists() => Ok(login),
            Err(error) => Err(LaunchError::new(error.to_string())),
        }
    }

    /// Applies the settings to a login.
    pub fn apply(&self, login: Login) -> Login {
        let mut login = login.account(self.account.clone().unwrap_or_default());
        login = match (&self.client_id, &self.client_secret) {
            (Some(id), Some(secret)) => login.client(id, secret.clone()),
            (Some(id), None) => login.client_id(id),
            (None, _) => login,
        };
        if let Some(url) = &self.client_document {
            login = login.client_document(url);
        }
        if let Some(issuer) = &self.issuer {
            login = login.issuer(issuer);
        }
        if !self.scopes.is_empty() {
            login = login.scopes(&self.scopes);
        }
        login
    }
}

/// Returns the issuer whose metadata is at a URL.
fn issuer_of(url: &str) -> Result<String, String> {
    const NAMES: [&str; 2] = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];
    let found = NAMES.iter().find_map(|name| url.split_once(name));
    let Some((before, after)) = found.filter(|(_, after)| after.is_empty() || after.starts_with('/')) else {
        return Err(format!(
            "expected the metadata URL of an authorization server, with `{}` or `{}`, got `{}`",
            NAMES[0],
            NAMES[1],
            visible(url)
        ));
    };
    Ok(format!("{before}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_issuer_is_found_in_the_url_of_its_metadata() {
        for (url, issuer) in [
            ("https://as.example/.well-known/oauth-authorization-server", "https://as.example"),
            ("https://as.example/.well-known/oauth-authorization-server/t1", "https://as.example/t1"),
            ("https://as.example/t1/.well-known/openid-configuration", "https://as.example/t1"),
        ] {
            assert_eq!(issuer_of(url).as_deref(), Ok(issuer));
        }
        for url in ["https://as.example/metadata", "https://as.example/.well-known/openid-configuration-evil"]
        {
            assert!(issuer_of(url).is_err(), "{url}");
        }
    }
}
