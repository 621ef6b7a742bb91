//! Filters requests before the endpoint: authentication, and other paths on the same socket.

use super::Body;
use bowline_server::BoxFuture;
use http::{Response, request::Parts};
use std::fmt;

/// Checks every request after its `Host` and `Origin`, and before the endpoint: authentication, further paths.
///
/// ```
/// use bowline_http::{Body, HttpOptions, Principal, RequestFilter};
/// use bowline_server::BoxFuture;
/// use http::{Response, StatusCode, header, request::Parts};
///
/// /// Lets a request pass whose token the directory knows.
/// #[derive(Debug)]
/// struct Tokens;
///
/// #[derive(Clone)]
/// struct User {
///     name: String,
/// }
///
/// # async fn find_user(_token: &str) -> Option<User> { None }
/// impl RequestFilter for Tokens {
///     fn check<'a>(&'a self, request: &'a mut Parts) -> BoxFuture<'a, Option<Response<Body>>> {
///         Box::pin(async move {
///             let header = request.headers.get(header::AUTHORIZATION)?.to_str().unwrap_or_default();
///             let Some(user) = find_user(header).await else {
///                 let mut response = Response::new(Body::from("unknown token"));
///                 *response.status_mut() = StatusCode::UNAUTHORIZED;
///                 return Some(response);
///             };
///             request.extensions.insert(Principal(user.name.as_str().into()));
///             // Handlers find it with `ctx.extension::<User>()`.
///             request.extensions.insert(user);
///             None
///         })
///     }
/// }
///
/// let options = HttpOptions::new().filter(Tokens);
/// ```
pub trait RequestFilter: fmt::Debug + Send + Sync + 'static {
    /// Answers in the endpoint's place, or lets the request pass with `None`. What it puts into the extensions of the
    /// request, such as a [`Principal`](super::Principal), reaches the endpoint and its handlers.
    ///
    /// It sees requests for any path. One that it lets pass, and that is not for the endpoint, is answered with 404.
    fn check<'a>(&'a self, request: &'a mut Parts) -> BoxFuture<'a, Option<Response<Body>>>;

    /// Returns whether it accepts the credentials of a request to an endpoint that is protected with access tokens.
    /// Such a request needs no access token, and has no caller and no scopes; [`check`](Self::check) sees it without
    /// its `Authorization` header. By default it accepts none.
    ///
    /// It can put a [`Principal`](super::Principal) into the extensions of a request that it accepts.
    fn accepts(&self, _request: &mut Parts) -> bool {
        false
    }

    /// Returns whether other sites may lead a browser to this page, by a link or a redirect that opens it in a window. It is
    /// asked only about such requests, and not about the endpoint. By default other sites can lead nowhere.
    ///
    /// An authorization server redirects browsers like this.
    fn allows_navigation(&self, _request: &Parts) -> bool {
        false
    }

    /// Answers a request for any `Host`, before [`check`](Self::check): for health checks, which ask by address. Web pages
    /// of other origins are still refused. By default it answers none.
    fn check_any_host(&self, _request: &Parts) -> Option<Response<Body>> {
        None
    }
}
