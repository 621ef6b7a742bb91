//! Keys are rotated while servers write.

use bowline_store::{Key, Put, PutError, Store};
use bowline_stores::{StoreOptions, key_ring};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// A process with these keys: the first seals.
async fn open(file: &Path, keys: &[&str]) -> Store {
    let keys = key_ring(keys.iter().map(|digit| digit.repeat(64))).unwrap();
    StoreOptions::new(format!("sqlite:{}", file.display())).keys(keys).open().await.unwrap()
}

fn key(number: usize) -> Key {
    Key::new(format!("r/{number}")).unwrap()
}

/// Adds 1 to the number in a record.
async fn add(store: &Store, number: usize) {
    loop {
        let record = store.records().get(&[key(number)]).await.unwrap().remove(0).unwrap();
        let next = std::str::from_utf8(&record.value).unwrap().parse::<u64>().unwrap() + 1;
        match store.records().put(Put::update(record.key, next.to_string(), record.version)).await {
            Ok(_) => return,
            Err(PutError::Conflict) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Seals everything again, and returns how many records were sealed.
async fn rekey(store: &Store) -> u64 {
    let (mut sealed, mut after) = (0, None);
    loop {
        let page = store.rekey(after.as_deref(), 7).await.unwrap();
        assert!(page.unreadable.is_empty(), "{page:?}");
        sealed += page.sealed;
        match page.next {
            Some(next) => after = Some(next),
            None => return sealed,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_write_is_lost_while_records_are_sealed_again() {
    const RECORDS: usize = 50;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.db");
    let old = open(&file, &["1", "2"]).await;
    for number in 0..RECORDS {
        old.records().put(Put::create(key(number), "0", Duration::from_secs(600))).await.unwrap();
    }
    // A server that has not been restarted yet: it knows the new key, and seals with the old one.
    let is_over = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let is_over = Arc::clone(&is_over);
        async move {
            let mut written = vec![0_u64; RECORDS];
            let mut number = 0;
            while !is_over.load(Ordering::Relaxed) {
                add(&old, number).await;
                written[number] += 1;
                number = (number * 7 + 3) % RECORDS;
            }
            written
        }
    });
    let new = open(&file, &["2", "1"]).await;
    assert!(rekey(&new).await >= RECORDS as u64, "the writer seals some of them with the old key again");
    for _ in 0..5 {
        rekey(&new).await;
    }
    is_over.store(true, Ordering::Relaxed);
    let written = writer.await.unwrap();
    rekey(&new).await;
    assert_eq!(rekey(&new).await, 0);
    // The old key is gone, and nothing that was written.
    let last = open(&file, &["2"]).await;
    for (number, written) in written.iter().enumerate() {
        let record = last.records().get(&[key(number)]).await.unwrap().remove(0).unwrap();
        assert_eq!(record.value, written.to_string(), "record {number}");
    }
    assert!(written.iter().sum::<u64>() > 0);
}
