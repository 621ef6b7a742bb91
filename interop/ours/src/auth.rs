//! Our side of the authorization leg.
//!
//! Usage: `interop-auth serve PORT ISSUER RESOURCE` serves a protected endpoint, `serve-dpop` one that accepts only tokens that are
//! bound to a key, and requires nonces. `interop-auth call-dpop RESOURCE ISSUER` calls it. `interop-auth verify` reads one JSON object per
//! line, with `keys` (a JWK set) and `token`, and prints the payload of each token that verifies, or `refused: REASON`. `interop-auth sign`
//! reads keys and prints what they sign, `interop-auth thumbprint` reads keys and prints their thumbprints; see [`signing`].
//! `interop-auth login …` is a client; see [`login::run`]. `interop-auth introspect PORT ISSUER RESOURCE` serves an endpoint that asks
//! the issuer about tokens, and `interop-auth device URL` logs in on another device. `interop-auth dev PORT` serves an endpoint with an
//! authorization server of its own.

#![expect(clippy::print_stdout, reason = "what was found is printed")]

mod login;
mod opaque;
mod signing;

use bowline::{
    auth::Login,
    http::{Dpop, HttpOptions, HttpService, Protect},
    prelude::*,
};

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
        ["verify"] => signing::answer_lines(signing::verify),
        ["sign"] => signing::answer_lines(signing::sign),
        ["thumbprint"] => signing::answer_lines(signing::thumbprint),
        ["dev", port] => serve(port, &format!("http://127.0.0.1:{port}/mcp"), Protect::dev()).await,
        ["login", ref arguments @ ..] => login::run(arguments).await,
        _ => Err(Error::tool(
            "usage: interop-auth serve|serve-dpop|introspect PORT ISSUER RESOURCE | call-dpop RESOURCE ISSUER | device URL | dev PORT | verify | sign | thumbprint | login …",
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
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    let options = HttpOptions::new().protect(protect).listening_on(listener.local_addr()?);
    let service = HttpService::with_options(server, options);
    service.serve(listener, std::future::pending()).await?;
    Ok(())
}

async fn call_with_dpop(resource: &str, issuer: &str) -> Result<()> {
    let login = Login::machine("machine", "secret").issuer(issuer).dpop();
    let client = Client::connect(http(resource).login(login)).await?;
    println!("{}", client.call("whoami", ()).await?.text());
    Ok(())
}
