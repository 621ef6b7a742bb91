//! How traces reach a collector, and what becomes of them when they do not.

use crate::collector::{Collector, answer};
use bowline_client::BoxFuture;
use bowline_http::{Post, PostAnswer, PostError, Poster};
use bowline_telemetry::{
    ExportCounts, Metrics, Operation, Sources, Span, SpanEnd, Tracer, Traces, Transport,
};
use bowline_types::{Id, Method, Revision, TraceContext};
use bytes::Bytes;
use expect_test::expect;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::Instant;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
const LONG: Duration = Duration::from_secs(60);

/// Ids that count, and a clock that advances by a second with every look.
fn sources() -> Sources {
    let (ids, seconds) = (AtomicU64::new(0), AtomicU64::new(1_700_000_000));
    Sources {
        random: Arc::new(move |bytes| {
            bytes.fill(0);
            if let Some(last) = bytes.last_mut() {
                *last = u8::try_from(ids.fetch_add(1, Ordering::Relaxed) % 255).unwrap() + 1;
            }
        }),
        now: Arc::new(move || UNIX_EPOCH + Duration::from_secs(seconds.fetch_add(1, Ordering::Relaxed))),
    }
}

fn parent() -> TraceContext {
    TraceContext::new(PARENT).unwrap().with_tracestate("rojo=1").with_baggage("k=v")
}

fn span(tracer: &Tracer) -> Span {
    tracer.server(Operation::new(Method::ListTools), None)
}

/// The one span of a request.
fn only_span(body: &[u8]) -> Value {
    let mut body: Value = serde_json::from_slice(body).unwrap();
    body["resourceSpans"][0]["scopeSpans"][0]["spans"][0].take()
}

/// Answers as it was told to, then with 200; notes when it was asked, and what.
#[derive(Debug, Default)]
struct Scripted {
    answers: Mutex<Vec<PostAnswer>>,
    asked: Mutex<Vec<(Instant, Bytes)>>,
}

impl Scripted {
    fn new(answers: impl IntoIterator<Item = (u16, &'static [(&'static str, &'static str)])>) -> Arc<Self> {
        let answers = answers.into_iter().map(|(status, headers)| {
            let headers: Vec<_> = headers
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
                .collect();
            PostAnswer {
                status: StatusCode::from_u16(status).unwrap(),
                headers: HeaderMap::from_iter(headers),
                body: Bytes::new(),
            }
        });
        let mut answers: Vec<PostAnswer> = answers.collect();
        answers.reverse();
        Arc::new(Self { answers: Mutex::new(answers), asked: Mutex::default() })
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// How long after the one before each request came.
    fn pauses(&self) -> Vec<Duration> {
        let asked = self.asked.lock().unwrap();
        asked.windows(2).map(|pair| pair[1].0 - pair[0].0).collect()
    }
}

impl Post for Scripted {
    fn post<'a>(
        &'a self,
        _: &'a str,
        _: HeaderMap,
        body: Bytes,
    ) -> BoxFuture<'a, Result<PostAnswer, PostError>> {
        self.asked.lock().unwrap().push((Instant::now(), body));
        let fine = PostAnswer { status: StatusCode::OK, headers: HeaderMap::new(), body: Bytes::new() };
        let answer = self.answers.lock().unwrap().pop().unwrap_or(fine);
        Box::pin(std::future::ready(Ok(answer)))
    }
}

/// Never answers.
#[derive(Debug)]
struct Silent;

impl Post for Silent {
    fn post<'a>(
        &'a self,
        _: &'a str,
        _: HeaderMap,
        _: Bytes,
    ) -> BoxFuture<'a, Result<PostAnswer, PostError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn spans_arrive_as_otlp_has_them() {
    let collector = Collector::start([]).await;
    let (tracer, exporter) = Traces::to(format!("{}/", collector.url()))
        .header("x-api-key", "secret")
        .resource("service.instance.id", "one")
        .start(Arc::new(Poster::new()), sources())
        .unwrap();
    let operation = Operation::new(Method::CallTool)
        .tool("create_issue")
        .request(&Id::Number(7))
        .session("s-1")
        .revision(Revision::V2025_06_18)
        .transport(Transport::Tcp);
    let server = tracer.server(operation, Some(parent()));
    let client = server.client(
        Operation::new(Method::CallTool).tool("create_issue").upstream("github").transport(Transport::Pipe),
    );
    client.finish(SpanEnd::Rpc { code: -32602, message: "no \"repo\"".into() });
    server.finish(SpanEnd::ToolError);
    let counts = exporter.shutdown(LONG).await;
    assert_eq!(counts, ExportCounts { exported: 2, dropped: 0, failed: 0 });
    let requests = collector.requests();
    assert_eq!(requests.len(), 1);
    let head = requests[0].head.to_ascii_lowercase();
    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
    for line in ["content-type: application/json", "x-api-key: secret", "user-agent: bowline/"] {
        assert!(head.contains(line), "{head}");
    }
    let body: Value = serde_json::from_slice(&requests[0].body).unwrap();
    let body = serde_json::to_string_pretty(&body).unwrap().replace(env!("CARGO_PKG_VERSION"), "VERSION");
    expect![[r#"
        {
          "resourceSpans": [
            {
              "resource": {
                "attributes": [
                  {
                    "key": "service.name",
                    "value": {
                      "stringValue": "bowline"
                    }
                  },
                  {
                    "key": "service.version",
                    "value": {
                      "stringValue": "VERSION"
                    }
                  },
                  {
                    "key": "service.instance.id",
                    "value": {
                      "stringValue": "one"
                    }
                  }
                ]
              },
              "scopeSpans": [
                {
                  "scope": {
                    "name": "bowline-host",
                    "version": "VERSION"
                  },
                  "spans": [
                    {
                      "traceId": "0af7651916cd43dd8448eb211c80319c",
                      "spanId": "0000000000000002",
                      "traceState": "rojo=1",
                      "parentSpanId": "0000000000000001",
                      "flags": 257,
                      "name": "tools/call create_issue",
                      "kind": 3,
                      "startTimeUnixNano": "1700000001000000000",
                      "endTimeUnixNano": "1700000002000000000",
                      "attributes": [
                        {
                          "key": "mcp.method.name",
                          "value": {
                            "stringValue": "tools/call"
                          }
                        },
                        {
                          "key": "gen_ai.operation.name",
                          "value": {
                            "stringValue": "execute_tool"
                          }
                        },
                        {
                          "key": "gen_ai.tool.name",
                          "value": {
                            "stringValue": "create_issue"
                          }
                        },
                        {
                          "key": "bowline.upstream",
                          "value": {
                            "stringValue": "github"
                          }
                        },
                        {
                          "key": "network.transport",
                          "value": {
                            "stringValue": "pipe"
                          }
                        },
                        {
                          "key": "rpc.response.status_code",
                          "value": {
                            "stringValue": "-32602"
                          }
                        },
                        {
                          "key": "error.type",
                          "value": {
                            "stringValue": "-32602"
                          }
                        }
                      ],
                      "status": {
                        "message": "no \"repo\"",
                        "code": 2
                      }
                    },
                    {
                      "traceId": "0af7651916cd43dd8448eb211c80319c",
                      "spanId": "0000000000000001",
                      "traceState": "rojo=1",
                      "parentSpanId": "00f067aa0ba902b7",
                      "flags": 769,
                      "name": "tools/call create_issue",
                      "kind": 2,
                      "startTimeUnixNano": "1700000000000000000",
                      "endTimeUnixNano": "1700000003000000000",
                      "attributes": [
                        {
                          "key": "mcp.method.name",
                          "value": {
                            "stringValue": "tools/call"
                          }
                        },
                        {
                          "key": "gen_ai.operation.name",
                          "value": {
                            "stringValue": "execute_tool"
                          }
                        },
                        {
                          "key": "gen_ai.tool.name",
                          "value": {
                            "stringValue": "create_issue"
                          }
                        },
                        {
                          "key": "jsonrpc.request.id",
                          "value": {
                            "stringValue": "7"
                          }
                        },
                        {
                          "key": "mcp.session.id",
                          "value": {
                            "stringValue": "s-1"
                          }
                        },
                        {
                          "key": "mcp.protocol.version",
                          "value": {
                            "stringValue": "2025-06-18"
                          }
                        },
                        {
                          "key": "network.transport",
                          "value": {
                            "stringValue": "tcp"
                          }
                        },
                        {
                          "key": "error.type",
                          "value": {
                            "stringValue": "tool_error"
                          }
                        }
                      ],
                      "status": {
                        "code": 2
                      }
                    }
                  ]
                }
              ]
            }
          ]
        }"#]]
    .assert_eq(&body);
}

#[tokio::test]
async fn a_collector_that_is_busy_is_asked_again_in_bounded_time() {
    let hour: &[(&str, &str)] = &[("Retry-After", "3600")];
    let collector =
        Collector::start([answer(503, hour, ""), answer(503, hour, ""), answer(200, &[], "")]).await;
    let (tracer, exporter) = Traces::to(collector.url())
        .interval(Duration::ZERO)
        .max_wait(Duration::from_millis(1))
        .start(Arc::new(Poster::new()), sources())
        .unwrap();
    span(&tracer).finish(SpanEnd::Ok);
    collector.wait_for(3).await;
    assert_eq!(exporter.shutdown(LONG).await, ExportCounts { exported: 1, dropped: 0, failed: 0 });
    let requests = collector.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| request.body == requests[0].body));
}

#[tokio::test(start_paused = true)]
async fn the_collector_sets_the_delay_up_to_a_limit() {
    let post = Scripted::new([
        (503, &[("retry-after", "7")][..]),
        (429, &[("retry-after", "3600")]),
        (502, &[("retry-after", "Fri, 31 Dec 1999 23:59:59 GMT")]),
        (504, &[]),
    ]);
    let (tracer, exporter) = Traces::to("http://c").start(Arc::clone(&post) as _, sources()).unwrap();
    span(&tracer).finish(SpanEnd::Ok);
    tokio::time::sleep(Duration::from_secs(600)).await;
    let pauses = post.pauses();
    assert_eq!(pauses.len(), 4);
    assert_eq!((pauses[0], pauses[1]), (Duration::from_secs(7), Duration::from_secs(30)));
    // Without a word from the collector the pauses double, less something at random.
    assert!((Duration::from_secs(2)..=Duration::from_secs(4)).contains(&pauses[2]), "{pauses:?}");
    assert!((Duration::from_secs(4)..=Duration::from_secs(8)).contains(&pauses[3]), "{pauses:?}");
    assert_eq!(exporter.counts().exported, 1);
}

#[tokio::test(start_paused = true)]
async fn a_batch_times_out() {
    let post = Scripted::new([(503, &[][..]), (503, &[]), (503, &[]), (400, &[])]);
    let (tracer, exporter) =
        Traces::to("http://c").attempts(3).start(Arc::clone(&post) as _, sources()).unwrap();
    span(&tracer).finish(SpanEnd::Ok);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(exporter.counts(), ExportCounts { exported: 0, dropped: 0, failed: 1 });
    // What the collector finds wrong will not become right.
    span(&tracer).finish(SpanEnd::Ok);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((post.asked(), exporter.counts().failed), (4, 2));
    span(&tracer).finish(SpanEnd::Ok);
    assert_eq!(exporter.shutdown(LONG).await, ExportCounts { exported: 1, dropped: 0, failed: 2 });
}

#[tokio::test(start_paused = true)]
async fn spans_go_out_together_when_there_are_enough_or_time_is_up() {
    let post = Scripted::new([]);
    let (tracer, exporter) =
        Traces::to("http://c").batch(3).start(Arc::clone(&post) as _, sources()).unwrap();
    let start = Instant::now();
    for _ in 0..4 {
        span(&tracer).finish(SpanEnd::Ok);
    }
    tokio::time::sleep(Duration::from_secs(20)).await;
    let asked: Vec<u64> = post.asked.lock().unwrap().iter().map(|(at, _)| (*at - start).as_secs()).collect();
    assert_eq!(asked, [0, 5]);
    assert_eq!(exporter.counts().exported, 4);
}

#[tokio::test(start_paused = true)]
async fn spans_beyond_the_queue_are_dropped_and_no_call_waits() {
    let (tracer, exporter) = Traces::to("http://c").queue(2).start(Arc::new(Silent), sources()).unwrap();
    for _ in 0..5 {
        span(&tracer).finish(SpanEnd::Ok);
    }
    assert_eq!(exporter.counts().dropped, 3);
    let metrics = Metrics::new();
    metrics.with_traces(&exporter);
    assert!(metrics.render().contains("bowline_trace_spans_total{outcome=\"dropped\"} 3\n"));
    // The collector never answers, and the host stops all the same.
    let start = Instant::now();
    let counts = exporter.shutdown(Duration::from_secs(3)).await;
    assert_eq!(counts, ExportCounts { exported: 0, dropped: 3, failed: 2 });
    assert_eq!(start.elapsed(), Duration::from_secs(3));
    span(&tracer).finish(SpanEnd::Ok);
}

#[tokio::test(start_paused = true)]
async fn stopping_sends_queued_spans_without_waiting() {
    let post = Scripted::new([(200, &[][..]), (503, &[("retry-after", "30")])]);
    let (tracer, exporter) =
        Traces::to("http://c").batch(2).start(Arc::clone(&post) as _, sources()).unwrap();
    for _ in 0..5 {
        span(&tracer).finish(SpanEnd::Ok);
    }
    let start = Instant::now();
    assert_eq!(exporter.shutdown(LONG).await, ExportCounts { exported: 5, dropped: 0, failed: 0 });
    assert_eq!((post.asked(), start.elapsed()), (4, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn spans_that_a_collector_rejects_are_counted() {
    for (body, failed) in [
        (r#"{"partialSuccess":{"rejectedSpans":"1","errorMessage":"no"}}"#, 1),
        (r#"{"partialSuccess":{"rejectedSpans":99}}"#, 2),
        (r#"{"partialSuccess":{}}"#, 0),
        ("<html>", 0),
    ] {
        let post = Scripted::new([(200, &[][..])]);
        post.answers.lock().unwrap()[0].body = Bytes::from_static(body.as_bytes());
        let (tracer, exporter) = Traces::to("http://c").start(post, sources()).unwrap();
        span(&tracer).finish(SpanEnd::Ok);
        span(&tracer).finish(SpanEnd::Ok);
        assert_eq!(exporter.shutdown(LONG).await, ExportCounts { exported: 2 - failed, dropped: 0, failed });
    }
}

#[tokio::test]
async fn traces_continue_upstream() {
    let post = Scripted::new([]);
    let (tracer, exporter) = Traces::to("http://c").start(Arc::clone(&post) as _, sources()).unwrap();
    let server =
        tracer.server(Operation::new(Method::ReadResource).resource("file:///a?key=1#x"), Some(parent()));
    let client = server.client(Operation::new(Method::ReadResource));
    let context = client.context().unwrap();
    assert_eq!(context.traceparent, "00-0af7651916cd43dd8448eb211c80319c-0000000000000002-01");
    assert_eq!((context.tracestate.as_deref(), context.baggage.as_deref()), (Some("rojo=1"), Some("k=v")));
    client.finish(SpanEnd::Ok);
    drop(server);
    assert_eq!(exporter.shutdown(LONG).await.exported, 2);
    let body = post.asked.lock().unwrap()[0].1.clone();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let spans = &body["resourceSpans"][0]["scopeSpans"][0]["spans"];
    assert_eq!(spans[0]["parentSpanId"], spans[1]["spanId"]);
    // A span that is dropped reports a cancelled call.
    assert_eq!(spans[1]["status"]["code"], 2);
    let attributes = spans[1]["attributes"].to_string();
    assert!(
        attributes.contains(r#"{"key":"mcp.resource.uri","value":{"stringValue":"file:///a"}}"#),
        "{attributes}"
    );
    assert!(
        attributes.contains(r#"{"key":"error.type","value":{"stringValue":"cancelled"}}"#),
        "{attributes}"
    );
}

#[tokio::test]
async fn unsampled_traces_are_not_recorded() {
    let (tracer, exporter) = Traces::to("http://c").start(Scripted::new([]), sources()).unwrap();
    let caller = TraceContext::new(PARENT.replace("-01", "-00")).unwrap();
    let server = tracer.server(Operation::new(Method::Ping), Some(caller));
    let client = server.client(Operation::new(Method::Ping));
    assert_eq!(
        client.context().unwrap().traceparent,
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000002-00"
    );
    client.finish(SpanEnd::Ok);
    server.finish(SpanEnd::Ok);
    assert_eq!(exporter.shutdown(LONG).await, ExportCounts::default());
}

#[tokio::test]
async fn a_share_of_new_traces_is_recorded() {
    let (tracer, exporter) = Traces::to("http://c").one_in(5).start(Scripted::new([]), sources()).unwrap();
    for _ in 0..40 {
        span(&tracer).finish(SpanEnd::Ok);
    }
    // The ids of the traces are the odd numbers, and eight of the first forty are multiples of five.
    assert_eq!(exporter.shutdown(LONG).await.exported, 8);
}

#[test]
fn a_disabled_tracer_forwards_traces_unchanged() {
    let tracer = Tracer::default();
    assert!(!tracer.is_on());
    let server = tracer.server(Operation::new(Method::Ping), Some(parent()));
    assert_eq!(server.client(Operation::new(Method::Ping)).context(), Some(&parent()));
    assert_eq!(tracer.server(Operation::new(Method::Ping), None).context(), None);
    server.finish(SpanEnd::Ok);
}

#[tokio::test]
async fn names_of_any_length_are_cut() {
    let post = Scripted::new([]);
    let (tracer, exporter) = Traces::to("http://c").start(Arc::clone(&post) as _, sources()).unwrap();
    let hostile = "\"\n\u{0}".repeat(10_000);
    let message = hostile.clone();
    tracer
        .server(Operation::new(Method::CallTool).tool(&hostile), None)
        .finish(SpanEnd::Failed { kind: "timeout", message });
    exporter.shutdown(LONG).await;
    let span = only_span(&post.asked.lock().unwrap()[0].1);
    assert_eq!(span["status"]["message"].as_str().unwrap().chars().count(), 256);
    assert!(span["name"].as_str().unwrap().chars().count() < 300);
    assert!(span.to_string().len() < 4_000);
}

#[tokio::test]
async fn headers_are_checked_and_not_shown() {
    let traces = Traces::to("http://c").header("authorization", "Bearer canary");
    assert!(!format!("{traces:?}").contains("canary"));
    assert!(traces.start(Scripted::new([]), sources()).is_ok());
    for (name, value) in [("a b", "x"), ("x", "canary\r\ny")] {
        let error =
            Traces::to("http://c").header(name, value).start(Scripted::new([]), sources()).unwrap_err();
        assert!(!error.to_string().contains("canary") && error.to_string().contains(name), "{error}");
    }
}

#[tokio::test]
async fn time_that_runs_backwards_makes_no_negative_spans() {
    let post = Scripted::new([]);
    let times = Mutex::new(vec![UNIX_EPOCH + Duration::from_secs(1), UNIX_EPOCH + Duration::from_secs(9)]);
    let now = move || -> SystemTime { times.lock().unwrap().pop().unwrap() };
    let sources = Sources { now: Arc::new(now), ..sources() };
    let (tracer, exporter) = Traces::to("http://c").start(Arc::clone(&post) as _, sources).unwrap();
    span(&tracer).finish(SpanEnd::Ok);
    exporter.shutdown(LONG).await;
    let span = only_span(&post.asked.lock().unwrap()[0].1);
    assert_eq!(span["endTimeUnixNano"], "9000000000");
    assert_eq!(span["startTimeUnixNano"], "9000000000");
}
