//! A span per call.

use bowline_proto::service::{BoxFuture, Call, Middleware, Next, Notifier, Outcome, OutcomeKind};
use bowline_types::{Meta, RawJson};
use tracing::{Instrument, Span, field};

/// Opens a `tracing` span around every call, with method, subject, revision, principal, the caller's W3C trace context
/// and how the call ended: `complete`, `tool error`, `needs input`, `failed` or `cancelled`. Arguments and results are not
/// recorded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trace;

impl Middleware for Trace {
    fn call<'a>(&'a self, call: Call, notifier: Notifier, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let meta: Meta =
            call.params.meta().ok().flatten().and_then(|raw: RawJson| raw.decode().ok()).unwrap_or_default();
        let context = meta.trace_context();
        let span = tracing::info_span!(
            "mcp.call",
            method = call.method.as_str(),
            subject = field::Empty,
            revision = call.client.revision.as_str(),
            principal = call.client.principal.as_deref(),
            traceparent = field::Empty,
            tracestate = field::Empty,
            outcome = field::Empty,
        );
        if let Ok(subject) = call.params.name().or_else(|_| call.params.uri()) {
            span.record("subject", &*subject);
        }
        if let Some(context) = context {
            span.record("traceparent", &context.traceparent);
            span.record("tracestate", context.tracestate);
        }
        let mut outcome_recorder = OutcomeRecorder { span: span.clone(), kind: OutcomeKind::Cancelled };
        Box::pin(
            async move {
                let outcome = next.run(call, notifier).await;
                outcome_recorder.set(outcome.kind());
                if let Outcome::Failed(error) = &outcome {
                    tracing::warn!(code = error.code, message = %error.message, "call failed");
                }
                outcome
            }
            .instrument(span),
        )
    }
}

/// Records how a call ended when it is dropped. One that is dropped before its end was cancelled.
struct OutcomeRecorder {
    span: Span,
    kind: OutcomeKind,
}

impl OutcomeRecorder {
    fn set(&mut self, kind: OutcomeKind) {
        self.kind = kind;
    }
}

impl Drop for OutcomeRecorder {
    fn drop(&mut self) {
        self.span.record("outcome", self.kind.as_str());
    }
}
