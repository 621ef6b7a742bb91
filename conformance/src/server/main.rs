//! The server `everything` over HTTP, for the conformance suite: every revision at one URL.
//!
//! `everything-server [--port N] [--store URL] [--auth-dev]`; the port may be in `PORT` of the environment, and 0 is any free
//! port. The URL is printed once it serves. With `--store` it shares sessions and tasks with other processes that have the same store.
//! With `--auth-dev` it is protected and issues its own tokens, for the scenarios of authorization servers.

use bowline::http::{HttpOptions, HttpService, Protect};
use bowline::prelude::*;
use bowline::server::{Key, KeyRing, Tasks};
use bowline::store::Store;
use bowline_http::SessionStore;
use bowline_servers::everything;
use bowline_stores::{Limits, StoreOptions};
use std::{io::Write, net::Ipv4Addr, time::Duration};
use tokio::{net::TcpListener, signal::unix::SignalKind};

/// The arguments of the program.
#[derive(Default)]
struct Arguments {
    port: u16,
    store: Option<String>,
    is_protected: bool,
}

fn arguments() -> Result<Arguments> {
    let port = std::env::var("PORT").map_or(Ok(0), |port| port.parse())?;
    let mut found = Arguments { port, ..Arguments::default() };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let usage = || Error::tool("usage: everything-server [--port N] [--store URL] [--auth-dev]");
        match name.as_str() {
            "--port" => found.port = given.next().ok_or_else(usage)?.parse()?,
            "--store" => found.store = Some(given.next().ok_or_else(usage)?),
            "--auth-dev" => found.is_protected = true,
            _ => return Err(usage()),
        }
    }
    Ok(found)
}

/// Opens the store of a URL, such as `sqlite:PATH` or `postgres://…`. The keys are public on purpose: all processes of the test
/// need the same.
async fn open(url: &str, keys: &KeyRing) -> Result<Store> {
    // A loaded machine is slow, and nothing is tested by giving up early.
    let limits = Limits::default().deadline(Duration::from_secs(10));
    let store = StoreOptions::new(url).keys(keys.clone()).limits(limits).open().await;
    store.map_err(|error| Error::tool(error.to_string()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> bowline::Result {
    let arguments = arguments()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).await?;
    let address = listener.local_addr()?;
    let (mut server, mut options) = (everything::server(), HttpOptions::new());
    if arguments.is_protected {
        options = options.protect(Protect::dev()).listening_on(address);
    }
    if let Some(url) = &arguments.store {
        let keys = KeyRing::new(Key::new([42; 32]));
        let store = open(url, &keys).await?;
        options = options.session_store(SessionStore::of(&store));
        // The processes have different arguments, by which their tasks would be kept apart.
        server = server.keys(keys).tasks(Tasks::new(store).space("everything"));
    }
    let service = HttpService::with_options(server.build()?, options);
    writeln!(std::io::stdout(), "http://{address}/mcp")?;
    let mut terminate = tokio::signal::unix::signal(SignalKind::terminate())?;
    let end = async move {
        terminate.recv().await;
    };
    service.serve(listener, end).await?;
    Ok(())
}
