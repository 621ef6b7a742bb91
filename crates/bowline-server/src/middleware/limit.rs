//! Limits the number of concurrent calls.

use bowline_proto::service::{BoxFuture, Call, Middleware, Next, Notifier, Outcome};
use bowline_types::RpcError;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Lets a number of calls run at once; further ones wait their turn.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit(Arc<Semaphore>);

impl ConcurrencyLimit {
    /// Lets `calls` run at once; at least one.
    pub fn new(calls: usize) -> Self {
        Self(Arc::new(Semaphore::new(calls.max(1))))
    }
}

impl Middleware for ConcurrencyLimit {
    fn call<'a>(&'a self, call: Call, notifier: Notifier, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let Ok(_permit) = self.0.acquire().await else {
                return Outcome::Failed(RpcError::internal("the server no longer accepts calls"));
            };
            next.run(call, notifier).await
        })
    }
}
