//! Opaque tokens, and a login on another device.

use bowline::{
    auth::Login,
    http::{Introspection, Protect, http},
    prelude::*,
};
use serde_json::json;

/// Returns the protection of an endpoint that asks `issuer` about tokens.
pub(crate) fn protect(issuer: &str) -> Protect {
    let introspection = Introspection::at(format!("{issuer}/token/introspection")).client("rs", "secret");
    Protect::introspect(issuer, introspection)
}

/// Logs in to the server at `url` on another device: prints the page and the code as JSON, then what `whoami` returns.
pub(crate) async fn log_in(url: &str) -> Result<()> {
    let login =
        Login::device(|prompt| println!("{}", json!({ "page": prompt.url, "code": prompt.user_code })));
    let client = Client::connect(http(url).login(login)).await?;
    println!("{}", client.call("whoami", ()).await?.text());
    Ok(())
}
