//! How to log in to a configured server.

use super::LaunchError;
use bowline_config::{AuthMode, Launch, OauthConfig, OauthGrant, Text, UpstreamConfig, read_regular};
use bowline_http::auth::{
    CallbackHost, FileStore, Lenient, Login, Networks, SealingKey, Secret, SigningKey, check_extra_parameter,
};
use bowline_text::visible;
use std::{
    io,
    path::{Path, PathBuf},
};

/// The maximum size of a file with a private key or an assertion.
const MAX_FILE: usize = 64 * 1024;

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
    /// Whether the secret is stored with the tokens, because it is not in the configuration.
    pub keep_secret: bool,
    /// The URL of a client ID metadata document.
    pub client_document: Option<String>,
    /// The authorization server to use.
    pub issuer: Option<String>,
    /// The authorization URL and the token URL of an authorization server without metadata.
    pub endpoints: Option<(String, String)>,
    /// Further parameters of authorization requests.
    pub parameters: Vec<(String, String)>,
    /// What to send as `resource`, instead of what the server publishes.
    pub resource: Option<String>,
    /// The scopes to ask for; empty for those that the server names.
    pub scopes: Vec<String>,
    /// The port that receives the redirect.
    pub callback_port: Option<u16>,
    /// The host of the redirect URI.
    pub callback_host: Option<CallbackHost>,
    /// Whether tokens must be bound to a key (DPoP).
    pub dpop: bool,
    /// Exceptions from the rules.
    pub exceptions: Vec<Lenient>,
    /// How to log in without a user; `None` if a user logs in.
    pub machine: Option<MachineLogin>,
    /// The networks that URLs in metadata may lead to.
    pub networks: Networks,
}

/// Where logins are stored.
#[derive(Clone, Debug)]
pub struct LoginStorage {
    folder: PathBuf,
    key: Option<SealingKey>,
}

impl LoginStorage {
    /// Stores logins in a folder that only the user can access.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), key: None }
    }

    /// Seals them with a key, if there is one.
    #[must_use]
    pub fn sealed_with(mut self, key: Option<SealingKey>) -> Self {
        self.key = key;
        self
    }

    /// Opens the folder, and creates it if there is none.
    pub fn open(&self) -> Result<FileStore, bowline_http::auth::Error> {
        let store = FileStore::at(&self.folder)?;
        Ok(match &self.key {
            Some(key) => store.sealed_with(key.clone()),
            None => store,
        })
    }
}

/// How a client logs in without a user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MachineLogin {
    /// With its secret.
    Secret,
    /// With the private key in this file.
    PrivateKey(PathBuf),
    /// With the assertion of the platform in this file, which is read for every login.
    Assertion(PathBuf),
}

impl LoginSettings {
    /// Returns the settings of a configured server. `None` if it has no URL, if its entry has credentials, or if no login is to
    /// be used.
    pub fn from_config(entry: &UpstreamConfig) -> Result<Option<Self>, LaunchError> {
        let Launch::Url(launch) = &entry.launch else { return Ok(None) };
        let has_own = launch.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        if has_own || launch.headers_helper.is_some() || entry.settings.auth == Some(AuthMode::None) {
            return Ok(None);
        }
        launch
            .oauth
            .as_ref()
            .map_or_else(|| Ok(Some(Self::default())), |oauth| Self::of_config(oauth).map(Some))
    }

    fn of_config(oauth: &OauthConfig) -> Result<Self, LaunchError> {
        let text = |text: &Option<Text>| text.as_ref().map(|text| text.expose().to_owned());
        let published = oauth.metadata_url.as_ref().map(|url| issuer_of(url.expose())).transpose();
        let published = published.map_err(LaunchError::new)?;
        let issuer = match (text(&oauth.issuer), published) {
            (Some(issuer), Some(published)) if issuer != published => {
                return Err(LaunchError::new(format!(
                    "`oauth.issuer` is `{}`, but `oauth.metadata_url` belongs to `{}`; remove one of them",
                    visible(&issuer),
                    visible(&published)
                )));
            }
            (issuer, published) => issuer.or(published),
        };
        let endpoints = match (text(&oauth.authorization_url), text(&oauth.token_url)) {
            (None, None) => None,
            (Some(authorization), Some(token)) => Some((authorization, token)),
            _ => {
                return Err(LaunchError::new(
                    "the authorization URL and the token URL need each other; set both",
                ));
            }
        };
        if endpoints.is_some() && oauth.client_id.is_none() {
            return Err(LaunchError::new(
                "an authorization URL needs the client id that is registered there",
            ));
        }
        let mut parameters = Vec::new();
        for (name, value) in &oauth.authorization_params {
            check_extra_parameter(name).map_err(LaunchError::new)?;
            parameters.push((name.clone(), value.expose().to_owned()));
        }
        let exceptions: Result<_, String> = oauth.allow.iter().map(|name| name.parse()).collect();
        Ok(Self {
            account: None,
            client_id: text(&oauth.client_id),
            client_secret: oauth.client_secret.as_ref().map(|secret| Secret::new(secret.expose())),
            keep_secret: false,
            client_document: text(&oauth.client_metadata_url),
            issuer,
            endpoints,
            parameters,
            resource: text(&oauth.resource),
            scopes: oauth.scopes.clone(),
            callback_port: oauth.callback_port,
            callback_host: oauth.callback_host.map(|host| match host {
                bowline_config::CallbackHost::Localhost => CallbackHost::Localhost,
                _ => CallbackHost::Address,
            }),
            dpop: oauth.dpop,
            exceptions: exceptions.map_err(LaunchError::new)?,
            machine: machine(oauth)?,
            networks: Networks::default(),
        })
    }

    /// Applies the settings to a login, and keeps its tokens in a folder.
    ///
    /// Without a folder, or if it cannot be created, they are kept in memory. A folder that exists and cannot be used is an
    /// error.
    pub fn apply_in(&self, login: Login, storage: Option<&LoginStorage>) -> Result<Login, LaunchError> {
        let login = self.apply(login)?;
        let Some(storage) = storage else { return Ok(login) };
        match storage.open() {
            Ok(store) => Ok(login.store(store)),
            Err(_) if !storage.folder.exists() => Ok(login),
            Err(error) => Err(LaunchError::new(error.to_string())),
        }
    }

    /// Applies the settings to a login of a user. If the settings say how to log in without a user, `login` is not used.
    ///
    /// Fails if the file with the private key cannot be read.
    pub fn apply(&self, login: Login) -> Result<Login, LaunchError> {
        let mut login = match (&self.machine, &self.client_id) {
            (Some(MachineLogin::PrivateKey(path)), Some(id)) => Login::machine_with_key(id, read_key(path)?),
            (Some(MachineLogin::Assertion(path)), _) => {
                let path = path.clone();
                Login::workload(move || read_assertion(path.clone()))
            }
            (Some(MachineLogin::Secret), Some(id)) => {
                let secret = self.client_secret.clone();
                Login::machine(id, secret.ok_or_else(|| LaunchError::new("the client secret is missing"))?)
            }
            (Some(_), None) => return Err(LaunchError::new("a login without a user needs `client_id`")),
            (None, Some(id)) => match &self.client_secret {
                Some(secret) => login.client(id, secret.clone()),
                None => login.client_id(id),
            },
            (None, None) => login,
        };
        login = login.account(self.account.clone().unwrap_or_default()).networks(self.networks);
        if self.keep_secret {
            login = login.keep_secret();
        }
        if self.dpop {
            login = login.dpop();
        }
        if let Some(url) = &self.client_document {
            login = login.client_document(url);
        }
        if let Some(issuer) = &self.issuer {
            login = login.issuer(issuer);
        }
        if let Some((authorization, token)) = &self.endpoints {
            login = login.endpoints(authorization, token);
        }
        if let Some(resource) = &self.resource {
            login = login.resource(resource);
        }
        if !self.scopes.is_empty() {
            login = login.scopes(&self.scopes);
        }
        for (name, value) in &self.parameters {
            login = login.authorization_parameter(name, value);
        }
        Ok(self.exceptions.iter().fold(login, |login, exception| login.lenient(*exception)))
    }
}

/// Returns how the client logs in without a user, and checks that the settings fit.
fn machine(oauth: &OauthConfig) -> Result<Option<MachineLogin>, LaunchError> {
    let path = |text: &Text| PathBuf::from(text.expose());
    let (secret, key, assertion) = (&oauth.client_secret, &oauth.private_key, &oauth.assertion_file);
    // Otherwise the server could name an authorization server of its own, which would get the credentials.
    let sends_credentials = oauth.grant == OauthGrant::Workload || secret.is_some();
    let has_issuer = oauth.issuer.is_some() || oauth.metadata_url.is_some();
    if oauth.grant != OauthGrant::AuthorizationCode && sends_credentials && !has_issuer {
        let reason =
            "a login without a user needs `issuer`, the authorization server that may get the credentials";
        return Err(LaunchError::new(reason));
    }
    match oauth.grant {
        OauthGrant::ClientCredentials => match (secret, key) {
            _ if oauth.client_id.is_none() => {
                Err(LaunchError::new("`grant = \"client_credentials\"` needs `client_id`"))
            }
            (Some(_), Some(_)) => Err(LaunchError::new(
                "`client_secret` and `private_key` exclude each other; remove one of them",
            )),
            (Some(_), None) => Ok(Some(MachineLogin::Secret)),
            (None, Some(key)) => Ok(Some(MachineLogin::PrivateKey(path(key)))),
            (None, None) => Err(LaunchError::new(
                "`grant = \"client_credentials\"` needs `client_secret` or `private_key`",
            )),
        },
        OauthGrant::Workload => match assertion {
            Some(file) => Ok(Some(MachineLogin::Assertion(path(file)))),
            None => Err(LaunchError::new("`grant = \"workload\"` needs `assertion_file`")),
        },
        _ if key.is_some() => {
            Err(LaunchError::new("`private_key` has no effect without `grant = \"client_credentials\"`"))
        }
        _ if assertion.is_some() => {
            Err(LaunchError::new("`assertion_file` has no effect without `grant = \"workload\"`"))
        }
        _ => Ok(None),
    }
}

/// Reads a private key. Errors do not quote the file.
fn read_key(path: &Path) -> Result<SigningKey, LaunchError> {
    let invalid = |reason: String| {
        LaunchError::new(format!(
            "cannot use the private key `{}`: {reason}",
            visible(&path.display().to_string())
        ))
    };
    let text = read_text(path).map_err(|error| invalid(error.to_string()))?;
    SigningKey::from_pem(text.expose()).map_err(|error| invalid(error.to_string()))
}

async fn read_assertion(path: PathBuf) -> io::Result<Secret> {
    let read = move || {
        let text = read_text(&path).map_err(|error| {
            let path = visible(&path.display().to_string());
            io::Error::new(error.kind(), format!("cannot read the assertion `{path}`: {error}"))
        })?;
        Ok(Secret::new(text.expose().trim()))
    };
    tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
}

fn read_text(path: &Path) -> io::Result<Secret> {
    let bytes = read_regular(path, MAX_FILE)?;
    String::from_utf8(bytes).map(Secret::new).map_err(|_| io::Error::other("it is not text"))
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

    #[test]
    fn the_configuration_knows_every_exception() {
        let names: Vec<&str> = Lenient::ALL.iter().map(|exception| exception.as_str()).collect();
        assert_eq!(names, bowline_config::OAUTH_EXCEPTIONS);
    }
}
