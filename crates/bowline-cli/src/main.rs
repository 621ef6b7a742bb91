//! `bowline`: the Model Context Protocol from the command line.

mod arguments;
mod demo;
mod table;
mod tour;
mod wire;

use arguments::Request;
use std::{
    io::{self, ErrorKind, Write},
    process::ExitCode,
};

/// What a caller who used the program wrongly is told.
const MISUSED: u8 = 2;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let request = match arguments::parse(std::env::args_os().skip(1)) {
        Ok(request) => request,
        Err(sentence) => return tell(&sentence, MISUSED.into()),
    };
    let result = match request {
        Request::Help => write!(io::stdout().lock(), "{}", arguments::HELP).map_err(Into::into),
        Request::Version => {
            writeln!(io::stdout().lock(), "bowline {}", env!("CARGO_PKG_VERSION")).map_err(Into::into)
        }
        Request::ServeDemo => demo::server().serve_stdio().await.map_err(|error| error.to_string().into()),
        Request::Tour(frames) => tour::run(frames, &mut io::stdout()).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has read enough.
        Err(error) if is_broken_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => tell(&error.to_string(), ExitCode::FAILURE),
    }
}

/// Anything that goes wrong, to be told in a sentence.
type Error = Box<dyn std::error::Error>;

fn is_broken_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Tells why the program ends, where it can be told at all.
fn tell(sentence: &str, code: ExitCode) -> ExitCode {
    let _: io::Result<()> = writeln!(io::stderr().lock(), "bowline: {sentence}");
    code
}
