//! Spans: when a call started and ended, and its trace.
//!
//! The trace context of the caller is received with the message and passed to the upstream, so that one trace covers
//! the host. A trace that the caller does not record is not recorded here either.

use super::{
    exporter::Queue,
    operation::{Attributes, Operation, Value, short},
    span_context::{SpanContext, flags, id},
};
use bowline_types::TraceContext;
use std::{fmt, sync::Arc, time::SystemTime};

/// Fills a buffer with random bytes.
pub type Random = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// The external inputs of a tracer.
#[derive(Clone)]
pub struct Sources {
    /// The source of trace ids.
    pub random: Random,
    /// The clock.
    pub now: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

impl fmt::Debug for Sources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sources").finish_non_exhaustive()
    }
}

/// Creates spans. The default tracer is disabled: its spans only pass on the trace context.
#[derive(Clone, Debug, Default)]
pub struct Tracer(Option<Arc<Recorder>>);

#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) queue: Queue,
    pub(super) sources: Sources,
    /// One of this many traces that start here is recorded.
    pub(super) one_in: u32,
}

/// The side of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Server,
    Client,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpanEnd {
    /// A result.
    Ok,
    /// A result with `isError`.
    ToolError,
    /// A JSON-RPC error.
    Rpc {
        /// Its code.
        code: i64,
        /// Its message.
        message: String,
    },
    /// Another failure, such as `timeout` or `denied`.
    Failed {
        /// The kind of the failure.
        kind: &'static str,
        /// What happened.
        message: String,
    },
}

impl Tracer {
    pub(super) fn new(recorder: Recorder) -> Self {
        Self(Some(Arc::new(recorder)))
    }

    /// Returns whether spans are recorded.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Creates a span for a call of a client, in the client's trace if there is one.
    pub fn server(&self, operation: Operation, caller: Option<TraceContext>) -> Span {
        let Some(recorder) = &self.0 else { return Span { context: caller, record: None } };
        let from = caller.as_ref().and_then(SpanContext::of);
        let random = recorder.sources.random.as_ref();
        let position = match from {
            Some(from) => SpanContext { span: id(random), ..from },
            None => recorder.root(),
        };
        let remote = from.map(|from| Parent { span: from.span, is_remote: true });
        recorder.begin(Kind::Server, operation, position, remote, caller)
    }
}

impl Recorder {
    fn root(&self) -> SpanContext {
        let random = self.sources.random.as_ref();
        let trace: [u8; 16] = id(random);
        let [.., a, b, c, d] = trace;
        let is_sampled = u32::from_be_bytes([a, b, c, d]).is_multiple_of(self.one_in.max(1));
        SpanContext { trace, span: id(random), flags: flags(is_sampled) }
    }

    fn begin(
        self: &Arc<Self>,
        kind: Kind,
        operation: Operation,
        position: SpanContext,
        parent: Option<Parent>,
        caller: Option<TraceContext>,
    ) -> Span {
        let context = TraceContext::new(position.traceparent()).map(|context| match caller {
            Some(TraceContext { tracestate, baggage, .. }) => TraceContext { tracestate, baggage, ..context },
            None => context,
        });
        let record = position.is_sampled().then(|| Record {
            recorder: Arc::clone(self),
            span: Some(Recorded {
                position,
                parent,
                tracestate: context.as_ref().and_then(|context| context.tracestate.clone()),
                kind,
                name: operation.name,
                attributes: operation.attributes,
                started: (self.sources.now)(),
                ended: SystemTime::UNIX_EPOCH,
                failure: None,
            }),
        });
        Span { context, record: Some(ActiveSpan { recorder: Arc::clone(self), position, record }) }
    }
}

/// A running call. If dropped unfinished, the call is recorded as cancelled.
#[derive(Debug)]
pub struct Span {
    context: Option<TraceContext>,
    record: Option<ActiveSpan>,
}

/// A span with its own id, recorded or not.
#[derive(Debug)]
struct ActiveSpan {
    recorder: Arc<Recorder>,
    position: SpanContext,
    record: Option<Record>,
}

/// A span that is exported when it ends or is dropped.
#[derive(Debug)]
struct Record {
    recorder: Arc<Recorder>,
    span: Option<Recorded>,
}

/// The parent of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) span: [u8; 8],
    pub(super) is_remote: bool,
}

/// A span to export.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) position: SpanContext,
    pub(super) parent: Option<Parent>,
    pub(super) tracestate: Option<String>,
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) attributes: Attributes,
    pub(super) started: SystemTime,
    pub(super) ended: SystemTime,
    /// The error message, if there is one.
    pub(super) failure: Option<String>,
}

impl Span {
    /// Returns the trace context for the `_meta` of messages that this call causes.
    pub fn context(&self) -> Option<&TraceContext> {
        self.context.as_ref()
    }

    /// Creates a span for a call to an upstream that this call causes.
    pub fn client(&self, operation: Operation) -> Self {
        let Some(ActiveSpan { recorder, position, .. }) = &self.record else {
            return Self { context: self.context.clone(), record: None };
        };
        let parent = Parent { span: position.span, is_remote: false };
        let position = SpanContext { span: id(recorder.sources.random.as_ref()), ..*position };
        recorder.begin(Kind::Client, operation, position, Some(parent), self.context.clone())
    }

    /// Ends the call.
    pub fn finish(self, end: SpanEnd) {
        if let Some(record) = self.record.and_then(|active| active.record) {
            record.finish(end);
        }
    }
}

impl Record {
    fn finish(mut self, end: SpanEnd) {
        self.export(end);
    }

    fn export(&mut self, end: SpanEnd) {
        let Some(mut span) = self.span.take() else { return };
        let (kind, message) = match end {
            SpanEnd::Ok => (None, None),
            SpanEnd::ToolError => (Some(Value::Static("tool_error")), Some(String::new())),
            SpanEnd::Rpc { code, message } => {
                let code = Value::Text(code.to_string());
                span.attributes.push(("rpc.response.status_code", code.clone()));
                (Some(code), Some(message))
            }
            SpanEnd::Failed { kind, message } => (Some(Value::Static(kind)), Some(message)),
        };
        span.attributes.extend(kind.map(|kind| ("error.type", kind)));
        span.failure = message.map(|message| short(&message));
        span.ended = (self.recorder.sources.now)().max(span.started);
        self.recorder.queue.push(span);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let cancelled = "the call was cancelled".to_owned();
        self.export(SpanEnd::Failed { kind: "cancelled", message: cancelled });
    }
}
