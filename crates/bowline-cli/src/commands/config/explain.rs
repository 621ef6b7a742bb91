//! `bowline config explain`: prints the merged configuration with the origin of every value, without secrets.

use crate::{
    context::Context,
    failure::{Code, Failure},
};
use bowline_config::{Config, Launch, Origin, Scope, Text, explain};
use serde_json::{Map, Value, json};

pub(super) fn run(context: &Context) -> Result<(), Failure> {
    let config = context.environment.config();
    if context.json() {
        context.screen.json(&described(config))?;
        return fail_on_errors(config);
    }
    context.screen.line("# Configuration files:")?;
    for file in &config.files {
        let state = if file.exists() { "" } else { " (not found)" };
        context.screen.line(&format!("#   {}{state}", file.display()))?;
    }
    context.screen.line("")?;
    context.screen.line(explain(config).trim_end())?;
    for error in &config.errors {
        context.screen.warn(&error.to_string());
    }
    fail_on_errors(config)
}

/// Fails silently if there are errors, which were already printed.
fn fail_on_errors(config: &Config) -> Result<(), Failure> {
    if config.errors.is_empty() {
        return Ok(());
    }
    Err(Failure { silent: true, ..Failure::new(Code::Config, "the configuration has errors") })
}

/// Returns the configuration as JSON.
fn described(config: &Config) -> Value {
    let servers = config.upstreams.iter().map(|entry| {
        let mut server = Map::new();
        server.insert("name".to_owned(), json!(entry.name));
        server.insert("origin".to_owned(), json!(entry.origin.short()));
        server.insert("dialect".to_owned(), json!(entry.dialect.to_string()));
        server.insert("scope".to_owned(), json!(scope(entry.scope)));
        server.insert("enabled".to_owned(), json!(entry.settings.enabled));
        server.insert("needsApproval".to_owned(), json!(entry.needs_approval()));
        match &entry.launch {
            Launch::Command(launch) => {
                let args: Vec<&str> = launch.args.iter().map(Text::shown).collect();
                server.insert("command".to_owned(), json!(launch.program.shown()));
                server.insert("args".to_owned(), json!(args));
            }
            Launch::Url(launch) => {
                server.insert("url".to_owned(), json!(launch.url.shown()));
            }
        }
        server.insert("origins".to_owned(), origins(&entry.origins));
        Value::Object(server)
    });
    json!({
        "files": config.files.iter().map(|file| json!({ "path": file.display().to_string(), "exists": file.exists() })).collect::<Vec<_>>(),
        "servers": servers.collect::<Vec<_>>(),
        "origins": origins(&config.origins),
        "errors": config.errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn origins(origins: &std::collections::BTreeMap<String, Origin>) -> Value {
    origins.iter().map(|(name, origin)| (name.clone(), json!(origin.short()))).collect::<Map<_, _>>().into()
}

pub(super) fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::User => "user",
        Scope::Project => "project",
        Scope::Local => "local",
        Scope::Managed => "managed",
    }
}
