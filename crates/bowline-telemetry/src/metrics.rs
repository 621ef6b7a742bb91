//! The metrics of a host, with limits on their number.

use super::{
    exporter::{Counts, Exporter},
    label::sanitize,
    prometheus,
    upstream::{OTHER, UpstreamMetrics},
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// The maximum number of label values. Further ones are counted under `_other`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricLimits {
    /// Upstreams. Default: 256.
    pub upstreams: usize,
    /// Tools per upstream. Default: 100. With 0, tools have no labels.
    pub tools: usize,
}

impl Default for MetricLimits {
    fn default() -> Self {
        Self { upstreams: 256, tools: 100 }
    }
}

/// The metrics of a host.
///
/// The number of labels is bounded: [`MetricLimits`] limits upstreams and tools, and other labels have fixed values.
///
/// ```
/// use bowline_telemetry::{CallEnd, Metrics};
/// use bowline_types::Method;
/// use std::time::Duration;
///
/// let metrics = Metrics::new();
/// metrics.upstream("github").called(Method::CallTool, CallEnd::Ok, Duration::from_millis(7));
/// let page = metrics.render();
/// assert!(page.contains(r#"bowline_calls_total{upstream="github",method="tools/call",outcome="ok"} 1"#));
/// ```
#[derive(Debug, Default)]
pub struct Metrics {
    limits: MetricLimits,
    upstreams: RwLock<BTreeMap<Arc<str>, Arc<UpstreamMetrics>>>,
    sessions: Arc<AtomicU64>,
    traces: OnceLock<Arc<Counts>>,
}

impl Metrics {
    /// Creates empty metrics with the default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates empty metrics.
    pub fn with_limits(limits: MetricLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Returns the metrics of an upstream. Call this once and keep the result.
    pub fn upstream(&self, name: &str) -> Arc<UpstreamMetrics> {
        let name = sanitize(name);
        let upstreams = self.upstreams.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(metrics) = upstreams.get(name.as_str()) {
            return Arc::clone(metrics);
        }
        drop(upstreams);
        let mut upstreams = self.upstreams.write().unwrap_or_else(PoisonError::into_inner);
        let is_full = upstreams.len() >= self.limits.upstreams;
        let name = if is_full && !upstreams.contains_key(name.as_str()) { OTHER } else { name.as_str() };
        let metrics =
            upstreams.entry(name.into()).or_insert_with(|| Arc::new(UpstreamMetrics::new(self.limits.tools)));
        Arc::clone(metrics)
    }

    /// Removes the metrics of an upstream that is no longer configured.
    pub fn forget(&self, name: &str) {
        self.upstreams.write().unwrap_or_else(PoisonError::into_inner).remove(sanitize(name).as_str());
    }

    /// Counts a session as active until the returned value is dropped.
    pub fn session(&self) -> ActiveSession {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        ActiveSession(Arc::clone(&self.sessions))
    }

    /// Adds the metrics of an exporter of traces. Only the first one is used.
    pub fn with_traces(&self, exporter: &Exporter) {
        let _ = self.traces.set(exporter.shared_counts());
    }

    /// Renders all metrics in the Prometheus text format 0.0.4. Serve it as [`CONTENT_TYPE`](super::CONTENT_TYPE).
    pub fn render(&self) -> String {
        let upstreams = self.upstreams.read().unwrap_or_else(PoisonError::into_inner);
        let upstreams: Vec<(Arc<str>, Arc<UpstreamMetrics>)> =
            upstreams.iter().map(|(name, metrics)| (Arc::clone(name), Arc::clone(metrics))).collect();
        let traces = self.traces.get().map(|counts| counts.snapshot());
        prometheus::render(&upstreams, self.sessions.load(Ordering::Relaxed), traces)
    }
}

/// An active session.
#[derive(Debug)]
pub struct ActiveSession(Arc<AtomicU64>);

impl Drop for ActiveSession {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
