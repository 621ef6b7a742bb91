//! `bowline`: a command-line client, gateway and server for the Model Context Protocol.

mod answers_file;
mod approval;
mod auth_mode;
mod builtin;
mod cache;
mod client_handlers;
mod commands;
mod completion;
mod content;
mod context;
mod environment;
mod events;
mod failure;
mod gateway_setup;
mod inline_image;
mod inspector_setup;
mod json_text;
mod logging;
mod login;
mod login_key;
mod markdown;
mod paths;
mod progress;
mod quoting;
mod recording;
mod running_gateway;
mod schema;
mod screen;
mod service_manager;
mod session;
mod sharing;
mod signals;
mod stdio_peer;
mod table;
mod target;
mod token;
mod tool_arguments;

use clap::Parser;
use commands::{Arguments, Command};
use context::Context;
use failure::Failure;
use screen::Screen;
use std::process::ExitCode;

/// glibc keeps the memory of closed sessions until the process ends. jemalloc returns it to the system in the background.
#[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return screen::print_usage(&error, wants_json(std::env::args_os())),
    };
    if let Some(folder) = &arguments.common.directory
        && let Err(error) = std::env::set_current_dir(folder)
    {
        let sentence = format!("cannot change to directory `{}`: {error}", folder.display());
        let screen = Screen::new(arguments.common.color).errors_as_json(arguments.common.json);
        return screen.print_failure(&Failure::misused(sentence));
    }
    let mut context = Context::new(arguments.common);
    let mut runtime = if arguments.command.as_ref().is_none_or(Command::serves_many) {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = match runtime.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return context.screen.print_failure(&error.into()),
    };
    let ended = match context.begin_recording() {
        Ok(()) => runtime.block_on(commands::run(arguments.command, &context)),
        Err(failure) => Err(failure),
    };
    // Do not wait for a thread that is blocked on reading standard input.
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => context.screen.print_failure(&failure),
    }
}

/// Returns whether an invalid command line contains `--json`.
fn wants_json(words: impl Iterator<Item = std::ffi::OsString>) -> bool {
    words.take_while(|word| word != "--").any(|word| word == "--json")
}
