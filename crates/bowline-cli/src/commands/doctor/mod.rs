//! `bowline doctor`: what is wrong with a server, and what other clients will not take.

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

/// How long an answer is waited for.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Opens a server in every revision, looks at what it offers, and tells what is wrong with it
///
/// Nothing is called or changed; a program is started several times. Findings are errors (it breaks the protocol or does
/// not work), warnings (some clients will have trouble) and hints. Ends with 8 when something was found that is at least as
/// bad as `--fail-on` says.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: TargetArguments,
    /// From which level on a finding makes the command fail
    #[arg(long, value_name = "LEVEL", default_value = "error")]
    fail_on: Level,
    /// Also call the tools that say they change nothing and that need no arguments
    #[arg(long)]
    call: bool,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let target = arguments.target.target(context)?;
    let timeout = target.timeout.unwrap_or(TIMEOUT);
    let options = gather::GatherOptions { timeout: timeout, call: arguments.call };
    let mut facts = gather::gather(&target, context, options).await?;
    if let Some(page) = target.page() {
        facts.http = http_probe::gather(&page.dressed().await?, &facts.spoken(), timeout).await;
    }
    let findings = judge(&facts);
    report::tell(&target.name, &facts, &findings, context)?;
    match findings.iter().filter(|finding| finding.level <= arguments.fail_on).count() {
        0 => Ok(()),
        _ => Err(Failure { silent: true, ..Failure::new(Code::Found, "the server has faults") }),
    }
}

/// Every check, the worst findings first.
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
