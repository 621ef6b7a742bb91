//! Metrics for Prometheus and traces for OpenTelemetry.
//!
//! [`Metrics`] counts, and is rendered on request. A [`Tracer`] creates [`Span`]s that join the trace of a message; an
//! [`Exporter`] sends them in batches. Neither delays a call, and nothing leaves the machine unless an exporter is started.

mod counters;
mod export_task;
mod exporter;
mod label;
mod metrics;
mod operation;
mod otlp;
mod prometheus;
mod span;
mod span_context;
mod store_page;
mod upstream;

pub use exporter::{ExportCounts, Exporter, Traces, TracesError};
pub use metrics::{ActiveSession, MetricLimits, Metrics};
pub use operation::{Operation, Transport};
pub use prometheus::CONTENT_TYPE;
pub use span::{Random, Sources, Span, SpanEnd, Tracer};
pub use store_page::{server_page, store_page, streams_page};
pub use upstream::{CallEnd, ConsentDecision, UpstreamMetrics, UpstreamState};
