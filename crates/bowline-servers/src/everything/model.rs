//! Tools that use the client's model (sampling), with and without tools.

use bowline::{
    prelude::*,
    types::{
        self, CreateMessageParams, CreateMessageResult, ModelHint, ModelPreferences, RawJson,
        SamplingMessage, ToolResultContent,
    },
};

pub(super) fn add(server: Server) -> Server {
    server.tool(test_sampling::tool()).tool(test_missing_capability::tool()).tool(letters::tool())
}

/// Asks the client's model.
pub(super) async fn sample(ctx: &Ctx, prompt: impl Into<String>) -> Result<String> {
    let request = CreateMessageParams::new(vec![SamplingMessage::user(prompt.into())], 100_u64);
    Ok(text(&ctx.sample(request).await?))
}

fn text(result: &CreateMessageResult) -> String {
    result.content.iter().filter_map(Content::as_text).collect::<Vec<_>>().join(" ")
}

/// Send a prompt to the client's model.
#[tool(read_only)]
async fn test_sampling(ctx: Ctx, prompt: String) -> Result<String> {
    Ok(format!("LLM response: {}", sample(&ctx, prompt).await?))
}

/// Require a client that supports sampling; other clients get an error.
#[tool(read_only)]
async fn test_missing_capability(ctx: Ctx) -> Result<String> {
    sample(&ctx, "Say something.").await
}

#[data]
struct Count {
    word: String,
}

/// Ask the client's model for the length of a word, with a tool that counts letters.
#[tool(title = "Letters", read_only)]
async fn letters(
    ctx: Ctx,
    /// The word.
    word: String,
) -> Result<String> {
    let counter = types::Tool::new(
        "count_letters",
        RawJson::of(&json!({
            "type": "object",
            "properties": { "word": { "type": "string" } },
            "required": ["word"],
        }))?,
    )
    .description("Count the letters of a word");
    let mut conversation = vec![SamplingMessage::user(format!("How long is the word `{word}`?"))];
    // Limit the number of rounds.
    for _ in 0..4 {
        let request = CreateMessageParams::new(conversation.clone(), 200_u64)
            .system_prompt("Count with the tool, then answer in one sentence.")
            .model_preferences(
                ModelPreferences::default()
                    .hints(vec![ModelHint::default().name("small")])
                    .speed_priority(0.8),
            )
            .tools(vec![counter.clone()]);
        let answer = ctx.sample(request).await?;
        let counted = answer.content.iter().filter_map(|block| match block {
            Content::ToolUse(wish) => Some((wish.id.clone(), wish.input.decode::<Count>())),
            _ => None,
        });
        let mut results = Vec::new();
        for (id, count) in counted {
            let said =
                count.map_or_else(|error| error.to_string(), |count| count.word.chars().count().to_string());
            results.push(Content::ToolResult(ToolResultContent::new(id, vec![Content::text(said)])));
        }
        if results.is_empty() {
            return Ok(text(&answer));
        }
        conversation.push(SamplingMessage::assistant(answer.content));
        conversation.push(SamplingMessage::user(results));
    }
    Err(Error::tool("the model did not finish within the allowed rounds"))
}
