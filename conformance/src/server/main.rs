//! A server with everything the conformance suite looks for, in every revision at one URL.
//!
//! `everything-server [--port N]`, or `PORT` in the environment; 0 is any free port. The URL is printed once it serves.

mod asking;
mod changes;
mod content;
mod input;
mod offers;
mod schemas;
mod telling;

use bowline::http::{HttpService, Settings};
use bowline::prelude::*;
use std::{io::Write, net::Ipv4Addr};
use tokio::{net::TcpListener, signal::unix::SignalKind};

fn server() -> Server {
    let server = Server::new("everything").title("Everything").version(env!("CARGO_PKG_VERSION"));
    let registry = server.registry();
    let server = content::add(server);
    let server = telling::add(server);
    let server = asking::add(server);
    let server = input::add(server);
    let server = schemas::add(server);
    let server = offers::add(server);
    server.tools(changes::Changes::new(registry))
}

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
    let service = HttpService::with(server().build()?, Settings::default());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port()?)).await?;
    writeln!(std::io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    let mut terminate = tokio::signal::unix::signal(SignalKind::terminate())?;
    let end = async move {
        terminate.recv().await;
    };
    service.serve(listener, end).await?;
    Ok(())
}
