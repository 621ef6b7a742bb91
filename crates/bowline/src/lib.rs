//! The Model Context Protocol, whole, in Rust: servers and clients that speak all five revisions from one source.
//!
//! ```no_run
//! # #[cfg(feature = "server")] mod demo {
//! use bowline::prelude::*;
//!
//! /// Add two numbers.
//! #[tool]
//! fn add(a: i64, b: i64) -> i64 {
//!     a + b
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> bowline::Result {
//!     Server::new("demo").tool(add).serve_stdio().await
//! }
//! # }
//! ```
//!
//! That is a server: it runs as a child process of its client and talks over standard input and output. The doc comment
//! is what the model reads, the parameters become the schema of the arguments, and the function can still be called.
//!
//! # A server's parts
//!
//! - `Server` holds what is offered and serves it. Functions become entries of it by `#[tool]`, `#[prompt]` and
//!   `#[resource("…")]`, the methods of a state by `#[tools]`; without attributes the same is said with the builders
//!   `Tool`, `Prompt` and `Resource`.
//! - `Ctx`, as a parameter, is the way to the client: ask the user, have its model write, report progress, log.
//! - `Json<T>`, as a result, is structured data with a schema. Text, numbers and `Content` do without.
//! - `Result` is what a handler may return instead: any error becomes text the model can read, while
//!   `Error::invalid_params` and its like fail the request.
//! - `#[data]` on a struct or enum derives what arguments, answers and structured results need.
//!
//! ```
//! # #[cfg(feature = "server")] mod demo {
//! use bowline::prelude::*;
//!
//! #[data]
//! struct Confirm {
//!     /// Delete for good?
//!     sure: bool,
//! }
//!
//! /// Delete a project after asking its owner.
//! #[tool(destructive)]
//! async fn delete_project(ctx: Ctx, name: String) -> Result<String> {
//!     let answer: Confirm = ctx.ask(format!("Delete {name}?")).await?.accepted()?;
//!     Ok(if answer.sure { format!("deleted {name}") } else { "kept".into() })
//! }
//! # }
//! ```
//!
//! # A client's parts
//!
//! `Client` connects to a server, whichever revision that speaks, and calls it. `command` is a server to start; handlers
//! set on `Client::builder` answer what the server asks back.
//!
//! ```no_run
//! # #[cfg(feature = "client")] async fn demo() -> bowline::Result {
//! use bowline::prelude::*;
//!
//! let client = Client::connect(command("my-server", ["--stdio"])).await?;
//! let sum = client.call("add", json!({ "a": 1, "b": 2 })).await?;
//! assert_eq!(sum.text(), "3");
//! # Ok(())
//! # }
//! ```
//!
//! A server on the network is named by its URL instead, and served by `serve_http` instead of `serve_stdio`:
//!
//! ```no_run
//! # #[cfg(all(feature = "client", feature = "http"))] async fn demo() -> bowline::Result {
//! use bowline::prelude::*;
//!
//! let client = Client::connect(http("https://tickets.example.com/mcp")).await?;
//! # Ok(())
//! # }
//! # #[cfg(all(feature = "server", feature = "http"))] async fn serve() -> bowline::Result {
//! # use bowline::prelude::*;
//!
//! Server::new("demo").serve_http("127.0.0.1:8080").await
//! # }
//! ```
//!
//! # Modules and features
//!
//! What is met every day is in [`prelude`]; where both sides have a type of the same name (`Error`, `Result`) it
//! is the server's, unless only `client` is on. The rest is in the modules that the crates behind this one are known by:
//! [`types`] is the vocabulary, [`proto`] the protocol without IO, `server` and `client` the two sides, `http` both over
//! HTTP, `host` what stands between many of them.
//!
//! | feature | default | gives |
//! |---|---|---|
//! | `server` | yes | `server`, and `macros` with it |
//! | `client` | yes | `client` |
//! | `http` | yes | `http`, for whichever of the two sides there are |
//! | `host` | no | `host`: many servers as one, and with it the three before |
//! | `macros` | yes | the attributes |
//! | `validate` | yes | JSON Schema validation beyond what types say |
//! | `tracing` | yes | the middleware that opens a span per call |

#[cfg(feature = "client")]
pub use bowline_client as client;
#[cfg(feature = "host")]
pub use bowline_host as host;
#[cfg(feature = "http")]
pub use bowline_http as http;
pub use bowline_proto as proto;
#[cfg(feature = "server")]
pub use bowline_server as server;
pub use bowline_types as types;

#[cfg(all(feature = "client", not(feature = "server")))]
pub use bowline_client::{Error, Result};
#[cfg(feature = "server")]
pub use bowline_server::{Error, Result};

#[cfg(feature = "macros")]
pub use bowline_macros::data;
#[cfg(feature = "server")]
pub use bowline_macros::{prompt, resource, tool, tools};

#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __private;
pub mod prelude;

/// The snippets of the README have to compile.
#[cfg(all(doctest, feature = "server", feature = "client"))]
#[doc = include_str!("../../../README.md")]
mod readme {}
