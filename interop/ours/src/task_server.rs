//! Our server `everything`, whose task tools the contract for tasks names: see `interop/README.md`.
//!
//! Usage: `interop-task-server [--http PORT] [--revision REVISION]`. Without a port it serves standard input and output;
//! with a revision it supports no other.

use bowline::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> bowline::Result {
    let mut server = bowline_servers::everything::server();
    let (mut port, mut words) = (None, std::env::args().skip(1));
    while let (Some(flag), Some(value)) = (words.next(), words.next()) {
        match flag.as_str() {
            "--http" => port = Some(value.parse::<u16>()?),
            "--revision" => server = server.revisions([value.parse::<Revision>()?]),
            _ => return Err(Error::tool(format!("there is no option `{flag}`"))),
        }
    }
    match port {
        Some(port) => server.serve_http(("127.0.0.1", port)).await?,
        None => server.serve_stdio().await?,
    }
    Ok(())
}
