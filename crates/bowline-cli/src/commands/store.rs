//! `bowline store`: checks the database that keeps tasks and sessions.

use crate::{
    context::Context,
    failure::{Code, Failure},
    screen::Tone,
};
use bowline_stores::StoreOptions;
use bowline_stores::{ErrorKind, Finding, Level, StoreError};
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
    /// Check version, rights, settings and speed of a store
    ///
    /// Creates its tables if they are missing, writes a few records and removes them. Exits with 8 if the store cannot be used
    /// as it is set up.
    Check {
        /// `sqlite:PATH`, `postgres://…`, `redis://…` or `rediss://…` [default: the variable BOWLINE_STORE_URL]
        url: Option<String>,
        /// The server that carries hints, if it is another one
        #[arg(long, value_name = "URL")]
        bus: Option<String>,
        /// The namespace
        #[arg(long, default_value = "default")]
        namespace: String,
    },
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let Command::Check { url, bus, namespace } = arguments.command;
    let url = url.or_else(|| std::env::var(VARIABLE).ok()).ok_or_else(|| {
        Failure::misused("no store").advise(format!("name its URL as an argument or in {VARIABLE}"))
    })?;
    let mut options = StoreOptions::new(url).namespace(&namespace).map_err(failed)?;
    if let Some(bus) = bus {
        options = options.bus(bus);
    }
    let findings = options.check().await.map_err(failed)?;
    show(&findings, context)?;
    let worst = findings.iter().map(|finding| finding.level).max();
    if worst == Some(Level::Error) {
        return Err(Failure {
            silent: true,
            ..Failure::new(Code::Found, "the store cannot be used as it is set up")
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
