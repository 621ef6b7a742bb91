//! A server that ends in the middle of its work and comes back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::task::JoinSet;

use super::bus::message;
use super::{Ends, group, key};
use crate::{BusEvent, ErrorKind, Put, PutError, Records};

/// What became of the writes.
#[derive(Default)]
struct Written {
    acknowledged: Vec<String>,
    refused: Vec<String>,
}

/// Kills the server several times while eight writers write. `restart` kills it, starts it again and returns when it
/// accepts connections.
///
/// What was acknowledged is there at the end. What failed as unavailable is not there. Of what failed as unknown, nothing
/// can be said.
pub async fn acknowledged_writes_survive<F: Future<Output = ()>>(
    store: Arc<dyn Records>,
    restarts: usize,
    mut restart: impl FnMut() -> F,
) {
    let done = Arc::new(AtomicBool::new(false));
    let count = Arc::new(AtomicUsize::new(0));
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let (store, done, count) = (Arc::clone(&store), Arc::clone(&done), Arc::clone(&count));
        writers.spawn(async move {
            let mut written = Written::default();
            let mut number = 0_u32;
            while !done.load(Ordering::Relaxed) {
                number += 1;
                let name = format!("{writer}-{number}");
                let put = Put::create(key(&name), vec![7; 300], Duration::from_secs(3_600));
                match store.put(put.group(group("all"))).await {
                    Ok(_) => {
                        written.acknowledged.push(name);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(PutError::Store(error)) if error.kind() == ErrorKind::Unavailable => {
                        written.refused.push(name);
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                    Err(PutError::Store(error)) if error.kind() == ErrorKind::Unknown => {}
                    Err(error) => panic!("{name}: {error}"),
                }
            }
            written
        });
    }
    // Each kill happens in the middle of work: after more was acknowledged, with eight writes under way.
    for round in 1..=restarts {
        super::eventually("writes are acknowledged", async || count.load(Ordering::Relaxed) >= round * 100)
            .await;
        restart().await;
    }
    let before = count.load(Ordering::Relaxed);
    super::eventually("writes go on", async || count.load(Ordering::Relaxed) > before + 50).await;
    done.store(true, Ordering::Relaxed);

    let mut kept = BTreeSet::new();
    let written = writers.join_all().await;
    let mut after = None;
    loop {
        let page = store.list(&group("all"), after.as_ref(), 500).await.expect("a list");
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        kept.extend(page.iter().map(|record| record.key.to_string()));
    }
    for written in written {
        let lost: Vec<_> = written.acknowledged.iter().filter(|name| !kept.contains(*name)).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        let applied: Vec<_> = written.refused.iter().filter(|name| kept.contains(*name)).collect();
        assert!(applied.is_empty(), "unavailable and applied: {applied:?}");
    }
}

/// After a lost connection a subscriber gets a gap, and then hints again.
pub async fn a_lost_connection_is_a_gap<F: Future<Output = ()>>(
    (one, two): Ends,
    restart: impl FnOnce() -> F,
) {
    let mut stream = two.subscribe();
    let mut other = one.subscribe();
    restart().await;
    let limit = Duration::from_secs(60);
    for stream in [&mut stream, &mut other] {
        let event = tokio::time::timeout(limit, stream.next()).await.expect("no gap was reported");
        assert_eq!(event, Some(BusEvent::Gap));
    }
    // Both ends listen again.
    one.publish(message("after", "1"));
    let event = tokio::time::timeout(limit, stream.next()).await.expect("no hint after the gap");
    assert_eq!(event, Some(BusEvent::Message(message("after", "1"))));
}
