//! `bowline`: the Model Context Protocol from the command line.

mod arguments;
mod commands;
mod context;
mod ending;
mod failure;
mod folders;
mod hosting;
mod logging;
mod running;
mod screen;
mod surroundings;
mod target;

use arguments::Arguments;
use clap::Parser;
use context::Context;
use std::{process::ExitCode, time::Duration};

/// How long what still runs may take to end.
const FAREWELL: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return screen::tell_usage(&error),
    };
    let context = Context::new(arguments.common);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return context.screen.tell_failure(&error.into()),
    };
    let ended = runtime.block_on(commands::run(arguments.command, &context));
    // A read of the terminal that nobody answers any more is not waited for.
    runtime.shutdown_timeout(FAREWELL);
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => context.screen.tell_failure(&failure),
    }
}
