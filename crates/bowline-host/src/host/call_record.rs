//! Records every call: metrics, and spans in the trace of its caller.

use super::route::{Route, Subject};
use bowline_policy::Refusal;
use bowline_proto::service::{Call, Outcome, Reply};
use bowline_telemetry::{CallEnd, Metrics, Operation, Span, SpanEnd, Tracer, UpstreamMetrics};
use bowline_types::{Meta, Method, RpcError};
use std::{sync::Arc, time::Instant};

/// Where a host records what it does. By default it counts, and makes no traces.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Telemetry {
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// Creates the spans.
    pub tracer: Tracer,
}

/// Records one round of a call as soon as its server is known. Dropping it before its end records a cancellation.
pub(super) struct CallRecord<'a> {
    telemetry: &'a Telemetry,
    started: Instant,
    routed: Option<Routed>,
}

/// What is recorded of a call that goes on after its round.
#[derive(Default)]
pub(super) struct RecordedCall(Option<(Instant, Routed)>);

/// What is known when the call has a route.
struct Routed {
    metrics: Arc<UpstreamMetrics>,
    upstream: Arc<str>,
    method: Method,
    tool: Option<String>,
    server_span: Span,
    client_span: Option<Span>,
}

impl<'a> CallRecord<'a> {
    pub(super) fn new(telemetry: &'a Telemetry) -> Self {
        Self { telemetry, started: Instant::now(), routed: None }
    }

    /// Continues a record.
    pub(super) fn continued(telemetry: &'a Telemetry, recorded: RecordedCall) -> Self {
        let mut record = Self::new(telemetry);
        record.take_back(recorded);
        record
    }

    /// Returns what was recorded. Somebody else records the end.
    pub(super) fn hand_over(&mut self) -> RecordedCall {
        RecordedCall(self.routed.take().map(|routed| (self.started, routed)))
    }

    /// Takes back what was handed over.
    pub(super) fn take_back(&mut self, recorded: RecordedCall) {
        if let Some((started, routed)) = recorded.0 {
            (self.started, self.routed) = (started, Some(routed));
        }
    }

    /// Records the server of the call.
    pub(super) fn routed(&mut self, route: &Route, call: &Call) {
        // Only for methods of the protocol: names that a caller makes up would grow the metrics.
        let Some(method) = call.method.known() else { return };
        let caller = call.params.meta().ok().flatten().and_then(|meta| meta.members().ok());
        let caller = caller.and_then(|members| Meta::from(members).trace_context());
        let mut operation = Operation::new(method).revision(call.client.revision);
        operation = match method {
            Method::CallTool => operation.tool(&call.params.name().unwrap_or_default()),
            Method::GetPrompt => operation.prompt(&call.params.name().unwrap_or_default()),
            Method::ReadResource => operation.resource(&call.params.uri().unwrap_or_default()),
            _ => operation,
        };
        let tool = match &route.subject {
            Subject::Tool(definition) => Some(definition.name().to_owned()),
            Subject::Resource(_) | Subject::Prompt(_) | Subject::Method(_) => None,
        };
        self.routed = Some(Routed {
            metrics: self.telemetry.metrics.upstream(&route.instance.name),
            upstream: Arc::clone(&route.instance.name),
            method,
            tool,
            server_span: self.telemetry.tracer.server(operation, caller),
            client_span: None,
        });
    }

    /// Records that the call is sent to its server, and adds the trace context to `meta`.
    pub(super) fn sent(&mut self, route: &Route, meta: &mut Meta, bytes: usize) {
        let Some(routed) = &mut self.routed else { return };
        routed.metrics.sent(length(bytes));
        if !self.telemetry.tracer.is_on() {
            return;
        }
        let mut operation = Operation::new(routed.method).upstream(&route.instance.name);
        if let Some(client) = route.instance.running() {
            operation = operation.revision(client.revision());
        }
        operation = match (&route.subject, routed.method) {
            (Subject::Tool(definition), _) => operation.tool(definition.name()),
            (Subject::Prompt(name), Method::GetPrompt) => operation.prompt(name),
            (Subject::Resource(uri), Method::ReadResource) => operation.resource(uri),
            (Subject::Prompt(_) | Subject::Resource(_) | Subject::Method(_), _) => operation,
        };
        let span = routed.server_span.client(operation);
        if let Some(context) = span.context() {
            meta.set_trace_context(context);
        }
        if let Some(before) = routed.client_span.replace(span) {
            before.finish(SpanEnd::Ok);
        }
    }

    /// Records the size of a result.
    pub(super) fn received(&self, bytes: usize) {
        if let Some(routed) = &self.routed {
            routed.metrics.received(length(bytes));
        }
    }

    /// Records the outcome, unless a more specific end was recorded.
    pub(super) fn ended(mut self, outcome: &Outcome) {
        let (end, span) = match outcome {
            Outcome::Failed(error) => {
                let span = SpanEnd::Rpc { code: error.code, message: error.message.to_string() };
                (Some(CallEnd::Error), span)
            }
            Outcome::Complete(Reply::Tool(result)) if result.failed() => {
                (Some(CallEnd::ToolError), SpanEnd::ToolError)
            }
            Outcome::Complete(_) => (Some(CallEnd::Ok), SpanEnd::Ok),
            // The call ends in a later round.
            Outcome::NeedsInput(_) => (None, SpanEnd::Ok),
        };
        self.close(end, &span);
    }

    /// Records that the server timed out.
    pub(super) fn timed_out(&mut self, error: &RpcError) {
        let span = SpanEnd::Failed { kind: "timeout", message: error.message.to_string() };
        self.close(Some(CallEnd::Timeout), &span);
    }

    /// Records that the policy refused the call.
    pub(super) fn denied(&mut self, refusal: &Refusal) {
        let span = SpanEnd::Failed { kind: "denied", message: refusal.reason().to_owned() };
        self.close(Some(CallEnd::Denied), &span);
    }

    fn close(&mut self, end: Option<CallEnd>, span_end: &SpanEnd) {
        let Some(Routed { metrics, upstream, method, tool, server_span, client_span }) = self.routed.take()
        else {
            return;
        };
        if let Some(client_span) = client_span {
            client_span.finish(span_end.clone());
        }
        server_span.finish(span_end.clone());
        let Some(end) = end else { return };
        let duration = self.started.elapsed();
        let (result, milliseconds) = (end.as_str(), duration.as_millis());
        tracing::debug!(
            server = &*upstream,
            method = method.as_str(),
            tool,
            result,
            milliseconds,
            "call ended"
        );
        metrics.called(method, end, duration);
        if let Some(tool) = &tool {
            metrics.called_tool(tool, end);
        }
    }
}

impl Drop for CallRecord<'_> {
    fn drop(&mut self) {
        let message = "the call was cancelled".to_owned();
        self.close(Some(CallEnd::Cancelled), &SpanEnd::Failed { kind: "cancelled", message });
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
