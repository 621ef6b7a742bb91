//! `bowline config import`: the servers of other programs, written into the user's own configuration.

use super::toml_entry::{self, Secrets};
use crate::{
    context::Context,
    failure::{Code, Failure},
    paths,
};
use bowline_config::{
    Config, Dialect, Disk, KnownFile, Launch, Loader, NoticeKind, Platform, Scope, Source, Strictness,
    UpstreamConfig, known_files,
};
use clap::Args;
use serde_json::json;
use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Only from this program, such as `cursor` or `claude-code`; may be given more than once
    #[arg(long, value_name = "PROGRAM")]
    from: Vec<String>,
    /// Show what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// A server to take over.
struct Found {
    client: &'static str,
    name: String,
    entry: UpstreamConfig,
}

pub(super) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let unreadable = take_over(arguments, context)?;
    if unreadable == 0 {
        return Ok(());
    }
    let sentence = format!("{unreadable} of the files could not be read as they should be");
    Err(Failure::new(Code::Config, sentence))
}

/// Takes over what can be, and tells how many files have mistakes.
fn take_over(arguments: &Arguments, context: &Context) -> Result<usize, Failure> {
    let environment = &context.environment;
    let Some(home) = &environment.home else {
        return Err(Failure::new(Code::Config, "there is no home folder to look in"));
    };
    let known = known_files(home, None, Platform::current());
    let own = own_file(context, &known)?;
    let own_config = load(
        context,
        Source { presence: bowline_config::Presence::Optional, ..Source::new(&own, Scope::User) },
    );
    if let Some(error) = own_config.errors.first() {
        return Err(Failure::new(Code::Config, format!("your own configuration has a mistake: {error}"))
            .advise("`bowline config check` shows all of them"));
    }
    let (found, told, unreadable) = search(context, &chosen(&known, &arguments.from)?, &own_config);
    for line in &told {
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
        context.screen.note("There is nothing to take over.");
        return Ok(unreadable);
    }
    if arguments.dry_run {
        context.screen.note(&format!("Nothing was written; it would be added to `{}`.", own.display()));
        return Ok(unreadable);
    }
    let backup = write(context, &own, &page(&found, Secrets::Written))?;
    if let Some(backup) = backup {
        context.screen.note(&format!("The file as it was is `{}`.", backup.display()));
    }
    context.screen.note(&format!(
        "Written to `{}`. Keys that stood in the other files stand in it as well; only you can read it.",
        own.display()
    ));
    for found in &found {
        for variable in toml_entry::inputs(&found.entry) {
            context.screen.note(&format!(
                "`{}` asked {} for a value: set the variable {variable} to it.",
                found.name, found.client
            ));
        }
    }
    Ok(unreadable)
}

/// The file that is written to: the one the user names, or their own.
fn own_file(context: &Context, known: &[KnownFile]) -> Result<PathBuf, Failure> {
    match context.environment.named() {
        [] => {}
        [file] => return Ok(file.clone()),
        _ => return Err(Failure::misused("expected one file to write to, got several with `--config`")),
    }
    let own = known.iter().find(|file| file.client == "Bowline");
    own.map(|file| file.path.clone())
        .ok_or_else(|| Failure::new(Code::Config, "there is no place for a configuration"))
}

/// The files of these programs, or of all.
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

/// What these files have that is not there yet, what there is to say about the rest, and how many have mistakes.
fn search(context: &Context, files: &[&KnownFile], own: &Config) -> (Vec<Found>, Vec<String>, usize) {
    let mut found: Vec<Found> = Vec::new();
    let (mut told, mut unreadable) = (Vec::new(), 0);
    for file in files {
        let config = load(context, Source::from((*file).clone()));
        unreadable += usize::from(!config.errors.is_empty());
        told.extend(config.errors.iter().map(ToString::to_string));
        let is_told = |kind| matches!(kind, NoticeKind::Skipped | NoticeKind::Ignored);
        told.extend(config.notices.iter().filter(|notice| is_told(notice.kind)).map(ToString::to_string));
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
                told.push(format!("{at} is left out: your configuration has this server already"));
                continue;
            }
            if is_this_program(&entry.launch) {
                told.push(format!("{at} is left out: it is this gateway"));
                continue;
            }
            if !entry.settings.auto_approve.is_empty() {
                told.push(format!(
                    "{at}: the tools that run without a question are not taken over; write a rule"
                ));
            }
            let is_taken = |name: &str| present.iter().any(|(present, _)| *present == name);
            let suffix = file.client.to_lowercase().replace(' ', "-");
            let other = format!("{}-{suffix}", entry.name);
            let name = if is_taken(&entry.name) { other } else { entry.name.clone() };
            if is_taken(&name) {
                told.push(format!("`{name}` is there already and is left as it is"));
                continue;
            }
            found.push(Found { client: file.client, name, entry });
        }
    }
    (found, told, unreadable)
}

/// Whether an entry leads back to the gateway, which then would call itself.
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

/// The entries, each with where it comes from.
fn page(found: &[Found], secrets: Secrets) -> String {
    let entries: Vec<String> = found
        .iter()
        .map(|Found { client, name, entry }| {
            format!("# From {client}: {}\n{}", entry.origin.short(), toml_entry::entry(name, entry, secrets))
        })
        .collect();
    entries.join("\n")
}

/// Adds to a file, which stays as it is otherwise, and keeps a copy of how it was.
fn write(context: &Context, path: &Path, added: &str) -> Result<Option<PathBuf>, Failure> {
    // What a link leads to is the file.
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
        fs::create_dir_all(folder).map_err(|error| failed("create the folder of", error))?;
    }
    let mut backup = None;
    if let Some(before) = &before {
        let free = (1..1000)
            .map(|number| path.with_extension(format!("toml.{number}.bak")))
            .find(|path| !path.exists());
        let kept = free.unwrap_or_else(|| path.with_extension("toml.bak"));
        private(&kept, before).map_err(|error| failed("keep a copy of", error))?;
        backup = Some(kept);
    }
    paths::replace_file(&path, |new| private(new, &text)).map_err(|error| failed("write", error))?;
    Ok(backup)
}

/// What is written has to be read again as it is meant.
fn verify(context: &Context, path: &Path, text: &str) -> Result<(), Failure> {
    let files = BTreeMap::from([(path.to_owned(), text.to_owned())]);
    let source = Source { dialect: Some(Dialect::Bowline), ..Source::new(path, Scope::User) };
    let loader = Loader::new(context.environment.variables.clone()).strictness(Strictness::Lenient);
    match loader.source(source).load(&files).errors.first() {
        None => Ok(()),
        Some(error) => {
            Err(Failure::new(Code::Config, format!("what would be written could not be read: {error}")))
        }
    }
}

/// Writes a file that only its owner can read.
fn private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = paths::private_options(fs::OpenOptions::new().write(true).create_new(true)).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
