//! Prompts: templates a user picks, with suggestions for their arguments that depend on what is filled in already.
//!
//! Try it: `cargo run -p bowline-examples --bin prompts`. Server and client are in one process here.

#![expect(clippy::print_stdout, reason = "the program shows what it does")]

use bowline::{client::memory, prelude::*, types::Reference};

fn languages(CompletionRequest { value, .. }: CompletionRequest) -> Vec<&'static str> {
    ["python", "ruby", "rust"].into_iter().filter(|name| name.starts_with(&value)).collect()
}

fn frameworks(CompletionRequest { arguments, .. }: CompletionRequest) -> Vec<&'static str> {
    match arguments.get("language").map(String::as_str) {
        Some("python") => vec!["django", "flask"],
        Some("rust") => vec!["axum", "tokio"],
        _ => Vec::new(),
    }
}

/// Ask for a code review.
#[prompt(title = "Code review")]
fn review(
    /// What it is written in.
    #[complete(languages)]
    language: String,
    /// What it uses.
    #[complete(frameworks)]
    framework: Option<String>,
) -> Vec<PromptMessage> {
    let using = framework.map(|framework| format!(" using {framework}")).unwrap_or_default();
    vec![
        PromptMessage::user(Content::text(format!("Review this {language} code{using}."))),
        PromptMessage::assistant(Content::text("Gladly. Show it to me.")),
    ]
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> bowline::Result {
    let (near, far) = memory();
    tokio::spawn(Server::new("prompts").prompt(review::prompt()).serve(far.read, far.write));
    let client = Client::connect(near).await?;

    let reference = Reference::prompt("review");
    println!("{:?}", client.complete(reference.clone(), "language", "ru").await?.values);
    println!("{:?}", client.complete_with(reference, "framework", "", [("language", "rust")]).await?.values);
    let filled = client.prompt("review", json!({ "language": "rust", "framework": "axum" })).await?;
    for message in filled.messages {
        println!("{:?}: {}", message.role, message.content.as_text().unwrap_or_default());
    }
    client.close().await;
    Ok(())
}
