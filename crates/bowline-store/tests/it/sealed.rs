//! Values that an engine cannot read.

use std::sync::Arc;
use std::time::Duration;

use bowline_proto::seal::{Key as Secret, KeyRing};
use bowline_store::{ClaimRequest, ErrorKind, Group, Key, Memory, NodeId, Put, Queue, Records, Sealed};

async fn open() -> Arc<dyn Records> {
    Arc::new(Sealed::new(Arc::new(Memory::new()), ring(1), "test"))
}

bowline_store::contract_tests!(open);

const MINUTE: Duration = Duration::from_secs(60);

fn ring(secret: u8) -> KeyRing {
    KeyRing::new(Secret::new([secret; 32]))
}

fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

#[tokio::test]
async fn the_engine_sees_no_value_in_clear_text() {
    let inner = Arc::new(Memory::new());
    let store = Sealed::new(inner.clone(), ring(1), "test");
    store.put(Put::create(key("a"), "a canary of ninety-nine colors", MINUTE)).await.unwrap();
    let kept = inner.get(&[key("a")]).await.unwrap().remove(0).unwrap().value;
    assert!(!kept.windows(6).any(|part| part == b"canary"));
    assert_eq!(
        store.get(&[key("a")]).await.unwrap().remove(0).unwrap().value,
        "a canary of ninety-nine colors"
    );
}

#[tokio::test]
async fn a_value_under_another_key_or_with_another_secret_is_refused() {
    let inner = Arc::new(Memory::new());
    let store = Sealed::new(inner.clone(), ring(1), "test");
    store.put(Put::create(key("ann"), "secret", MINUTE)).await.unwrap();
    let kept = inner.get(&[key("ann")]).await.unwrap().remove(0).unwrap().value;
    inner.put(Put::create(key("bob"), kept, MINUTE)).await.unwrap();
    let error = store.get(&[key("bob")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(
        error.to_string(),
        "the value of bob cannot be opened: altered, or sealed for another context"
    );
    let error = Sealed::new(inner.clone(), ring(2), "test").get(&[key("ann")]).await.unwrap_err();
    assert_eq!(error.to_string(), "the value of ann cannot be opened: sealed with an unknown key");
    let rotated = KeyRing::new(Secret::new([2; 32])).with_previous(Secret::new([1; 32]));
    assert!(Sealed::new(inner.clone(), rotated, "test").get(&[key("ann")]).await.unwrap()[0].is_some());
    let error = Sealed::new(inner, ring(1), "other").get(&[key("ann")]).await.unwrap_err();
    assert!(error.to_string().ends_with("altered, or sealed for another context"), "{error}");
}

#[tokio::test]
async fn a_claim_releases_what_it_cannot_open() {
    let inner = Arc::new(Memory::new());
    let queue = Queue::new("q").unwrap();
    let (old, new) =
        (Sealed::new(inner.clone(), ring(1), "test"), Sealed::new(inner.clone(), ring(2), "test"));
    let put = Put::create(key("task"), "1", MINUTE).queue(queue.clone()).due_in(Duration::ZERO);
    new.put(put).await.unwrap();
    let request = |node| ClaimRequest::new(node, [queue.clone()]).lease(Duration::ZERO);
    let node = NodeId::random();
    assert_eq!(old.claim(request(node)).await.unwrap(), []);
    assert_eq!(old.renew(node, MINUTE).await.unwrap(), []);
    let claimed = new.claim(request(NodeId::random())).await.unwrap();
    assert_eq!((claimed[0].value.as_ref(), claimed[0].lapses), (&b"1"[..], 0));
}

#[tokio::test]
async fn a_value_that_cannot_be_opened_hides_no_other() {
    let inner = Arc::new(Memory::new());
    let store = Sealed::new(inner.clone(), ring(1), "test");
    let group = Group::new("g").unwrap();
    for name in ["b", "d"] {
        store.put(Put::create(key(name), name, MINUTE).group(group.clone())).await.unwrap();
    }
    for name in ["a", "c"] {
        inner.put(Put::create(key(name), "poison", MINUTE).group(group.clone())).await.unwrap();
    }
    let listed = store.list(&group, None, 2).await.unwrap();
    let names: Vec<&str> = listed.iter().map(|record| record.key.as_str()).collect();
    assert_eq!(names, ["b", "d"]);
}
