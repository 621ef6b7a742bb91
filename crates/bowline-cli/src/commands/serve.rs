//! `bowline serve`: the servers that come with the program, over standard streams or HTTP.

use crate::{
    builtin::Builtin,
    context::Context,
    ending::Ending,
    failure::{Code, Failure},
    logging::{self, LogArguments},
    running,
};
use bowline_http::{HttpService, Settings};
use clap::Args;
use std::net::SocketAddr;
use tokio::net::TcpListener;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    server: Builtin,
    /// Serve HTTP on this address, at `/mcp`, instead of standard input and output
    #[arg(long, global = true, value_name = "[ADDRESS:]PORT", value_parser = running::address)]
    http: Option<SocketAddr>,
    /// How many calls a minute each caller may make; 0 for any number
    #[arg(long, global = true, value_name = "COUNT", default_value_t = bowline_servers::CALLS_PER_MINUTE)]
    calls_per_minute: u32,
    #[command(flatten)]
    log: LogArguments,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    arguments.log.start(context, "warn", logging::aside())?;
    arguments.server.confirm(context).await?;
    let server = arguments.server.limited_server(context, arguments.calls_per_minute)?;
    let handle = server.build().map_err(|error| Failure::new(Code::Failed, error.to_string()))?;
    let Some(address) = arguments.http else {
        if context.surroundings.terminal {
            context.screen.aside(
                "speaking MCP on standard input and output, for a program that starts this one; Ctrl-D ends it, \
                 and `--http PORT` serves HTTP instead",
            );
        }
        return handle.serve_stdio().await.map_err(|error| Failure::new(Code::Failed, error.to_string()));
    };
    let ending = Ending::listen()?;
    let bound = TcpListener::bind(address).await;
    let listener =
        bound.map_err(|error| Failure::new(Code::Failed, format!("cannot listen on {address}: {error}")))?;
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        let line = format!("others than this machine can connect to {address}, and nobody has to sign in");
        context.screen.warn(&line);
    }
    context.screen.line(&running::url(address, "/mcp"))?;
    let service = HttpService::with(handle, Settings::new());
    tokio::select! {
        served = service.serve(listener, ending.times(1)) => Ok(served?),
        () = ending.times(2) => {
            Err(Failure { silent: true, ..Failure::new(Code::Interrupted, "ended at once") })
        }
    }
}
