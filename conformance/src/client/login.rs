//! How the client logs in: one login for all scenarios of authorization, built from the scenario's context.

use crate::Wanted;
use bowline::auth::{Login, Secret, SigningKey, Visit};
use bowline::unstable::http::Poster;
use std::future::ready;

/// The suite expects this document as client id wherever the authorization server supports documents.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// A login whose user agrees to everything.
pub(crate) fn login(wanted: &Wanted) -> Login {
    let context = |name: &str| wanted.context[name].as_str();
    if let Some(login) = machine(wanted) {
        return match context("issuer") {
            Some(issuer) => login.issuer(issuer),
            // The suite does not say which authorization server its credentials are for.
            None => login.trust_first_issuer(),
        };
    }
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

/// The login of scenarios without a user.
fn machine(wanted: &Wanted) -> Option<Login> {
    let context = |name: &str| wanted.context[name].as_str().map(str::to_owned);
    match wanted.scenario.as_str() {
        "auth/client-credentials-basic" => {
            Some(Login::machine(context("client_id")?, context("client_secret")?))
        }
        "auth/client-credentials-jwt" => {
            let key = SigningKey::from_pem(&context("private_key_pem")?).ok()?;
            Some(Login::machine_with_key(context("client_id")?, key))
        }
        "auth/wif-jwt-bearer" => {
            let assertion = Secret::new(context("valid_jwt")?);
            Some(Login::workload(move || ready(Ok::<_, String>(assertion.clone()))))
        }
        "auth/enterprise-managed-authorization" => {
            let id_token = Secret::new(context("idp_id_token")?);
            let login = Login::enterprise(context("idp_token_endpoint")?, move || {
                ready(Ok::<_, String>(id_token.clone()))
            });
            let login = login.identity_provider_client(context("idp_client_id")?);
            Some(login.client(context("client_id")?, context("client_secret")?))
        }
        _ => None,
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
