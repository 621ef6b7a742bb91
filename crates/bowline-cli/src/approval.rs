//! Approval of servers that a project defines.

use crate::{
    context::Context,
    failure::{Code, Failure},
};
use bowline_config::UpstreamConfig;
use bowline_host::gateway::{Approvals, Approve, Candidate};
use bowline_text::visible;
use std::io::{self, BufRead};

/// Asks the user to approve a server that the project defines, unless it is already approved.
pub(crate) fn approve(entry: &UpstreamConfig, context: &Context) -> Result<(), Failure> {
    let environment = &context.environment;
    let candidate = Candidate::of(entry, &environment.variables, environment.workspace.as_deref());
    let unusable = |error: &dyn std::fmt::Display| Failure::new(Code::Config, error.to_string());
    let file = environment.state_dir().map(|folder| folder.join("approvals.json"));
    let approvals = file.map(Approvals::open).transpose().map_err(|error| unusable(&error))?;
    if approvals.as_ref().is_some_and(|approvals| approvals.is_approved(&candidate)) {
        return Ok(());
    }
    let screen = context.screen;
    let (server, origin) = (visible(candidate.server()), visible(candidate.origin()));
    let denied = |what: &str| Failure::new(Code::Denied, format!("server `{server}` ({origin}) {what}"));
    if !context.interactive() {
        let failure = denied("is defined by the project and not approved");
        let failure = candidate.description().iter().fold(failure, Failure::advise);
        return Err(failure.advise("run this command in a terminal to approve it"));
    }
    screen.note(&format!("The project defines the server `{server}` ({origin}):"));
    for line in candidate.description() {
        screen.note(&format!("  | {line}"));
    }
    match ask(context)? {
        Choice::Yes => {}
        Choice::No => return Err(denied("was not approved")),
        Choice::Cancel => return Err(denied("was not started, because its approval was cancelled")),
    }
    match approvals {
        Some(approvals) => approvals.approve(&candidate).map_err(|error| unusable(&error)),
        None => Ok(()),
    }
}

enum Choice {
    Yes,
    No,
    Cancel,
}

/// Asks until the answer is one of the choices. The end of the input cancels.
fn ask(context: &Context) -> Result<Choice, Failure> {
    loop {
        context.screen.prompt("Approve it until any of this changes? [y] yes  [n] no  [c] cancel: ");
        let mut answer = String::new();
        if io::stdin().lock().read_line(&mut answer)? == 0 {
            return Ok(Choice::Cancel);
        }
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(Choice::Yes),
            "n" | "no" => return Ok(Choice::No),
            "c" | "cancel" => return Ok(Choice::Cancel),
            _ => {}
        }
    }
}
