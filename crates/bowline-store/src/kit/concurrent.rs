//! Many writers at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::{MINUTE, claim, due, key, read};
use crate::{NodeId, Put, PutError, Records};

const WRITERS: usize = 8;

/// Eight writers count to 200 by compare-and-swap, and no step is lost.
pub async fn one_writer_wins_each_version(store: Arc<dyn Records>) {
    store.put(Put::create(key("count"), "0", MINUTE)).await.expect("a new record");
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let store = Arc::clone(&store);
        writers.spawn(async move {
            for _ in 0..25 {
                loop {
                    let record = read(&store, "count").await.expect("the record");
                    let text = std::str::from_utf8(&record.value).expect("a number");
                    let next = text.parse::<u64>().expect("a number") + 1;
                    match store.put(Put::update(key("count"), next.to_string(), record.version)).await {
                        Ok(_) => break,
                        Err(PutError::Conflict) => tokio::task::yield_now().await,
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        });
    }
    writers.join_all().await;
    assert_eq!(read(&store, "count").await.expect("the record").value, "200");
}

/// Eight nodes claim a hundred records, each once.
pub async fn no_record_is_claimed_twice(store: Arc<dyn Records>) {
    for number in 0..100 {
        due(&store, &format!("{number:03}")).await;
    }
    let mut nodes = JoinSet::new();
    for _ in 0..WRITERS {
        let store = Arc::clone(&store);
        nodes.spawn(async move {
            let node = NodeId::random();
            let mut got = Vec::new();
            loop {
                let records = store.claim(claim(node).limit(3)).await.expect("a claim");
                if records.is_empty() {
                    return got;
                }
                got.extend(records.into_iter().map(|record| record.key));
            }
        });
    }
    let mut times: BTreeMap<_, u32> = BTreeMap::new();
    for key in nodes.join_all().await.into_iter().flatten() {
        *times.entry(key).or_default() += 1;
    }
    // A node may find all that is left taken by others and stop early; what is left goes to one more claim.
    let rest = store.claim(claim(NodeId::random()).limit(100)).await.expect("a claim");
    for record in rest {
        *times.entry(record.key).or_default() += 1;
    }
    assert_eq!(times.len(), 100);
    assert!(times.values().all(|times| *times == 1), "{times:?}");
}

/// While claims move from node to node, only the holder of the newest writes.
pub async fn a_lost_claim_writes_nothing(store: Arc<dyn Records>) {
    due(&store, "task").await;
    let mut nodes = JoinSet::new();
    for _ in 0..WRITERS {
        let store = Arc::clone(&store);
        nodes.spawn(async move {
            let mut written = 0_u32;
            for _ in 0..20 {
                let request = claim(NodeId::random()).lease(Duration::ZERO).lapsed(true);
                let Some(record) = store.claim(request).await.expect("a claim").pop() else { continue };
                let claim = record.owner.expect("an owner").claim;
                tokio::task::yield_now().await;
                // `lapses` numbers the claims: one record per claim, or two claims wrote.
                let step = key(&format!("task/{:05}", record.lapses));
                match store.put(Put::create(step, "", MINUTE).under_claim(key("task"), claim)).await {
                    Ok(_) => written += 1,
                    Err(PutError::ClaimLost) => {}
                    Err(error) => panic!("claim {}: {error}", record.lapses),
                }
            }
            written
        });
    }
    let written: u32 = nodes.join_all().await.into_iter().sum();
    let record = read(&store, "task").await.expect("the record");
    assert!(written >= 1 && written <= record.lapses + 1, "{written} writes by {} claims", record.lapses + 1);
}
