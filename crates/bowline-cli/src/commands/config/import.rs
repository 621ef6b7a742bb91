//! `bowline config import`: imports servers from other clients into the user's configuration.

use super::toml_entry::{self, Secrets};
use crate::{
    context::Context,
    failure::{Code, Failure},
};
use bowline_config::{
    Config, Dialect, Disk, KnownFile, Launch, Loader, NoticeKind, Platform, Scope, Source, Strictness,
    UpstreamConfig, known_files,
};
use clap::Args;
use serde_json::json;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Import only from this client, such as `cursor` or `claude-code`; can be repeated
    #[arg(long, value_name = "CLIENT")]
    from: Vec<String>,
    /// Print what would be written, without writing it
    #[arg(long)]
    dry_run: bool,
}

/// A server to import.
struct Found {
    client: &'static str,
    name: String,
    entry: UpstreamConfig,
}

pub(super) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let unreadable = import_files(arguments, context)?;
    if unreadable == 0 {
        return Ok(());
    }
    let sentence = format!("{unreadable} configuration files have errors");
    Err(Failure::new(Code::Config, sentence))
}

/// Imports what it can, and returns the number of files with errors.
fn import_files(arguments: &Arguments, context: &Context) -> Result<usize, Failure> {
    let environment = &context.environment;
    let Some(home) = &environment.home else {
        return Err(Failure::new(Code::Config, "cannot import without a home directory"));
    };
    let known = known_files(home, None, Platform::current());
    let own = own_file(context, &known)?;
    let own_config = load(
        context,
        Source { presence: bowline_config::Presence::Optional, ..Source::new(&own, Scope::User) },
    );
    if let Some(error) = own_config.errors.first() {
        return Err(Failure::new(Code::Config, format!("your configuration has an error: {error}"))
            .advise("run `bowline config check` to see all errors"));
    }
    let (found, warnings, unreadable) = search(context, &chosen(&known, &arguments.from)?, &own_config);
    for line in &warnings {
        context.screen.warn(line);
    }

    if context.json() {
        let servers: Vec<_> = found
            .iter()
            .map(|found| json!({ "name": found.name, "from": found.client, "origin": found.entry.origin.short() }))
            .collect();
        context.screen.json(
            &json!({ "file": own.display().to_string(), "written": !arguments.dry_run, "servers": servers }),
        )?;
    } else if arguments.dry_run && !found.is_empty() {
        context.screen.line(page(&found, Secrets::Masked).trim_end())?;
    } else {
        for Found { client, name, entry } in &found {
            context.screen.line(&format!("{name}: from {client}, {}", entry.origin.short()))?;
        }
    }
    if found.is_empty() {
        context.screen.note("nothing to import");
        return Ok(unreadable);
    }
    if arguments.dry_run {
        context.screen.note(&format!("dry run: nothing was written to `{}`", own.display()));
        return Ok(unreadable);
    }
    let (written, masked) = (page(&found, Secrets::Written), page(&found, Secrets::Masked));
    let backup = write(context, &own, &written)?;
    if let Some(backup) = backup {
        context.screen.note(&format!("saved the previous version as `{}`", backup.display()));
    }
    let secrets = if written == masked { "" } else { "; secrets in the imported files were copied into it" };
    context.screen.note(&format!("updated `{}`, which is readable only by you{secrets}", own.display()));
    for found in &found {
        for variable in toml_entry::inputs(&found.entry) {
            context.screen.note(&format!(
                "`{}` uses an input of {}: set the environment variable {variable} to its value",
                found.name, found.client
            ));
        }
    }
    Ok(unreadable)
}

/// Returns the file to write: the one named by `--config`, or the user's.
fn own_file(context: &Context, known: &[KnownFile]) -> Result<PathBuf, Failure> {
    match context.environment.named() {
        [] => {}
        [file] => return Ok(file.clone()),
        _ => return Err(Failure::misused("`--config` must name exactly one file to write")),
    }
    let own = known.iter().find(|file| file.client == "Bowline");
    own.map(|file| file.path.clone())
        .ok_or_else(|| Failure::new(Code::Config, "no location for a user configuration"))
}

/// Returns the files of the chosen clients, or of all.
fn chosen<'a>(known: &'a [KnownFile], wanted: &[String]) -> Result<Vec<&'a KnownFile>, Failure> {
    let spelled = |name: &str| name.to_lowercase().replace([' ', '_'], "-");
    let others = || known.iter().filter(|file| file.client != "Bowline" && file.scope == Scope::User);
    for name in wanted {
        if !others().any(|file| spelled(file.client) == spelled(name)) {
            let mut names: Vec<String> = others().map(|file| spelled(file.client)).collect();
            names.sort_unstable();
            names.dedup();
            let sentence = format!("expected one of {}, got `{name}`", names.join(", "));
            return Err(Failure::misused(sentence));
        }
    }
    let is_wanted = |file: &&KnownFile| {
        wanted.is_empty() || wanted.iter().any(|name| spelled(name) == spelled(file.client))
    };
    Ok(others().filter(is_wanted).collect())
}

fn load(context: &Context, source: Source) -> Config {
    let loader = Loader::new(context.environment.variables.clone()).strictness(Strictness::Lenient);
    loader.source(source).load(&Disk)
}

/// Returns the new servers of these files, warnings about the rest, and the number of files with errors.
fn search(context: &Context, files: &[&KnownFile], own: &Config) -> (Vec<Found>, Vec<String>, usize) {
    let mut found: Vec<Found> = Vec::new();
    let (mut warnings, mut unreadable) = (Vec::new(), 0);
    for file in files {
        let config = load(context, Source::from((*file).clone()));
        unreadable += usize::from(!config.errors.is_empty());
        warnings.extend(config.errors.iter().map(ToString::to_string));
        let is_relevant = |kind| matches!(kind, NoticeKind::Skipped | NoticeKind::Ignored);
        warnings
            .extend(config.notices.iter().filter(|notice| is_relevant(notice.kind)).map(ToString::to_string));
        for entry in config.upstreams {
            let present: Vec<(&str, &Launch)> = own
                .upstreams
                .iter()
                .map(|own| (own.name.as_str(), &own.launch))
                .chain(found.iter().map(|found| (found.name.as_str(), &found.entry.launch)))
                .collect();
            let is_there = present.iter().any(|(_, launch)| toml_entry::is_same(launch, &entry.launch));
            let at = format!("{}: `{}` of {}", entry.origin.short(), entry.name, file.client);
            if is_there {
                warnings.push(format!("{at} skipped: your configuration already has this server"));
                continue;
            }
            if is_this_program(&entry.launch) {
                warnings.push(format!("{at} skipped: it is this gateway"));
                continue;
            }
            if !entry.settings.auto_approve.is_empty() {
                warnings
                    .push(format!("{at}: auto-approved tools are not imported; add an `allow` rule instead"));
            }
            let is_taken = |name: &str| present.iter().any(|(present, _)| *present == name);
            let suffix = file.client.to_lowercase().replace(' ', "-");
            let other = format!("{}-{suffix}", entry.name);
            let name = if is_taken(&entry.name) { other } else { entry.name.clone() };
            if is_taken(&name) {
                warnings.push(format!("`{name}` already exists and was not changed"));
                continue;
            }
            found.push(Found { client: file.client, name, entry });
        }
    }
    (found, warnings, unreadable)
}

/// Returns whether an entry is this gateway, which would then call itself.
fn is_this_program(launch: &Launch) -> bool {
    match launch {
        Launch::Command(launch) => {
            let program = Path::new(launch.program.expose()).file_stem();
            program.is_some_and(|program| program == "bowline")
                && launch
                    .args
                    .first()
                    .is_some_and(|word| ["gateway", "connect", "up"].contains(&word.expose()))
        }
        Launch::Url(launch) => {
            let port = crate::running_gateway::PORT;
            ["127.0.0.1", "localhost", "[::1]"]
                .iter()
                .any(|host| launch.url.expose().starts_with(&format!("http://{host}:{port}/")))
        }
    }
}

/// Returns the entries, each with a comment that names its origin.
fn page(found: &[Found], secrets: Secrets) -> String {
    let entries: Vec<String> = found
        .iter()
        .map(|Found { client, name, entry }| {
            format!("# From {client}: {}\n{}", entry.origin.short(), toml_entry::entry(name, entry, secrets))
        })
        .collect();
    entries.join("\n")
}

/// Appends to a file and saves a copy of the previous version.
fn write(context: &Context, path: &Path, added: &str) -> Result<Option<PathBuf>, Failure> {
    // Write to the target of a symbolic link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let failed = |doing: &str, error: io::Error| {
        Failure::new(Code::Failed, format!("cannot {doing} `{}`: {error}", path.display()))
    };
    let before = match fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed("read", error)),
    };
    let text = match &before {
        Some(before) if !before.trim().is_empty() => format!("{}\n\n{added}", before.trim_end()),
        _ => added.to_owned(),
    };
    verify(context, &path, &text)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| failed("create the directory of", error))?;
    }
    let mut backup = None;
    if let Some(before) = &before {
        let free = (1..1000)
            .map(|number| path.with_extension(format!("toml.{number}.bak")))
            .find(|path| !path.exists());
        let kept = free.unwrap_or_else(|| path.with_extension("toml.bak"));
        bowline_files::write_new(&kept, before.as_bytes()).map_err(|error| failed("back up", error))?;
        backup = Some(kept);
    }
    bowline_files::replace(&path, text.as_bytes()).map_err(|error| failed("write", error))?;
    Ok(backup)
}

/// Checks that the text can be loaded before it is written.
fn verify(context: &Context, path: &Path, text: &str) -> Result<(), Failure> {
    let files = BTreeMap::from([(path.to_owned(), text.to_owned())]);
    let source = Source { dialect: Some(Dialect::Bowline), ..Source::new(path, Scope::User) };
    let loader = Loader::new(context.environment.variables.clone()).strictness(Strictness::Lenient);
    match loader.source(source).load(&files).errors.first() {
        None => Ok(()),
        Some(error) => {
            Err(Failure::new(Code::Config, format!("the imported configuration would be invalid: {error}")))
        }
    }
}
