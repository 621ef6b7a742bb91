//! `bowline call`: calls a tool.

use crate::{
    answers_file, catalog,
    content::ContentPrinter,
    context::Context,
    failure::{Code, Failure},
    progress,
    schema::Schema,
    session::Session,
    target::{ConnectionArguments, Interaction, RequestOptions},
    tool_arguments,
};
use bowline_client::ToolResult;
use bowline_host::gateway::REFUSED;
use bowline_text::visible;
use bowline_types::{ContentBlock, error_code};
use clap::Args;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

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
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let (name, words) = arguments.connection.split(&arguments.words);
    let Some((tool, words)) = words.split_first() else {
        return Err(Failure::misused("missing tool name").advise(format!(
            "run `{}` to list the tools",
            arguments.connection.inspect_command(name, "tools")
        )));
    };
    let target = arguments.interaction.apply(arguments.connection.target(name, context)?)?;
    Session::with(target, context, async |session| call(session, tool, words, &arguments.options).await).await
}

pub(crate) async fn call(
    session: &Session<'_>,
    tool: &str,
    words: &[String],
    options: &Options,
) -> Result<(), Failure> {
    let json = options.args.as_deref();
    let (arguments, unlisted) = match catalog::find_tool(session, tool).await {
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
    let request = session.client.call(tool, arguments).progress(progress::reporter(screen));
    let called = options.request.apply(request).await;
    screen.clear();
    let called = called.map_err(|error| match unlisted {
        Some(unlisted) if error.as_rpc().is_some_and(|error| error.code == error_code::INVALID_PARAMS) => {
            unlisted
        }
        _ => session.explain(error),
    })?;
    if session.context.json() {
        screen.json(&as_json(&called))?;
    } else {
        let printer = ContentPrinter { screen, folder: options.output.as_deref(), name: tool };
        called.content.iter().try_for_each(|block| printer.block(block))?;
        let has_text = called.content.iter().any(|block| matches!(block, ContentBlock::Text(_)));
        if let Some(structured) = called.structured.as_ref().filter(|_| !has_text) {
            printer.structured(structured.as_str())?;
        }
    }
    if called.is_error() && called.meta.as_ref().is_some_and(|meta| meta.get(REFUSED).is_some()) {
        return Err(Failure::new(
            Code::Denied,
            format!("the gateway denied the call of `{}`", visible(tool)),
        ));
    }
    if called.is_error() {
        return Err(Failure::new(Code::Failed, format!("tool `{}` returned an error", visible(tool))));
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
