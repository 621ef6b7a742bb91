//! A span per call.

use bowline_proto::service::{BoxFuture, Call, Middleware, Next, Notifier, Outcome};
use bowline_types::{Meta, RawJson};
use tracing::{Instrument, Span, field};

/// Opens a `tracing` span around every call, with method, subject, revision, principal, the caller's W3C trace context
/// and how the call ended. Arguments and results are not recorded.
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
        let inner = span.clone();
        Box::pin(
            async move {
                let outcome = next.run(call, notifier).await;
                record(&inner, &outcome);
                outcome
            }
            .instrument(span),
        )
    }
}

fn record(span: &Span, outcome: &Outcome) {
    let word = match outcome {
        Outcome::Complete(_) => "complete",
        Outcome::NeedsInput(_) => "needs input",
        Outcome::Failed(error) => {
            tracing::warn!(code = error.code, message = %error.message, "call failed");
            "failed"
        }
    };
    span.record("outcome", word);
}
