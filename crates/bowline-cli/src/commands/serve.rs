//! `bowline serve`: runs a built-in server over stdio or HTTP.

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
    /// Serve HTTP on this address instead of stdio, at `/mcp` (and `/sse` for 2024-11-05 clients)
    #[arg(long, global = true, value_name = "[ADDRESS:]PORT", value_parser = running_gateway::address)]
    http: Option<SocketAddr>,
    /// Also allow requests for this host, in addition to `localhost` and the `--http` address; can be repeated
    #[arg(long, global = true, value_name = "HOST", value_parser = host)]
    http_host: Vec<String>,
    /// Allow web pages of this origin to use the HTTP server (CORS); can be repeated
    #[arg(long, global = true, value_name = "ORIGIN", value_parser = origin)]
    http_origin: Vec<String>,
    /// The maximum number of calls per minute and caller; 0 means no limit
    #[arg(long, global = true, value_name = "COUNT", default_value_t = bowline_servers::CALLS_PER_MINUTE)]
    calls_per_minute: u32,
    #[command(flatten)]
    log: LogArguments,
}

/// Parses a host. `*` is refused because this command does not check tokens.
fn host(text: &str) -> Result<String, String> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    if text == "*" {
        return Err("`*` is not allowed without a token; use `bowline gateway` instead".to_owned());
    }
    if text.is_empty() || !text.bytes().all(is_part) {
        return Err("expected a host such as `mcp.example.com`".to_owned());
    }
    Ok(text.to_owned())
}

/// Parses an origin in the format that browsers send.
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
                "serving MCP on standard input and output; clients usually start this program themselves. Press Ctrl-D to exit, \
                 or use `--http PORT` to serve HTTP",
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
        let line = format!("other machines can connect to {address} without authentication");
        context.screen.warn(&line);
    }
    context.screen.line(&running_gateway::url(address, "/mcp"))?;
    if address.ip().is_unspecified() && arguments.http_host.is_empty() {
        context
            .screen
            .warn("only requests for `localhost` are allowed; use `--http-host HOST` to allow others");
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
            Err(Failure { silent: true, ..Failure::new(Code::Interrupted, "terminated") })
        }
    }
}
