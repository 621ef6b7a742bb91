//! A server with every feature of every revision, as example code and for testing clients.
//!
//! Names that start with `test_` are required by the official conformance suite; the others cover what the suite does not test.
//! The same handlers serve all five revisions. Features that a revision lacks are omitted or adapted.
//!
//! | module | contents |
//! |---|---|
//! | `content` | text, images, audio, links, embedded resources, annotations, errors |
//! | `data` | structured results, caller information, long-running and cancellable calls |
//! | `notifications` | log messages, progress, streams that are closed and resumed |
//! | `asking` | forms with defaults and choices, URL elicitation |
//! | `model` | sampling, with and without tools |
//! | `input` | multi-round calls of 2026-07-28 |
//! | `schemas` | hand-written schemas, arguments mirrored in headers |
//! | `resources` | static, templates, dynamic lists, caching |
//! | `prompts` | arguments, dependent completion, images |
//! | `changes` | lists and resources that change |
//! | `tasks` | calls that become tasks, at once, later, or when they take long |
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> bowline::Result {
//! use bowline::{client::memory, prelude::*};
//!
//! let (near, far) = memory();
//! tokio::spawn(bowline_servers::everything::server().serve(far.read, far.write));
//! let client = Client::connect(near).await?;
//! let sum = client.call("sum", json!({ "numbers": [1.5, 2.5] })).await?;
//! assert_eq!(sum.text(), r#"{"count":2,"sum":4.0}"#);
//! # Ok(())
//! # }
//! ```

mod asking;
mod changes;
mod content;
mod data;
mod input;
mod model;
mod notifications;
mod prompts;
mod resources;
mod schemas;
mod tasks;

use bowline::{
    prelude::*,
    types::{CacheScope, Icon},
};
use std::time::Duration;

const INSTRUCTIONS: &str = "\
Demonstrates every feature of the protocol. Start with `echo` and `sum`; `wait` reports progress, \
`sign_in` and `test_elicitation` ask the user, `letters` uses the client's model.";

/// Builds the server.
pub fn server() -> Server {
    let server = Server::new("everything")
        .title("Everything")
        .version(env!("CARGO_PKG_VERSION"))
        .description("Demonstrates every feature of every protocol revision")
        .website(env!("CARGO_PKG_REPOSITORY"))
        .icon(Icon::new(content::pixel_uri()).mime_type("image/png").sizes(vec!["1x1".into()]))
        .instructions(INSTRUCTIONS)
        .cache_lists(Duration::from_secs(60), CacheScope::Public);
    let registry = server.registry();
    let server = content::add(server);
    let server = data::add(server);
    let server = notifications::add(server);
    let server = asking::add(server);
    let server = model::add(server);
    let server = input::add(server);
    let server = schemas::add(server);
    let server = resources::add(server);
    let server = prompts::add(server);
    let server = tasks::add(server);
    server.with(changes::Changes::new(registry))
}
