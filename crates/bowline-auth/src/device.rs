//! Logins on another device (RFC 8628): the user enters a short code in a browser elsewhere while the client polls.

use crate::{
    ClientAuth, Error, Form, Issuer, Reply, Request, RequestBody, Resource, Rules, Scopes, Secret,
    ServerMetadata, TokenError, step::reason,
};
use serde::Deserialize;
use std::fmt;

/// The interval between two token requests if the server gives none, in seconds.
const DEFAULT_INTERVAL: u64 = 5;
/// How much longer the interval gets when the server asks to slow down, in seconds.
const SLOW_DOWN: u64 = 5;
/// The longest interval, in seconds.
const MAX_INTERVAL: u64 = 60;
/// The longest time to wait for the user, in seconds.
const MAX_LIFETIME: u64 = 1800;
/// The longest user code.
const MAX_USER_CODE: usize = 64;
/// The longest device code.
const MAX_DEVICE_CODE: usize = 4096;

/// A request for a device code and a user code.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DeviceRequest<'a> {
    /// The authorization server.
    pub server: &'a ServerMetadata,
    /// The client.
    pub client: &'a ClientAuth,
    /// What the token is for. Left out only with the exception `no-resource-parameter`.
    pub resource: Option<&'a Resource>,
    /// The scopes; without any, the parameter is left out.
    pub scopes: &'a Scopes,
}

impl<'a> DeviceRequest<'a> {
    /// Asks for these scopes at `server`.
    pub fn new(
        server: &'a ServerMetadata,
        client: &'a ClientAuth,
        resource: Option<&'a Resource>,
        scopes: &'a Scopes,
    ) -> Self {
        Self { server, client, resource, scopes }
    }

    /// Returns the request to send. It follows no redirect. Fails if the server offers no logins on other devices.
    pub fn request(&self) -> Result<Request, Error> {
        let issuer = &self.server.issuer;
        let endpoint = self.server.device_authorization_endpoint.as_deref();
        let endpoint =
            endpoint.ok_or_else(|| Error::misuse(format!("{issuer} offers no logins on other devices")))?;
        let scope = self.scopes.to_string();
        let form = Form::new()
            .with_some("scope", (!scope.is_empty()).then_some(&*scope))
            .with_some("resource", self.resource.map(Resource::as_str));
        let (form, authorization) = self.client.apply(form)?;
        Ok(Request { authorization, ..Request::post(endpoint, RequestBody::Form(form)) })
    }

    /// Reads the response.
    pub fn read(&self, reply: &Reply, rules: &Rules, now: u64) -> Result<PendingDevice, Error> {
        let issuer = &self.server.issuer;
        let what = format!("the login on another device at {issuer}");
        let invalid = |reason: &str| Error::untrusted(format!("{what} is not valid: {reason}"));
        if reply.status != 200 {
            let refusal: Refusal = serde_json::from_slice(&reply.body).unwrap_or_default();
            return Err(match (reply.status, refusal.error) {
                (400..=428 | 430..=499, Some(code)) => {
                    Error::refused(what, &code, refusal.error_description.as_deref())
                }
                (300..=399, _) => Error::untrusted(format!("{what} redirects; not followed")),
                (status, _) => Error::unavailable(format!("{what} failed with status {status}")),
            });
        }
        let wire: Wire = serde_json::from_slice(&reply.body).map_err(|error| invalid(&reason(&error)))?;
        let is_visible = |text: &str| text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if wire.user_code.is_empty() || wire.user_code.len() > MAX_USER_CODE || !is_visible(&wire.user_code) {
            return Err(invalid("expected a user code of printable ASCII characters"));
        }
        if wire.device_code.is_empty() || wire.device_code.len() > MAX_DEVICE_CODE {
            return Err(invalid("it has no usable device code"));
        }
        rules.check_url(&format!("the page of {issuer} for user codes"), &wire.verification_uri)?;
        if let Some(complete) = &wire.verification_uri_complete {
            rules.check_url(&format!("the page of {issuer} for user codes"), complete)?;
        }
        Ok(PendingDevice {
            prompt: DevicePrompt {
                user_code: wire.user_code,
                url: wire.verification_uri,
                complete_url: wire.verification_uri_complete,
                lifetime: wire.expires_in.min(MAX_LIFETIME),
            },
            device_code: Secret::new(wire.device_code),
            interval: wire.interval.unwrap_or(DEFAULT_INTERVAL).clamp(1, MAX_INTERVAL),
            end: now.saturating_add(wire.expires_in.min(MAX_LIFETIME)),
        })
    }
}

#[derive(Deserialize)]
struct Wire {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: u64,
    interval: Option<u64>,
}

#[derive(Default, Deserialize)]
struct Refusal {
    error: Option<String>,
    error_description: Option<String>,
}

/// What the user has to do: open a page on any device, and enter a code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DevicePrompt {
    /// The code to enter.
    pub user_code: String,
    /// The page to open: `https`, or `http` at a loopback address.
    pub url: String,
    /// A page that knows the code already, for a link or a QR code. The user still compares the code.
    pub complete_url: Option<String>,
    /// How long the code is valid, in seconds.
    pub lifetime: u64,
}

impl fmt::Display for DevicePrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "open {} on any device and enter the code {}", self.url, self.user_code)
    }
}

/// A login that waits for the user.
#[derive(Debug)]
pub struct PendingDevice {
    prompt: DevicePrompt,
    device_code: Secret,
    interval: u64,
    end: u64,
}

impl PendingDevice {
    /// Returns what to show to the user.
    #[must_use]
    pub fn prompt(&self) -> &DevicePrompt {
        &self.prompt
    }

    /// Returns the code for the token requests.
    #[must_use]
    pub fn device_code(&self) -> &Secret {
        &self.device_code
    }

    /// Returns how many seconds to wait before the next token request.
    #[must_use]
    pub fn interval(&self) -> u64 {
        self.interval
    }

    /// Takes a failed token request. Fails if the login is over; otherwise the next request follows after
    /// [`interval`](Self::interval).
    pub fn continue_after(&mut self, error: TokenError, issuer: &Issuer, now: u64) -> Result<(), Error> {
        match (error.code(), &error) {
            (Some("authorization_pending"), _) => {}
            (Some("slow_down"), _) => {
                self.interval = self.interval.saturating_add(SLOW_DOWN).min(MAX_INTERVAL);
            }
            // A server that is busy or cannot be reached is asked less often (RFC 8628, 3.5).
            (None, TokenError::Unavailable(_)) => {
                self.interval = self.interval.saturating_mul(2).min(MAX_INTERVAL);
            }
            (Some("access_denied"), _) => return Err(Error::visit("the login was denied")),
            (Some("expired_token"), _) => return Err(expired()),
            _ => return Err(error.into_error(issuer)),
        }
        if now.saturating_add(self.interval) > self.end { Err(expired()) } else { Ok(()) }
    }
}

fn expired() -> Error {
    Error::visit("the code expired before the login was complete; log in again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClientId, metadata::ServerWire};
    use serde_json::json;

    fn server(endpoint: &str) -> ServerMetadata {
        let wire = json!({
            "issuer": "https://as.example", "token_endpoint": "https://as.example/token",
            "device_authorization_endpoint": endpoint,
        });
        let wire: ServerWire = serde_json::from_value(wire).unwrap();
        ServerMetadata::check(wire, Issuer::new("https://as.example").unwrap(), &rules()).unwrap()
    }

    fn rules() -> Rules {
        Rules::new("https://mcp.example/mcp", &[], false).unwrap()
    }

    fn with_request<T>(run: impl FnOnce(DeviceRequest<'_>) -> T) -> T {
        let (server, scopes) = (server("https://as.example/device"), Scopes::parse("a b"));
        let client =
            ClientAuth::by_secret(&ClientId::new("app").unwrap(), "".into(), crate::AuthMethod::None);
        let resource = Resource::new("https://mcp.example/mcp").unwrap();
        run(DeviceRequest::new(&server, &client, Some(&resource), &scopes))
    }

    fn read(status: u16, body: &str) -> Result<PendingDevice, Error> {
        with_request(|request| request.read(&Reply::new(status, body), &rules(), 1000))
    }

    #[test]
    fn the_request_names_client_scopes_and_resource() {
        with_request(|request| {
            let sent = request.request().unwrap();
            let RequestBody::Form(form) = &sent.body else { panic!("a form") };
            let expected = "scope=a+b&resource=https%3A%2F%2Fmcp.example%2Fmcp&client_id=app";
            assert_eq!((sent.url.as_str(), form.text().expose()), ("https://as.example/device", expected));
        });
    }

    #[test]
    fn the_user_gets_a_page_and_a_code() {
        let body = r#"{"device_code":"canary","user_code":"WDJB-MJHT","verification_uri":"https://as.example/d","expires_in":900}"#;
        let pending = read(200, body).unwrap();
        assert_eq!(
            pending.prompt().to_string(),
            "open https://as.example/d on any device and enter the code WDJB-MJHT"
        );
        assert_eq!((pending.interval(), pending.prompt().lifetime), (5, 900));
        assert!(!format!("{pending:?}").contains("canary"));
    }

    #[test]
    fn v52_a_page_or_code_that_is_not_safe_to_show_is_refused() {
        let body = |code: &str, url: &str, complete: &str| {
            json!({ "device_code": "d", "user_code": code, "verification_uri": url,
                "verification_uri_complete": complete, "expires_in": 9 })
            .to_string()
        };
        let good = "https://as.example/d";
        read(200, &body("A", good, good)).unwrap();
        for (code, url, complete) in [
            ("", good, good),
            ("\u{1b}[2J", good, good),
            ("A\nB", good, good),
            (&*"A".repeat(65), good, good),
            ("A", "http://as.example/d", good),
            ("A", "javascript:alert(1)", good),
            ("A", "https://as.example/$(id)", good),
            ("A", good, "file:///etc/passwd"),
            ("A", good, "http://127.0.0.1/d"),
        ] {
            assert!(
                read(200, &body(code, url, complete)).unwrap_err().is_untrusted(),
                "{code} {url} {complete}"
            );
        }
        assert!(read(200, "{}").unwrap_err().is_untrusted());
        assert!(read(307, "").unwrap_err().is_untrusted());
        assert!(read(503, "").unwrap_err().is_unavailable());
        assert_eq!(read(400, r#"{"error":"invalid_scope"}"#).unwrap_err().code(), Some("invalid_scope"));
    }

    #[test]
    fn polling_slows_down_and_ends_with_the_code() {
        let body = r#"{"device_code":"d","user_code":"A","verification_uri":"https://as.example/d","expires_in":100,"interval":1}"#;
        let mut pending = read(200, body).unwrap();
        let issuer = Issuer::new("https://as.example").unwrap();
        let refused = |code: &str| TokenError::Refused(Error::refused("x", code, None));
        let mut after = |error, now| {
            let result = pending.continue_after(error, &issuer, now);
            result.map(|()| pending.interval())
        };
        assert_eq!(after(refused("authorization_pending"), 1001).unwrap(), 1);
        assert_eq!(after(refused("slow_down"), 1002).unwrap(), 6);
        assert_eq!(after(refused("slow_down"), 1008).unwrap(), 11);
        let busy = || TokenError::Unavailable(Error::unavailable("busy"));
        assert_eq!(after(busy(), 1019).unwrap(), 22);
        assert_eq!(after(busy(), 1041).unwrap(), 44);
        assert!(after(busy(), 1080).unwrap_err().is_visit(), "the code ends before the next request");
        for code in ["access_denied", "expired_token"] {
            assert!(after(refused(code), 1001).unwrap_err().is_visit(), "{code}");
        }
        assert_eq!(after(refused("invalid_client"), 1001).unwrap_err().code(), Some("invalid_client"));
    }
}
