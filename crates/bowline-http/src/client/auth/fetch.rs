//! Sends the requests of flows: with limits, and with few redirects.

use super::{
    proof::{HEADER, NONCE_HEADER},
    reach::{LearnedHosts, Networks},
};
use crate::client::post::{PostAnswer, PostError, Poster, Reference};
use bowline_auth::{Error, Redirects, Reply, Request, RequestBody, Secret, Step};
use bowline_proto::header as codec;
use bowline_types::Revision;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use std::time::Duration;

/// How long one request may take, with its redirects.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// The longest document or token response, in bytes.
pub(super) const MAX_BODY: usize = 1024 * 1024;
/// How many redirects are followed for a document.
const MAX_REDIRECTS: usize = 3;

/// Sends requests of flows.
#[derive(Clone, Debug)]
pub(super) struct Fetcher {
    poster: Poster,
    hosts: LearnedHosts,
}

impl Fetcher {
    /// Creates a fetcher for logins at the MCP server at `server`. `configured` are URLs that the user named.
    pub(super) fn new<'a>(
        poster: Poster,
        server: &str,
        networks: Networks,
        configured: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let hosts = LearnedHosts::new(server, networks).trust(configured);
        Self { poster: poster.max_answer(MAX_BODY).resolver(hosts.clone()), hosts }
    }

    /// Sends one request.
    pub(super) async fn fetch(&self, request: &Request) -> Result<Reply, Error> {
        let sent = tokio::time::timeout(TIME_LIMIT, self.send(request)).await;
        let answer = sent.map_err(|_| {
            let seconds = TIME_LIMIT.as_secs();
            Error::unavailable(format!("{} timed out after {seconds} s", without_query(&request.url)))
        })??;
        let nonce = answer.headers.get(NONCE_HEADER).and_then(|nonce| nonce.to_str().ok());
        let mut reply = Reply::new(answer.status.as_u16(), answer.body.to_vec());
        reply.dpop_nonce = nonce.map(str::to_owned);
        Ok(reply)
    }

    async fn send(&self, request: &Request) -> Result<PostAnswer, Error> {
        let (method, kind, body) = match &request.body {
            RequestBody::Form(form) => {
                let body = Bytes::copy_from_slice(form.text().expose().as_bytes());
                (Method::POST, Some("application/x-www-form-urlencoded"), body)
            }
            RequestBody::Json(text) => {
                (Method::POST, Some("application/json"), Bytes::copy_from_slice(text.as_bytes()))
            }
            _ => (Method::GET, None, Bytes::new()),
        };
        let agent = concat!("bowline/", env!("CARGO_PKG_VERSION"));
        let mut headers = HeaderMap::from_iter([
            (header::ACCEPT, HeaderValue::from_static("application/json")),
            (header::USER_AGENT, HeaderValue::from_static(agent)),
        ]);
        if let Some(kind) = kind {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        } else {
            let version = HeaderValue::from_static(Revision::LATEST.as_str());
            headers.insert(codec::PROTOCOL_VERSION, version);
        }
        if let Some(authorization) = &request.authorization {
            headers.insert(header::AUTHORIZATION, sensitive(authorization)?);
        }
        if let Some(proof) = &request.dpop {
            headers.insert(HEADER, sensitive(proof)?);
        }
        let mut url = request.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            self.hosts.check(&url).map_err(Error::untrusted)?;
            let sent = self.poster.send(method.clone(), &url, headers.clone(), body.clone()).await;
            let answer = sent.map_err(|error| failed(&url, &error))?;
            let redirect = match request.redirects {
                Redirects::SameOrigin => answer.redirect(&url).ok().flatten(),
                Redirects::None => None,
            };
            match redirect {
                Some(Reference { url: next, is_same_origin: true }) => url = next,
                // Another origin is not asked; the status says that there is nothing here.
                _ => return Ok(answer),
            }
        }
        Err(Error::unavailable(format!("{} redirects too often", without_query(&request.url))))
    }
}

/// Runs a flow: sends what it asks for until it is done.
pub(super) async fn run<T>(
    fetcher: &Fetcher,
    mut next: impl FnMut(Option<&Reply>) -> Result<Step<T>, Error>,
) -> Result<T, Error> {
    let mut step = next(None)?;
    loop {
        match step {
            Step::Done(value) => return Ok(value),
            Step::Fetch(request) => {
                let reply = fetcher.fetch(&request).await?;
                step = next(Some(&reply))?;
            }
        }
    }
}

/// Returns a header value that is not logged.
pub(super) fn sensitive(secret: &Secret) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(secret.expose())
        .map_err(|_| Error::misuse("a credential contains characters that are not allowed in a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn failed(url: &str, error: &PostError) -> Error {
    Error::unavailable(format!("{}: {error}", without_query(url)))
}

fn without_query(url: &str) -> &str {
    url.split('?').next().unwrap_or_default()
}
