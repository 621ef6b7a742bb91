//! `bowline doctor`: checks a server for protocol errors and client compatibility.

mod descriptions;
mod facts;
mod finding;
mod frames;
mod gather;
mod http;
mod http_probe;
mod lists;
mod names;
mod opening;
mod process;
mod report;
mod responses;
mod schemas;

use crate::{
    context::Context,
    failure::{Code, Failure},
    target::TargetArguments,
};
use clap::Args;
use facts::Facts;
use finding::{Finding, Level};
use std::time::Duration;

/// How long to wait for a response.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Checks a server for protocol errors and client compatibility
///
/// Connects in every protocol revision and inspects what the server offers. No tools are called unless `--call` is set; a program
/// is started several times. Findings are errors (protocol violations), warnings (problems with some clients) and hints. Exits with
/// 8 if there are findings of at least the `--fail-on` level.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: TargetArguments,
    /// Fail if there are findings of this level or worse
    #[arg(long, value_name = "LEVEL", default_value = "error")]
    fail_on: Level,
    /// Also call tools that are declared read-only and need no arguments
    #[arg(long)]
    call: bool,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let target = arguments.target.target(context)?;
    let timeout = target.timeout.unwrap_or(TIMEOUT);
    let options = gather::GatherOptions { timeout, call: arguments.call };
    let mut facts = gather::gather(&target, context, options).await?;
    if let Some(page) = target.page() {
        facts.http = http_probe::gather(&page.resolve_headers().await?, &facts.spoken(), timeout).await;
    }
    let findings = judge(&facts);
    report::tell(&target.name, &facts, &findings, context)?;
    match findings.iter().filter(|finding| finding.level <= arguments.fail_on).count() {
        0 => Ok(()),
        _ => Err(Failure { silent: true, ..Failure::new(Code::Found, "the server has problems") }),
    }
}

/// Runs all checks. The worst findings come first.
fn judge(facts: &Facts) -> Vec<Finding> {
    let checks = [
        opening::check,
        process::check,
        frames::check,
        responses::check,
        lists::check,
        names::check,
        descriptions::check,
        schemas::check,
        http::check,
    ];
    let mut findings: Vec<Finding> = checks.iter().flat_map(|check| check(facts)).collect();
    findings.sort_by_key(|finding| finding.level);
    findings
}
