//! The task that sends spans in batches, with retries.

use super::{
    exporter::Counts,
    otlp::{Resource, body},
    span::{Random, Recorded},
};
use bowline_http::{Post, PostAnswer};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep, sleep_until, timeout},
};

/// The first retry delay, if the collector does not request one.
const FIRST_WAIT: Duration = Duration::from_secs(1);

pub(super) struct ExportTask {
    pub(super) post: Arc<dyn Post>,
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) resource: Resource,
    pub(super) batch: usize,
    pub(super) interval: Duration,
    pub(super) timeout: Duration,
    pub(super) attempts: u32,
    pub(super) max_wait: Duration,
    pub(super) random: Random,
    pub(super) counts: Arc<Counts>,
    pub(super) stopped: watch::Receiver<bool>,
    pub(super) is_failing: bool,
}

/// The result of an attempt.
enum Attempt {
    /// The collector accepted all but this many spans.
    Taken { rejected: u64 },
    /// The collector may accept them later.
    Later { reason: String, wait: Option<Duration> },
    /// The collector rejected them.
    Never { reason: String },
}

impl ExportTask {
    pub(super) async fn run(mut self, mut spans: mpsc::Receiver<Recorded>) {
        let mut batch = Vec::new();
        loop {
            if self.is_stopped() {
                spans.close();
            }
            let more = self.gather(&mut spans, &mut batch).await;
            if !batch.is_empty() {
                self.send(&batch).await;
                batch.clear();
            }
            if !more {
                return;
            }
        }
    }

    fn is_stopped(&self) -> bool {
        *self.stopped.borrow() || self.stopped.has_changed().is_err()
    }

    /// Fills a batch. Returns whether there may be more spans.
    async fn gather(&mut self, spans: &mut mpsc::Receiver<Recorded>, batch: &mut Vec<Recorded>) -> bool {
        let mut deadline: Option<Instant> = None;
        while batch.len() < self.batch {
            let left = self.batch - batch.len();
            let is_stopped = self.is_stopped();
            let due = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                taken = spans.recv_many(batch, left) => {
                    if taken == 0 {
                        return false;
                    }
                    deadline = deadline.or_else(|| Some(Instant::now() + self.interval));
                }
                () = due => return true,
                _ = self.stopped.changed(), if !is_stopped => return true,
            }
        }
        true
    }

    /// Sends a batch, with retries.
    async fn send(&mut self, batch: &[Recorded]) {
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let body = match body(&self.resource, batch) {
            Ok(body) => Bytes::from(body),
            Err(error) => return self.drop_batch(count, &error.to_string()),
        };
        let mut wait = FIRST_WAIT;
        for attempt in 1..=self.attempts {
            match self.attempt(body.clone()).await {
                Attempt::Taken { rejected } => {
                    let rejected = rejected.min(count);
                    self.counts.exported.fetch_add(count - rejected, Ordering::Relaxed);
                    self.counts.failed.fetch_add(rejected, Ordering::Relaxed);
                    if std::mem::take(&mut self.is_failing) {
                        tracing::info!("trace export works again");
                    }
                    return;
                }
                Attempt::Never { reason } => return self.drop_batch(count, &reason),
                Attempt::Later { reason, .. } if attempt == self.attempts => {
                    return self.drop_batch(count, &reason);
                }
                // When the host stops, retry once without a delay.
                Attempt::Later { reason, .. } if self.is_stopped() && attempt > 1 => {
                    return self.drop_batch(count, &reason);
                }
                Attempt::Later { wait: asked, .. } => {
                    let pause = asked.unwrap_or_else(|| self.jittered(wait)).min(self.max_wait);
                    wait = wait.saturating_mul(2).min(self.max_wait);
                    self.pause(pause).await;
                }
            }
        }
    }

    /// Waits, unless the host stops.
    async fn pause(&mut self, pause: Duration) {
        if !self.is_stopped() {
            tokio::select! {
                () = sleep(pause) => {}
                _ = self.stopped.changed() => {}
            }
        }
    }

    /// Returns a random duration between half of `wait` and `wait`, so that many hosts do not retry at the same time.
    fn jittered(&self, wait: Duration) -> Duration {
        let mut byte = [0];
        (self.random)(&mut byte);
        let [share] = byte;
        wait / 2 + wait / 2 * u32::from(share) / u32::from(u8::MAX)
    }

    fn drop_batch(&mut self, count: u64, reason: &str) {
        self.counts.failed.fetch_add(count, Ordering::Relaxed);
        // Log only the first failure of a series.
        if !std::mem::replace(&mut self.is_failing, true) {
            tracing::warn!(reason, "cannot export traces");
        }
    }

    async fn attempt(&self, body: Bytes) -> Attempt {
        let later = |reason: String| Attempt::Later { reason, wait: None };
        match timeout(self.timeout, self.post.post(&self.url, self.headers.clone(), body)).await {
            Ok(Ok(answer)) => classify(&answer),
            Ok(Err(error)) => later(error.to_string()),
            Err(_) => later(format!("no answer within {:?}", self.timeout)),
        }
    }
}

fn classify(answer: &PostAnswer) -> Attempt {
    let reason = format!("the collector responded with {}", answer.status);
    match answer.status {
        status if status.is_success() => Attempt::Taken { rejected: rejected(&answer.body) },
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Attempt::Later { reason, wait: retry_after(&answer.headers) },
        _ => Attempt::Never { reason },
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Returns the number of rejected spans: a number, or a number in a string, as in OTLP.
fn rejected(body: &[u8]) -> u64 {
    #[derive(Deserialize, Default)]
    #[serde(default, rename_all = "camelCase")]
    struct Answer {
        partial_success: Partial,
    }

    #[derive(Deserialize, Default)]
    #[serde(default, rename_all = "camelCase")]
    struct Partial {
        rejected_spans: serde_json::Value,
    }

    let answer: Answer = serde_json::from_slice(body).unwrap_or_default();
    let count = answer.partial_success.rejected_spans;
    count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or_default()
}
