//! The demo server: a little of everything that clients can see.

use bowline_server::{Ctx, Prompt, Resource, Result, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    /// How far to count.
    to: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
}

/// What the user is asked for.
#[derive(Deserialize, JsonSchema)]
struct Color {
    /// A color.
    color: String,
}

/// The server.
pub(crate) fn server() -> Server {
    Server::new("demo")
        .version(env!("CARGO_PKG_VERSION"))
        .instructions("A little of everything, to try a client with.")
        .tool(Tool::new("echo").description("Say it again.").read_only().handler(|Echo { text }: Echo| text))
        .tool(Tool::new("add").description("Add two numbers.").read_only().handler(|Add { a, b }: Add| a + b))
        .tool(Tool::new("paint").description("Ask the user for a color, and paint with it.").handler(paint))
        .tool(Tool::new("count").description("Count, and report every step.").read_only().handler(count))
        .resource(
            Resource::new("demo://greeting", "greeting")
                .description("A text that never changes.")
                .mime_type("text/plain")
                .text("Ahoy!"),
        )
        .prompt(
            Prompt::new("greet")
                .description("Greet somebody like a sailor.")
                .handler(|Greet { name }: Greet| format!("Say ahoy to {name}.")),
        )
}

async fn paint(ctx: Ctx) -> Result<String> {
    let Color { color } = ctx.ask("Which color?").await?.accepted()?;
    Ok(format!("painted it {color}"))
}

async fn count(ctx: Ctx, Count { to }: Count) -> String {
    for step in 1..=to {
        ctx.progress(step.into(), f64::from(to));
    }
    format!("counted to {to}")
}
