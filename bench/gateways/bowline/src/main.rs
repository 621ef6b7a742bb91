//! bench-gateway CONFIG PORT: serves what a configuration describes, until it is told to end.

use bowline_host::{
    Gateway,
    config::{Disk, Environment, Loader, Scope, Source},
};
use bowline_http::{HttpService, Settings};
use std::error::Error;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(port)) = (arguments.next(), arguments.next()) else {
        return Err("usage: bench-gateway CONFIG PORT".into());
    };
    let environment = Environment::new(std::env::vars());
    let loader = Loader::new(environment.clone()).source(Source::new(file, Scope::User));
    let gateway = Gateway::builder(loader.load(&Disk)).environment(environment).build()?;
    if let Some(problem) = gateway.problems().first() {
        return Err(problem.to_string().into());
    }
    // All clients of a measurement are one to the gateway, which by default lets one have a hundred sessions.
    let settings = Settings::new().max_sessions(20_000, 20_000);
    let service = HttpService::with(gateway.open().map_err(|error| error.to_string())?, settings);
    let listener = TcpListener::bind(("127.0.0.1", port.parse()?)).await?;
    let mut told = signal(SignalKind::terminate())?;
    service.serve(listener, async { drop(told.recv().await) }).await?;
    gateway.close().await;
    Ok(())
}
