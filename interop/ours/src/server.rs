//! Our server with the contract that every program here shares: see the table in `interop/README.md`.
//!
//! Usage: `interop-server [--http PORT] [--revision REVISION]`. Without a port it serves standard input and output;
//! with a revision other than `any` it speaks no other.

use bowline::http::HttpOptions;
use bowline::{
    prelude::*,
    types::{CreateMessageParams, SamplingMessage},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

#[data]
struct Sum {
    sum: i64,
}

#[data]
struct Person {
    /// What you are called.
    name: String,
}

/// Give back the message.
#[tool]
fn echo(message: String) -> String {
    message
}

/// Add two numbers.
#[tool]
fn add(a: i64, b: i64) -> Json<Sum> {
    Json(Sum { sum: a + b })
}

/// Fail.
#[tool]
fn fail() -> Result<String> {
    Err(Error::tool("it failed"))
}

/// Log a message.
#[tool]
fn log(ctx: Ctx) -> String {
    ctx.log_as(LoggingLevel::Info, "demo".to_owned(), "a word");
    "logged".into()
}

/// Ask the user for a name.
#[tool]
async fn ask(ctx: Ctx) -> Result<String> {
    Ok(match ctx.ask::<Person>("Who are you?").await? {
        Answer::Accept(Person { name }) => format!("accept {name}"),
        Answer::Decline => "decline".into(),
        Answer::Cancel => "cancel".into(),
    })
}

/// Have the client's model answer.
#[tool]
async fn think(ctx: Ctx) -> Result<String> {
    let question = SamplingMessage::user("What is six times seven?");
    let answer = ctx.sample(CreateMessageParams::new(vec![question], 100_u64)).await?;
    let words: Vec<_> = answer.content.iter().filter_map(Content::as_text).collect();
    Ok(format!("{}: {}", answer.model, words.join(" ")))
}

/// List the client's roots.
#[tool]
async fn r#where(ctx: Ctx) -> Result<String> {
    let uris: Vec<_> = ctx.roots().await?.into_iter().map(|root| root.uri).collect();
    Ok(uris.join(" "))
}

/// A text.
#[resource("demo://text", mime_type = "text/plain")]
fn text() -> String {
    "Hello, resource!".into()
}

/// One of many.
#[resource("demo://item/{id}", mime_type = "text/plain")]
fn item(id: String) -> String {
    format!("item {id}")
}

/// What outlives a call.
#[derive(Default)]
struct Demo {
    counter: AtomicU32,
    cancelled: Arc<AtomicU32>,
}

/// Counts a call that ends before it has said that it is through.
struct Unfinished(Option<Arc<AtomicU32>>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(cancelled) = &self.0 {
            cancelled.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tools]
impl Demo {
    /// Report some steps of progress; with `hold`, go on until cancelled.
    #[tool]
    async fn slow(&self, ctx: Ctx, steps: u32, #[serde(default)] hold: bool) -> String {
        let mut unfinished = Unfinished(Some(Arc::clone(&self.cancelled)));
        for step in 1..=steps {
            ctx.progress(step, steps);
            // Some clients lose what arrives together with the result.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        if hold {
            std::future::pending::<()>().await;
        }
        unfinished.0 = None;
        "done".into()
    }

    /// How many calls of `slow` were cancelled.
    #[tool]
    fn cancelled(&self) -> String {
        self.cancelled.load(Ordering::Relaxed).to_string()
    }

    /// Count one more, and tell subscribers.
    #[tool]
    fn bump(&self, ctx: Ctx) -> String {
        let counter = self.counter.fetch_add(1, Ordering::Relaxed) + 1;
        ctx.resource_updated("demo://counter");
        counter.to_string()
    }

    /// A number that `bump` raises.
    #[resource("demo://counter", mime_type = "text/plain")]
    fn counter(&self) -> String {
        self.counter.load(Ordering::Relaxed).to_string()
    }
}

fn names(CompletionRequest { value, .. }: CompletionRequest) -> Vec<&'static str> {
    ["Ada", "Alan", "Grace"].into_iter().filter(|name| name.starts_with(&value)).collect()
}

/// Greet somebody.
#[prompt]
fn greet(
    /// Whom.
    #[complete(names)]
    name: String,
) -> String {
    format!("Hello, {name}!")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> bowline::Result {
    let mut server = Server::new("interop")
        .with(Demo::default())
        .tool(echo::tool())
        .tool(add::tool())
        .tool(fail::tool())
        .tool(log::tool())
        .tool(ask::tool())
        .tool(think::tool())
        .tool(r#where::tool())
        .resource(text::resource())
        .resource(item::resource())
        .prompt(greet::prompt());
    let (mut port, mut words) = (None, std::env::args().skip(1));
    while let (Some(flag), Some(value)) = (words.next(), words.next()) {
        match flag.as_str() {
            "--http" => port = Some(value.parse::<u16>()?),
            "--revision" if value == "any" => {}
            "--revision" => server = server.revisions([value.parse::<Revision>()?]),
            _ => return Err(Error::tool(format!("there is no option `{flag}`"))),
        }
    }
    match port {
        Some(port) => {
            server.serve_http_with(("127.0.0.1", port), HttpOptions::new().sse_path("/sse")).await?;
        }
        None => server.serve_stdio().await?,
    }
    Ok(())
}
