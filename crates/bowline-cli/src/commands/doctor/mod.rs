//! `bowline doctor`: checks a server for protocol errors and client compatibility.

mod authorization;
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
mod page;
mod process;
mod report;
mod responses;
mod schemas;

use crate::{
    context::Context,
    failure::{Code, Failure},
    login::{invalid, store},
    target::{Target, TargetArguments},
};
use authorization::AuthorizationFacts;
use bowline_http::auth::Login;
use clap::Args;
use facts::Facts;
use finding::{Finding, Level};
pub(crate) use page::ServerChecks;
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
    let options = gather::GatherOptions { timeout, call: arguments.call, watch: None };
    let authorization = gather_authorization(&target, context).await?;
    let mut facts = match gather::gather(&target, context, &options).await {
        Ok(facts) => facts,
        Err(failure) => {
            return report_unreachable(&target, authorization.as_ref(), failure, &arguments, context);
        }
    };
    facts.authorization = authorization;
    if let Some(page) = target.page() {
        facts.http =
            http_probe::gather(&page.resolve_headers().await?, &facts.newest_per_era(), timeout).await;
    }
    let findings = evaluate(&facts);
    report::print_report(&target.name, &facts, &findings, context)?;
    match findings.iter().filter(|finding| finding.level <= arguments.fail_on).count() {
        0 => Ok(()),
        _ => Err(Failure { silent: true, ..Failure::new(Code::Found, "the server has problems") }),
    }
}

/// Examines the authorization of a server that may need a login.
async fn gather_authorization(
    target: &Target,
    context: &Context,
) -> Result<Option<AuthorizationFacts>, Failure> {
    let (Some(page), Some(settings)) = (target.page(), target.login_settings()) else { return Ok(None) };
    let login = settings.apply(Login::stored()).map_err(invalid)?;
    let login = match store(context) {
        Ok(store) => login.store(store),
        // Without a home directory there are no logins.
        Err(_) => login,
    };
    Ok(authorization::gather(&page.resolve_headers().await?, settings, login).await)
}

/// Reports what is known about a server that cannot be connected to, for example because a login is missing.
fn report_unreachable(
    target: &Target,
    authorization: Option<&AuthorizationFacts>,
    failure: Failure,
    arguments: &Arguments,
    context: &Context,
) -> Result<(), Failure> {
    let mut findings = authorization.map(authorization::evaluate).unwrap_or_default();
    if findings.is_empty() {
        return Err(failure);
    }
    findings.sort_by_key(|finding| finding.level);
    report::print_unreachable(&target.name, &findings, context)?;
    if findings.iter().any(|finding| finding.level <= arguments.fail_on) {
        context.screen.warn(&failure.sentence);
        return Err(Failure { silent: true, ..Failure::new(Code::Found, "the server has problems") });
    }
    Err(failure)
}

/// A check, and the methods whose responses it is about.
type Check = (fn(&Facts) -> Vec<Finding>, &'static [&'static str]);

const LISTS: &[&str] = &["tools/list", "prompts/list", "resources/list", "resources/templates/list"];

/// Runs all checks. The worst findings come first.
fn evaluate(facts: &Facts) -> Vec<Finding> {
    let checks: [Check; 10] = [
        (opening::check, &["initialize", "server/discover"]),
        (process::check, &[]),
        (frames::check, &[]),
        (responses::check, &["ping", "bowline/doctor", "tools/call", "prompts/get", "resources/read"]),
        (lists::check, LISTS),
        (names::check, LISTS),
        (descriptions::check, LISTS),
        (schemas::check, LISTS),
        (http::check, &[]),
        (authorization::check, &[]),
    ];
    let mut findings = Vec::new();
    for (check, methods) in checks {
        for mut finding in check(facts) {
            if finding.messages.is_empty() {
                finding.messages = page::responses_to(facts, methods);
            }
            findings.push(finding);
        }
    }
    findings.sort_by_key(|finding| finding.level);
    findings
}
