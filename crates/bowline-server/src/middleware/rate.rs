//! Only so many calls in a time, per user.

use bowline_proto::caller::user_of;
use bowline_proto::service::{BoxFuture, Call, Middleware, Next, Notifier, Outcome};
use bowline_types::{Method, RawJson, RpcError};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// The maximum number of principals. Beyond it, those that were idle longest are forgotten; they start with a full
/// allowance.
const MAX_PRINCIPALS: usize = 10_000;

/// Refuses calls of a user who makes too many, whichever clients it uses. Callers without a principal share one allowance.
///
/// Tools, resources, prompts, completion and custom methods count; lists do not.
#[derive(Debug)]
pub struct RateLimit {
    calls: f64,
    per: Duration,
    buckets: Mutex<HashMap<Option<Arc<str>>, Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    allowance: f64,
    seen: Instant,
}

impl RateLimit {
    /// Allows `calls` in a burst, refilled evenly in the course of `per`.
    pub fn new(calls: u32, per: Duration) -> Self {
        Self { calls: f64::from(calls.max(1)), per, buckets: Mutex::default() }
    }

    /// Takes one call from the principal's allowance; otherwise, how long until there is one again.
    fn take(&self, principal: Option<&Arc<str>>, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let principal = principal.map(user_of);
        if buckets.len() >= MAX_PRINCIPALS && !buckets.contains_key(&principal) {
            buckets.retain(|_, bucket| now.duration_since(bucket.seen) < self.per);
            let longest =
                buckets.iter().min_by_key(|(_, bucket)| bucket.seen).map(|(known, _)| known.clone());
            if let Some(longest) = longest.filter(|_| buckets.len() >= MAX_PRINCIPALS) {
                buckets.remove(&longest);
            }
        }
        let full = Bucket { allowance: self.calls, seen: now };
        let bucket = buckets.entry(principal).or_insert(full);
        let refill = now.duration_since(bucket.seen).as_secs_f64() * self.calls / self.per.as_secs_f64();
        bucket.allowance = (bucket.allowance + refill).min(self.calls);
        bucket.seen = now;
        if bucket.allowance >= 1.0 {
            bucket.allowance -= 1.0;
            return Ok(());
        }
        Err(self.per.mul_f64((1.0 - bucket.allowance) / self.calls))
    }
}

impl Middleware for RateLimit {
    fn call<'a>(&'a self, call: Call, notifier: Notifier, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let counts = matches!(
            call.method.known(),
            Some(Method::CallTool | Method::ReadResource | Method::GetPrompt | Method::Complete) | None
        );
        if counts && let Err(wait) = self.take(call.client.principal.as_ref(), Instant::now()) {
            let wait = wait.as_millis();
            let mut error = RpcError::internal(format!("too many calls; try again in {wait} ms"));
            error.data = RawJson::parse(format!("{{\"retryAfterMs\":{wait}}}")).ok();
            return Box::pin(std::future::ready(Outcome::Failed(error)));
        }
        next.run(call, notifier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_allowance_is_used_up_and_refilled_per_principal() {
        let limit = RateLimit::new(2, Duration::from_secs(10));
        let ada: Arc<str> = "ada".into();
        let now = Instant::now();
        assert!(limit.take(Some(&ada), now).is_ok());
        assert!(limit.take(Some(&ada), now).is_ok());
        assert_eq!(limit.take(Some(&ada), now), Err(Duration::from_secs(5)));
        assert!(limit.take(None, now).is_ok());
        assert!(limit.take(Some(&ada), now + Duration::from_secs(5)).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_principals_are_remembered_and_no_more() {
        let limit = RateLimit::new(1, Duration::from_secs(1_000_000));
        let principal = |number: usize| -> Arc<str> { number.to_string().into() };
        for number in 0..MAX_PRINCIPALS + 10 {
            assert!(limit.take(Some(&principal(number)), Instant::now()).is_ok());
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(limit.buckets.lock().unwrap().len(), MAX_PRINCIPALS);
        assert!(limit.take(Some(&principal(MAX_PRINCIPALS)), Instant::now()).is_err());
        assert!(limit.take(Some(&principal(0)), Instant::now()).is_ok());
    }
}
