//! The contract of records and of hints.

use std::sync::Arc;
use std::time::Duration;

use bowline_store::kit::Ends;
use bowline_store::{ClaimId, ClaimRequest, ErrorKind, Group, Key, NodeId, Owner, Put, Queue};

use crate::server::{namespace, open, options, url};

bowline_store::contract_tests!(open);

mod bus {
    use super::{Arc, Ends, namespace, options, url};

    async fn open() -> Option<Ends> {
        let options = options(&url("BOWLINE_STORE_REDIS")?).namespace(namespace());
        Some((Arc::new(options.open_bus().await.unwrap()), Arc::new(options.open_bus().await.unwrap())))
    }

    bowline_store::bus_tests!(open);
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn namespaces_do_not_see_each_other() {
    let (Some(one), Some(two)) = (open().await, open().await) else { return };
    let key = [Key::new("a").unwrap()];
    one.put(Put::create(key[0].clone(), "1", MINUTE)).await.unwrap();
    assert_eq!(two.get(&key).await.unwrap(), [None]);
    two.put(Put::create(key[0].clone(), "2", MINUTE)).await.unwrap();
    assert_eq!(one.get(&key).await.unwrap()[0].as_ref().unwrap().value, "1");
}

/// Everything that a namespace needs ends with its records.
#[tokio::test]
async fn no_key_is_left_behind() {
    let Some(url) = url("BOWLINE_STORE_REDIS") else { return };
    let namespace = namespace();
    let store: Arc<dyn bowline_store::Records> =
        Arc::new(options(&url).namespace(namespace.clone()).open().await.unwrap());
    let put = |name: &str, ttl| {
        Put::create(Key::new(name).unwrap(), "1", ttl)
            .group(Group::new("g").unwrap())
            .queue(Queue::new("q").unwrap())
            .due_in(Duration::ZERO)
    };
    store.put(put("removed", MINUTE)).await.unwrap();
    store.put(put("done", MINUTE)).await.unwrap();
    let request = ClaimRequest::new(NodeId::random(), [Queue::new("q").unwrap()]).limit(3);
    assert_eq!(store.claim(request).await.unwrap().len(), 2);
    let owner = Owner { node: NodeId::random(), claim: ClaimId::random() };
    store.put(put("expired", Duration::from_millis(50)).take(owner, MINUTE)).await.unwrap();
    let done = store.get(&[Key::new("done").unwrap()]).await.unwrap().remove(0).unwrap();
    store.put(Put::update(done.key.clone(), "2", done.version).release().never_due()).await.unwrap();
    store.remove(&[Key::new("removed").unwrap(), done.key]).await.unwrap();
    while store.sweep(10).await.unwrap() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let keys: Vec<String> =
        redis::cmd("KEYS").arg(format!("*{namespace}*")).query_async(&mut connection).await.unwrap();
    assert_eq!(keys, [""; 0]);
}

/// A server that was restarted or flushed has forgotten the scripts.
#[tokio::test]
async fn forgotten_scripts_are_loaded_again() {
    let Some(url) = url("BOWLINE_STORE_REDIS") else { return };
    let Some(store) = open().await else { return };
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    for number in 0..3 {
        redis::cmd("SCRIPT").arg("FLUSH").exec_async(&mut connection).await.unwrap();
        let key = Key::new(format!("k{number}")).unwrap();
        store.put(Put::create(key, "1", MINUTE)).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    // Nothing listens on port 1.
    let error = options("redis://127.0.0.1:1").open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("cannot connect to Redis at 127.0.0.1:1"), "{error}");
}
