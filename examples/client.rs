//! A client: starts a server as a child process, lists its tools, calls one, and lets the user answer what it asks.
//!
//! Try it: `cargo build -p bowline-examples`, then `target/debug/client hello add '{"a": 1, "b": 2}'`. The first argument
//! is another example, the second one of its tools, the third the arguments of the tool.

#![expect(clippy::print_stdout, reason = "the program shows what it does")]

use bowline::client::{Answer, Command};
use bowline::prelude::*;
use bowline::types::CreateMessageResult;
use serde_json::Value;

/// Shows a text to the user and reads a line.
async fn user(prompt: String) -> String {
    println!("{prompt}");
    let line = || std::io::stdin().lines().next().and_then(std::io::Result::ok).unwrap_or_default();
    tokio::task::spawn_blocking(line).await.unwrap_or_default()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> bowline::Result {
    let mut words = std::env::args().skip(1);
    let server = words.next().unwrap_or_else(|| "hello".into());
    let client = Client::builder()
        .on_ask(|question| async move {
            let line = user(format!("{} Answer in JSON:", question.message)).await;
            serde_json::from_str::<Value>(&line).map_or(Answer::Decline, Answer::accept)
        })
        .on_sample(|request| async move {
            let texts = request.messages.iter().flat_map(|message| message.content.iter());
            let texts: Vec<_> = texts.filter_map(Content::as_text).collect();
            let line = user(format!("{} Answer as the model would:", texts.join("\n"))).await;
            CreateMessageResult::new(Role::Assistant, Content::text(line), "the user")
        })
        .on_progress(|step| println!("{} of {:?}", step.progress, step.total))
        .connect(Command::new(std::env::current_exe()?.with_file_name(&server)))
        .await?;
    println!("{server} speaks {}", client.revision());
    for tool in client.tools().await? {
        println!("  {}: {}", tool.name, tool.description.unwrap_or_default());
    }
    if let Some(tool) = words.next() {
        let arguments: Value = serde_json::from_str(&words.next().unwrap_or_else(|| "{}".into()))?;
        let result = client.call(tool, arguments).await?;
        println!("{}{}", if result.is_error() { "it failed: " } else { "" }, result.text());
    }
    client.close().await;
    Ok(())
}
