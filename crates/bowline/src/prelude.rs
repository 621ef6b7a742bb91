//! The items that most programs need: `use bowline::prelude::*`.
//!
//! For servers: [`Server`], the attributes, and the types of handlers. For clients: [`Client`], [`command`] and [`http()`].
//! For both: [`json!`], [`Answer`], [`Content`], [`Revision`].
//!
//! ```
//! # #[cfg(all(feature = "server", feature = "client"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> bowline::Result {
//! use bowline::{client::memory, prelude::*};
//!
//! /// Greet somebody.
//! #[tool(read_only)]
//! fn greet(name: String) -> String {
//!     format!("Hello, {name}!")
//! }
//!
//! let (near, far) = memory();
//! tokio::spawn(Server::new("demo").tool(greet::tool()).serve(far.read, far.write));
//! let client = Client::connect(near).await?;
//! assert_eq!(client.call("greet", json!({ "name": "Ada" })).await?.text(), "Hello, Ada!");
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "server", feature = "client")))]
//! # fn main() {}
//! ```

#[cfg(all(feature = "http", feature = "server"))]
pub use bowline_http::ServeHttp;
#[cfg(all(feature = "http", feature = "client"))]
pub use bowline_http::http;
#[cfg(feature = "macros")]
pub use bowline_macros::data;
#[cfg(feature = "server")]
pub use bowline_macros::{prompt, resource, tool, tools};
#[cfg(feature = "server")]
pub use bowline_server::{
    CompletionRequest, Ctx, Error, Json, Prompt, Registry, Resource, Result, ServeError, Server, Tool,
};
#[cfg(feature = "tasks")]
pub use bowline_server::{Job, JobStatus, Task, Tasks};
pub use bowline_types::{Answer, ContentBlock as Content, LoggingLevel, PromptMessage, Revision, Role};
pub use serde_json::json;

#[cfg(feature = "client")]
pub use bowline_client::{Client, Command, command};
#[cfg(all(feature = "client", not(feature = "server")))]
pub use bowline_client::{Error, Result};
