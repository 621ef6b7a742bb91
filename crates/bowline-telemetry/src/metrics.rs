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

/// How many labels there may be. What comes later is counted under `_other`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricLimits {
    /// Upstreams: 256.
    pub upstreams: usize,
    /// Tools of each upstream: 100. With 0 no tool has a label.
    pub tools: usize,
}

impl Default for MetricLimits {
    fn default() -> Self {
        Self { upstreams: 256, tools: 100 }
    }
}

/// The numbers of a host.
///
/// Labels are bounded: upstreams and tools by [`MetricLimits`], everything else by what the protocol has.
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
    /// No numbers yet, with the default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// No numbers yet.
    pub fn with_limits(limits: MetricLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The numbers of an upstream. Whoever deals with it should ask once, and keep what comes back.
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

    /// Forgets the numbers of an upstream that is no longer configured.
    pub fn forget(&self, name: &str) {
        self.upstreams.write().unwrap_or_else(PoisonError::into_inner).remove(sanitize(name).as_str());
    }

    /// A session was opened; it counts as active until what comes back is dropped.
    pub fn session(&self) -> ActiveSession {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        ActiveSession(Arc::clone(&self.sessions))
    }

    /// Tells of what an exporter of traces does as well; of the first one that is given.
    pub fn with_traces(&self, exporter: &Exporter) {
        let _ = self.traces.set(exporter.shared_counts());
    }

    /// Everything as Prometheus reads it, text format 0.0.4. Serve it as [`CONTENT_TYPE`](super::CONTENT_TYPE).
    pub fn render(&self) -> String {
        let upstreams = self.upstreams.read().unwrap_or_else(PoisonError::into_inner);
        let upstreams: Vec<(Arc<str>, Arc<UpstreamMetrics>)> =
            upstreams.iter().map(|(name, metrics)| (Arc::clone(name), Arc::clone(metrics))).collect();
        let traces = self.traces.get().map(|counts| counts.snapshot());
        prometheus::render(&upstreams, self.sessions.load(Ordering::Relaxed), traces)
    }
}

/// A session that is counted as active.
#[derive(Debug)]
pub struct ActiveSession(Arc<AtomicU64>);

impl Drop for ActiveSession {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
