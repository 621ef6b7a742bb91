//! `bowline call`: calls a tool.

use crate::{
    answers_file,
    commands::tasks,
    content::ContentPrinter,
    context::Context,
    failure::{Code, Failure},
    progress::WaitIndicator,
    schema::Schema,
    session::Session,
    target::{ConnectionArguments, Interaction, RequestOptions},
    tool_arguments,
};
use bowline_client::{ClientBuilder, Started, ToolResult};
use bowline_host::gateway::REFUSED;
use bowline_text::visible;
use bowline_types::{ContentBlock, error_code};
use clap::Args;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(
    override_usage = "bowline call [OPTIONS] TARGET TOOL [ARGUMENTS]...\n       bowline call [OPTIONS] TOOL [ARGUMENTS]... -- PROGRAM...",
    after_help = format!("{}\n\n{}", tool_arguments::GRAMMAR, answers_file::FORMAT),
)]
pub(crate) struct Arguments {
    /// The server, the tool and its arguments
    #[arg(value_name = "TARGET TOOL ARGUMENTS")]
    words: Vec<String>,
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(flatten)]
    interaction: Interaction,
    #[command(flatten)]
    connection: ConnectionArguments,
}

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Options {
    /// All arguments as a JSON object; `@file` reads a file, `-` reads standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    args: Option<String>,
    /// Do not check the tool name and the arguments before sending them
    #[arg(long)]
    unchecked: bool,
    #[command(flatten)]
    request: RequestOptions,
    /// Save images, audio and other binary content in this directory
    #[arg(long, short = 'o', value_name = "DIR")]
    output: Option<PathBuf>,
    /// Start the call as a task, print the id of the task and exit; `bowline tasks wait` gets the result
    #[arg(long)]
    detach: bool,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let (name, words) = arguments.connection.split(&arguments.words);
    let Some((tool, words)) = words.split_first() else {
        return Err(arguments.connection.missing(name, "tool name", "tools"));
    };
    let target = arguments.interaction.apply(arguments.connection.target(name, context)?)?;
    let work = async |session: &Session<'_>| call(session, tool, words, &arguments.options).await;
    Session::listening(target, context, ClientBuilder::tasks, work).await
}

pub(crate) async fn call(
    session: &Session<'_>,
    tool: &str,
    words: &[String],
    options: &Options,
) -> Result<(), Failure> {
    let json = options.args.as_deref();
    let (arguments, unlisted) = match session.find_tool(tool).await {
        Ok(found) if options.unchecked => {
            (tool_arguments::unchecked(tool, &Schema::new(&found.input_schema), words, json)?, None)
        }
        Ok(found) => {
            let (schema, look) = (Schema::new(&found.input_schema), session.inspect_command("tools", tool));
            (tool_arguments::arguments(session, tool, &look, &schema, words, json).await?, None)
        }
        Err(_) if options.unchecked => (tool_arguments::unchecked(tool, &Schema::any(), words, json)?, None),
        // A gateway waits for the server that a call addresses, so it may know a tool that it does not list yet.
        Err(unlisted) if session.is_gateway() && unlisted.code == Code::Misused && tool.contains("__") => {
            (tool_arguments::unchecked(tool, &Schema::any(), words, json)?, Some(unlisted))
        }
        Err(failure) => return Err(failure),
    };
    let screen = session.context.screen;
    let request = options.request.apply(session.client.call(tool, arguments));
    let called = if options.detach {
        match request.start().await {
            Ok(Started::Task(task)) => return tasks::started(session, &task),
            Ok(Started::Done(called)) => {
                screen.note("the server did not make the call a task");
                Ok(called)
            }
            Ok(_) => return Err(Failure::new(Code::Protocol, "the call ended in an unknown way")),
            Err(error) => Err(error),
        }
    } else {
        let record = session.task_recorder();
        let waiting = WaitIndicator::new(screen);
        let request = request.on_task({
            let waiting = waiting.clone();
            move |state| {
                waiting.for_task();
                record(&state.task.task_id);
            }
        });
        waiting.show(request.progress(waiting.reporter())).await
    };
    screen.clear();
    let called = called.map_err(|error| match unlisted {
        Some(unlisted) if error.as_rpc().is_some_and(|error| error.code == error_code::INVALID_PARAMS) => {
            unlisted
        }
        _ => session.explain(error),
    })?;
    print(session, Some(tool), &called, options.output.as_deref())
}

/// Prints the result of a tool, whose name may be unknown. The result of a tool that failed is a failure, after it was printed.
pub(crate) fn print(
    session: &Session<'_>,
    tool: Option<&str>,
    called: &ToolResult,
    folder: Option<&Path>,
) -> Result<(), Failure> {
    let screen = session.context.screen;
    if session.context.json() {
        screen.json(&as_json(called))?;
    } else {
        let printer = ContentPrinter { screen, folder, name: tool.unwrap_or("result") };
        called.content.iter().try_for_each(|block| printer.block(block))?;
        let has_text = called.content.iter().any(|block| matches!(block, ContentBlock::Text(_)));
        if let Some(structured) = called.structured.as_ref().filter(|_| !has_text) {
            printer.structured(structured.as_str())?;
        }
    }
    if called.is_error() && called.meta.as_ref().is_some_and(|meta| meta.get(REFUSED).is_some()) {
        let tool = tool.map(|tool| format!(" of `{}`", visible(tool))).unwrap_or_default();
        return Err(Failure::new(Code::Denied, format!("the gateway denied the call{tool}")));
    }
    if called.is_error() {
        let tool = tool.map_or_else(|| "the tool".to_owned(), |tool| format!("tool `{}`", visible(tool)));
        return Err(Failure::new(Code::Failed, format!("{tool} returned an error")));
    }
    Ok(())
}

/// Returns the result in the format of the protocol, without metadata.
fn as_json(called: &ToolResult) -> Value {
    let mut result = Map::new();
    result.insert("content".to_owned(), json!(called.content));
    if let Some(structured) = &called.structured {
        result.insert("structuredContent".to_owned(), structured.to_value().unwrap_or_default());
    }
    result.insert("isError".to_owned(), called.is_error().into());
    Value::Object(result)
}
