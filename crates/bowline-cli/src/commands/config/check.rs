//! `bowline config check`: reports errors in configuration files with position and fix, also for CI.

use crate::{
    context::Context,
    failure::{Code, Failure},
    screen::Tone,
};
use bowline_config::{
    Config, ConfigError, Disk, Loader, Notice, NoticeKind, Platform, Scope, Source, Strictness, known_files,
};
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Files to check, of any client [default: the files that `bowline up` reads]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Ignore environment variables that are not set
    #[arg(long)]
    allow_unset: bool,
}

pub(super) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let environment = &context.environment;
    let loader = if arguments.files.is_empty() {
        environment.loader()
    } else {
        let sources = arguments.files.iter().map(|file| source(file, context));
        Loader::new(environment.variables.clone()).sources(sources)
    };
    let strictness = if arguments.allow_unset { Strictness::Lenient } else { Strictness::Strict };
    let config = loader.strictness(strictness).load(&Disk);
    let there: Vec<&PathBuf> = config.files.iter().filter(|file| file.exists()).collect();
    if there.is_empty() && config.errors.is_empty() {
        let places: Vec<String> = config.files.iter().map(|file| format!("`{}`", file.display())).collect();
        return Err(Failure::new(Code::Config, format!("no configuration found at {}", places.join(" or ")))
            .advise("name a file: `bowline config check FILE`"));
    }

    if context.json() {
        context.screen.json(&described(&config, &there))?;
    } else {
        for error in &config.errors {
            let label = context.screen.paint(Tone::Bad, "error:");
            context.screen.line(&format!("{label} {error}"))?;
        }
        for notice in &config.notices {
            let label = context.screen.paint(Tone::Warning, "note:");
            context.screen.line(&format!("{label} {notice}"))?;
        }
        let (files, servers, mistakes) = (there.len(), config.upstreams.len(), config.errors.len());
        context.screen.note(&format!(
            "{}, {}, {}",
            counted(files, "file"),
            counted(servers, "server"),
            counted(mistakes, "error")
        ));
    }
    if config.errors.is_empty() {
        return Ok(());
    }
    Err(Failure { silent: true, ..Failure::new(Code::Found, "the configuration has errors") })
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// Returns the source for a file, with the scope that follows from its path.
fn source(file: &Path, context: &Context) -> Source {
    let environment = &context.environment;
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let home = environment.home.clone().unwrap_or_default();
    let known = known_files(&home, environment.workspace.as_deref(), Platform::current());
    let scope =
        known.into_iter().find(|known| known.path == absolute).map_or(Scope::User, |known| known.scope);
    Source::new(file, scope)
}

fn described(config: &Config, files: &[&PathBuf]) -> Value {
    let error = |error: &ConfigError| {
        json!({
            "file": shown(&error.origin.file), "line": error.origin.line, "column": error.origin.column,
            "field": error.field, "message": error.message, "help": error.help,
        })
    };
    let notice = |notice: &Notice| {
        json!({
            "file": shown(&notice.origin.file), "line": notice.origin.line, "field": notice.field,
            "kind": kind(notice.kind), "message": notice.message,
        })
    };
    json!({
        "files": files.iter().map(|file| shown(file)).collect::<Vec<_>>(),
        "servers": config.upstreams.iter().map(|entry| &entry.name).collect::<Vec<_>>(),
        "mistakes": config.errors.iter().map(error).collect::<Vec<_>>(),
        "notes": config.notices.iter().map(notice).collect::<Vec<_>>(),
    })
}

fn kind(kind: NoticeKind) -> &'static str {
    match kind {
        NoticeKind::Unknown => "unknown",
        NoticeKind::Skipped => "skipped",
        NoticeKind::Replaced => "replaced",
        NoticeKind::Ignored => "ignored",
        NoticeKind::Advice => "advice",
        NoticeKind::Danger => "danger",
        NoticeKind::Command => "command",
        _ => "other",
    }
}

/// Formats a path, which may not be valid UTF-8.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
