//! Borrowing the client's model: the server asks, the client decides which model answers, and whether.
//!
//! Try it: `cargo build -p bowline-examples`, then `target/debug/client sampling summarize '{"text": "…"}'`, and answer
//! in the model's place.

use bowline::{
    prelude::*,
    types::{CreateMessageParams, SamplingMessage},
};

/// Summarize a text in one sentence.
#[tool(read_only)]
async fn summarize(ctx: Ctx, text: String) -> Result<String> {
    let question = SamplingMessage::user(format!("Summarize in one sentence: {text}"));
    let request =
        CreateMessageParams::new(vec![question], 200_u64).system_prompt("You are brief.").temperature(0.2);
    let answer = ctx.sample(request).await?;
    let words: Vec<_> = answer.content.iter().filter_map(Content::as_text).collect();
    Ok(format!("{} says: {}", answer.model, words.join(" ")))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    Server::new("sampling").tool(summarize::tool()).serve_stdio().await
}
