//! Sampling: what a server asks of a model is asked of the provider that the user has set.
//!
//! [`Settings`] name providers, models and caps; a [`Broker`] made of them answers `sampling/createMessage` of every
//! revision. Without a provider there is no broker, and sampling is not to be offered.
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
//! The way of a call: the messages are checked, a model is chosen ([`ModelPreferences`](bowline_types::ModelPreferences)),
//! tokens are set aside, the request is written in the language of the provider, sent, and the answer read. What goes wrong
//! is a [`SampleError`], which says one thing to the user and less to the server. Asking the user whether a server may
//! sample at all comes before all this and is done elsewhere.

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
