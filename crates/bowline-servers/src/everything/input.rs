//! Tools and a prompt that need input before they can respond: the multi-round calls of 2026-07-28.

use super::model::sample;
use bowline::prelude::*;

pub(super) fn add(server: Server) -> Server {
    server
        .tool(test_input_required_result_elicitation::tool())
        .tool(test_input_required_result_sampling::tool())
        .tool(test_input_required_result_list_roots::tool())
        .tool(test_input_required_result_request_state::tool())
        .tool(test_input_required_result_multiple_inputs::tool())
        .tool(test_input_required_result_multi_round::tool())
        .tool(test_input_required_result_tampered_state::tool())
        .tool(test_input_required_result_capabilities::tool())
        .prompt(test_input_required_result_prompt::prompt())
}

#[data]
struct Person {
    /// Your name.
    name: String,
}

#[data]
struct Consent {
    /// Continue?
    ok: bool,
}

#[data]
struct Color {
    /// Your favorite color.
    color: String,
}

#[data]
struct Context {
    /// The context of the prompt.
    context: String,
}

/// Ask for a name and return a greeting.
#[tool(read_only)]
async fn test_input_required_result_elicitation(ctx: Ctx) -> Result<String> {
    let Person { name } = ctx.ask_as("user_name", "What is your name?").await?.accepted()?;
    Ok(format!("Hello, {name}!"))
}

/// Ask the client's model a question.
#[tool(read_only)]
async fn test_input_required_result_sampling(ctx: Ctx) -> Result<String> {
    sample(&ctx, "What is the capital of France?").await
}

/// Ask for the client's roots.
#[tool(read_only)]
async fn test_input_required_result_list_roots(ctx: Ctx) -> Result<String> {
    let roots = ctx.roots().await?;
    Ok(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join("\n"))
}

/// Keep a value across a question.
#[tool(read_only)]
async fn test_input_required_result_request_state(ctx: Ctx) -> Result<String> {
    let before = ctx.once("before", async { Ok("state-ok".to_owned()) }).await?;
    let Consent { ok } = ctx.ask("Please confirm").await?.accepted()?;
    Ok(format!("{before}, confirmed: {ok}"))
}

/// Ask for user input, a model response and the roots at the same time.
#[tool(read_only)]
async fn test_input_required_result_multiple_inputs(ctx: Ctx) -> Result<String> {
    let (person, greeting, roots) = tokio::join!(
        ctx.ask::<Person>("What is your name?"),
        sample(&ctx, "Generate a greeting"),
        ctx.roots()
    );
    let Person { name } = person?.accepted()?;
    Ok(format!("{}, {name}! You have {} roots.", greeting?, roots?.len()))
}

/// Ask two questions, one after the other.
#[tool(read_only)]
async fn test_input_required_result_multi_round(ctx: Ctx) -> Result<String> {
    let Person { name } = ctx.ask("Step 1: What is your name?").await?.accepted()?;
    let Color { color } =
        ctx.ask(format!("Step 2: What is your favorite color, {name}?")).await?.accepted()?;
    Ok(format!("{name} likes {color}"))
}

/// Ask with sealed state, which clients cannot forge.
#[tool(read_only)]
async fn test_input_required_result_tampered_state(ctx: Ctx) -> Result<String> {
    let Consent { ok } = ctx.ask("Please confirm").await?.accepted()?;
    Ok(format!("confirmed: {ok}"))
}

/// Ask in whatever way the client supports.
#[tool(read_only)]
async fn test_input_required_result_capabilities(ctx: Ctx) -> Result<String> {
    let capabilities = ctx.client().capabilities();
    if capabilities.sampling.is_some() {
        return sample(&ctx, "What is the capital of France?").await;
    }
    if capabilities.has_form_elicitation() {
        let Person { name } = ctx.ask("What is your name?").await?.accepted()?;
        return Ok(name);
    }
    Ok("the client supports neither sampling nor elicitation".into())
}

/// A prompt that asks the user for context.
#[prompt]
async fn test_input_required_result_prompt(ctx: Ctx) -> Result<String> {
    let Context { context } = ctx.ask("What is the prompt about?").await?.accepted()?;
    Ok(format!("Use this context: {context}"))
}
