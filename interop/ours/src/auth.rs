//! Our side of the authorization leg.
//!
//! Usage: `interop-auth serve PORT ISSUER RESOURCE` serves a protected endpoint, `serve-dpop` one that accepts only tokens that are
//! bound to a key, and requires nonces. `interop-auth call-dpop RESOURCE ISSUER` calls it. `interop-auth verify` reads one JSON object per
//! line, with `keys` (a JWK set) and `token`, and prints the payload of each token that verifies, or `refused: REASON`.
//! `interop-auth login …` is a client; see [`login::run`]. `interop-auth introspect PORT ISSUER RESOURCE` serves an endpoint that asks
//! the issuer about tokens, and `interop-auth device URL` logs in on another device.

#![expect(clippy::print_stdout, reason = "what was found is printed")]

mod login;
mod opaque;

use bowline::{
    auth::{
        Login,
        jose::{Jws, KeySet},
    },
    http::{Dpop, HttpOptions, HttpService, Protect},
    prelude::*,
};
use serde_json::Value;
use std::io::{BufRead as _, Write as _};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve", port, issuer, resource] => serve(port, resource, Protect::by(issuer)).await,
        ["serve-dpop", port, issuer, resource] => {
            serve(port, resource, Protect::by(issuer).dpop(Dpop::Required).dpop_nonces()).await
        }
        ["call-dpop", resource, issuer] => call_with_dpop(resource, issuer).await,
        ["introspect", port, issuer, resource] => serve(port, resource, opaque::protect(issuer)).await,
        ["device", url] => opaque::log_in(url).await,
        ["verify"] => verify_lines(),
        ["login", ref arguments @ ..] => login::run(arguments).await,
        _ => Err(Error::tool(
            "usage: interop-auth serve|serve-dpop|introspect PORT ISSUER RESOURCE | call-dpop RESOURCE ISSUER | device URL | verify | login …",
        )),
    }
}

async fn serve(port: &str, resource: &str, protect: Protect) -> Result<()> {
    let whoami = Tool::new("whoami").handler(|ctx: Ctx| -> Result<String> {
        let caller = ctx.caller()?;
        Ok(format!("{} by {} with {}", caller.subject(), caller.client_id().unwrap_or("-"), caller.scopes()))
    });
    let write = Tool::new("write").scopes(["mcp:write"]).handler(|| "written");
    let server = Server::new("protected").tool(whoami).tool(write).build()?;
    let protect = protect.resource(resource).scopes(["mcp:read"]);
    let service = HttpService::with_options(server, HttpOptions::new().protect(protect));
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    service.serve(listener, std::future::pending()).await?;
    Ok(())
}

async fn call_with_dpop(resource: &str, issuer: &str) -> Result<()> {
    let login = Login::machine("machine", "secret").issuer(issuer).dpop();
    let client = Client::connect(http(resource).login(login)).await?;
    println!("{}", client.call("whoami", ()).await?.text());
    Ok(())
}

fn verify_lines() -> Result<()> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let verdict = verify(&request["keys"].to_string(), request["token"].as_str().unwrap_or_default());
        writeln!(output, "{}", verdict.unwrap_or_else(|reason| format!("refused: {reason}")))?;
    }
    Ok(())
}

fn verify(keys: &str, token: &str) -> Result<String, String> {
    let keys = KeySet::parse(keys.as_bytes()).map_err(|error| error.to_string())?;
    let jws = Jws::parse(token).map_err(|error| error.to_string())?;
    let key = keys.find(jws.header().algorithm(), jws.header().kid()).key().ok_or("no key fits")?;
    let payload = jws.verify(key).map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(payload).into_owned())
}
