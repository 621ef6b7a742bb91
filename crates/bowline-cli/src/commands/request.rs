//! `bowline request`: sends any request.

use crate::{
    context::Context,
    failure::Failure,
    progress,
    session::Session,
    target::{ConnectionArguments, Interaction, RequestOptions},
    tool_arguments,
};
use bowline_text::visible;
use bowline_types::RawJson;
use clap::Args;
use serde_json::Value;

#[derive(Args, Debug)]
#[command(
    override_usage = "bowline request [OPTIONS] TARGET METHOD [PARAMS]\n       bowline request [OPTIONS] METHOD [PARAMS] -- PROGRAM...",
    after_help = "PARAMS is a JSON object; `@file` reads it from a file, `-` from standard input. The result is printed as JSON.\n\n\
        Examples:\n  bowline request everything tools/list\n  bowline request everything completion/complete @params.json\n  \
        bowline request tools/call '{\"name\": \"echo\", \"arguments\": {\"message\": \"hi\"}}' -- my-server"
)]
pub(crate) struct Arguments {
    /// The server, the method and its parameters
    #[arg(value_name = "TARGET METHOD PARAMS")]
    words: Vec<String>,
    #[command(flatten)]
    options: RequestOptions,
    #[command(flatten)]
    interaction: Interaction,
    #[command(flatten)]
    connection: ConnectionArguments,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let (name, words) = arguments.connection.split(&arguments.words);
    if words.is_empty() || words.len() > 2 {
        return Err(Failure::misused("expected a method and at most one JSON object with parameters")
            .advise("for example `bowline request everything tools/list`"));
    }
    let target = arguments.interaction.apply(arguments.connection.target(name, context)?)?;
    Session::with(target, context, async |session| request(session, words, &arguments.options).await).await
}

pub(crate) async fn request(
    session: &Session<'_>,
    words: &[String],
    options: &RequestOptions,
) -> Result<(), Failure> {
    let (method, params) = match words {
        [method] => (method, Value::Object(serde_json::Map::new())),
        [method, params] => (method, parse(params)?),
        _ => return Err(Failure::misused("expected a method and at most one JSON object with parameters")),
    };
    let screen = session.context.screen;
    let request = session.client.request::<RawJson>(method, params).progress(progress::reporter(screen));
    let result = options.apply(request).await;
    screen.clear();
    let result = result.map_err(|error| session.explain(error))?;
    screen.json_text(result.as_str())
}

fn parse(word: &str) -> Result<Value, Failure> {
    let text = tool_arguments::content(word).map_err(Failure::misused)?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::misused(format!("the parameters are not valid JSON: {error}")))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(Failure::misused(format!("expected the parameters as a JSON object, got `{}`", visible(&text))))
    }
}
