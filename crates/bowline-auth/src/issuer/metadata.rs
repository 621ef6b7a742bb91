//! The metadata of the authorization server (RFC 8414, OpenID Connect Discovery) and its keys.

use super::{client::Method, server::AuthorizationServer};
use serde_json::{Value, json};

pub(super) fn document(server: &AuthorizationServer) -> Value {
    let algorithm = server.key.1.algorithm().name();
    let mut document = json!({
        "issuer": server.issuer.as_str(),
        "authorization_endpoint": server.url_of("/authorize"),
        "token_endpoint": server.url_of("/token"),
        "registration_endpoint": server.url_of("/register"),
        "revocation_endpoint": server.url_of("/revoke"),
        "jwks_uri": server.url_of("/jwks"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
        "token_endpoint_auth_methods_supported": Method::NAMES,
        "revocation_endpoint_auth_methods_supported": Method::NAMES,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": true,
        // OpenID Connect Discovery requires these two. No ID tokens are issued.
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [algorithm],
    });
    if let Some(scopes) = &server.scopes {
        document["scopes_supported"] = scopes.iter().collect::<Vec<_>>().into();
    }
    document
}

/// Returns the public keys, newest first.
pub(super) fn keys(server: &AuthorizationServer) -> Value {
    let (kid, key) = &server.key;
    let algorithm = key.algorithm().name();
    let current = (kid, key.public());
    let old = server.old_keys.iter().map(|(kid, key)| (kid, key));
    let keys: Vec<Value> = [current]
        .into_iter()
        .chain(old)
        .map(|(kid, key)| {
            let mut jwk = key.to_jwk();
            jwk.insert("kid".to_owned(), kid.as_str().into());
            jwk.insert("use".to_owned(), "sig".into());
            if key.fits(server.key.1.algorithm()) {
                jwk.insert("alg".to_owned(), algorithm.into());
            }
            Value::Object(jwk)
        })
        .collect();
    json!({ "keys": keys })
}
