//! Encodes spans as OTLP JSON.
//!
//! In this format ids are hexadecimal, 64-bit numbers are strings, and enums are numbers.

use super::{
    operation::Value,
    span::{Kind, Recorded},
};
use bowline_text::hex;
use serde::{Serialize, Serializer};
use std::time::{SystemTime, UNIX_EPOCH};

/// The instrumentation scope: the library that creates the spans.
const SCOPE: &str = "bowline-host";

/// The resource attributes.
#[derive(Clone, Debug)]
pub(super) struct Resource(pub(super) Vec<(String, String)>);

/// Encodes the body of an export request.
pub(super) fn body(resource: &Resource, spans: &[Recorded]) -> serde_json::Result<Vec<u8>> {
    let attributes = resource.0.iter().map(|(key, value)| attribute(key, value)).collect();
    serde_json::to_vec(&Request {
        resource_spans: [ResourceSpans {
            resource: Attributed { attributes },
            scope_spans: [ScopeSpans {
                scope: Scope { name: SCOPE, version: env!("CARGO_PKG_VERSION") },
                spans: spans.iter().map(OtlpSpan::of).collect(),
            }],
        }],
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    resource_spans: [ResourceSpans<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans<'a> {
    resource: Attributed<'a>,
    scope_spans: [ScopeSpans<'a>; 1],
}

#[derive(Serialize)]
struct Attributed<'a> {
    attributes: Vec<Attribute<'a>>,
}

#[derive(Serialize)]
struct ScopeSpans<'a> {
    scope: Scope,
    spans: Vec<OtlpSpan<'a>>,
}

#[derive(Serialize)]
struct Scope {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct Attribute<'a> {
    key: &'a str,
    value: Text<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Text<'a> {
    string_value: &'a str,
}

fn attribute<'a>(key: &'a str, value: &'a str) -> Attribute<'a> {
    Attribute { key, value: Text { string_value: value } }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OtlpSpan<'a> {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_state: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    flags: u32,
    name: &'a str,
    kind: u8,
    #[serde(serialize_with = "nanoseconds")]
    start_time_unix_nano: SystemTime,
    #[serde(serialize_with = "nanoseconds")]
    end_time_unix_nano: SystemTime,
    attributes: Vec<Attribute<'a>>,
    status: Status<'a>,
}

#[derive(Serialize)]
struct Status<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u8>,
}

/// The status code for errors.
const ERROR: u8 = 2;
/// The flags for "it is known whether the parent is remote" and "the parent is remote".
const KNOWS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

impl<'a> OtlpSpan<'a> {
    fn of(span: &'a Recorded) -> Self {
        let remote = if span.parent.is_some_and(|parent| parent.is_remote) { IS_REMOTE } else { 0 };
        Self {
            trace_id: hex(&span.position.trace),
            span_id: hex(&span.position.span),
            trace_state: span.tracestate.as_deref(),
            parent_span_id: span.parent.map(|parent| hex(&parent.span)),
            flags: u32::from(span.position.flags) | KNOWS_REMOTE | remote,
            name: &span.name,
            kind: match span.kind {
                Kind::Server => 2,
                Kind::Client => 3,
            },
            start_time_unix_nano: span.started,
            end_time_unix_nano: span.ended,
            attributes: span
                .attributes
                .iter()
                .map(|(key, value)| attribute(key, Value::as_str(value)))
                .collect(),
            status: Status {
                message: span.failure.as_deref().unwrap_or_default(),
                code: span.failure.is_some().then_some(ERROR),
            },
        }
    }
}

fn nanoseconds<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    serializer.collect_str(&since.as_nanos())
}
