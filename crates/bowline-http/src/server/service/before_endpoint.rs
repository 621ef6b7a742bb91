//! Decides whether a request reaches the endpoint: its host, origin and token, and the application's filter.

use super::HttpService;
#[cfg(feature = "auth")]
use crate::server::{
    access::AcceptedByFilter,
    auth::{
        dpop::{self, NextNonce},
        metadata::At,
        protection::Location,
    },
};
use crate::server::{
    body::Body,
    cors,
    guard::{self, Refusal},
    reply,
};
#[cfg(feature = "auth")]
use http::header;
use http::{Request, Response, StatusCode, request::Parts};
#[cfg(feature = "auth")]
use std::sync::Arc;

/// Which part of the socket a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Endpoint,
    Elsewhere,
}

impl HttpService {
    /// Answers what is not for the endpoint.
    pub(in crate::server) async fn answer_other_path<B>(&self, request: Request<B>) -> Response<Body> {
        let mut parts = request.into_parts().0;
        let options = &self.shared.options;
        let origin = cors::origin(options, &parts.headers);
        let answered = self.answer_before_endpoint(&mut parts, Place::Elsewhere).await;
        let mut response = answered.unwrap_or_else(|| reply::refusal(StatusCode::NOT_FOUND, "not found"));
        if options.cors {
            cors::allow(response.headers_mut(), origin);
        }
        response
    }

    /// Answers a request that the endpoint does not get to see: one that is refused, or for something else.
    pub(super) async fn answer_before_endpoint(
        &self,
        parts: &mut Parts,
        place: Place,
    ) -> Option<Response<Body>> {
        let options = &self.shared.options;
        if let Some(filter) = &options.filter
            && let Some(response) = filter.check_any_host(parts)
            && guard::check_origin(options, &parts.uri, &parts.headers).is_ok()
        {
            return Some(response);
        }
        // Without a filter or metadata there is nothing at other paths, whoever asks.
        if place == Place::Elsewhere && options.filter.is_none() && !self.is_protected() {
            return None;
        }
        if let Err(refusal) = guard::check_host(options, &parts.uri, &parts.headers) {
            return Some(self.refuse(refusal, parts));
        }
        #[cfg(feature = "auth")]
        if let Some(protection) = self.shared.protection() {
            // Where nothing else is on the socket, the metadata is that of the whole origin.
            let at = if place == Place::Elsewhere { At::RootToo } else { At::OwnPath };
            if let Some(response) = protection.answer_metadata(parts, at) {
                return Some(response);
            }
        }
        let is_led_here = place == Place::Elsewhere
            && guard::is_navigation(parts)
            && options.filter.as_ref().is_some_and(|filter| filter.allows_navigation(parts));
        if !is_led_here && let Err(refusal) = guard::check_origin(options, &parts.uri, &parts.headers) {
            return Some(self.refuse(refusal, parts));
        }
        if let Some(response) = cors::preflight(options, parts) {
            return Some(response);
        }
        #[cfg(feature = "auth")]
        if place == Place::Endpoint {
            match &self.shared.protection {
                Some(Ok(_)) if options.filter.as_ref().is_some_and(|filter| filter.accepts(parts)) => {
                    parts.extensions.insert(AcceptedByFilter);
                    parts.extensions.remove::<Arc<bowline_proto::caller::Caller>>();
                    parts.headers.remove(header::AUTHORIZATION);
                }
                Some(Ok(protection)) => {
                    if let Some(response) = protection.authenticate(parts, Location::Resource).await {
                        return Some(*response);
                    }
                    // What comes next needs the caller and not the token, and so cannot pass the token on.
                    parts.headers.remove(header::AUTHORIZATION);
                    parts.headers.remove(dpop::HEADER);
                }
                Some(Err(error)) => {
                    return Some(reply::refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()));
                }
                None => {}
            }
        }
        match &options.filter {
            Some(filter) => filter.check(parts).await,
            None => None,
        }
    }

    /// Returns the nonce for the response, which is known after the proof of the request is checked.
    #[cfg(feature = "auth")]
    pub(super) fn expect_nonce(&self, parts: &mut Parts) -> Option<NextNonce> {
        self.shared.protection()?.expect_nonce(&mut parts.extensions)
    }

    fn is_protected(&self) -> bool {
        #[cfg(feature = "auth")]
        return self.shared.protection.is_some();
        #[cfg(not(feature = "auth"))]
        false
    }

    /// Refuses a request because of its `Host` or `Origin`.
    pub(super) fn refuse(&self, refusal: Refusal, parts: &Parts) -> Response<Body> {
        let reason = refusal.reason(&self.shared.options, &parts.uri, &parts.headers);
        let status = match refusal {
            Refusal::BadHost => StatusCode::BAD_REQUEST,
            Refusal::ForeignHost | Refusal::ForeignOrigin => StatusCode::FORBIDDEN,
        };
        self.shared.refused.log(&reason);
        reply::refusal(status, &reason)
    }
}
