//! `bowline resources` and `bowline templates`: list the resources and templates of a server.

use crate::{cache, context::Context, failure::Failure, session::Session, table, target::TargetArguments};
use clap::Args;
use serde_json::json;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: TargetArguments,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    Session::with(arguments.target.target(context)?, context, async |session| resources(session).await).await
}

pub(crate) async fn run_templates(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    Session::with(arguments.target.target(context)?, context, async |session| templates(session).await).await
}

pub(crate) async fn resources(session: &Session<'_>) -> Result<(), Failure> {
    let screen = session.context.screen;
    let resources = session.client.resources().await?;
    let uris = || resources.iter().map(|resource| resource.uri.as_str());
    cache::remember(session.context, &session.name, |names| names.set_resources(uris()));
    if session.context.json() {
        return screen.json(&json!({ "resources": resources }));
    }
    if resources.is_empty() {
        screen.note("the server has no resources");
    }
    let rows = resources
        .iter()
        .map(|it| (it.uri.as_str(), about(&it.name, &it.title, &it.mime_type, &it.description)));
    table::rows(screen, rows)
}

pub(crate) async fn templates(session: &Session<'_>) -> Result<(), Failure> {
    let screen = session.context.screen;
    let templates = session.client.templates().await?;
    if session.context.json() {
        return screen.json(&json!({ "resourceTemplates": templates }));
    }
    if templates.is_empty() {
        screen.note("the server has no resource templates");
    }
    let rows = templates
        .iter()
        .map(|it| (it.uri_template.as_str(), about(&it.name, &it.title, &it.mime_type, &it.description)));
    table::rows(screen, rows)
}

/// Returns the description of a resource.
#[expect(clippy::ref_option, reason = "the fields are `Option<String>`")]
fn about(name: &str, title: &Option<String>, kind: &Option<String>, description: &Option<String>) -> String {
    let name = title.as_deref().unwrap_or(name);
    let kind = kind.as_deref().map(|kind| format!(" ({kind})")).unwrap_or_default();
    let description = description.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
    format!("{name}{kind}{description}")
}
