//! Exchanges an ID token for an assertion at another authorization server (RFC 8693), for enterprise-managed authorization.

use crate::{ClientId, Error, Form, Issuer, Reply, Request, RequestBody, Resource, Secret, step::reason};
use serde::Deserialize;

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// A request to the identity provider of a company for an assertion (ID-JAG) that another authorization server accepts.
#[derive(Clone, Copy, Debug)]
pub struct AssertionExchange<'a> {
    /// The token endpoint of the identity provider.
    pub endpoint: &'a str,
    /// The client at the identity provider.
    pub client_id: Option<&'a ClientId>,
    /// The ID token of the user.
    pub id_token: &'a Secret,
    /// The authorization server that the assertion is for.
    pub audience: &'a Issuer,
    /// The MCP server that is to be used.
    pub resource: &'a Resource,
}

impl AssertionExchange<'_> {
    /// Returns the request to send. It follows no redirect.
    #[must_use]
    pub fn request(&self) -> Request {
        let form = Form::new()
            .with("grant_type", EXCHANGE)
            .with("requested_token_type", ID_JAG)
            .with("subject_token", self.id_token.expose())
            .with("subject_token_type", ID_TOKEN)
            .with("audience", self.audience.as_str())
            .with("resource", self.resource.as_str())
            .with_some("client_id", self.client_id.map(ClientId::as_str));
        Request::post(self.endpoint, RequestBody::Form(form))
    }

    /// Reads the response. The assertion is used once and not stored.
    pub fn read(&self, reply: &Reply) -> Result<Secret, Error> {
        #[derive(Default, Deserialize)]
        struct Wire {
            access_token: Option<String>,
            issued_token_type: Option<String>,
            error: Option<String>,
            error_description: Option<String>,
        }
        let what = "the token exchange at the identity provider";
        let wire: Wire = match serde_json::from_slice(&reply.body) {
            Ok(wire) => wire,
            Err(error) if reply.status == 200 => {
                return Err(Error::untrusted(format!("{what} gave an invalid response: {}", reason(&error))));
            }
            Err(_) => Wire::default(),
        };
        match (reply.status, wire.access_token, wire.issued_token_type.as_deref(), wire.error) {
            (200, Some(assertion), Some(ID_JAG), _) => Ok(Secret::new(assertion)),
            (200, ..) => Err(Error::untrusted(format!("{what} did not give an ID-JAG"))),
            (400..=428 | 430..=499, _, _, Some(code)) => {
                Err(Error::refused(what, &code, wire.error_description.as_deref()))
            }
            (status, ..) => Err(Error::unavailable(format!("{what} failed with status {status}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_names_audience_and_resource_and_wants_an_id_jag() {
        let audience = Issuer::new("https://as.example").unwrap();
        let resource = Resource::new("https://mcp.example/mcp").unwrap();
        let id_token = Secret::new("canary");
        let exchange = AssertionExchange {
            endpoint: "https://idp.example/token",
            client_id: None,
            id_token: &id_token,
            audience: &audience,
            resource: &resource,
        };
        let request = exchange.request();
        let RequestBody::Form(form) = &request.body else { panic!("not a form") };
        let sent = crate::form::decode(form.text().expose()).unwrap();
        let get = |name: &str| sent.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        assert_eq!(get("audience"), Some("https://as.example"));
        assert_eq!(get("resource"), Some("https://mcp.example/mcp"));
        assert_eq!(get("requested_token_type"), Some(ID_JAG));
        assert_eq!(get("subject_token_type"), Some(ID_TOKEN));
        assert!(!format!("{exchange:?}{request:?}").contains("canary"));
        let good = format!(r#"{{"access_token":"jag","issued_token_type":"{ID_JAG}","token_type":"N_A"}}"#);
        assert_eq!(exchange.read(&Reply::new(200, good)).unwrap().expose(), "jag");
        assert!(exchange.read(&Reply::new(200, r#"{"access_token":"t"}"#)).unwrap_err().is_untrusted());
        let refused = Reply::new(400, r#"{"error":"invalid_grant"}"#);
        assert_eq!(exchange.read(&refused).unwrap_err().code(), Some("invalid_grant"));
        assert!(exchange.read(&Reply::new(503, "")).unwrap_err().is_unavailable());
    }
}
