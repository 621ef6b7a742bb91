//! Answers sampling requests of servers with the models that the user configured.
//!
//! [`Settings`] name providers, models and limits. A [`Broker`] built from them answers `sampling/createMessage` of every
//! revision. Without a provider there is no broker, and sampling must not be declared.
//!
//! ```
//! use bowline_models::{Broker, Model, Provider, Settings};
//! use bowline_http::Poster;
//!
//! let settings = Settings::new()
//!     .provider(Provider::open_ai("local").base_url("http://localhost:11434/v1"))
//!     .model(Model::new("local", "qwen3:8b"));
//! let mut client = bowline_client::Client::builder();
//! if let Some(broker) = Broker::new(settings, Poster::new())? {
//!     client = client.on_sample(broker.handler("tickets")).sample_with_tools();
//! }
//! # Ok::<(), bowline_models::SettingsError>(())
//! ```
//!
//! A request is validated, a model is chosen ([`ModelPreferences`](bowline_types::ModelPreferences)), tokens are reserved, and
//! the request is encoded for the API of the provider and sent. A failure is a [`SampleError`], which has details for the user
//! and a short text for the server. Whether a server may use models at all is decided before, by the policy.

mod alias;
mod anthropic;
mod broker;
mod choice;
mod error;
mod metadata;
mod openai;
mod provider_error;
mod quirks;
mod request;
mod secret;
mod settings;
mod stop_sequences;
mod usage;

pub use broker::{Asker, Broker};
pub use error::{Cap, SampleError, SampleErrorKind, SettingsError};
pub use secret::Secret;
pub use settings::{Api, Caps, Model, Provider, RequestSettings, Settings};
pub use usage::Usage;
