//! The metadata of the protected resource (RFC 9728): which authorization servers issue tokens for it.

use super::{
    dpop::Dpop,
    protection::{Parts, Protection},
};
use crate::server::{body::Body, reply};
use bowline_auth::jose::Algorithm;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header, request};
use serde_json::{Map, Value};
use std::{
    convert::Infallible,
    future::{Ready, ready},
    task::{Context, Poll},
};

/// The path of the metadata of a whole origin.
const ROOT: &str = "/.well-known/oauth-protected-resource";

/// Writes the document. Nothing in it depends on a request.
pub(super) fn document(parts: &Parts) -> Bytes {
    let mut document = Map::new();
    document.insert("resource".into(), parts.resource.clone().into());
    document.insert("authorization_servers".into(), parts.issuers.clone().into());
    if !parts.scopes.is_empty() {
        document.insert("scopes_supported".into(), parts.scopes.iter().collect::<Vec<_>>().into());
    }
    let dpop = parts.dpop.as_ref().map(|checks| checks.mode);
    if dpop != Some(Dpop::Required) {
        document.insert("bearer_methods_supported".into(), vec!["header"].into());
    }
    if let Some(dpop) = dpop {
        let algorithms: Vec<&str> = Algorithm::ALL.into_iter().map(Algorithm::name).collect();
        document.insert("dpop_signing_alg_values_supported".into(), algorithms.into());
        document.insert("dpop_bound_access_tokens_required".into(), (dpop == Dpop::Required).into());
    }
    if let Some(name) = &parts.name {
        document.insert("resource_name".into(), name.clone().into());
    }
    if let Some(url) = &parts.documentation {
        document.insert("resource_documentation".into(), url.clone().into());
    }
    Value::Object(document).to_string().into()
}

/// Which paths have the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum At {
    /// The path that belongs to the resource.
    OwnPath,
    /// The path for a whole origin too, because nothing else is at this origin.
    RootToo,
}

impl Protection {
    /// Answers a request for the metadata document; `None` if the path is another one.
    pub(in crate::server) fn answer_metadata(
        &self,
        request: &request::Parts,
        at: At,
    ) -> Option<Response<Body>> {
        let path = request.uri.path();
        let is_here = path == self.metadata_path() || at == At::RootToo && path == ROOT;
        is_here.then(|| self.metadata_response(&request.method))
    }

    fn metadata_response(&self, method: &Method) -> Response<Body> {
        let mut response = match *method {
            Method::GET => reply::json(StatusCode::OK, self.document().clone()),
            Method::HEAD => {
                let mut response = reply::json(StatusCode::OK, Bytes::new());
                response.headers_mut().insert(header::CONTENT_LENGTH, self.document().len().into());
                response
            }
            Method::OPTIONS => reply::empty(StatusCode::NO_CONTENT),
            _ => {
                let reason = "the metadata document can only be read";
                let mut response = reply::refusal(StatusCode::METHOD_NOT_ALLOWED, reason);
                response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
                response
            }
        };
        let headers = response.headers_mut();
        // It is public. Clients in web pages add headers such as `MCP-Protocol-Version`, which need a preflight.
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD"));
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
        // A change of the authorization server is to be seen soon.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
        response
    }

    /// Returns a service that answers with the metadata document, for the route [`metadata_path`](Self::metadata_path)
    /// of an application.
    #[must_use]
    pub fn metadata(&self) -> MetadataService {
        MetadataService(self.clone())
    }
}

/// Answers with the metadata document of a protected endpoint. See [`Protection::metadata`].
#[derive(Clone, Debug)]
pub struct MetadataService(Protection);

impl<B> tower_service::Service<Request<B>> for MetadataService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        ready(Ok(self.0.metadata_response(request.method())))
    }
}
