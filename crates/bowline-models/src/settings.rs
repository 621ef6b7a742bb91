//! The settings: providers, models, and limits for servers.

use super::{error::SettingsError, secret::Secret};
use http::{HeaderMap, HeaderValue, Uri, header};
use std::{collections::HashSet, time::Duration};

/// The settings for sampling.
///
/// ```
/// use bowline_models::{Caps, Model, Provider, Secret, Settings};
///
/// let settings = Settings::new()
///     .provider(Provider::anthropic("claude").key(Secret::new("sk-ant-…")))
///     .provider(Provider::open_ai("local").base_url("http://localhost:11434/v1"))
///     .model(Model::new("claude", "claude-sonnet-5").alias("sonnet").intelligence(0.9).cost(0.3))
///     .model(Model::new("local", "qwen3:8b").cost(1.0).speed(0.8).intelligence(0.3))
///     .caps(Caps::new().tokens_per_hour(50_000));
/// assert!(!settings.is_empty());
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "it does nothing until it is used"]
pub struct Settings {
    pub(super) providers: Vec<Provider>,
    pub(super) models: Vec<Model>,
    pub(super) caps: Caps,
    pub(super) requests: RequestSettings,
}

impl Settings {
    /// Creates settings without providers and models, with default caps.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a provider.
    pub fn provider(mut self, provider: Provider) -> Self {
        self.providers.push(provider);
        self
    }

    /// Adds a model. If nothing else decides, the first one is chosen.
    pub fn model(mut self, model: Model) -> Self {
        self.models.push(model);
        self
    }

    /// Sets the limits per server.
    pub fn caps(mut self, caps: Caps) -> Self {
        self.caps = caps;
        self
    }

    /// Sets timeouts and retries.
    pub fn request_settings(mut self, requests: RequestSettings) -> Self {
        self.requests = requests;
        self
    }

    /// Returns whether there is no provider. Sampling must not be declared then.
    pub fn is_empty(&self) -> bool {
        self.providers.is_empty()
    }

    pub(super) fn check(&self) -> Result<(), SettingsError> {
        let mut names = HashSet::new();
        for provider in &self.providers {
            if !names.insert(provider.name.as_str()) {
                return Err(SettingsError::new(format!("duplicate provider `{}`", provider.name)));
            }
            provider.check()?;
        }
        if self.models.is_empty() {
            return Err(SettingsError::new("no models are configured"));
        }
        for model in &self.models {
            if !names.contains(model.provider.as_str()) {
                let (name, provider) = (&model.name, &model.provider);
                return Err(SettingsError::new(format!(
                    "model `{name}` refers to the unknown provider `{provider}`"
                )));
            }
            model.check()?;
        }
        Ok(())
    }
}

/// The API of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Api {
    /// The chat completions API of OpenAI, which Ollama, vLLM, LM Studio and many others support.
    OpenAi,
    /// The messages API of Anthropic.
    Anthropic {
        /// The value of the version header.
        version: String,
    },
}

/// A provider of models.
#[derive(Clone, Debug)]
#[must_use = "it does nothing until it is used"]
pub struct Provider {
    pub(super) name: String,
    pub(super) api: Api,
    pub(super) base_url: String,
    pub(super) key: Option<Secret>,
}

impl Provider {
    /// Creates a provider with the chat completions API. The default base URL is that of OpenAI.
    pub fn open_ai(name: impl Into<String>) -> Self {
        Self::new(name, Api::OpenAi, "https://api.openai.com/v1")
    }

    /// Creates a provider with the messages API. The default base URL is that of Anthropic.
    pub fn anthropic(name: impl Into<String>) -> Self {
        Self::new(name, Api::Anthropic { version: "2023-06-01".into() }, "https://api.anthropic.com")
    }

    fn new(name: impl Into<String>, api: Api, base_url: &str) -> Self {
        Self { name: name.into(), api, base_url: base_url.into(), key: None }
    }

    /// Sets the base URL. For chat completions it includes the version (`http://localhost:11434/v1`); for messages the
    /// version is optional.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// Sets the API key. Local providers need none.
    pub fn key(mut self, key: Secret) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets the API version. Only the messages API has one.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        if let Api::Anthropic { version: current } = &mut self.api {
            *current = version.into();
        }
        self
    }

    /// Returns the URL for requests.
    pub(super) fn url(&self) -> String {
        let base = self.base_url.trim_end_matches('/');
        match self.api {
            Api::OpenAi => format!("{base}/chat/completions"),
            Api::Anthropic { .. } if base.ends_with("/v1") => format!("{base}/messages"),
            Api::Anthropic { .. } => format!("{base}/v1/messages"),
        }
    }

    /// Returns the headers of every request.
    pub(super) fn headers(&self) -> Result<HeaderMap, SettingsError> {
        let unfit =
            |what: &str| SettingsError::new(format!("{what} of `{}` is not a valid header value", self.name));
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(key) = self.key.as_ref().filter(|key| !key.is_empty()) {
            let (name, text) = match self.api {
                Api::OpenAi => (header::AUTHORIZATION, format!("Bearer {}", key.expose())),
                Api::Anthropic { .. } => {
                    ("x-api-key".parse().map_err(|_| unfit("the key"))?, key.expose().into())
                }
            };
            let mut value = HeaderValue::try_from(text).map_err(|_| unfit("the key"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        if let Api::Anthropic { version } = &self.api {
            let value = HeaderValue::try_from(version.as_str()).map_err(|_| unfit("the version"))?;
            headers.insert("anthropic-version", value);
        }
        Ok(headers)
    }

    /// Removes the key from a text of the provider.
    pub(super) fn scrub(&self, text: &str) -> String {
        match &self.key {
            Some(key) => key.scrub(text),
            None => text.to_owned(),
        }
    }

    fn check(&self) -> Result<(), SettingsError> {
        // The URL is not repeated because it may contain a password.
        let unfit = |reason: &str| {
            SettingsError::new(format!("the base URL of the provider `{}` {reason}", self.name))
        };
        if self.base_url.contains('@') {
            return Err(unfit("must not contain credentials"));
        }
        let uri = Uri::try_from(&self.base_url).map_err(|error| unfit(&format!("is invalid: {error}")))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(unfit("begins with neither `http://` nor `https://`"));
        }
        let Some(host) = uri.host().filter(|host| !host.is_empty()) else {
            return Err(unfit("has no host"));
        };
        if uri.query().is_some() {
            return Err(unfit("must not contain a query"));
        }
        let has_key = self.key.as_ref().is_some_and(|key| !key.is_empty());
        if has_key && uri.scheme_str() == Some("http") && !is_loopback(host) {
            tracing::warn!(provider = self.name, "the key of this provider is sent unencrypted");
        }
        self.headers().map(|_| ())
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A model of a provider, with grades for cost, speed and intelligence. Grades are between 0 and 1; the default is 0.5.
#[derive(Clone, Debug)]
#[must_use = "it does nothing until it is used"]
pub struct Model {
    pub(super) provider: String,
    pub(super) name: String,
    pub(super) aliases: Vec<String>,
    pub(super) cost: f64,
    pub(super) speed: f64,
    pub(super) intelligence: f64,
    pub(super) max_tokens: Option<u64>,
}

impl Model {
    /// Creates a model from the name of its provider and the model name there.
    pub fn new(provider: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            name: name.into(),
            aliases: Vec::new(),
            cost: 0.5,
            speed: 0.5,
            intelligence: 0.5,
            max_tokens: None,
        }
    }

    /// Adds a name that model hints can match, such as that of a similar model of another provider.
    pub fn alias(mut self, alias: impl Into<String>) -> Self {
        self.aliases.push(alias.into());
        self
    }

    /// Sets the cost grade: 1 is the cheapest.
    pub fn cost(mut self, grade: f64) -> Self {
        self.cost = grade;
        self
    }

    /// Sets the speed grade: 1 is the fastest.
    pub fn speed(mut self, grade: f64) -> Self {
        self.speed = grade;
        self
    }

    /// Sets the intelligence grade: 1 is the most capable.
    pub fn intelligence(mut self, grade: f64) -> Self {
        self.intelligence = grade;
        self
    }

    /// Sets the maximum number of output tokens. Larger requests are reduced to it.
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    fn check(&self) -> Result<(), SettingsError> {
        if self.name.is_empty() {
            return Err(SettingsError::new("expected every model to have a name"));
        }
        for (what, grade) in [("cost", self.cost), ("speed", self.speed), ("intelligence", self.intelligence)]
        {
            if !(0.0..=1.0).contains(&grade) {
                let name = &self.name;
                return Err(SettingsError::new(format!(
                    "expected the {what} of the model `{name}` to be between 0 and 1, got {grade}"
                )));
            }
        }
        Ok(())
    }
}

/// The limits per server. Tokens are input and output tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caps {
    pub(super) tokens_per_call: u64,
    pub(super) tokens_per_run: u64,
    pub(super) tokens_per_hour: Option<u64>,
    pub(super) calls_per_hour: Option<u64>,
    pub(super) calls_at_once: u64,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            tokens_per_call: 8_192,
            tokens_per_run: 1_000_000,
            tokens_per_hour: None,
            calls_per_hour: None,
            calls_at_once: 4,
        }
    }
}

impl Caps {
    /// Creates the default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of output tokens per call. Default: 8,192. Larger requests are reduced to it.
    #[must_use]
    pub fn tokens_per_call(mut self, tokens: u64) -> Self {
        self.tokens_per_call = tokens;
        self
    }

    /// Sets the maximum number of tokens while the host runs. Default: 1,000,000.
    #[must_use]
    pub fn tokens_per_run(mut self, tokens: u64) -> Self {
        self.tokens_per_run = tokens;
        self
    }

    /// Sets the maximum number of tokens per hour. Default: no limit.
    #[must_use]
    pub fn tokens_per_hour(mut self, tokens: u64) -> Self {
        self.tokens_per_hour = Some(tokens);
        self
    }

    /// Sets the maximum number of calls per hour. Default: no limit.
    #[must_use]
    pub fn calls_per_hour(mut self, calls: u64) -> Self {
        self.calls_per_hour = Some(calls);
        self
    }

    /// Sets the maximum number of concurrent calls. Default: 4.
    #[must_use]
    pub fn calls_at_once(mut self, calls: u64) -> Self {
        self.calls_at_once = calls;
        self
    }
}

/// Timeouts and retries of requests to providers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestSettings {
    pub(super) timeout: Duration,
    pub(super) retries: u32,
    pub(super) first_delay: Duration,
    pub(super) longest_delay: Duration,
}

impl Default for RequestSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(120),
            retries: 2,
            first_delay: Duration::from_millis(500),
            longest_delay: Duration::from_secs(20),
        }
    }
}

impl RequestSettings {
    /// Creates the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the total time limit of a call, including retries. Default: 2 minutes.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the number of retries. Default: 2. A rate-limited request is retried at most once.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Sets the first retry delay. Default: 500 ms. Each further delay is twice as long, and all are randomized.
    #[must_use]
    pub fn first_delay(mut self, delay: Duration) -> Self {
        self.first_delay = delay;
        self
    }

    /// Sets the maximum retry delay. Default: 20 s. If a provider requests a longer delay, the request is not retried.
    #[must_use]
    pub fn longest_delay(mut self, delay: Duration) -> Self {
        self.longest_delay = delay;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_where_the_api_is() {
        let url = |provider: Provider, base: &str| provider.base_url(base).url();
        let (open_ai, anthropic) = (Provider::open_ai("a"), Provider::anthropic("b"));
        assert_eq!(open_ai.url(), "https://api.openai.com/v1/chat/completions");
        assert_eq!(anthropic.url(), "https://api.anthropic.com/v1/messages");
        assert_eq!(url(open_ai, "http://h:1/v1/"), "http://h:1/v1/chat/completions");
        assert_eq!(url(anthropic.clone(), "http://h/v1"), "http://h/v1/messages");
        assert_eq!(url(anthropic, "http://h/proxy/"), "http://h/proxy/v1/messages");
    }

    #[test]
    fn a_key_goes_into_the_header_of_its_api() {
        let key = || Secret::new("the-key");
        let headers = Provider::open_ai("a").key(key()).headers().unwrap();
        assert_eq!(headers["authorization"], "Bearer the-key");
        assert!(!format!("{headers:?}").contains("the-key"));
        let headers = Provider::anthropic("b").version("2030-01-01").key(key()).headers().unwrap();
        assert_eq!(headers["x-api-key"], "the-key");
        assert_eq!(headers["anthropic-version"], "2030-01-01");
        assert!(!headers.contains_key("authorization"));
        let headers = Provider::open_ai("c").key(Secret::new(" ")).headers().unwrap();
        assert!(!headers.contains_key("authorization"));
    }

    fn refused(settings: &Settings) -> String {
        settings.check().unwrap_err().to_string()
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        let model = || Model::new("a", "m");
        let with = |provider: Provider| Settings::new().provider(provider).model(model());
        assert!(with(Provider::open_ai("a")).check().is_ok());
        for (url, reason) in [
            ("", "empty"),
            ("localhost:11434", "begins"),
            ("ftp://h/", "begins"),
            ("http://ann:secret@h/", "credentials"),
            ("http://h/v1?key=secret", "query"),
        ] {
            let error = refused(&with(Provider::open_ai("a").base_url(url)));
            assert!(error.contains(reason) && !error.contains("secret"), "{url}: {error}");
        }
        let error = refused(&with(Provider::open_ai("a").key(Secret::new("a\nkey-nobody-knows"))));
        assert!(error.contains("is not a valid header value") && !error.contains("nobody-knows"), "{error}");
        assert!(refused(&with(Provider::open_ai("b"))).contains("unknown provider"));
        let twice = with(Provider::open_ai("a")).provider(Provider::anthropic("a"));
        assert!(refused(&twice).contains("duplicate provider"));
        assert!(
            refused(&Settings::new().provider(Provider::open_ai("a"))).contains("no models are configured")
        );
        for grade in [-0.1, 1.1, f64::NAN] {
            let settings = with(Provider::open_ai("a")).model(model().speed(grade));
            assert!(refused(&settings).contains("speed"));
        }
    }

    #[test]
    fn loopback_hosts_are_recognized() {
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.8.0.1", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["10.0.0.1", "localhost.example.com", "::"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
