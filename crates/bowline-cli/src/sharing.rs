//! Opens what several processes of a gateway share: the keys and the store of `[store]`.

use crate::{
    context::Context,
    failure::{Code, Failure},
};
use bowline_config::{Config, SessionMode};
use bowline_server::KeyRing;
use bowline_stores::{ErrorKind, Store, StoreError, StoreOptions, key_ring};

/// What processes share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sharing {
    pub(crate) store: Option<Store>,
    pub(crate) keys: Option<KeyRing>,
}

impl Sharing {
    /// Opens the keys and the store of a configuration. `url` takes precedence over the configured one.
    pub(crate) async fn open(context: &Context, config: &Config, url: Option<&str>) -> Result<Self, Failure> {
        let (section, variables) = (&config.store, &context.environment.variables);
        let variable = |name: &str, setting: &str| {
            let value = variables.variable(name).filter(|value| !value.is_empty()).map(str::to_owned);
            value.ok_or_else(|| {
                Failure::new(Code::Config, format!("the variable `{name}` is not set; `{setting}` names it"))
            })
        };
        let keys: Vec<String> =
            section.keys_env.iter().map(|name| variable(name, "store.keys_env")).collect::<Result<_, _>>()?;
        let keys = if keys.is_empty() {
            None
        } else {
            let keys = key_ring(keys);
            Some(keys.map_err(|error| Failure::new(Code::Config, format!("`store.keys_env`: {error}")))?)
        };
        let configured = match (&section.url, &section.url_env) {
            (Some(url), _) => Some(url.clone()),
            (None, Some(name)) => Some(variable(name, "store.url_env")?),
            (None, None) => None,
        };
        let Some(url) = url.map(str::to_owned).or(configured) else {
            if config.sessions.mode == SessionMode::Store {
                let sentence = "`sessions.mode = \"store\"` needs a store";
                return Err(
                    Failure::new(Code::Config, sentence).advise("set `store.url`, or use `--store URL`")
                );
            }
            return Ok(Self { store: None, keys });
        };
        let mut options =
            StoreOptions::new(url).namespace(&section.namespace).map_err(|error| failed(&error))?;
        if let Some(keys) = &keys {
            options = options.keys(keys.clone());
        }
        if let Some(bus) = &section.bus {
            options = options.bus(bus);
        }
        let store = options.open().await.map_err(|error| failed(&error))?;
        tracing::info!(engine = store.engine(), namespace = %store.namespace(), "the store is open");
        Ok(Self { store: Some(store), keys })
    }
}

fn failed(error: &StoreError) -> Failure {
    let code = match error.kind() {
        ErrorKind::Invalid => Code::Config,
        _ => Code::Unreachable,
    };
    Failure::new(code, error.to_string()).advise("`bowline store check URL` shows what is wrong with a store")
}
