//! Calls that take too long are given up.

use bowline_proto::service::{BoxFuture, Call, Middleware, Next, Notifier, Outcome};
use bowline_types::RpcError;
use std::time::Duration;

/// Fails a call whose round takes longer than the given time. The time a user takes to answer does not count.
#[derive(Clone, Copy, Debug)]
pub struct Timeout(pub Duration);

impl Middleware for Timeout {
    fn call<'a>(&'a self, call: Call, notifier: Notifier, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let label = call.label();
            match tokio::time::timeout(self.0, next.run(call, notifier)).await {
                Ok(outcome) => outcome,
                Err(_) => {
                    Outcome::Failed(RpcError::internal(format!("{label} took longer than {:?}", self.0)))
                }
            }
        })
    }
}
