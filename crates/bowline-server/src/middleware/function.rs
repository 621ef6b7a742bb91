//! Middleware from a function.

use bowline_proto::service::{BoxFuture, Call, Middleware, Next, NextCall, Notifier, Outcome};
use std::{fmt, future::Future};

/// Makes a middleware from an async function of the call and the rest of the chain.
///
/// ```
/// use bowline_server::{Server, middleware::from_fn};
///
/// let server = Server::new("demo").layer(from_fn(|mut call, next| async move {
///     call.extensions.insert(std::time::Instant::now());
///     let label = call.label();
///     let outcome = next.run(call).await;
///     eprintln!("{label}: {}", outcome.kind().as_str());
///     outcome
/// }));
/// ```
pub fn from_fn<F, Fut>(function: F) -> FromFn<F>
where
    F: Fn(Call, NextCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send + 'static,
{
    FromFn(function)
}

/// A middleware made by [`from_fn`].
#[derive(Clone, Copy)]
pub struct FromFn<F>(F);

impl<F, Fut> Middleware for FromFn<F>
where
    F: Fn(Call, NextCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send + 'static,
{
    fn call<'a>(&'a self, call: Call, notifier: Notifier, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let next = next.to_owned(notifier);
        Box::pin(async move { (self.0)(call, next).await })
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFn").finish_non_exhaustive()
    }
}
