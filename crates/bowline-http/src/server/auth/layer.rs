//! Protects other services of an application with the same tokens.

use super::{Protection, dpop::HEADER, protection::Location};
use crate::server::body::Body;
use bowline_auth::{Caller, Scopes};
use bytes::Bytes;
use http::{Request, Response, header};
use http_body::{Frame, SizeHint};
use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

impl Protection {
    /// Puts the check of tokens in front of a service. It gets only requests whose token is valid and has the scopes that
    /// every request needs, with the [`Caller`] in their extensions as `Arc<Caller>`. The `Authorization` header is removed, so
    /// that the service cannot pass the token on by mistake.
    ///
    /// An [`HttpService`](crate::HttpService) is better protected with
    /// [`HttpOptions::protect`](crate::HttpOptions::protect): it checks `Host` and `Origin` first, and its challenges name all
    /// scopes of a call at once.
    pub fn layer<S>(&self, service: S) -> Protected<S> {
        Protected { protection: self.clone(), service, prefix: Arc::from("") }
    }
}

/// A service behind the check of tokens. See [`Protection::layer`].
#[derive(Clone, Debug)]
pub struct Protected<S> {
    protection: Protection,
    service: S,
    prefix: Arc<str>,
}

impl<S> Protected<S> {
    /// Sets the public path that a router or proxy removes from the path of requests, such as `/export` for
    /// `nest_service("/export", ..)`. Proofs of DPoP name the public URL, so they are refused without it.
    #[must_use]
    pub fn nested_at(mut self, path: &str) -> Self {
        self.prefix = path.trim_end_matches('/').into();
        self
    }
}

impl<S, B, R> tower_service::Service<Request<B>> for Protected<S>
where
    S: tower_service::Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
{
    type Response = Response<ProtectedBody<R>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The one that is ready is used; its clone may not be.
        let other = self.service.clone();
        let mut service = std::mem::replace(&mut self.service, other);
        let (protection, prefix) = (self.protection.clone(), Arc::clone(&self.prefix));
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let next_nonce = protection.expect_nonce(&mut parts.extensions);
            if let Some(refused) = protection.authenticate(&mut parts, Location::Below(&prefix)).await {
                return Ok(refused.map(ProtectedBody::Refused));
            }
            let caller = parts.extensions.get::<Arc<Caller>>();
            let is_allowed = caller.is_some_and(|caller| caller.allows_all(protection.base_scopes()));
            let mut response = if is_allowed {
                parts.headers.remove(header::AUTHORIZATION);
                parts.headers.remove(HEADER);
                parts.extensions.insert(protection);
                service.call(Request::from_parts(parts, body)).await?.map(ProtectedBody::Service)
            } else {
                let caller = caller.map(|caller| &**caller);
                protection.refuse_scopes(None, &Scopes::new(), caller).map(ProtectedBody::Refused)
            };
            if let Some(next) = next_nonce {
                next.add_to(&mut response);
            }
            Ok(response)
        })
    }
}

/// The body of a response of a protected service.
#[derive(Debug)]
pub enum ProtectedBody<R> {
    /// The request was refused.
    Refused(Body),
    /// The service answered.
    Service(R),
}

impl<R: http_body::Body<Data = Bytes> + Unpin> http_body::Body for ProtectedBody<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        match self.get_mut() {
            Self::Refused(body) => Pin::new(body)
                .poll_frame(context)
                .map(|next| next.map(|frame| frame.map_err(|never: Infallible| match never {}))),
            Self::Service(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Refused(body) => body.is_end_stream(),
            Self::Service(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Refused(body) => body.size_hint(),
            Self::Service(body) => body.size_hint(),
        }
    }
}
