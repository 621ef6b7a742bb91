//! What a host tells about itself: numbers for Prometheus, and traces for OpenTelemetry.
//!
//! [`Metrics`] counts, and is rendered when somebody asks. A [`Tracer`] makes [`Span`]s, which join the trace that a
//! message belongs to; an [`Exporter`] sends them in batches. Neither ever makes a call wait, and nothing leaves the
//! machine unless an exporter is started.

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
mod upstream;

pub use exporter::{ExportCounts, Exporter, Traces, TracesError};
pub use metrics::{ActiveSession, MetricLimits, Metrics};
pub use operation::{Operation, Transport};
pub use prometheus::CONTENT_TYPE;
pub use span::{Random, Sources, Span, SpanEnd, Tracer};
pub use upstream::{CallEnd, ConsentDecision, UpstreamMetrics, UpstreamState};
