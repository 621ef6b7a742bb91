//! `bowline`: the Model Context Protocol from the command line.

mod answers;
mod approval;
mod arguments;
mod builtin;
mod cache;
mod commands;
mod content;
mod context;
mod ending;
mod failure;
mod folders;
mod hosting;
mod logging;
mod offers;
mod picture;
mod progress;
mod quoting;
mod recording;
mod running;
mod schema;
mod screen;
mod session;
mod surroundings;
mod table;
mod target;
mod token;
mod words;

use arguments::{Arguments, Command};
use clap::Parser;
use context::Context;
use failure::Failure;
use screen::Screen;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return screen::tell_usage(&error),
    };
    if let Some(folder) = &arguments.common.directory
        && let Err(error) = std::env::set_current_dir(folder)
    {
        let sentence = format!("cannot run in `{}`: {error}", folder.display());
        return Screen::new(arguments.common.color).tell_failure(&Failure::misused(sentence));
    }
    let mut context = Context::new(arguments.common);
    let mut runtime = if arguments.command.as_ref().is_none_or(Command::serves_many) {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = match runtime.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return context.screen.tell_failure(&error.into()),
    };
    let ended = match context.begin_recording() {
        Ok(()) => runtime.block_on(commands::run(arguments.command, &context)),
        Err(failure) => Err(failure),
    };
    // A thread that waits for a line to be typed does not keep the program.
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => context.screen.tell_failure(&failure),
    }
}
