//! `bowline read`: reads a resource.

use crate::{
    content::ContentPrinter,
    context::Context,
    failure::Failure,
    session::Session,
    target::{ConnectionArguments, Interaction, RequestOptions},
};
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(
    override_usage = "bowline read [OPTIONS] TARGET URI\n       bowline read [OPTIONS] URI -- PROGRAM..."
)]
pub(crate) struct Arguments {
    /// The server and the URI of the resource
    #[arg(value_name = "TARGET URI", num_args = 0..=2)]
    words: Vec<String>,
    /// Save binary content in this directory
    #[arg(long, short = 'o', value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    request: RequestOptions,
    #[command(flatten)]
    interaction: Interaction,
    #[command(flatten)]
    connection: ConnectionArguments,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let (name, words) = arguments.connection.split(&arguments.words);
    let [uri] = words else {
        return Err(arguments.connection.missing(name, "resource URI", "resources"));
    };
    let target = arguments.interaction.apply(arguments.connection.target(name, context)?)?;
    let (folder, options) = (arguments.output.as_deref(), &arguments.request);
    Session::with(target, context, async |session| read(session, uri, folder, options).await).await
}

pub(crate) async fn read(
    session: &Session<'_>,
    uri: &str,
    folder: Option<&Path>,
    options: &RequestOptions,
) -> Result<(), Failure> {
    let screen = session.context.screen;
    let result = options.apply(session.client.read(uri)).await.map_err(|error| session.explain(error))?;
    if session.context.json() {
        return screen.json(&serde_json::json!({ "contents": result.contents }));
    }
    let printer = ContentPrinter { screen, folder, name: "resource" };
    result.contents.iter().try_for_each(|contents| printer.resource(contents))
}
