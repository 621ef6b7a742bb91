//! Requests and replies of flows, and what a flow wants next.

use crate::{Error, Form, Secret, url::shown};
use serde::{Deserialize, de::DeserializeOwned};
use std::fmt;

/// What a flow wants next.
#[derive(Clone, Debug)]
pub enum Step<T> {
    /// Send this request and pass the reply to `next`.
    Fetch(Request),
    /// The flow is done.
    Done(T),
}

/// A request of a flow.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// Where it goes.
    pub url: String,
    /// What is sent.
    pub body: RequestBody,
    /// The value of `Authorization`.
    pub authorization: Option<Secret>,
    /// The value of `DPoP`: a proof for this request.
    pub dpop: Option<Secret>,
    /// Which redirects are followed.
    pub redirects: Redirects,
}

/// The body of a request, which decides its method.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RequestBody {
    /// `GET`.
    None,
    /// `POST` of a form.
    Form(Form),
    /// `POST` of JSON.
    Json(String),
}

/// Which redirects are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirects {
    /// None, because the request contains secrets.
    None,
    /// At most three, to the same origin.
    SameOrigin,
}

impl Request {
    /// Creates a request for a document.
    pub(crate) fn document(url: impl Into<String>) -> Self {
        let (url, body) = (url.into(), RequestBody::None);
        Self { url, body, authorization: None, dpop: None, redirects: Redirects::SameOrigin }
    }

    /// Creates a request that posts something to an endpoint.
    pub(crate) fn post(url: impl Into<String>, body: RequestBody) -> Self {
        Self { url: url.into(), body, authorization: None, dpop: None, redirects: Redirects::None }
    }
}

/// The reply to a request, after redirects.
#[derive(Clone)]
pub struct Reply {
    /// The status of HTTP.
    pub status: u16,
    /// The body, limited by the sender of the request.
    pub body: Vec<u8>,
    /// The header `DPoP-Nonce`.
    pub dpop_nonce: Option<String>,
}

impl Reply {
    /// Creates a reply with a status and a body.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, body: body.into(), dpop_nonce: None }
    }

    /// Returns whether an authorization server refuses a request because its proof lacks the current nonce (RFC 9449, 8).
    #[must_use]
    pub fn asks_for_nonce(&self) -> bool {
        #[derive(Deserialize)]
        struct Wire {
            error: String,
        }
        matches!(self.status, 400 | 401)
            && serde_json::from_slice::<Wire>(&self.body).is_ok_and(|wire| wire.error == "use_dpop_nonce")
    }

    /// Reads a document. `None` if there is no document: a status of 3xx or 4xx except 429, or a body that is not JSON.
    /// Everything else stops the flow, because the next place to look at may be in the hands of someone else.
    pub(crate) fn document<T: DeserializeOwned>(&self, what: &str, url: &str) -> Result<Option<T>, Error> {
        let url = shown(url);
        match self.status {
            200 => {
                if serde_json::from_slice::<serde::de::IgnoredAny>(&self.body).is_err() {
                    return Ok(None);
                }
                serde_json::from_slice(&self.body).map(Some).map_err(|error| {
                    Error::untrusted(format!("{what} at {url} is not valid: {}", reason(&error)))
                })
            }
            300..=428 | 430..=499 => Ok(None),
            status => Err(Error::unavailable(format!("cannot read {what} at {url}: status {status}"))),
        }
    }
}

/// Bodies contain tokens.
impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Returns what is wrong with JSON, without quoting it.
pub(crate) fn reason(error: &serde_json::Error) -> String {
    let kind = match error.classify() {
        serde_json::error::Category::Syntax | serde_json::error::Category::Eof => "it is not JSON",
        _ => "a member is missing, is there twice, or has the wrong type",
    };
    format!("{kind} (line {}, column {})", error.line(), error.column())
}
