//! The client side of the Model Context Protocol.
//!
//! A [`Client`] connects to one server of any revision. It detects the revision, and calls look the same in all of
//! them. Handlers in the [`ClientBuilder`] answer requests of the server; a gateway uses a [`Relay`] instead, and
//! passes on calls with [`Client::relay`]. A [`Connect`] opens connections: to a child process ([`command`]), over any
//! pair of byte streams ([`Stream`]), or in memory ([`memory`]).
//!
//! ```no_run
//! # async fn example() -> bowline_client::Result {
//! use bowline_client::{Answer, Client, command};
//! use serde_json::json;
//!
//! let client = Client::builder()
//!     .on_ask(|question| async move {
//!         println!("{}", question.message);
//!         Answer::accept(json!({ "sure": true }))
//!     })
//!     .connect(command("my-server", ["--stdio"]))
//!     .await?;
//! for tool in client.tools().await? {
//!     println!("{}", tool.name);
//! }
//! let deleted = client.call("delete_project", json!({ "name": "demo" })).await?.ok()?;
//! println!("{}", deleted.text());
//! client.close().await;
//! # Ok(())
//! # }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]

mod answering;
mod builder;
mod cache;
mod client;
mod connection;
mod core;
mod driver;
mod error;
mod forms;
mod handlers;
mod list_limits;
mod lists;
mod models;
mod opener;
mod process;
mod rate;
mod relay;
mod request;
mod shared;
mod shown_url;
mod subscriptions;
mod tasks;
mod tool_result;
mod tools;
mod transport;
mod web;

pub use bowline_proto::{
    client::{Negotiated, OpenError},
    service::BoxFuture,
    subscribe::Change,
};
pub use bowline_types::Answer;
pub use builder::ClientBuilder;
pub use client::Client;
pub use error::{Error, Result};
pub use forms::{check_field, check_form};
pub use handlers::{Ask, AskUrl, Direction, IntoAnswer, Notification, ResponseHead};
pub use list_limits::{ListBudget, ListLimits};
pub use lists::{Items, Page};
pub use models::choose_model;
pub use opener::{Opener, SystemOpener};
pub use process::{
    Backoff, Child, Command, Environment, Exit, Limits, ProcessError, Restart, Retry, Stderr, StderrMode,
    command,
};
pub use relay::{CallKey, Relay, RelayWith, Relayed};
pub use request::Request;
pub use shared::Noise;
pub use shown_url::{ShownUrl, UrlError, UrlWarning};
pub use subscriptions::Listen;
pub use tasks::{Started, TaskHandle, TaskState, TaskUpdates, TaskWatch};
pub use tool_result::ToolResult;
#[cfg(feature = "validate")]
pub use tools::SchemaValidator;
pub use transport::{
    CancelWay, ClientEnd, Connect, Inbox, IntoConnect, Outgoing, OutgoingKind, Receive, ServerEnd, Stream,
    Transport, memory,
};
pub use web::is_accessible as is_accessible_root;
