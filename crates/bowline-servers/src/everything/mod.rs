//! A server with every feature of every revision: to look up how something is written, and to try a client against.
//!
//! Entries whose names begin with `test_` are the ones the official conformance suite looks for; the others show what
//! the suite does not ask about. One source serves all five revisions: what a revision lacks is left out or said in
//! another way, and no handler asks which one its caller speaks.
//!
//! | module | what it shows |
//! |---|---|
//! | `content` | text, pictures, sound, links, embedded resources, annotations, errors |
//! | `data` | structured results, who calls, calls that take long and can be given up |
//! | `telling` | log messages, progress, streams that are closed on the way |
//! | `asking` | forms with defaults and choices, pages to visit |
//! | `model` | sampling, with tools and without |
//! | `input` | the rounds of 2026-07-28 |
//! | `schemas` | schemas written by hand, arguments repeated in headers |
//! | `resources` | fixed, behind templates, listed on the spot, with caching |
//! | `prompts` | arguments, suggestions that depend on each other, pictures |
//! | `changes` | lists and resources that change while somebody listens |
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
mod prompts;
mod resources;
mod schemas;
mod telling;

use bowline::{
    prelude::*,
    types::{CacheScope, Icon},
};
use std::time::Duration;

const INSTRUCTIONS: &str = "\
Every feature of the protocol, each in the smallest way that shows it. Start with `echo` and `sum`; `wait` takes its time, \
`sign_in` and `test_elicitation` ask the user, `letters` borrows the client's model.";

/// The server.
pub fn server() -> Server {
    let server = Server::new("everything")
        .title("Everything")
        .version(env!("CARGO_PKG_VERSION"))
        .description("Every feature of every revision")
        .website(env!("CARGO_PKG_REPOSITORY"))
        .icon(Icon::new(content::pixel_uri()).mime_type("image/png").sizes(vec!["1x1".into()]))
        .instructions(INSTRUCTIONS)
        .cache_lists(Duration::from_secs(60), CacheScope::Public);
    let registry = server.registry();
    let server = content::add(server);
    let server = data::add(server);
    let server = telling::add(server);
    let server = asking::add(server);
    let server = model::add(server);
    let server = input::add(server);
    let server = schemas::add(server);
    let server = resources::add(server);
    let server = prompts::add(server);
    server.tools(changes::Changes::new(registry))
}
