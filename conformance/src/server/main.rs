//! The server `everything` over HTTP, for the conformance suite: every revision at one URL.
//!
//! `everything-server [--port N]`, or `PORT` in the environment; 0 is any free port. The URL is printed once it serves.

use bowline::http::{HttpOptions, HttpService};
use bowline::prelude::*;
use bowline_servers::everything;
use std::{io::Write, net::Ipv4Addr};
use tokio::{net::TcpListener, signal::unix::SignalKind};

fn port() -> Result<u16> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => Ok(std::env::var("PORT").map_or(Ok(0), |port| port.parse())?),
        (Some("--port"), Some(port)) => Ok(port.parse()?),
        _ => Err(Error::tool("usage: everything-server [--port N]")),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> bowline::Result {
    let service = HttpService::with_options(everything::server().build()?, HttpOptions::default());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port()?)).await?;
    writeln!(std::io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    let mut terminate = tokio::signal::unix::signal(SignalKind::terminate())?;
    let end = async move {
        terminate.recv().await;
    };
    service.serve(listener, end).await?;
    Ok(())
}
