//! Latencies and what is told of them.
use serde_json::{Map, Value, json};

/// Latencies in nanoseconds to the report's numbers (microseconds).
pub fn latency(prefix: &str, mut ns: Vec<u64>, out: &mut Map<String, Value>) {
    ns.sort_unstable();
    let q = |p: f64| {
        if ns.is_empty() {
            return Value::Null;
        }
        let i = ((ns.len() as f64 * p).ceil() as usize).clamp(1, ns.len()) - 1;
        json!((ns[i] as f64 / 10.0).round() / 100.0)
    };
    for (name, p) in [("p50_us", 0.50), ("p90_us", 0.90), ("p99_us", 0.99), ("max_us", 1.0)] {
        out.insert(format!("{prefix}{name}"), q(p));
    }
    out.insert(format!("{prefix}n"), json!(ns.len()));
}
