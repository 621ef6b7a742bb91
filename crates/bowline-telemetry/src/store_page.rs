//! Renders the metrics of a store and of the tasks in it.

use super::prometheus::Output;
use bowline_store::{Depth, Store, TIME_BOUNDS};

/// Renders the metrics of a store, of the tasks in it and of the hints between processes, in the Prometheus text format 0.0.4.
/// Serve it as [`CONTENT_TYPE`](super::CONTENT_TYPE).
///
/// It asks the store what waits in its queues. If the store does not answer, those numbers are left out and `bowline_store_up`
/// is 0. All labels have fixed values.
///
/// ```
/// use bowline_store::Store;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let page = bowline_telemetry::store_page(&Store::memory()).await;
/// assert!(page.contains("bowline_store_up{engine=\"memory\"} 1\n"));
/// assert!(page.contains("bowline_tasks{state=\"waiting\"} 0\n"));
/// # }
/// ```
pub async fn store_page(store: &Store) -> String {
    // First, so that the counts below include it.
    let depth = store.depth().await.ok().flatten();
    let mut page = Output::default();
    render(&mut page, store, depth);
    page.into_text()
}

/// Renders the metrics of a server that is not a gateway: its version, the open sessions and streams of its endpoint, and
/// what [`store_page`] has, if it keeps tasks or sessions in a store.
pub async fn server_page(sessions: usize, streams: usize, store: Option<&Store>) -> String {
    let mut page = Output::default();
    page.build_info();
    page.sessions(sessions as u64);
    let mut text = page.into_text();
    text.push_str(&streams_page(streams));
    if let Some(store) = store {
        text.push_str(&store_page(store).await);
    }
    text
}

/// Renders how many streams of events are open.
pub fn streams_page(streams: usize) -> String {
    let mut page = Output::default();
    page.family("bowline_streams", "gauge", "Open streams of events.");
    page.sample("bowline_streams", &[], streams as u64);
    page.into_text()
}

fn render(page: &mut Output, store: &Store, depth: Option<Depth>) {
    let metrics = store.metrics();
    let name = "bowline_store_up";
    page.family(name, "gauge", "Whether the store answered the last operation of this process.");
    page.sample(name, &[("engine", store.engine())], u64::from(metrics.is_up()));
    let name = "bowline_store_seconds";
    page.family(name, "histogram", "Duration of operations of the store, waiting included.");
    for (op, times) in metrics.operations().filter(|(_, times)| times.count > 0) {
        let bounds = TIME_BOUNDS.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(times.up_to) {
            page.sample(&format!("{name}_bucket"), &[("op", op), ("le", &bound)], count);
        }
        page.seconds(&format!("{name}_sum"), &[("op", op)], times.sum);
        page.sample(&format!("{name}_count"), &[("op", op)], times.count);
    }
    let counters = [
        (
            "bowline_store_conflicts_total",
            "Writes that found another version or lost their claim.",
            metrics.conflicts(),
        ),
        ("bowline_store_unknown_total", "Writes that may have been applied or not.", metrics.unknown()),
        (
            "bowline_task_lapses_total",
            "Tasks taken over from processes that stopped renewing their claims.",
            metrics.lapses(),
        ),
        (
            "bowline_bus_gaps_total",
            "Times that a listener may have missed hints of other processes.",
            metrics.gaps(),
        ),
    ];
    for (name, help, count) in counters {
        page.family(name, "counter", help);
        page.sample(name, &[], count);
    }
    let name = "bowline_sweep_lag_seconds";
    page.family(name, "gauge", "Time since this process last deleted everything that had expired.");
    page.seconds(name, &[], metrics.sweep_lag());
    let Some(depth) = depth else { return };
    let name = "bowline_tasks";
    page.family(name, "gauge", "Unfinished tasks of all processes that do not wait for an answer.");
    for (state, count) in [("waiting", depth.due), ("running", depth.claimed), ("sleeping", depth.scheduled)]
    {
        page.sample(name, &[("state", state)], count);
    }
    let name = "bowline_task_queue_age_seconds";
    page.family(name, "gauge", "How long the task has waited that waits for the longest time.");
    page.seconds(name, &[], depth.oldest);
}

#[cfg(test)]
mod tests {
    use super::{server_page, store_page};
    use bowline_store::{ClaimRequest, Key, Limits, Memory, MemoryBus, NodeId, Put, Queue, Reach, Store};
    use expect_test::expect;
    use std::{sync::Arc, time::Duration};

    #[tokio::test(start_paused = true)]
    async fn the_page_of_a_store_has_the_prometheus_format() {
        let store = Store::memory();
        let queue = Queue::new("tool@1").unwrap();
        for name in ["a", "b", "c"] {
            let put =
                Put::create(Key::new(name).unwrap(), "v", Duration::from_secs(600)).queue(queue.clone());
            let due = if name == "c" { 60 } else { 0 };
            store.records().put(put.due_in(Duration::from_secs(due))).await.unwrap();
        }
        tokio::time::advance(Duration::from_secs(7)).await;
        store.records().claim(ClaimRequest::new(NodeId::random(), [queue])).await.unwrap();
        let page = store_page(&store).await;
        // Time is paused, so all operations take none.
        let kept: String = page
            .split_inclusive('\n')
            .filter(|line| !line.contains("_bucket{") || line.contains("op=\"put\""))
            .collect();
        expect![[r#"
            # HELP bowline_store_up Whether the store answered the last operation of this process.
            # TYPE bowline_store_up gauge
            bowline_store_up{engine="memory"} 1
            # HELP bowline_store_seconds Duration of operations of the store, waiting included.
            # TYPE bowline_store_seconds histogram
            bowline_store_seconds_bucket{op="put",le="0.0005"} 3
            bowline_store_seconds_bucket{op="put",le="0.001"} 3
            bowline_store_seconds_bucket{op="put",le="0.0025"} 3
            bowline_store_seconds_bucket{op="put",le="0.005"} 3
            bowline_store_seconds_bucket{op="put",le="0.01"} 3
            bowline_store_seconds_bucket{op="put",le="0.025"} 3
            bowline_store_seconds_bucket{op="put",le="0.05"} 3
            bowline_store_seconds_bucket{op="put",le="0.1"} 3
            bowline_store_seconds_bucket{op="put",le="0.25"} 3
            bowline_store_seconds_bucket{op="put",le="0.5"} 3
            bowline_store_seconds_bucket{op="put",le="1"} 3
            bowline_store_seconds_bucket{op="put",le="2.5"} 3
            bowline_store_seconds_bucket{op="put",le="+Inf"} 3
            bowline_store_seconds_sum{op="put"} 0
            bowline_store_seconds_count{op="put"} 3
            bowline_store_seconds_sum{op="claim"} 0
            bowline_store_seconds_count{op="claim"} 1
            bowline_store_seconds_sum{op="depth"} 0
            bowline_store_seconds_count{op="depth"} 1
            # HELP bowline_store_conflicts_total Writes that found another version or lost their claim.
            # TYPE bowline_store_conflicts_total counter
            bowline_store_conflicts_total 0
            # HELP bowline_store_unknown_total Writes that may have been applied or not.
            # TYPE bowline_store_unknown_total counter
            bowline_store_unknown_total 0
            # HELP bowline_task_lapses_total Tasks taken over from processes that stopped renewing their claims.
            # TYPE bowline_task_lapses_total counter
            bowline_task_lapses_total 0
            # HELP bowline_bus_gaps_total Times that a listener may have missed hints of other processes.
            # TYPE bowline_bus_gaps_total counter
            bowline_bus_gaps_total 0
            # HELP bowline_sweep_lag_seconds Time since this process last deleted everything that had expired.
            # TYPE bowline_sweep_lag_seconds gauge
            bowline_sweep_lag_seconds 7
            # HELP bowline_tasks Unfinished tasks of all processes that do not wait for an answer.
            # TYPE bowline_tasks gauge
            bowline_tasks{state="waiting"} 1
            bowline_tasks{state="running"} 1
            bowline_tasks{state="sleeping"} 1
            # HELP bowline_task_queue_age_seconds How long the task has waited that waits for the longest time.
            # TYPE bowline_task_queue_age_seconds gauge
            bowline_task_queue_age_seconds 7
        "#]].assert_eq(&kept);
    }

    #[tokio::test]
    async fn a_store_that_is_down_is_shown_as_such() {
        // No operation gets a turn.
        let limits = Limits::default().running(0).waiting(0);
        let (memory, bus) = (Arc::new(Memory::new()), Arc::new(MemoryBus::new()));
        let store = Store::builder("memory", memory, bus, Reach::Machine).limits(limits).build();
        let page = store_page(&store).await;
        assert!(page.contains("\nbowline_store_up{engine=\"memory\"} 0\n"), "{page}");
        assert!(!page.contains("bowline_tasks{"), "{page}");
    }

    #[tokio::test]
    async fn a_server_without_a_store_has_no_metrics_of_one() {
        let page = server_page(3, 2, None).await;
        assert!(
            page.contains("bowline_sessions_active 3\n") && page.contains("bowline_streams 2\n"),
            "{page}"
        );
        assert!(!page.contains("bowline_store") && !page.contains("bowline_task"), "{page}");
    }
}
