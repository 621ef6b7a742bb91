//! Token responses of any content.

use bowline_auth::{ClientAuth, Grant, Issuer, Reply, Scopes, TokenRequest};
use proptest::prelude::*;

fn member() -> impl Strategy<Value = String> {
    let name = "access_token|token_type|refresh_token|expires_in|scope|error|error_description|x";
    let value = "null|true|-1|0|3600|1e400|\"\"|\"3600\"|\"Bearer\"|\"DPoP\"|\"mac\"|\"use_dpop_nonce\"|\"a\\\\u0000b\"|\\[\\]|\\{\\}|\"t\"";
    (name, value).prop_map(|(name, value)| format!("\"{name}\":{value}"))
}

proptest! {
    #[test]
    fn a_token_response_is_refused_or_has_a_usable_token(
        status in prop_oneof![Just(200_u16), 200_u16..600],
        members in prop::collection::vec(member(), 0..7),
        is_cut: bool,
    ) {
        let mut body = format!("{{{}}}", members.join(","));
        if is_cut {
            body.pop();
        }
        let issuer = Issuer::new("https://as.example").unwrap();
        let (client, asked) = (ClientAuth::anonymous(), Scopes::parse("a"));
        let request = TokenRequest {
            issuer: &issuer,
            endpoint: "https://as.example/token",
            grant: Grant::ClientCredentials,
            client: &client,
            resource: None,
            asked: &asked,
        };
        let reply = Reply::new(status, body);
        if let Ok(issued) = request.read(&reply, 1_900_000_000) {
            prop_assert_eq!(status, 200);
            prop_assert_eq!(issued.access_token.expose().bytes().all(|byte| byte.is_ascii_graphic()), true);
            prop_assert!(!issued.access_token.expose().is_empty() && !reply.asks_for_nonce());
            prop_assert!(issued.expires.is_none_or(|expires| expires >= 1_900_000_000));
        }
    }
}
