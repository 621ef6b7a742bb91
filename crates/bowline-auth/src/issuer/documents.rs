//! Client ID metadata documents: a client id that is the URL of a description of the client.

use super::{
    client::{Client, Method},
    table::Table,
};
use crate::{Redirects, Request, jose::json, metadata::check_client_document_url};

/// A client document is at most this long, in bytes.
pub const MAX_DOCUMENT: usize = 5 * 1024;
/// A document is used for this long if its server does not say how long, in seconds.
const LIFETIME: u64 = 300;
/// The longest time that a document is used without asking for it again, in seconds.
const MAX_LIFETIME: u64 = 86_400;

/// The reply to the request for a client document.
#[derive(Clone, Copy, Debug)]
pub struct DocumentReply<'a> {
    /// The status of HTTP. Only 200 is accepted.
    pub status: u16,
    /// The header `Content-Type`.
    pub content_type: Option<&'a str>,
    /// The header `Cache-Control`.
    pub cache_control: Option<&'a str>,
    /// The body.
    pub body: &'a [u8],
}

/// The documents that were fetched.
#[derive(Debug)]
pub(super) struct Documents(Table<Result<Client, String>>);

impl Documents {
    pub(super) fn new() -> Self {
        Self(Table::new(500, 1024 * 1024))
    }

    /// Returns the client with this URL, the reason why its document is refused, or the request for the document.
    pub(super) fn find(&mut self, url: &str, now: u64) -> Result<Result<Client, String>, Request> {
        match self.0.get(url, now) {
            Some(Ok(client)) => Ok(Ok(client.clone())),
            // The next request fetches the document again.
            Some(Err(_)) => Ok(self.0.remove(url).unwrap_or_else(|| Err(String::new()))),
            None => {
                let mut request = Request::document(url);
                request.redirects = Redirects::None;
                Err(request)
            }
        }
    }

    pub(super) fn put(&mut self, url: &str, fetched: Result<DocumentReply<'_>, &str>, now: u64) {
        let read = fetched
            .map_err(str::to_owned)
            .and_then(|reply| read(url, &reply).map(|client| (client, lifetime(reply.cache_control))));
        let (client, lifetime) = match read {
            Ok((client, lifetime)) => (Ok(client), lifetime),
            Err(reason) => (Err(reason), 0),
        };
        let bytes = client.as_ref().map_or_else(String::len, Client::size);
        self.0.insert(url, client, bytes, now.saturating_add(lifetime));
    }
}

/// Returns whether a client id is meant as the URL of a document.
pub(super) fn is_document_url(client_id: &str) -> bool {
    client_id.starts_with("https://") && check_client_document_url(client_id).is_ok()
}

fn read(url: &str, reply: &DocumentReply<'_>) -> Result<Client, String> {
    if reply.status != 200 {
        return Err(format!("its server answered with status {}", reply.status));
    }
    if reply.body.len() > MAX_DOCUMENT {
        return Err(format!("it is longer than {MAX_DOCUMENT} bytes"));
    }
    let kind = reply.content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let is_json = kind.eq_ignore_ascii_case("application/json")
        || kind.starts_with("application/") && kind.to_ascii_lowercase().ends_with("+json");
    if !is_json {
        return Err("its `Content-Type` is not JSON".to_owned());
    }
    let mut document = json::object("client document", reply.body).map_err(|error| error.to_string())?;
    if document.get("client_id").and_then(serde_json::Value::as_str) != Some(url) {
        return Err("its `client_id` is not its URL".to_owned());
    }
    if !document.get("client_name").is_some_and(serde_json::Value::is_string) {
        return Err("it has no `client_name`".to_owned());
    }
    // A secret in a public document is not a secret.
    if document.contains_key("client_secret") || document.contains_key("client_secret_expires_at") {
        return Err("it contains a client secret".to_owned());
    }
    document.entry("token_endpoint_auth_method").or_insert_with(|| "none".into());
    let client = Client::read(url, &document).map_err(|failure| failure.description.to_owned())?;
    match client.method {
        Method::None => Ok(client),
        Method::Basic | Method::Post => Err("its `token_endpoint_auth_method` needs a secret".to_owned()),
    }
}

/// Returns how long a document is fresh, from the header `Cache-Control` (RFC 9111, 5.2).
fn lifetime(cache_control: Option<&str>) -> u64 {
    let mut lifetime = LIFETIME;
    for directive in cache_control.unwrap_or_default().split(',') {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-store" | "no-cache" => return 0,
            "max-age" => lifetime = value.trim().trim_matches('"').parse().unwrap_or(lifetime),
            _ => {}
        }
    }
    lifetime.min(MAX_LIFETIME)
}
