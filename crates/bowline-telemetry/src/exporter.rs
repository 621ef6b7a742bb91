//! Exports spans over OTLP: a bounded queue, and a task that sends batches.

use super::{
    export_task::ExportTask,
    otlp::Resource,
    span::{Recorded, Recorder, Sources, Tracer},
};
use bowline_http::Post;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::{
    error::Error,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::timeout,
};

/// Configures the export of traces.
///
/// ```no_run
/// # fn example(random: bowline_telemetry::Random) -> Result<(), Box<dyn std::error::Error>> {
/// use bowline_telemetry::{Sources, Traces};
/// use bowline_http::Poster;
/// use std::{sync::Arc, time::SystemTime};
///
/// let sources = Sources { random, now: Arc::new(SystemTime::now) };
/// let (tracer, exporter) = Traces::to("http://127.0.0.1:4318").start(Arc::new(Poster::new()), sources)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Traces {
    endpoint: String,
    headers: Vec<(String, String)>,
    resource: Vec<(String, String)>,
    one_in: u32,
    queue: usize,
    batch: usize,
    interval: Duration,
    timeout: Duration,
    attempts: u32,
    max_wait: Duration,
}

impl Traces {
    /// Creates settings for a collector. Traces are posted to `{endpoint}/v1/traces`.
    pub fn to(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            headers: Vec::new(),
            resource: vec![
                ("service.name".into(), "bowline".into()),
                ("service.version".into(), env!("CARGO_PKG_VERSION").into()),
            ],
            one_in: 1,
            queue: 2_048,
            batch: 512,
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(10),
            attempts: 5,
            max_wait: Duration::from_secs(30),
        }
    }

    /// Adds a header, such as the API key of a collector.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets a resource attribute, such as `service.instance.id`. Replaces an earlier value of the key.
    #[must_use]
    pub fn resource(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let key = key.into();
        self.resource.retain(|(known, _)| *known != key);
        self.resource.push((key, value.into()));
        self
    }

    /// Records one of this many traces that start here. Default: 1, which is all of them. Traces of a caller are
    /// recorded if the caller records them.
    #[must_use]
    pub fn one_in(mut self, traces: u32) -> Self {
        self.one_in = traces;
        self
    }

    /// Sets the length of the queue. Default: 2048 spans. When it is full, spans are dropped and counted.
    #[must_use]
    pub fn queue(mut self, spans: usize) -> Self {
        self.queue = spans;
        self
    }

    /// Sets the maximum size of a batch. Default: 512 spans.
    #[must_use]
    pub fn batch(mut self, spans: usize) -> Self {
        self.batch = spans;
        self
    }

    /// Sets the maximum time that a span waits for a batch. Default: 5 s.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Sets the time limit for a response of the collector. Default: 10 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the number of attempts per batch. Default: 5.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets the maximum retry delay, regardless of what the collector requests. Default: 30 s.
    #[must_use]
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }

    /// Starts exporting in a task of the current runtime.
    ///
    /// Fails if a header is invalid. The endpoint is not checked until spans are sent.
    pub fn start(self, post: Arc<dyn Post>, sources: Sources) -> Result<(Tracer, Exporter), TracesError> {
        let headers = headers(&self.headers)?;
        let counts = Arc::new(Counts::default());
        let (sender, receiver) = mpsc::channel(self.queue.max(1));
        let (stop, stopped) = watch::channel(false);
        let sending = ExportTask {
            post,
            url: format!("{}/v1/traces", self.endpoint.trim_end_matches('/')),
            headers,
            resource: Resource(self.resource),
            batch: self.batch.max(1),
            interval: self.interval,
            timeout: self.timeout,
            attempts: self.attempts.max(1),
            max_wait: self.max_wait,
            random: Arc::clone(&sources.random),
            counts: Arc::clone(&counts),
            stopped,
            is_failing: false,
        };
        let task = tokio::spawn(sending.run(receiver));
        let queue = Queue { sender, counts: Arc::clone(&counts) };
        let tracer = Tracer::new(Recorder { queue, sources, one_in: self.one_in });
        Ok((tracer, Exporter { task, stop, counts }))
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Header values are often API keys.
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("Traces")
            .field("endpoint", &self.endpoint)
            .field("headers", &headers)
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}

fn headers(given: &[(String, String)]) -> Result<HeaderMap, TracesError> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let invalid = || TracesError(format!("header `{name}` cannot be sent"));
        let key = HeaderName::try_from(name).map_err(|_| invalid())?;
        let mut value = HeaderValue::try_from(value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    let agent = concat!("bowline/", env!("CARGO_PKG_VERSION"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(headers)
}

/// An error in the settings for traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracesError(String);

impl fmt::Display for TracesError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Error for TracesError {}

/// The number of spans by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportCounts {
    /// Accepted by the collector.
    pub exported: u64,
    /// Dropped because the queue was full.
    pub dropped: u64,
    /// Sent without success.
    pub failed: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    queued: AtomicU64,
    pub(super) exported: AtomicU64,
    dropped: AtomicU64,
    pub(super) failed: AtomicU64,
}

impl Counts {
    pub(super) fn snapshot(&self) -> ExportCounts {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ExportCounts {
            exported: value(&self.exported),
            dropped: value(&self.dropped),
            failed: value(&self.failed),
        }
    }
}

/// The queue of finished spans. Adding a span never waits.
#[derive(Debug)]
pub(super) struct Queue {
    sender: mpsc::Sender<Recorded>,
    counts: Arc<Counts>,
}

impl Queue {
    pub(super) fn push(&self, span: Recorded) {
        let counter = match self.sender.try_send(span) {
            Ok(()) => &self.counts.queued,
            Err(_) => &self.counts.dropped,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Sends spans until it is shut down. Dropping it stops immediately and loses spans that were not sent.
#[derive(Debug)]
pub struct Exporter {
    task: JoinHandle<()>,
    stop: watch::Sender<bool>,
    counts: Arc<Counts>,
}

impl Exporter {
    /// Returns the number of spans by result.
    pub fn counts(&self) -> ExportCounts {
        self.counts.snapshot()
    }

    pub(super) fn shared_counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// Sends the queued spans without retry delays, and stops, at the latest after `within`. Spans that finish later
    /// are dropped.
    pub async fn shutdown(mut self, within: Duration) -> ExportCounts {
        let _ = self.stop.send(true);
        if timeout(within, &mut self.task).await.is_err() {
            self.task.abort();
            // After the end of the task the counts are final.
            let _ = (&mut self.task).await;
        }
        let mut counts = self.counts();
        counts.failed = self.counts.queued.load(Ordering::Relaxed).saturating_sub(counts.exported);
        counts
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.task.abort();
    }
}
