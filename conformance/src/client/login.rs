//! How the client logs in: one login for all scenarios of authorization, built from the scenario's context.

use crate::Wanted;
use bowline::auth::{Login, Visit};
use bowline::http::Poster;

/// The suite expects this document as client id wherever the authorization server supports documents.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// A login whose user agrees to everything.
pub(crate) fn login(wanted: &Wanted) -> Login {
    let context = |name: &str| wanted.context[name].as_str();
    let mut login =
        Login::with(visit).redirect_uri("http://127.0.0.1:33418/callback").client_document(DOCUMENT);
    if let Some(issuer) = context("issuer") {
        login = login.issuer(issuer);
    }
    match (context("client_id"), context("client_secret")) {
        (Some(id), Some(secret)) => login.client(id, secret),
        (Some(id), None) => login.client_id(id),
        (None, _) => login,
    }
}

/// Opens the page as a browser does that is logged in already: the response is a redirect.
async fn visit(visit: Visit) -> Result<String, String> {
    let answer =
        Poster::new().send(http::Method::GET, visit.url(), http::HeaderMap::new(), bytes::Bytes::new()).await;
    let answer = answer.map_err(|error| error.to_string())?;
    let location = answer.headers.get(http::header::LOCATION).and_then(|location| location.to_str().ok());
    location.map(str::to_owned).ok_or_else(|| format!("status {} instead of a redirect", answer.status))
}
