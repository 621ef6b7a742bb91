//! Clients: dynamic registration, and which redirect URIs they may use.

use super::{reply::Failure, session::digest};
use crate::{jose::json, metadata::check_redirect_uri, url::Url};
use http::StatusCode;
use serde_json::{Map, Value, json};

/// The longest name of a client, in characters.
const MAX_NAME: usize = 100;
/// A client has at most this many redirect URIs.
const MAX_REDIRECTS: usize = 16;
/// The longest redirect URI, in bytes.
const MAX_REDIRECT: usize = 1024;

/// How a client authenticates at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    None,
    Basic,
    Post,
}

impl Method {
    pub(super) const NAMES: [&'static str; 3] = ["none", "client_secret_basic", "client_secret_post"];

    fn parse(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::None),
            "client_secret_basic" => Some(Self::Basic),
            "client_secret_post" => Some(Self::Post),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
        }
    }
}

/// A client that the server knows.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) redirect_uris: Vec<String>,
    pub(super) method: Method,
    /// The digest of its secret.
    pub(super) secret: Option<String>,
    /// Whether it gets refresh tokens.
    pub(super) refreshes: bool,
    /// Whether it gets tokens for itself, without a user.
    pub(super) is_machine: bool,
}

impl Client {
    /// Reads the members that registrations and client documents share.
    pub(super) fn read(id: &str, document: &Map<String, Value>) -> Result<Self, Failure> {
        let text = |name| document.get(name).and_then(Value::as_str);
        let texts = |name| match document.get(name) {
            None => Ok(None),
            Some(Value::Array(values)) if values.iter().all(Value::is_string) => {
                Ok(Some(values.iter().filter_map(Value::as_str).collect::<Vec<_>>()))
            }
            Some(_) => Err(invalid("expected an array of strings")),
        };
        let uris = texts("redirect_uris")?.unwrap_or_default();
        let is_usable = |uri: &&str| uri.len() <= MAX_REDIRECT && check_redirect_uri(uri).is_ok();
        if uris.is_empty() || uris.len() > MAX_REDIRECTS || !uris.iter().all(is_usable) {
            return Err(Failure::new(
                "invalid_redirect_uri",
                "`redirect_uris` needs 1 to 16 URIs: `https`, `http` at a loopback address, or a private scheme such as \
                 `com.example.app`; no fragments",
            ));
        }
        // RFC 7591, 2: the defaults.
        let grants = texts("grant_types")?.unwrap_or_else(|| vec!["authorization_code"]);
        let responses = texts("response_types")?.unwrap_or_else(|| vec!["code"]);
        if !grants.contains(&"authorization_code") || !responses.contains(&"code") {
            return Err(invalid(
                "expected `authorization_code` in `grant_types` and `code` in `response_types`",
            ));
        }
        let method = text("token_endpoint_auth_method").unwrap_or("client_secret_basic");
        let method = Method::parse(method)
            .ok_or_else(|| invalid("`token_endpoint_auth_method` is not one that the metadata lists"))?;
        let name = text("client_name").map(str::trim).filter(|name| !name.is_empty());
        Ok(Self {
            id: id.to_owned(),
            name: name.unwrap_or("A client without a name").chars().take(MAX_NAME).collect(),
            redirect_uris: uris.into_iter().map(str::to_owned).collect(),
            method,
            secret: None,
            refreshes: grants.contains(&"refresh_token"),
            is_machine: false,
        })
    }

    /// Registers a client (RFC 7591). Returns it with the response.
    pub(super) fn register(body: &[u8], id: &str, secret: &str) -> Result<(Self, Value), Failure> {
        let document = json::object("registration", body)
            .map_err(|_| invalid("expected a JSON object without duplicate members"))?;
        let mut client = Self::read(id, &document)?;
        let mut grants = vec!["authorization_code"];
        if client.refreshes {
            grants.push("refresh_token");
        }
        let mut response = json!({
            "client_id": client.id,
            "client_name": client.name,
            "redirect_uris": client.redirect_uris,
            "grant_types": grants,
            "response_types": ["code"],
            "token_endpoint_auth_method": client.method.name(),
        });
        if client.method != Method::None {
            client.secret = Some(digest(secret));
            response["client_secret"] = secret.into();
            response["client_secret_expires_at"] = 0.into();
        }
        Ok((client, response))
    }

    /// Returns about how much memory the client takes.
    pub(super) fn size(&self) -> usize {
        self.redirect_uris.iter().map(String::len).sum::<usize>() + self.name.len() + self.id.len() + 200
    }

    /// Returns whether the client may use a redirect URI. The text must be equal; only the port of a loopback URI may
    /// differ (RFC 8252, 7.3), because a native client listens on a port that is free at that moment.
    pub(super) fn allows_redirect(&self, uri: &str) -> bool {
        check_redirect_uri(uri).is_ok()
            && self.redirect_uris.iter().any(|known| known == uri || differs_in_loopback_port(known, uri))
    }
}

fn invalid(description: &'static str) -> Failure {
    Failure { status: StatusCode::BAD_REQUEST, code: "invalid_client_metadata", description }
}

fn differs_in_loopback_port(known: &str, uri: &str) -> bool {
    let (Ok(known), Ok(uri)) = (Url::split(known), Url::split(uri)) else { return false };
    known.is_loopback()
        && !known.is_https()
        && (known.scheme, known.host, known.path, known.query) == (uri.scheme, uri.host, uri.path, uri.query)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(uris: &[&str]) -> Client {
        let body = json!({ "redirect_uris": uris }).to_string();
        Client::register(body.as_bytes(), "id", "secret").unwrap().0
    }

    // proves: ASEC-05
    #[test]
    fn v64_a_redirect_uri_is_compared_exactly_except_for_a_loopback_port() {
        let client = client(&["https://app.example/cb", "http://127.0.0.1:7000/cb", "com.example.app:/cb"]);
        for uri in [
            "https://app.example/cb",
            "http://127.0.0.1:7000/cb",
            "http://127.0.0.1:9/cb",
            "http://127.0.0.1/cb",
            "com.example.app:/cb",
        ] {
            assert!(client.allows_redirect(uri), "{uri}");
        }
        for uri in [
            "https://app.example/cb/",
            "https://app.example/cb?x=1",
            "https://app.example/cb#x",
            "https://app.example/CB",
            "https://APP.example/cb",
            "https://app.example:443/cb",
            "https://app.example:8443/cb",
            "http://app.example/cb",
            "https://app.example.evil.com/cb",
            "https://app.example@evil.com/cb",
            "https://evil.com/https://app.example/cb",
            "https://app.example/cb/../x",
            "https://app.example/c%62",
            "https://app.example\\@evil.com/cb",
            "//evil.com/cb",
            "/\\evil.com",
            "%2f%2fevil",
            "javascript:alert(1)",
            "null",
            "",
            "http://localhost:7000/cb",
            "http://[::1]:7000/cb",
            "http://127.0.0.2:7000/cb",
            "https://127.0.0.1:7000/cb",
            "http://127.0.0.1:7000/cb?x",
            "http://127.0.0.1:7000/other",
            "com.example.app:/cb2",
        ] {
            assert!(!client.allows_redirect(uri), "{uri}");
        }
    }

    #[test]
    fn v65_registrations_are_checked_and_limited() {
        let refused = |body: &str| Client::register(body.as_bytes(), "id", "secret").unwrap_err().code;
        for body in [
            "[]",
            "{",
            r#"{"redirect_uris":["https://a/b"],"redirect_uris":["https://evil/b"]}"#,
            r#"{"redirect_uris":["https://a/b"],"grant_types":["implicit"]}"#,
            r#"{"redirect_uris":["https://a/b"],"grant_types":["client_credentials"]}"#,
            r#"{"redirect_uris":["https://a/b"],"response_types":["token"]}"#,
            r#"{"redirect_uris":["https://a/b"],"token_endpoint_auth_method":"magic"}"#,
            r#"{"redirect_uris":"https://a/b"}"#,
        ] {
            assert_eq!(refused(body), "invalid_client_metadata", "{body}");
        }
        for uri in
            ["http://evil.com/cb", "javascript:alert(1)", "https://*.evil.com/cb", "https://a/b#c", "x"]
        {
            assert_eq!(
                refused(&json!({ "redirect_uris": [uri] }).to_string()),
                "invalid_redirect_uri",
                "{uri}"
            );
        }
        assert_eq!(refused("{}"), "invalid_redirect_uri");
        let many = vec!["https://a/b"; 17];
        assert_eq!(refused(&json!({ "redirect_uris": many }).to_string()), "invalid_redirect_uri");
        let long = json!({ "redirect_uris": ["https://a/b"], "client_name": "x".repeat(10_000) }).to_string();
        assert_eq!(Client::register(long.as_bytes(), "id", "s").unwrap().0.name.len(), MAX_NAME);
    }
}
