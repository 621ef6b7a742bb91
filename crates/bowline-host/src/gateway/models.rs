//! Builds the sampling broker from the configured models.

use super::problem::Problem;
use bowline_config::{Environment, KeySource, ProviderConfig, ProviderKind, SamplingConfig};
use bowline_http::{Post, Poster};
use bowline_models::{Broker, Caps, Model, Provider, RequestSettings, Secret, Settings};
use std::{collections::BTreeSet, sync::Arc};

/// The broker built from a configuration.
#[derive(Debug, Default)]
pub(super) struct Models {
    pub(super) broker: Option<Broker>,
    /// The keys, which must not be shown.
    pub(super) keys: Vec<Secret>,
    pub(super) problems: Vec<Problem>,
}

/// Builds the broker that answers sampling requests from a configuration. Returns it with the problems that were found.
pub fn broker(config: &SamplingConfig, environment: &Environment) -> (Option<Broker>, Vec<Problem>) {
    let post: Arc<dyn Post> = Arc::new(Poster::new());
    let models = models(config, environment, &post);
    (models.broker, models.problems)
}

/// Builds the broker. A provider whose key is unavailable is skipped with its models.
pub(super) fn models(config: &SamplingConfig, environment: &Environment, post: &Arc<dyn Post>) -> Models {
    let mut models = Models::default();
    let mut settings = Settings::new().caps(caps(config));
    if let Some(timeout) = config.timeout {
        settings = settings.request_settings(RequestSettings::new().timeout(timeout));
    }
    let mut known = BTreeSet::new();
    for (name, provider) in &config.providers {
        let key = match key(provider, environment) {
            Ok(key) => key,
            Err(reason) => {
                models.problems.push(Problem::new(format!("sampling.providers.{name}"), reason));
                continue;
            }
        };
        models.keys.extend(key.clone());
        known.insert(name.as_str());
        settings = settings.provider(described(name, provider, key));
    }
    let mut count = 0_usize;
    for model in config.models.iter().filter(|model| known.contains(model.provider.as_str())) {
        let described = Model::new(&model.provider, &model.name)
            .cost(model.cost)
            .speed(model.speed)
            .intelligence(model.intelligence);
        settings = settings.model(model.aliases.iter().fold(described, Model::alias));
        count += 1;
    }
    if settings.is_empty() {
        return models;
    }
    if count == 0 {
        models.problems.push(Problem::new("sampling", "no usable model is configured"));
        return models;
    }
    match Broker::new(settings, Arc::clone(post)) {
        Ok(broker) => models.broker = broker,
        Err(error) => models.problems.push(Problem::new("sampling", error)),
    }
    models
}

fn caps(config: &SamplingConfig) -> Caps {
    let mut caps = Caps::new();
    if let Some(tokens) = config.max_tokens_per_call {
        caps = caps.tokens_per_call(tokens);
    }
    if let Some(tokens) = config.max_tokens_per_server {
        caps = caps.tokens_per_run(tokens);
    }
    if let Some(tokens) = config.max_tokens_per_hour {
        caps = caps.tokens_per_hour(tokens);
    }
    caps
}

fn described(name: &str, config: &ProviderConfig, key: Option<Secret>) -> Provider {
    let mut provider = match config.kind {
        ProviderKind::OpenAi => Provider::open_ai(name),
        ProviderKind::Anthropic => Provider::anthropic(name),
    };
    if let Some(url) = &config.base_url {
        provider = provider.base_url(url);
    }
    match key {
        Some(key) => provider.key(key),
        None => provider,
    }
}

fn key(config: &ProviderConfig, environment: &Environment) -> Result<Option<Secret>, String> {
    let key = match &config.key {
        None => return Ok(None),
        Some(KeySource::Env(name)) => {
            let value = environment.variable(name);
            Secret::new(
                value
                    .ok_or_else(|| format!("skipped because the environment variable `{name}` is not set"))?,
            )
        }
        Some(KeySource::File(path)) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("skipped because `{}` cannot be read: {error}", path.display()))?;
            Secret::new(text)
        }
    };
    if key.is_empty() { Err("skipped because its key is empty".to_owned()) } else { Ok(Some(key)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_config::{Loader, Scope, Source};
    use std::{collections::BTreeMap, path::PathBuf};

    fn load(text: &str) -> Models {
        let files = BTreeMap::from([(PathBuf::from("bowline.toml"), text.to_owned())]);
        let environment = Environment::new([("HOME", "/"), ("KEY", "sk-canary-1"), ("EMPTY", " ")]);
        let loader = Loader::new(environment.clone()).source(Source::new("bowline.toml", Scope::User));
        let config = loader.load(&files);
        assert_eq!(config.errors, []);
        let post: Arc<dyn Post> = Arc::new(Poster::new());
        models(&config.sampling, &environment, &post)
    }

    #[test]
    fn only_a_provider_without_its_key_is_skipped() {
        let models = load(
            r#"
            [sampling.providers.good]
            kind = "openai"
            key_env = "KEY"
            [sampling.providers.bad]
            kind = "anthropic"
            key_env = "NOT_THERE"
            [sampling.providers.empty]
            kind = "openai"
            key_env = "EMPTY"
            [[sampling.models]]
            name = "a"
            provider = "good"
            [[sampling.models]]
            name = "b"
            provider = "bad"
            "#,
        );
        assert!(models.broker.is_some());
        assert_eq!(models.keys, [Secret::new("sk-canary-1")]);
        let told: Vec<_> = models.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "sampling.providers.bad: skipped because the environment variable `NOT_THERE` is not set",
                "sampling.providers.empty: skipped because its key is empty",
            ]
        );
    }

    #[test]
    fn without_a_model_sampling_is_refused() {
        assert!(load("").broker.is_none());
        assert_eq!(load("").problems, []);
        let models = load("[sampling.providers.local]\nkind = \"openai\"\n");
        assert!(models.broker.is_none());
        assert_eq!(models.problems.len(), 1);
    }
}
