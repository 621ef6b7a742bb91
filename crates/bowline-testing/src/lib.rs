//! Tests of Model Context Protocol servers and clients, frame by frame.
//!
//! A [`Peer`] exchanges raw frames with a server in memory, in a child process or (with the feature `http`) over HTTP;
//! it can also act as the server of a client. A [`Transcript`] is such a conversation in a text file. An [`Oracle`]
//! validates frames against the schemas of the specification. A [`FaultProxy`] breaks connections between a client and
//! a server at a chosen byte. A [`Log`] captures `tracing` output. `crash_each_step` (feature `tasks`) ends the process of a
//! task at each of its steps.
//!
//! A test of a server needs ten lines, no process and no port:
//!
//! ```
//! use bowline_server::{Server, Tool};
//! use bowline_testing::Peer;
//! use bowline_types::Revision;
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), bowline_testing::Error> {
//! let server = Server::new("demo").tool(Tool::new("greet").handler(|| "hello"));
//! let mut peer = Peer::memory(server)?;
//! peer.initialize(Revision::V2025_06_18).await?;
//! let answer = peer.request("tools/call", json!({ "name": "greet" })).await?;
//! assert_eq!(answer["result"]["content"][0]["text"], "hello");
//! assert!(peer.close().await?.is_empty(), "no further messages");
//! # Ok(())
//! # }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "tasks")]
#[cfg_attr(docsrs, doc(cfg(feature = "tasks")))]
pub mod crash;
pub mod fault;
#[cfg(feature = "store")]
#[cfg_attr(docsrs, doc(cfg(feature = "store")))]
pub mod history;
#[cfg(feature = "issuer")]
#[cfg_attr(docsrs, doc(cfg(feature = "issuer")))]
pub mod issuer;
mod log;
pub mod oracle;
mod peer;
#[cfg(feature = "store")]
#[cfg_attr(docsrs, doc(cfg(feature = "store")))]
pub mod sim;
mod skip;
pub mod transcript;

pub use bowline_transcript::Error;
#[cfg(feature = "tasks")]
pub use crash::crash_each_step;
pub use fault::{Fault, FaultProxy};
#[cfg(feature = "issuer")]
pub use issuer::{Faults, Issuer};
pub use log::{Log, LogGuard};
pub use oracle::Oracle;
pub use peer::{IntoHandle, Peer};
pub use skip::skip;
pub use transcript::Transcript;

/// The result of operations on a peer.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

// A context with scripted answers, for unit tests of handlers.
pub use bowline_server::testing::{CtxBuilder, CtxRecord, ctx};
