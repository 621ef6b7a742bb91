//! `bowline serve`: the servers that come with the program, over standard streams or HTTP.

use crate::{
    builtin::Builtin,
    context::Context,
    failure::{Code, Failure},
    logging::{self, LogArguments},
    running_gateway,
    signals::ShutdownSignals,
};
use bowline_http::{HttpOptions, HttpService};
use clap::Args;
use std::net::SocketAddr;
use tokio::net::TcpListener;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    server: Builtin,
    /// Serve HTTP on this address, at `/mcp` (and `/sse` for clients of 2024-11-05), instead of standard input and output
    #[arg(long, global = true, value_name = "[ADDRESS:]PORT", value_parser = running_gateway::address)]
    http: Option<SocketAddr>,
    /// Answer requests for this host as well, beside `localhost` and the address of `--http`; can be repeated
    #[arg(long, global = true, value_name = "HOST", value_parser = host)]
    http_host: Vec<String>,
    /// Let web pages of this origin call the server of `--http` and read its replies; can be repeated
    #[arg(long, global = true, value_name = "ORIGIN", value_parser = origin)]
    http_origin: Vec<String>,
    /// How many calls a minute each caller may make; 0 for any number
    #[arg(long, global = true, value_name = "COUNT", default_value_t = bowline_servers::CALLS_PER_MINUTE)]
    calls_per_minute: u32,
    #[command(flatten)]
    log: LogArguments,
}

/// A host that may be named. All of them at once would need a token, which this command does not have.
fn host(text: &str) -> Result<String, String> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    if text == "*" {
        return Err("expected one host; `*` needs a token, which `bowline gateway` has".to_owned());
    }
    if text.is_empty() || !text.bytes().all(is_part) {
        return Err("expected a host such as `mcp.example.com`".to_owned());
    }
    Ok(text.to_owned())
}

/// An origin as browsers send it.
fn origin(text: &str) -> Result<String, String> {
    let is_origin = text.split_once("://").is_some_and(|(_, name)| host(name).is_ok());
    if is_origin {
        Ok(text.to_owned())
    } else {
        Err("expected an origin such as `https://app.example.com`".to_owned())
    }
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    arguments.log.start(context, "warn", logging::to_stderr())?;
    arguments.server.confirm(context).await?;
    let server = arguments.server.limited_server(context, arguments.calls_per_minute)?;
    let handle = server.build().map_err(|error| Failure::new(Code::Failed, error.to_string()))?;
    let Some(address) = arguments.http else {
        if context.environment.terminal {
            context.screen.note(
                "speaking MCP on standard input and output, for a program that starts this one; Ctrl-D ends it, \
                 and `--http PORT` serves HTTP instead",
            );
        }
        return handle.serve_stdio().await.map_err(|error| Failure::new(Code::Failed, error.to_string()));
    };
    let signals = ShutdownSignals::listen()?;
    let bound = TcpListener::bind(address).await;
    let listener =
        bound.map_err(|error| Failure::new(Code::Failed, format!("cannot listen on {address}: {error}")))?;
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        let line = format!("others than this machine can connect to {address}, and nobody has to sign in");
        context.screen.warn(&line);
    }
    context.screen.line(&running_gateway::url(address, "/mcp"))?;
    if address.ip().is_unspecified() && arguments.http_host.is_empty() {
        context
            .screen
            .warn("only requests for `localhost` are answered; allow others with `--http-host HOST`");
    }
    let mut settings = HttpOptions::new()
        .hosts(arguments.http_host)
        .listening_on(address)
        .setting_names("--http-host", "--http-origin")
        .sse_path("/sse");
    if !arguments.http_origin.is_empty() {
        settings = settings.origins(arguments.http_origin).cors();
    }
    let service = HttpService::with_options(handle, settings);
    tokio::select! {
        served = service.serve(listener, signals.received(1)) => Ok(served?),
        () = signals.received(2) => {
            Err(Failure { silent: true, ..Failure::new(Code::Interrupted, "ended at once") })
        }
    }
}
