//! `bowline`: the Model Context Protocol from the command line.

mod arguments;
mod commands;
mod context;
mod failure;
mod recording;
mod screen;
mod surroundings;
mod target;

use arguments::Arguments;
use clap::Parser;
use context::Context;
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return screen::tell_usage(&error),
    };
    let mut context = Context::new(arguments.common);
    let ended = match context.begin_recording() {
        Ok(()) => commands::run(arguments.command, &context).await,
        Err(failure) => Err(failure),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => context.screen.tell_failure(&failure),
    }
}
