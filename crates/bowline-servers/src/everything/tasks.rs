//! Calls that become tasks: slow work, failures, questions, and a question before the task.

use bowline::prelude::*;
use std::time::Duration;

pub(super) fn add(server: Server) -> Server {
    server
        .tool(greet::tool())
        .tool(slow_compute::tool())
        .tool(failing_job::tool())
        .tool(protocol_error_job::tool())
        .tool(confirm_delete::tool())
        .tool(multi_input::tool())
        .tool(test_tool_with_task::tool())
        .tool(patience::tool())
}

/// Greet somebody at once.
#[tool(read_only)]
fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

/// Take a while, then say so.
#[tool(task, read_only)]
async fn slow_compute(ctx: Ctx, seconds: f64, label: Option<String>) -> Result<String> {
    let label = label.unwrap_or_else(|| "unnamed".into());
    let time = Duration::try_from_secs_f64(seconds.clamp(0.0, 3600.0)).map_err(Error::other)?;
    ctx.status(format!("computing {label}"));
    ctx.sleep(time).await?;
    Ok(format!("{label} took {seconds} s"))
}

/// Fail after a second. Runs only as a task.
#[tool(task = Task::now().required(), read_only)]
async fn failing_job(ctx: Ctx) -> Result<String> {
    ctx.sleep(Duration::from_secs(1)).await?;
    Err(Error::tool("the job failed, as it always does"))
}

/// End with an error of the protocol.
#[tool(task, idempotent)]
async fn protocol_error_job(ctx: Ctx) -> Result<String> {
    ctx.sleep(Duration::from_millis(10)).await?;
    Err(Error::internal("the job broke the protocol"))
}

#[data]
struct Confirm {
    /// Delete it?
    confirm: bool,
}

/// Delete a file, or rather say so, after the user agreed.
#[tool(task)]
async fn confirm_delete(ctx: Ctx, filename: String) -> Result<String> {
    Ok(match ctx.ask::<Confirm>(format!("Delete {filename}?")).await? {
        Answer::Accept(Confirm { confirm: true }) => format!("deleted {filename}"),
        _ => format!("kept {filename}"),
    })
}

#[data]
struct Name {
    /// Your name.
    name: String,
}

/// Ask two questions at once.
#[tool(task, read_only)]
async fn multi_input(ctx: Ctx) -> Result<String> {
    let (name, sure) = tokio::join!(ctx.ask::<Name>("Your name?"), ctx.ask::<Confirm>("Are you sure?"));
    let (Name { name }, Confirm { confirm }) = (name?.accepted()?, sure?.accepted()?);
    Ok(format!("{name} is {}", if confirm { "sure" } else { "not sure" }))
}

/// Ask for a name, then continue in the background.
#[tool(task = Task::later().required(), read_only)]
async fn test_tool_with_task(ctx: Ctx) -> Result<String> {
    let Name { name } = ctx.ask("What is your name?").await?.accepted()?;
    ctx.task().await?;
    Ok(format!("done for {name}"))
}

/// Count to a number, one per second. Becomes a task after two seconds.
#[tool(task = Task::after(Duration::from_secs(2)), read_only)]
async fn patience(ctx: Ctx, to: u32) -> Result<u32> {
    for number in 1..=to.min(600) {
        ctx.sleep(Duration::from_secs(1)).await?;
        ctx.progress_with(number, to, format!("counted to {number}"));
    }
    Ok(to)
}
