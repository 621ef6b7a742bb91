//! What is met every day: `use bowline::prelude::*`.

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
    Ctx, Error, IntoPromptEntry as _, IntoResource as _, IntoTool as _, Json, Prompt, Registry, Resource,
    Result, Server, Tool, Typing,
};
pub use bowline_types::{Answer, ContentBlock as Content, LoggingLevel, PromptMessage, Revision, Role};
pub use serde_json::json;

#[cfg(feature = "client")]
pub use bowline_client::{Client, Command, command};
#[cfg(all(feature = "client", not(feature = "server")))]
pub use bowline_client::{Error, Result};
