//! The server `everything` over HTTP, for the conformance suite: every revision at one URL.
//!
//! `everything-server [--port N]`, or `PORT` in the environment; 0 is any free port. The URL is printed once it serves. With
//! `--auth-dev` it is protected and issues its own tokens, for the scenarios of authorization servers.

use bowline::http::{HttpOptions, HttpService, Protect};
use bowline::prelude::*;
use bowline_servers::everything;
use std::{io::Write, net::Ipv4Addr};
use tokio::{net::TcpListener, signal::unix::SignalKind};

/// The port, and whether the server issues its own tokens.
fn arguments() -> Result<(u16, bool)> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => Ok((std::env::var("PORT").map_or(Ok(0), |port| port.parse())?, false)),
        (Some("--port"), Some(port)) => Ok((port.parse()?, false)),
        (Some("--auth-dev"), None) => Ok((0, true)),
        _ => Err(Error::tool("usage: everything-server [--port N | --auth-dev]")),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> bowline::Result {
    let (port, is_protected) = arguments()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let address = listener.local_addr()?;
    let mut options = HttpOptions::new();
    if is_protected {
        options = options.protect(Protect::dev()).listening_on(address);
    }
    let service = HttpService::with_options(everything::server().build()?, options);
    writeln!(std::io::stdout(), "http://{address}/mcp")?;
    let mut terminate = tokio::signal::unix::signal(SignalKind::terminate())?;
    let end = async move {
        terminate.recv().await;
    };
    service.serve(listener, end).await?;
    Ok(())
}
