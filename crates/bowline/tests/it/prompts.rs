//! Functions as prompts.

use crate::peer::{Peer, check};
use bowline::prelude::*;
use expect_test::expect;

fn languages(CompletionRequest { value, .. }: CompletionRequest) -> Vec<&'static str> {
    ["rust", "ruby", "go"].into_iter().filter(move |name| name.starts_with(&value)).collect()
}

/// Review some code.
#[prompt(title = "Code review")]
fn review(
    /// What to review.
    code: String,
    /// What it is written in.
    #[complete(languages)]
    language: Option<String>,
) -> String {
    format!("Review this {}: {code}", language.unwrap_or_default())
}

#[prompt(name = "hi")]
async fn hello(_ctx: Ctx) -> Vec<PromptMessage> {
    tokio::task::yield_now().await;
    vec![PromptMessage::new(Role::Assistant, Content::text("hello"))]
}

fn server() -> Server {
    Server::new("t").prompt(review::prompt()).prompt(hello::prompt())
}

#[tokio::test]
async fn parameters_become_arguments() {
    check(
        server(),
        "prompts/list",
        json!({}),
        expect![[r#"
        {
          "prompts": [
            {
              "name": "review",
              "title": "Code review",
              "description": "Review some code.",
              "arguments": [
                {
                  "name": "code",
                  "description": "What to review.",
                  "required": true
                },
                {
                  "name": "language",
                  "description": "What it is written in.",
                  "required": false
                }
              ]
            },
            {
              "name": "hi"
            }
          ]
        }"#]],
    )
    .await;
}

#[tokio::test]
async fn arguments_fill_the_prompt() {
    let params = json!({ "name": "review", "arguments": { "code": "x", "language": "go" } });
    check(
        server(),
        "prompts/get",
        params,
        expect![[r#"
        {
          "description": "Review some code.",
          "messages": [
            {
              "role": "user",
              "content": {
                "type": "text",
                "text": "Review this go: x"
              }
            }
          ]
        }"#]],
    )
    .await;
    check(
        server(),
        "prompts/get",
        json!({ "name": "hi" }),
        expect![[r#"
        {
          "messages": [
            {
              "role": "assistant",
              "content": {
                "type": "text",
                "text": "hello"
              }
            }
          ]
        }"#]],
    )
    .await;
    assert_eq!(review("x".into(), None), "Review this : x");
}

#[tokio::test]
async fn arguments_are_completed() {
    let mut peer = Peer::of(server()).await;
    let params = json!({
        "ref": { "type": "ref/prompt", "name": "review" }, "argument": { "name": "language", "value": "r" }
    });
    let result = peer.request("completion/complete", &params).await;
    assert_eq!(result["completion"]["values"], json!(["rust", "ruby"]));
    peer.close().await;
}

#[data]
struct Filter {
    words: Vec<String>,
}

#[prompt]
fn filtered(#[args] filter: Filter) -> String {
    filter.words.join(" ")
}

#[test]
fn a_prompt_with_arguments_that_no_client_can_send_is_not_built() {
    let error = Server::new("t").prompt(filtered::prompt()).build().expect_err("a list cannot be sent");
    let message = "prompt `filtered`: argument `words` is a list or an object, but clients send text; take `String`, a \
                   number, a bool or an enum";
    assert_eq!(error.to_string(), message);
}
