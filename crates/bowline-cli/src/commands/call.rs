//! `bowline call`: one call of a tool.

use super::tools;
use crate::{
    content::Showing,
    context::Context,
    failure::{Code, Failure},
    progress,
    schema::Schema,
    session::Session,
    target::ReachArguments,
    words,
};
use bowline_client::Called;
use bowline_types::ContentBlock;
use clap::Args;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(
    override_usage = "bowline call [OPTIONS] TARGET TOOL [ARGUMENTS]...\n       bowline call [OPTIONS] TOOL [ARGUMENTS]... -- PROGRAM...",
    after_help = words::GRAMMAR,
)]
pub(crate) struct Arguments {
    /// The server, the tool, and its arguments
    #[arg(value_name = "TARGET TOOL ARGUMENTS")]
    words: Vec<String>,
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(flatten)]
    reach: ReachArguments,
}

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Options {
    /// All arguments as JSON
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// Save pictures, sounds and other files into this folder; without it they are only told of
    #[arg(long, short = 'o', value_name = "FOLDER")]
    output: Option<PathBuf>,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let (name, words) = arguments.reach.split(&arguments.words);
    let Some((tool, words)) = words.split_first() else {
        return Err(Failure::misused("expected the name of a tool")
            .advise(format!("`{}` shows which there are", arguments.reach.look(name, "tools"))));
    };
    let target = arguments.reach.target(name, context)?;
    Session::with(target, context, async |session| call(session, tool, words, &arguments.options).await).await
}

pub(crate) async fn call(
    session: &Session<'_>,
    tool: &str,
    words: &[String],
    options: &Options,
) -> Result<(), Failure> {
    let tools = tools::list(session).await?;
    let schema = Schema::new(&tools::find(session, &tools, tool)?.input_schema);
    let look = session.look("tools", tool);
    let arguments = words::arguments(session, tool, &look, &schema, words, options.args.as_deref()).await?;
    let screen = session.context.screen;
    let called = session.client.call(tool, arguments).progress(progress::reporter(screen)).await;
    screen.clear();
    let called = called.map_err(|error| session.explain(error))?;
    if session.context.json() {
        screen.json(&as_json(&called))?;
    } else {
        let showing = Showing { screen, folder: options.output.as_deref(), name: tool };
        called.content.iter().try_for_each(|block| showing.block(block))?;
        let says_something = called.content.iter().any(|block| matches!(block, ContentBlock::Text(_)));
        if let Some(structured) = called.structured.as_ref().filter(|_| !says_something) {
            screen.json(&structured.to_value().unwrap_or_default())?;
        }
    }
    if called.is_error() {
        return Err(Failure::new(Code::Failed, format!("the tool `{tool}` failed")));
    }
    Ok(())
}

/// The result as the protocol has it, without metadata.
fn as_json(called: &Called) -> Value {
    let mut result = Map::new();
    result.insert("content".to_owned(), json!(called.content));
    if let Some(structured) = &called.structured {
        result.insert("structuredContent".to_owned(), structured.to_value().unwrap_or_default());
    }
    result.insert("isError".to_owned(), called.is_error().into());
    Value::Object(result)
}
