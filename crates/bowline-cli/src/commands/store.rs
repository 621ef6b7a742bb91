//! `bowline store`: checks the database that keeps tasks and sessions, and seals its records again.

use crate::{
    context::Context,
    failure::{Code, Failure},
    screen::Tone,
};
use bowline_proto::seal::KeyRing;
use bowline_stores::{ErrorKind, Finding, Level, Store, StoreError, StoreOptions, key_ring};
use bowline_text::visible;
use clap::{Args, Subcommand};
use serde_json::json;

/// The variable that names a store, so that a password does not appear in the list of processes.
const VARIABLE: &str = "BOWLINE_STORE_URL";

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check the version, permissions, settings and latency of a store
    ///
    /// Creates its tables if they are missing, writes a few records and removes them. Exits with 8 if the store cannot be used
    /// as configured.
    Check {
        /// `sqlite:PATH`, `postgres://…`, `redis://…` or `rediss://…` [default: the variable BOWLINE_STORE_URL]
        url: Option<String>,
        /// The server that delivers notifications between processes, if it is not the store itself
        #[arg(long, value_name = "URL")]
        bus: Option<String>,
        /// The namespace
        #[arg(long, default_value = "default")]
        namespace: String,
    },
    /// Encrypt all records again with the first key, after you added a key
    ///
    /// Servers that have all of the keys can keep using the store. Records that are already encrypted with the first key are skipped,
    /// so the command can be repeated. Exits with 8 if there are records that none of the keys can decrypt.
    Rekey {
        /// `sqlite:PATH`, `postgres://…`, `redis://…` or `rediss://…` [default: the variable BOWLINE_STORE_URL]
        url: Option<String>,
        /// The variables that contain the keys, as in `store.keys_env`: the first key encrypts, all keys decrypt; can be repeated
        #[arg(long, value_name = "NAME", required = true, value_delimiter = ',')]
        keys_env: Vec<String>,
        /// The namespace
        #[arg(long, default_value = "default")]
        namespace: String,
        /// Continue an interrupted run at this position
        #[arg(long, value_name = "POSITION")]
        after: Option<String>,
    },
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    match arguments.command {
        Command::Check { url, bus, namespace } => check(url, bus, &namespace, context).await,
        Command::Rekey { url, keys_env, namespace, after } => {
            let mut options = StoreOptions::new(named(url)?).namespace(&namespace).map_err(failed)?;
            options = options.keys(keys(&keys_env, context)?);
            rekey(&options.open().await.map_err(failed)?, after, context).await
        }
    }
}

fn named(url: Option<String>) -> Result<String, Failure> {
    url.or_else(|| std::env::var(VARIABLE).ok()).ok_or_else(|| {
        Failure::misused("no store").advise(format!("name its URL as an argument or in {VARIABLE}"))
    })
}

fn keys(names: &[String], context: &Context) -> Result<KeyRing, Failure> {
    let variables = &context.environment.variables;
    let texts: Vec<String> = names
        .iter()
        .map(|name| {
            let value = variables.variable(name).filter(|value| !value.is_empty()).map(str::to_owned);
            value.ok_or_else(|| {
                Failure::new(Code::Config, format!("`--keys-env`: the variable `{name}` is not set"))
            })
        })
        .collect::<Result<_, _>>()?;
    key_ring(texts).map_err(|error| Failure::new(Code::Config, format!("`--keys-env`: {error}")))
}

/// How many records are read at a time.
const PAGE: usize = 16;

/// After how many records the progress is shown.
const SHOW_EVERY: u64 = 5000;

/// How many records are named that cannot be opened.
const MAX_NAMED: usize = 20;

async fn rekey(store: &Store, after: Option<String>, context: &Context) -> Result<(), Failure> {
    let (mut sealed, mut current, mut unreadable, mut busy) = (0, 0, 0_u64, 0_u64);
    let (mut named, mut after, mut shown) = (Vec::new(), after, 0);
    loop {
        let page = store.rekey(after.as_deref(), PAGE).await.map_err(|error| {
            let failure = failed(error);
            match &after {
                Some(after) => failure.advise(format!("continue with `--after {}`", visible(after))),
                None => failure,
            }
        })?;
        sealed += page.sealed;
        current += page.current;
        unreadable += page.unreadable.len() as u64;
        busy += page.busy.len() as u64;
        let left = page.unreadable.into_iter().chain(page.busy);
        named.extend(left.take(MAX_NAMED - named.len()).map(|key| key.to_string()));
        let read = sealed + current + unreadable + busy;
        if read >= shown + SHOW_EVERY {
            shown = read;
            context.screen.note(&format!("{read} records read, {sealed} encrypted again"));
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    let screen = context.screen;
    if context.json() {
        screen.json(&json!({
            "sealed": sealed, "current": current, "unreadable": unreadable, "busy": busy, "left": named,
        }))?;
    } else {
        screen.line(&format!(
            "{sealed} records encrypted again, {current} were already encrypted with the first key"
        ))?;
        for key in &named {
            screen.line(&format!("not changed: {}", visible(key)))?;
        }
    }
    if unreadable > 0 {
        let what = format!("{unreadable} records cannot be decrypted with these keys");
        return Err(Failure::new(Code::Found, what)
            .advise("name the missing keys with `--keys-env`, or let the records expire"));
    }
    if busy > 0 {
        let what = format!("{busy} records were changed by servers each time they were read");
        return Err(Failure::new(Code::Found, what).advise("run the command again"));
    }
    Ok(())
}

async fn check(
    url: Option<String>,
    bus: Option<String>,
    namespace: &str,
    context: &Context,
) -> Result<(), Failure> {
    let url = named(url)?;
    let mut options = StoreOptions::new(url).namespace(namespace).map_err(failed)?;
    if let Some(bus) = bus {
        options = options.bus(bus);
    }
    let findings = options.check().await.map_err(failed)?;
    show(&findings, context)?;
    let worst = findings.iter().map(|finding| finding.level).max();
    if worst == Some(Level::Error) {
        return Err(Failure {
            silent: true,
            ..Failure::new(Code::Found, "the store cannot be used as configured")
        });
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes errors by value")]
fn failed(error: StoreError) -> Failure {
    let code = match error.kind() {
        ErrorKind::Invalid => Code::Config,
        _ => Code::Unreachable,
    };
    Failure::new(code, error.to_string())
}

fn show(findings: &[Finding], context: &Context) -> Result<(), Failure> {
    let screen = context.screen;
    if context.json() {
        let findings: Vec<_> = findings
            .iter()
            .map(|finding| {
                json!({
                    "name": finding.name,
                    "value": finding.value,
                    "level": finding.level.as_str(),
                    "advice": finding.advice,
                })
            })
            .collect();
        return screen.json(&json!({ "findings": findings }));
    }
    let column = findings.iter().map(|finding| finding.name.len()).max().unwrap_or_default();
    for finding in findings {
        let tone = match finding.level {
            Level::Ok => Tone::Good,
            Level::Warning => Tone::Warning,
            _ => Tone::Bad,
        };
        let level = format!("{:<7}", finding.level.as_str());
        let value = visible(&finding.value);
        screen.line(&format!("{}  {:<column$}  {value}", screen.paint(tone, &level), finding.name))?;
        if let Some(advice) = &finding.advice {
            screen.line(&format!(
                "{:9}{:column$}  {}",
                "",
                "",
                screen.paint(Tone::Faint, &visible(advice))
            ))?;
        }
    }
    Ok(())
}
