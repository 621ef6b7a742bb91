//! `bowline complete`: asks a server to complete an argument of a prompt or resource template.

use crate::{context::Context, failure::Failure, session::Session, target::ConnectionArguments};
use bowline_types::Reference;
use clap::Args;
use serde_json::json;

#[derive(Args, Debug)]
#[command(
    override_usage = "bowline complete [OPTIONS] TARGET PROMPT|TEMPLATE ARGUMENT=PREFIX [NAME=VALUE]...\n       bowline complete [OPTIONS] PROMPT|TEMPLATE ARGUMENT=PREFIX [NAME=VALUE]... -- PROGRAM..."
)]
pub(crate) struct Arguments {
    /// The server, the prompt or URI template, the argument to complete, and the values of other arguments
    #[arg(value_name = "TARGET REFERENCE ARGUMENTS")]
    words: Vec<String>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let (name, words) = arguments.connection.split(&arguments.words);
    let target = arguments.connection.target(name, context)?;
    Session::with(target, context, async |session| complete(session, words).await).await
}

pub(crate) async fn complete(session: &Session<'_>, words: &[String]) -> Result<(), Failure> {
    let [reference, argument, known @ ..] = words else {
        return Err(Failure::misused(
            "expected a prompt or URI template and the argument to complete, such as `code language=py`",
        ));
    };
    let (argument, start) = pair(argument)?;
    let known = known.iter().map(|word| pair(word)).collect::<Result<Vec<_>, _>>()?;
    let reference = reference_to(reference);
    let completion = session.client.complete_with(reference, argument, start, known).await?;
    let screen = session.context.screen;
    if session.context.json() {
        return screen.json(&json!({
            "values": completion.values, "total": completion.total, "hasMore": completion.has_more,
        }));
    }
    completion.values.iter().try_for_each(|value| screen.untrusted(value))?;
    if completion.has_more == Some(true) {
        let total = completion.total.map(|total| format!(" of {total}")).unwrap_or_default();
        screen.note(&format!("showing the first {}{total}", completion.values.len()));
    }
    Ok(())
}

/// Returns a reference to a resource if the text looks like a URI or URI template, and to a prompt otherwise.
pub(crate) fn reference_to(text: &str) -> Reference {
    if text.contains("://") || text.contains('{') {
        Reference::resource(text)
    } else {
        Reference::prompt(text)
    }
}

fn pair(word: &str) -> Result<(&str, &str), Failure> {
    word.split_once('=').ok_or_else(|| Failure::misused(format!("expected `name=value`, got `{word}`")))
}
