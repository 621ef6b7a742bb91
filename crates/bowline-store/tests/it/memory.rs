//! The contract, and the limit of the memory.

use std::sync::Arc;
use std::time::Duration;

use bowline_store::{
    Bus, BusEvent, ErrorKind, Key, MAX_HINT_BYTES, Memory, MemoryBus, Message, Put, PutError, Records, Topic,
};
use futures_util::StreamExt;

async fn open() -> Arc<dyn Records> {
    Arc::new(Memory::new())
}

bowline_store::contract_tests!(open);

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_full_store_refuses_writes_until_something_is_removed() {
    let store = Memory::with_max_bytes(3_000);
    let key = |name: &str| Key::new(name).unwrap();
    store.put(Put::create(key("a"), vec![0; 1_500], MINUTE)).await.unwrap();
    let refused = store.put(Put::create(key("b"), vec![0; 1_500], MINUTE)).await.unwrap_err();
    let PutError::Store(error) = refused else { panic!("{refused:?}") };
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(
        error.to_string(),
        "the store is not available: it is full: records in memory have at most 3000 bytes in total"
    );
    store.remove(&[key("a")]).await.unwrap();
    store.put(Put::create(key("b"), vec![0; 1_500], MINUTE)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_clock_is_the_runtimes() {
    let store = Memory::new();
    let key = [Key::new("a").unwrap()];
    store.put(Put::create(key[0].clone(), "1", MINUTE)).await.unwrap();
    tokio::time::advance(Duration::from_millis(59_999)).await;
    assert!(store.get(&key).await.unwrap()[0].is_some());
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(store.get(&key).await.unwrap()[0].is_none());
}

#[tokio::test]
async fn hints_reach_every_subscriber_and_losses_are_reported() {
    let bus = MemoryBus::new();
    let message = |text: &str| Message::new(Topic::new("tasks").unwrap(), text.to_owned()).unwrap();
    bus.publish(message("nobody listens"));
    let (mut quick, mut slow) = (bus.subscribe(), bus.subscribe());
    bus.publish(message("1"));
    assert_eq!(quick.next().await, Some(BusEvent::Message(message("1"))));
    for number in 2..5_000 {
        bus.publish(message(&number.to_string()));
    }
    assert_eq!(slow.next().await, Some(BusEvent::Gap));
    assert!(matches!(slow.next().await, Some(BusEvent::Message(_))));
    assert!(Message::new(Topic::new("t").unwrap(), vec![0; MAX_HINT_BYTES + 1]).is_err());
}
