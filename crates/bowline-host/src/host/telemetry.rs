//! What is told of every call: numbers for operators, and spans in the trace of its caller.

use super::{
    Inner,
    journey::{Route, Subject},
};
use crate::upstream::{Health, Instance};
use bowline_policy::{Refusal, RefusalKind};
use bowline_proto::service::{Call, Outcome, Reply};
use bowline_telemetry::{
    CallEnd, ConsentDecision, Metrics, Operation, Span, SpanEnd, Tracer, UpstreamMetrics, UpstreamState,
};
use bowline_types::{Meta, Method, RpcError};
use std::{
    sync::{Arc, PoisonError},
    time::Instant,
};

/// Where a host tells what it does. The default one counts, and records no traces.
#[derive(Clone, Debug, Default)]
pub struct Telemetry {
    /// The numbers.
    pub metrics: Arc<Metrics>,
    /// Makes the spans.
    pub tracer: Tracer,
}

/// One round of a call, as it is told once it is known whose it is. Dropped before its end was told, it was cancelled.
pub(super) struct Account<'a> {
    telemetry: &'a Telemetry,
    began: Instant,
    entry: Option<Entry>,
}

struct Entry {
    metrics: Arc<UpstreamMetrics>,
    upstream: Arc<str>,
    method: Method,
    tool: Option<String>,
    server: Span,
    client: Option<Span>,
}

impl<'a> Account<'a> {
    /// A round begins.
    pub(super) fn new(telemetry: &'a Telemetry) -> Self {
        Self { telemetry, began: Instant::now(), entry: None }
    }

    /// It is known whose the call is.
    pub(super) fn begin(&mut self, route: &Route, call: &Call) {
        // Metrics and spans are for the methods of the protocol: names that a caller makes up would grow them.
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
        self.entry = Some(Entry {
            metrics: self.telemetry.metrics.upstream(&route.instance.name),
            upstream: Arc::clone(&route.instance.name),
            method,
            tool,
            server: self.telemetry.tracer.server(operation, caller),
            client: None,
        });
    }

    /// It goes on to its server: in which trace, is told in `meta`.
    pub(super) fn depart(&mut self, route: &Route, meta: &mut Meta, bytes: usize) {
        let Some(entry) = &mut self.entry else { return };
        entry.metrics.sent(length(bytes));
        if !self.telemetry.tracer.is_on() {
            return;
        }
        let mut operation = Operation::new(entry.method).upstream(&route.instance.name);
        if let Some(client) = route.instance.running() {
            operation = operation.revision(client.revision());
        }
        operation = match (&route.subject, entry.method) {
            (Subject::Tool(definition), _) => operation.tool(definition.name()),
            (Subject::Prompt(name), Method::GetPrompt) => operation.prompt(name),
            (Subject::Resource(uri), Method::ReadResource) => operation.resource(uri),
            (Subject::Prompt(_) | Subject::Resource(_) | Subject::Method(_), _) => operation,
        };
        let span = entry.server.client(operation);
        if let Some(context) = span.context() {
            meta.set_trace_context(context);
        }
        if let Some(before) = entry.client.replace(span) {
            before.finish(SpanEnd::Ok);
        }
    }

    /// So many bytes came back.
    pub(super) fn received(&self, bytes: usize) {
        if let Some(entry) = &self.entry {
            entry.metrics.received(length(bytes));
        }
    }

    /// The call is answered.
    pub(super) fn end(mut self, outcome: &Outcome) {
        let (end, span) = match outcome {
            Outcome::Failed(error) => return self.failed(error),
            Outcome::Complete(Reply::Tool(result)) if result.failed() => {
                (CallEnd::ToolError, SpanEnd::ToolError)
            }
            Outcome::Complete(_) | Outcome::NeedsInput(_) => (CallEnd::Ok, SpanEnd::Ok),
        };
        self.close(Some(end), &span);
    }

    /// The call ends with an error.
    pub(super) fn failed(mut self, error: &RpcError) {
        let span = SpanEnd::Rpc { code: error.code, message: error.message.to_string() };
        self.close(Some(CallEnd::Error), &span);
    }

    /// Its server said nothing for too long.
    pub(super) fn timed_out(mut self, error: &RpcError) {
        let span = SpanEnd::Failed { kind: "timeout", message: error.message.to_string() };
        self.close(Some(CallEnd::Timeout), &span);
    }

    /// It may not be made.
    pub(super) fn denied(mut self, refusal: &Refusal) {
        let span = SpanEnd::Failed { kind: "denied", message: refusal.reason().to_owned() };
        self.close(Some(CallEnd::Denied), &span);
    }

    /// The caller is asked; the call ends in a later round.
    pub(super) fn pause(mut self) {
        self.close(None, &SpanEnd::Ok);
    }

    fn close(&mut self, end: Option<CallEnd>, told: &SpanEnd) {
        let Some(Entry { metrics, upstream, method, tool, server, client }) = self.entry.take() else {
            return;
        };
        if let Some(client) = client {
            client.finish(told.clone());
        }
        server.finish(told.clone());
        let Some(end) = end else { return };
        let took = self.began.elapsed();
        let (result, milliseconds) = (end.as_str(), took.as_millis());
        tracing::debug!(
            server = &*upstream,
            method = method.as_str(),
            tool,
            result,
            milliseconds,
            "a call has ended"
        );
        metrics.called(method, end, took);
        if let Some(tool) = &tool {
            metrics.called_tool(tool, end);
        }
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        let message = "the call was cancelled".to_owned();
        self.close(Some(CallEnd::Cancelled), &SpanEnd::Failed { kind: "cancelled", message });
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

impl Inner {
    /// Counts what was decided about something a server does or wants.
    pub(super) fn count_consent<T>(&self, instance: &Instance, decided: &Result<T, Refusal>) {
        let decision = match decided {
            Ok(_) => ConsentDecision::Allowed,
            Err(refusal) if refusal.kind() == RefusalKind::Deferred => return,
            Err(refusal) if refusal.kind() == RefusalKind::Cancelled => ConsentDecision::Expired,
            Err(_) => ConsentDecision::Denied,
        };
        self.telemetry.metrics.upstream(&instance.name).consent(decision);
    }

    /// Counts the tokens that models have used for a server since it was last counted.
    pub(super) fn count_tokens(&self, instance: &Instance) {
        let Some(broker) = &self.broker else { return };
        let mut told = self.sampled.lock().unwrap_or_else(PoisonError::into_inner);
        let usage = broker.usage(&instance.name);
        let known = told.entry(Arc::clone(&instance.name)).or_default();
        let (input, output) =
            (usage.input_tokens.saturating_sub(known.0), usage.output_tokens.saturating_sub(known.1));
        *known = (usage.input_tokens, usage.output_tokens);
        self.telemetry.metrics.upstream(&instance.name).sampled(input, output);
    }

    /// So many sessions are open now.
    pub(super) fn count_sessions(&self, open: usize) {
        let mut counted = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        counted.resize_with(open, || self.telemetry.metrics.session());
    }

    /// The numbers, with the state that every server is in now.
    pub(super) fn metrics_page(&self) -> String {
        let metrics = &self.telemetry.metrics;
        for member in self.members() {
            let health: Vec<_> = member.all().iter().map(|instance| instance.status().health).collect();
            let any = |wanted: fn(&Health) -> bool| health.iter().any(wanted);
            let state = if any(|health| *health == Health::Ready) {
                UpstreamState::Ready
            } else if any(|health| *health == Health::Starting) {
                UpstreamState::Starting
            } else if any(|health| matches!(health, Health::Failed(_))) {
                UpstreamState::Failed
            } else {
                UpstreamState::Stopped
            };
            metrics.upstream(&member.name).is_now(state);
        }
        metrics.render()
    }
}
