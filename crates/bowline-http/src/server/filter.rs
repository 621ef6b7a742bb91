//! What may stand before the endpoint: who is let through, and what else is answered on its socket.

use super::Body;
use http::{Response, request::Parts};
use std::fmt;

/// Looks at every request after `Host` and `Origin` were found good, and before the endpoint does.
///
/// ```
/// use bowline_http::{Body, RequestFilter, HttpOptions};
/// use http::{Response, request::Parts};
///
/// #[derive(Debug)]
/// struct Health;
///
/// impl RequestFilter for Health {
///     fn check(&self, request: &mut Parts) -> Option<Response<Body>> {
///         (request.uri.path() == "/healthz").then(|| Response::new(Body::from("ok")))
///     }
/// }
///
/// let settings = HttpOptions::new().filter(Health);
/// ```
pub trait RequestFilter: fmt::Debug + Send + Sync + 'static {
    /// Answers in the endpoint's place, or lets the request pass. What is put into its extensions, such as a
    /// [`Principal`](super::Principal), reaches the endpoint.
    ///
    /// It sees requests for any path. One that it lets pass, and that is not for the endpoint, is answered with 404. It
    /// must not block.
    fn check(&self, request: &mut Parts) -> Option<Response<Body>>;

    /// Answers a request for any `Host`, before [`check`](Self::check): for health checks, which ask by address. Web pages
    /// of other origins are still refused. By default it answers none.
    fn check_any_host(&self, _request: &Parts) -> Option<Response<Body>> {
        None
    }
}
