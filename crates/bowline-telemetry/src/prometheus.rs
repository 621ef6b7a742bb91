//! Renders metrics in the Prometheus text format 0.0.4.

use super::{
    counters::{BOUNDS, Histogram},
    exporter::ExportCounts,
    label::escape,
    upstream::{CallEnd, ConsentDecision, UpstreamMetrics, UpstreamState},
};
use std::{fmt::Write as _, sync::Arc, time::Duration};

/// The media type of [`Metrics::render`](super::Metrics::render).
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

type Upstreams<'a> = &'a [(Arc<str>, Arc<UpstreamMetrics>)];

pub(super) fn render(upstreams: Upstreams<'_>, sessions: u64, traces: Option<ExportCounts>) -> String {
    let mut page = Output::default();
    page.build_info();
    page.sessions(sessions);
    calls(&mut page, upstreams);
    page.family("bowline_upstream_state", "gauge", "State of an upstream: 1 for the current state.");
    for (upstream, metrics) in upstreams {
        for (place, state) in UpstreamState::LABELS.iter().enumerate() {
            let labels = [("upstream", upstream.as_ref()), ("state", state)];
            page.sample("bowline_upstream_state", &labels, u64::from(metrics.state() == place));
        }
    }
    page.family("bowline_upstream_restarts_total", "counter", "Restarts of an upstream.");
    for (upstream, metrics) in upstreams {
        page.sample("bowline_upstream_restarts_total", &[("upstream", upstream)], metrics.restarts.value());
    }
    page.family("bowline_consent_decisions_total", "counter", "Consent decisions.");
    for (upstream, metrics) in upstreams {
        for (decision, count) in ConsentDecision::LABELS.iter().zip(&metrics.consent) {
            let labels = [("upstream", upstream.as_ref()), ("decision", decision)];
            page.sample("bowline_consent_decisions_total", &labels, count.value());
        }
    }
    page.family("bowline_sampling_tokens_total", "counter", "Tokens that models used for an upstream.");
    for (upstream, metrics) in upstreams {
        for (kind, count) in [("input", &metrics.input_tokens), ("output", &metrics.output_tokens)] {
            page.sample(
                "bowline_sampling_tokens_total",
                &[("upstream", upstream), ("kind", kind)],
                count.value(),
            );
        }
    }
    page.family("bowline_bytes_total", "counter", "Bytes of messages to and from an upstream.");
    for (upstream, metrics) in upstreams {
        for (direction, count) in [("sent", &metrics.sent), ("received", &metrics.received)] {
            page.sample(
                "bowline_bytes_total",
                &[("upstream", upstream), ("direction", direction)],
                count.value(),
            );
        }
    }
    if let Some(ExportCounts { exported, dropped, failed }) = traces {
        page.family("bowline_trace_spans_total", "counter", "Spans by export result.");
        for (outcome, count) in [("exported", exported), ("dropped", dropped), ("failed", failed)] {
            page.sample("bowline_trace_spans_total", &[("outcome", outcome)], count);
        }
    }
    page.0
}

fn calls(page: &mut Output, upstreams: Upstreams<'_>) {
    page.family("bowline_calls_total", "counter", "Calls to an upstream, by result.");
    for (upstream, metrics) in upstreams {
        for (method, cells) in metrics.methods() {
            for (outcome, count) in
                CallEnd::LABELS.iter().zip(&cells.ends).filter(|(_, count)| count.value() > 0)
            {
                let labels =
                    [("upstream", upstream.as_ref()), ("method", method.as_str()), ("outcome", outcome)];
                page.sample("bowline_calls_total", &labels, count.value());
            }
        }
    }
    page.family("bowline_call_duration_seconds", "histogram", "Duration of calls to an upstream.");
    for (upstream, metrics) in upstreams {
        for (method, cells) in metrics.methods() {
            let labels = [("upstream", upstream.as_ref()), ("method", method.as_str())];
            page.histogram("bowline_call_duration_seconds", labels, &cells.duration);
        }
    }
    page.family("bowline_tool_calls_total", "counter", "Calls of a tool, by result.");
    for (upstream, metrics) in upstreams {
        for (tool, cells) in metrics.tools() {
            for (outcome, count) in
                CallEnd::LABELS.iter().zip(&cells.ends).filter(|(_, count)| count.value() > 0)
            {
                let labels = [("upstream", upstream.as_ref()), ("tool", tool.as_ref()), ("outcome", outcome)];
                page.sample("bowline_tool_calls_total", &labels, count.value());
            }
        }
    }
}

/// A page of metrics.
#[derive(Default)]
pub(super) struct Output(String);

impl Output {
    pub(super) fn into_text(self) -> String {
        self.0
    }

    pub(super) fn build_info(&mut self) {
        self.family("bowline_build_info", "gauge", "The version that is running.");
        self.sample("bowline_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    }

    pub(super) fn sessions(&mut self, open: u64) {
        self.family("bowline_sessions_active", "gauge", "Open client sessions.");
        self.sample("bowline_sessions_active", &[], open);
    }

    pub(super) fn seconds(&mut self, name: &str, labels: &[(&str, &str)], time: Duration) {
        self.series(name, labels);
        let _ = writeln!(self.0, " {}", time.as_secs_f64());
    }

    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: u64) {
        self.series(name, labels);
        let _ = writeln!(self.0, " {value}");
    }

    fn series(&mut self, name: &str, labels: &[(&str, &str)]) {
        self.0.push_str(name);
        for (place, (key, value)) in labels.iter().enumerate() {
            self.0.push(if place == 0 { '{' } else { ',' });
            let _ = write!(self.0, "{key}=\"");
            escape(value, &mut self.0);
            self.0.push('"');
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
    }

    fn histogram(&mut self, name: &str, labels: [(&str, &str); 2], histogram: &Histogram) {
        let [first, second] = labels;
        let counts = histogram.cumulative();
        let bounds = BOUNDS.iter().map(|(_, text)| *text).chain(["+Inf"]);
        for (bound, count) in bounds.zip(counts) {
            self.sample(&format!("{name}_bucket"), &[first, second, ("le", bound)], count);
        }
        self.seconds(&format!("{name}_sum"), &labels, histogram.sum());
        self.sample(&format!("{name}_count"), &labels, counts.last().copied().unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CallEnd, ConsentDecision, MetricLimits, Metrics, UpstreamState};
    use bowline_types::Method;
    use expect_test::expect;
    use std::time::Duration;

    #[test]
    fn the_page_has_the_prometheus_format() {
        let metrics = Metrics::new();
        let _session = metrics.session();
        drop(metrics.session());
        let github = metrics.upstream("github");
        github.set_state(UpstreamState::Ready);
        github.called(Method::CallTool, CallEnd::Ok, Duration::from_millis(15));
        github.called(Method::CallTool, CallEnd::ToolError, Duration::from_micros(500));
        github.called_tool("create_issue", CallEnd::Ok);
        github.restarted();
        github.consent(ConsentDecision::Denied);
        github.sampled(100, 20);
        github.sent(1_000);
        github.received(2_000);
        expect![[r#"
            # HELP bowline_build_info The version that is running.
            # TYPE bowline_build_info gauge
            bowline_build_info{version="VERSION"} 1
            # HELP bowline_sessions_active Open client sessions.
            # TYPE bowline_sessions_active gauge
            bowline_sessions_active 1
            # HELP bowline_calls_total Calls to an upstream, by result.
            # TYPE bowline_calls_total counter
            bowline_calls_total{upstream="github",method="tools/call",outcome="ok"} 1
            bowline_calls_total{upstream="github",method="tools/call",outcome="tool_error"} 1
            # HELP bowline_call_duration_seconds Duration of calls to an upstream.
            # TYPE bowline_call_duration_seconds histogram
            bowline_call_duration_seconds_bucket{upstream="github",method="tools/call",le="0.001"} 1
            bowline_call_duration_seconds_bucket{upstream="github",method="tools/call",le="0.002"} 1
            bowline_call_duration_seconds_bucket{upstream="github",method="tools/call",le="0.005"} 1
            bowline_call_duration_seconds_bucket{upstream="github",method="tools/call",le="0.01"} 1
            bowline_call_duration_seconds_bucket{upstream="github",method="tools/call",le="0.02"} 2
            bowline_call_duration_seconds_bucket{upstream="github",method="tools/call",le="0.05"} 2
            bowline_call_duration_seconds_bucket{upstream="github",method="tools/call",le="0.1"} 2
            bowline_call_duration_seconds_bucket{upstream="github",method="tools/call",le="0.2"} 2
            bowline_call_duration_seconds_bucket{upstream="github",method="tools/call",le="0.5"} 2
            bowline_call_duration_seconds_bucket{upstream="github",method="tools/call",le="1"} 2
            bowline_call_duration_seconds_bucket{upstream="github",method="tools/call",le="2"} 2
            bowline_call_duration_seconds_bucket{upstream="github",method="tools/call",le="5"} 2
            bowline_call_duration_seconds_bucket{upstream="github",method="tools/call",le="10"} 2
            bowline_call_duration_seconds_bucket{upstream="github",method="tools/call",le="30"} 2
            bowline_call_duration_seconds_bucket{upstream="github",method="tools/call",le="60"} 2
            bowline_call_duration_seconds_bucket{upstream="github",method="tools/call",le="120"} 2
            bowline_call_duration_seconds_bucket{upstream="github",method="tools/call",le="300"} 2
            bowline_call_duration_seconds_bucket{upstream="github",method="tools/call",le="+Inf"} 2
            bowline_call_duration_seconds_sum{upstream="github",method="tools/call"} 0.0155
            bowline_call_duration_seconds_count{upstream="github",method="tools/call"} 2
            # HELP bowline_tool_calls_total Calls of a tool, by result.
            # TYPE bowline_tool_calls_total counter
            bowline_tool_calls_total{upstream="github",tool="create_issue",outcome="ok"} 1
            # HELP bowline_upstream_state State of an upstream: 1 for the current state.
            # TYPE bowline_upstream_state gauge
            bowline_upstream_state{upstream="github",state="stopped"} 0
            bowline_upstream_state{upstream="github",state="starting"} 0
            bowline_upstream_state{upstream="github",state="ready"} 1
            bowline_upstream_state{upstream="github",state="degraded"} 0
            bowline_upstream_state{upstream="github",state="failed"} 0
            # HELP bowline_upstream_restarts_total Restarts of an upstream.
            # TYPE bowline_upstream_restarts_total counter
            bowline_upstream_restarts_total{upstream="github"} 1
            # HELP bowline_consent_decisions_total Consent decisions.
            # TYPE bowline_consent_decisions_total counter
            bowline_consent_decisions_total{upstream="github",decision="allowed"} 0
            bowline_consent_decisions_total{upstream="github",decision="denied"} 1
            bowline_consent_decisions_total{upstream="github",decision="expired"} 0
            # HELP bowline_sampling_tokens_total Tokens that models used for an upstream.
            # TYPE bowline_sampling_tokens_total counter
            bowline_sampling_tokens_total{upstream="github",kind="input"} 100
            bowline_sampling_tokens_total{upstream="github",kind="output"} 20
            # HELP bowline_bytes_total Bytes of messages to and from an upstream.
            # TYPE bowline_bytes_total counter
            bowline_bytes_total{upstream="github",direction="sent"} 1000
            bowline_bytes_total{upstream="github",direction="received"} 2000
        "#]]
        .assert_eq(&metrics.render().replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    }

    /// Returns whether a line is a comment, or a name, labels and a number.
    fn is_well_formed(line: &str) -> bool {
        if line.starts_with("# HELP bowline_") || line.starts_with("# TYPE bowline_") {
            return true;
        }
        let Some((series, value)) = line.rsplit_once(' ') else { return false };
        let labels = series.find('{').map_or("", |at| &series[at..]);
        let balanced = labels.is_empty() || (labels.ends_with("\"}") && quotes(labels).is_multiple_of(2));
        series.starts_with("bowline_") && value.parse::<f64>().is_ok() && balanced
    }

    fn quotes(text: &str) -> usize {
        let bytes = text.replace("\\\\", "");
        bytes.matches('"').count() - bytes.matches("\\\"").count()
    }

    #[test]
    fn hostile_names_cannot_break_lines() {
        let metrics = Metrics::new();
        for name in
            ["a\nbowline_evil 1", "b\r\nx", "c\"} 1\n", "d\\", "e\\\"", "f\u{2028}g\u{85}", "", "{}", "\u{0}"]
        {
            let upstream = metrics.upstream(name);
            upstream.called(Method::CallTool, CallEnd::Ok, Duration::from_secs(1));
            upstream.called_tool(name, CallEnd::Denied);
        }
        let page = metrics.render();
        for line in page.split(['\n', '\r', '\u{85}', '\u{2028}']).filter(|line| !line.is_empty()) {
            assert!(is_well_formed(line), "{line:?}");
            assert!(!line.starts_with("bowline_evil"));
        }
        assert!(page.contains(r#"upstream="c\"} 1"#) && page.contains(r#"upstream="d\\""#), "{page}");
        assert!(page.ends_with('\n'));
    }

    #[test]
    fn upstreams_beyond_the_limit_share_a_label() {
        let metrics = Metrics::with_limits(MetricLimits { upstreams: 2, tools: 0 });
        for name in ["a", "b", "c", "d"] {
            metrics.upstream(name).restarted();
            metrics.upstream(name).called_tool("t", CallEnd::Ok);
        }
        let page = metrics.render();
        assert!(page.contains("bowline_upstream_restarts_total{upstream=\"_other\"} 2\n"), "{page}");
        assert!(!page.contains("upstream=\"c\"") && !page.contains("tool=\"t\""));
        metrics.forget("a");
        assert!(!metrics.render().contains("upstream=\"a\""));
    }

    #[test]
    fn counting_from_many_threads_loses_nothing() {
        let metrics = Metrics::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let upstream = metrics.upstream("u");
                    for _ in 0..1_000 {
                        upstream.called(Method::ListTools, CallEnd::Ok, Duration::ZERO);
                    }
                });
            }
        });
        let page = metrics.render();
        assert!(
            page.contains(r#"bowline_call_duration_seconds_count{upstream="u",method="tools/list"} 4000"#)
        );
    }
}
