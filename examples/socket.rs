//! Any byte stream will do: a server that listens on a Unix socket, and clients that connect to it.
//!
//! Try it: `cargo run -p bowline-examples --bin socket`. Server and clients are in one process here, but need not be.

#![expect(clippy::print_stdout, reason = "the program shows what it does")]

use bowline::{client::Stream, prelude::*};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};

/// Greet somebody.
#[tool]
fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

#[cfg(unix)]
#[tokio::main(flavor = "current_thread")]
async fn main() -> bowline::Result {
    let path = std::env::temp_dir().join(format!("bowline-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&path)?;
    let server = Server::new("socket").tool(greet::tool()).build()?;
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (server, (read, write)) = (server.clone(), stream.into_split());
            tokio::spawn(async move { server.serve(read, write).await });
        }
    });
    for name in ["Ann", "Bo"] {
        let (read, write) = UnixStream::connect(&path).await?.into_split();
        let client = Client::connect(Stream::new(read, write)).await?;
        println!("{}", client.call("greet", json!({ "name": name })).await?.text());
        client.close().await;
    }
    serving.abort();
    std::fs::remove_file(&path)?;
    Ok(())
}

#[cfg(not(unix))]
fn main() {}
