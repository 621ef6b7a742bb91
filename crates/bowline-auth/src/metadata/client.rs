//! Client ID metadata documents: a URL as client id, with a document that describes the client.

use crate::{ClientId, Error, url::Url};
use serde_json::{Value, json};

/// A document for an application to host. Its URL is the client id.
///
/// ```
/// use bowline_auth::ClientDocument;
///
/// let document = ClientDocument::new("https://app.example.com/client.json", "My App")?
///     .redirect_uri("http://127.0.0.1:33418/callback")?;
/// assert!(document.to_json()?.contains("\"client_name\": \"My App\""));
/// # Ok::<(), bowline_auth::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ClientDocument {
    url: String,
    name: String,
    redirect_uris: Vec<String>,
}

impl ClientDocument {
    /// Creates a document at `url`, for an application called `name`.
    pub fn new(url: impl Into<String>, name: impl Into<String>) -> Result<Self, Error> {
        let (url, name) = (url.into(), name.into());
        check_client_document_url(&url)?;
        if name.is_empty() {
            return Err(Error::misuse("a client document needs the name of the application"));
        }
        Ok(Self { url, name, redirect_uris: Vec::new() })
    }

    /// Adds a redirect URI: `https`, or `http` at a loopback address. Its port must be the one that the application binds.
    pub fn redirect_uri(mut self, uri: impl Into<String>) -> Result<Self, Error> {
        let uri = uri.into();
        check_redirect_uri(&uri)?;
        self.redirect_uris.push(uri);
        Ok(self)
    }

    /// Returns the client id, which is the URL of the document.
    #[must_use]
    pub fn client_id(&self) -> &str {
        &self.url
    }

    /// Returns the document to host. Fails without a redirect URI.
    pub fn to_json(&self) -> Result<String, Error> {
        if self.redirect_uris.is_empty() {
            return Err(Error::misuse("a client document needs a redirect URI"));
        }
        let document: Value = json!({
            "client_id": self.url,
            "client_name": self.name,
            "redirect_uris": self.redirect_uris,
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        });
        serde_json::to_string_pretty(&document).map_err(|error| Error::misuse(error.to_string()))
    }
}

/// Checks the URL of a document: `https`, with a path, without query and fragment.
pub(crate) fn check_client_document_url(text: &str) -> Result<ClientId, Error> {
    let unfit =
        |reason: &str| Error::misuse(format!("`{text}` is not the URL of a client document: {reason}"));
    let url = Url::split(text).map_err(|reason| unfit(&reason))?;
    if !url.is_https() || url.path.len() < 2 || url.query.is_some() || url.fragment.is_some() {
        return Err(unfit("expected `https`, a path, no query and no fragment"));
    }
    if url.path.split('/').any(|segment| segment == "." || segment == "..") {
        return Err(unfit("it has dot segments"));
    }
    ClientId::new(text)
}

/// Checks a redirect URI: `https`, `http` at a loopback address, or a private scheme with a dot (RFC 8252).
pub(crate) fn check_redirect_uri(text: &str) -> Result<(), Error> {
    let unfit = |reason: &str| Error::misuse(format!("`{text}` is not usable as redirect URI: {reason}"));
    let scheme = text.split(':').next().unwrap_or_default();
    let is_private = scheme.contains('.')
        && scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-+".contains(&byte))
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && text.len() > scheme.len()
        && !text.contains('#');
    if is_private {
        return Ok(());
    }
    let url = Url::split(text).map_err(|reason| unfit(&reason))?;
    if url.fragment.is_some() {
        return Err(unfit("it has a fragment"));
    }
    if url.is_https() || url.is_loopback() {
        Ok(())
    } else {
        Err(unfit("expected `https` or a loopback address"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: AREG-07, AREG-08, AREG-09
    #[test]
    fn a_document_has_what_it_needs_and_its_own_url_as_id() {
        let url = "https://app.example.com/client.json";
        let document = ClientDocument::new(url, "App").unwrap();
        assert!(document.to_json().is_err(), "no redirect URI");
        let document = document.redirect_uri("http://127.0.0.1:7000/callback").unwrap();
        let json: Value = serde_json::from_str(&document.to_json().unwrap()).unwrap();
        assert_eq!(json["client_id"], url);
        assert_eq!(json["client_name"], "App");
        assert_eq!(json["redirect_uris"], json!(["http://127.0.0.1:7000/callback"]));
        for url in [
            "http://app.example.com/client.json",
            "https://app.example.com",
            "https://app.example.com/",
            "https://app.example.com/a/../b",
            "https://app.example.com/a?b",
            "https://app.example.com/a#b",
            "https://me@app.example.com/a",
        ] {
            assert!(ClientDocument::new(url, "App").is_err(), "{url}");
        }
    }

    // proves: ASEC-03
    #[test]
    fn redirect_uris_are_https_or_loopback() {
        for uri in
            ["https://app.example/cb", "http://localhost:1/cb", "http://[::1]:1/cb", "com.example.app:/cb"]
        {
            check_redirect_uri(uri).unwrap();
        }
        for uri in ["http://app.example/cb", "javascript:alert(1)", "file:///x", "https://h/#x", "data:x", ""]
        {
            assert!(check_redirect_uri(uri).is_err(), "{uri}");
        }
    }
}
