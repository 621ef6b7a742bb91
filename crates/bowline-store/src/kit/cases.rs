//! One operation after the other.

use std::sync::Arc;
use std::time::Duration;

use super::{MINUTE, SHORT, claim, claimed, due, eventually, group, key, names, queue, read};
use crate::{
    ClaimId, ClaimRequest, ErrorKind, MAX_VALUE_BYTES, NodeId, Owner, Put, PutError, Records, Version,
};

type Store = Arc<dyn Records>;

fn assert_conflict(result: &Result<Version, PutError>) {
    assert!(matches!(result, Err(PutError::Conflict)), "{result:?}");
}

fn assert_claim_lost(result: &Result<Version, PutError>) {
    assert!(matches!(result, Err(PutError::ClaimLost)), "{result:?}");
}

async fn create(store: &Store, name: &str, value: &str) -> Version {
    store.put(Put::create(key(name), value.to_owned(), MINUTE)).await.expect("a new record")
}

/// `Absent` refuses a record that exists.
pub async fn absent_means_that_no_live_record_exists(store: Store) {
    assert_eq!(read(&store, "a").await, None);
    create(&store, "a", "1").await;
    assert_conflict(&store.put(Put::create(key("a"), "2", MINUTE)).await);
    assert_eq!(read(&store, "a").await.expect("the record").value, "1");
    store.remove(&[key("a")]).await.expect("a removal");
    create(&store, "a", "3").await;
}

/// A version is good for one write.
pub async fn a_version_matches_once(store: Store) {
    let first = create(&store, "a", "1").await;
    let second = store.put(Put::update(key("a"), "2", first)).await.expect("the first update");
    assert_conflict(&store.put(Put::update(key("a"), "3", first)).await);
    let record = read(&store, "a").await.expect("the record");
    assert_eq!((record.value.as_ref(), record.version), (&b"2"[..], second));
}

/// A write of the same value changes the version.
pub async fn every_write_changes_the_version(store: Store) {
    let first = create(&store, "a", "1").await;
    let second = store.put(Put::update(key("a"), "1", first)).await.expect("an update");
    let third = store.put(Put::update(key("a"), "1", second)).await.expect("an update");
    assert!(first != second && second != third && first != third);
    // A record that was removed and created again is another one.
    store.remove(&[key("a")]).await.expect("a removal");
    assert_ne!(create(&store, "a", "1").await, first);
}

/// An update that names neither owner nor times leaves them alone.
pub async fn a_put_keeps_what_it_does_not_change(store: Store) {
    due(&store, "a").await;
    let before = claimed(&store, claim(NodeId::random())).await.remove(0);
    store.put(Put::update(key("a"), "new", before.version)).await.expect("an update");
    let after = read(&store, "a").await.expect("the record");
    assert_eq!(after.value, "new");
    assert_eq!(
        (after.owner, after.due, after.expires, after.lapses),
        (before.owner, before.due, before.expires, before.lapses)
    );
}

/// A version never matches a missing record.
pub async fn a_missing_record_has_no_version(store: Store) {
    let version = create(&store, "a", "1").await;
    store.remove(&[key("a"), key("never")]).await.expect("a removal");
    assert_conflict(&store.put(Put::update(key("a"), "2", version)).await);
    assert_eq!(read(&store, "a").await, None);
}

/// An update does not move a record to another queue or group.
pub async fn queue_and_group_are_set_at_creation(store: Store) {
    let put = Put::create(key("a"), "1", MINUTE).queue(queue("q")).group(group("g"));
    let version = store.put(put).await.expect("a new record");
    let put = Put::update(key("a"), "2", version).queue(queue("other")).group(group("other"));
    store.put(put).await.expect("an update");
    let record = read(&store, "a").await.expect("the record");
    assert_eq!((record.queue, record.group), (Some(queue("q")), Some(group("g"))));
}

/// What has expired is absent for every operation, also before a sweep.
pub async fn expired_records_are_absent(store: Store) {
    let put = Put::create(key("a"), "1", SHORT).queue(queue("q")).group(group("g")).due_in(Duration::ZERO);
    let version = store.put(put).await.expect("a new record");
    eventually("the record expires", async || read(&store, "a").await.is_none()).await;
    assert_eq!(names(&store, "g").await, [""; 0]);
    assert_eq!(store.count(&group("g")).await.expect("a count"), 0);
    assert_eq!(claimed(&store, claim(NodeId::random()).lapsed(true)).await, []);
    assert_conflict(&store.put(Put::update(key("a"), "2", version)).await);
    store.touch(&[key("a")], MINUTE).await.expect("a touch");
    assert_eq!(read(&store, "a").await, None, "a touch revived an expired record");
}

/// `Absent` accepts the key of an expired record, and nothing of the old record stays.
pub async fn an_expired_record_can_be_created_again(store: Store) {
    let put = Put::create(key("a"), "1", SHORT).queue(queue("q")).group(group("g")).due_in(Duration::ZERO);
    store.put(put).await.expect("a new record");
    eventually("the record expires", async || read(&store, "a").await.is_none()).await;
    create(&store, "a", "2").await;
    let record = read(&store, "a").await.expect("the record");
    assert_eq!((record.value.as_ref(), record.lapses), (&b"2"[..], 0));
    assert_eq!((record.owner, record.due, record.queue, record.group), (None, None, None, None));
    assert_eq!(names(&store, "g").await, [""; 0]);
}

/// A write under a claim that is not the record's is refused.
pub async fn a_write_under_a_claim_needs_that_claim(store: Store) {
    due(&store, "a").await;
    let record = claimed(&store, claim(NodeId::random())).await.remove(0);
    let owner = record.owner.expect("an owner");
    let wrong = Put::update(key("a"), "2", record.version).under_claim(key("a"), ClaimId::random());
    assert_claim_lost(&store.put(wrong).await);
    let right =
        Put::update(key("a"), "2", record.version).under_claim(key("a"), owner.claim).release().never_due();
    let version = store.put(right).await.expect("a write under a claim");
    // It is released now.
    assert_claim_lost(
        &store.put(Put::update(key("a"), "3", version).under_claim(key("a"), owner.claim)).await,
    );
    assert_eq!(read(&store, "a").await.expect("the record").value, "2");
}

/// The claim of a parent guards the records below it.
pub async fn a_write_under_a_claim_may_be_to_another_record(store: Store) {
    due(&store, "a").await;
    let claim = claimed(&store, claim(NodeId::random())).await.remove(0).owner.expect("an owner").claim;
    let child = |claim| Put::create(key("a/step"), "1", MINUTE).under_claim(key("a"), claim);
    assert_claim_lost(&store.put(child(ClaimId::random())).await);
    assert_claim_lost(&store.put(Put::create(key("a/step"), "1", MINUTE).under_claim(key("b"), claim)).await);
    assert_eq!(read(&store, "a/step").await, None);
    store.put(child(claim)).await.expect("a write under a claim");
    assert_conflict(&store.put(child(claim)).await);
}

/// A lease that ended does not by itself end the claim.
pub async fn a_lapsed_claim_holds_until_another_one(store: Store) {
    due(&store, "a").await;
    let first = claimed(&store, claim(NodeId::random()).lease(SHORT)).await.remove(0);
    let claim_id = first.owner.expect("an owner").claim;
    eventually("the lease ends", async || {
        read(&store, "a").await.is_some_and(|record| record.due <= Some(record.read_at))
    })
    .await;
    store
        .put(Put::create(key("a/1"), "1", MINUTE).under_claim(key("a"), claim_id))
        .await
        .expect("a write under a claim");
    assert_eq!(claimed(&store, claim(NodeId::random()).lapsed(true)).await.len(), 1);
    assert_claim_lost(&store.put(Put::create(key("a/2"), "1", MINUTE).under_claim(key("a"), claim_id)).await);
}

/// A claim ends with its record.
pub async fn a_claim_ends_with_its_expired_record(store: Store) {
    let owner = Owner { node: NodeId::random(), claim: ClaimId::random() };
    store.put(Put::create(key("a"), "1", SHORT).take(owner, MINUTE)).await.expect("a new record");
    eventually("the record expires", async || read(&store, "a").await.is_none()).await;
    assert_claim_lost(
        &store.put(Put::create(key("b"), "1", MINUTE).under_claim(key("a"), owner.claim)).await,
    );
}

/// Only due records of the queues that were asked for are claimed.
pub async fn a_claim_takes_due_records_of_its_queues(store: Store) {
    due(&store, "a").await;
    let later = Put::create(key("later"), "", MINUTE).queue(queue("q")).due_in(MINUTE);
    let other = Put::create(key("other"), "", MINUTE).queue(queue("other")).due_in(Duration::ZERO);
    let never = Put::create(key("never"), "", MINUTE).queue(queue("q"));
    for put in [later, other, never] {
        store.put(put).await.expect("a new record");
    }
    let node = NodeId::random();
    let got = claimed(&store, claim(node)).await;
    assert_eq!(got.iter().map(|record| record.key.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(got[0].value, "a");
    let owner = got[0].owner.expect("an owner");
    assert_eq!(owner.node, node);
    assert_eq!(read(&store, "a").await.expect("the record").owner, Some(owner));
    let both = ClaimRequest::new(node, [queue("q"), queue("other")]).limit(10);
    assert_eq!(claimed(&store, both).await.len(), 1);
    assert_eq!(claimed(&store, ClaimRequest::new(node, []).limit(10)).await, []);
}

/// A writer that read the record before the claim does not overwrite it.
pub async fn a_claim_changes_the_version(store: Store) {
    due(&store, "a").await;
    let before = read(&store, "a").await.expect("the record").version;
    let after = claimed(&store, claim(NodeId::random())).await.remove(0).version;
    assert_ne!(before, after);
    assert_conflict(&store.put(Put::update(key("a"), "2", before)).await);
    store.put(Put::update(key("a"), "2", after)).await.expect("an update");
}

/// Records are claimed in the order in which they became due, and no more than the limit.
pub async fn a_claim_takes_the_longest_due_first(store: Store) {
    for name in ["c", "a", "b"] {
        due(&store, name).await;
        let record = read(&store, name).await.expect("the record");
        // Due times are in milliseconds.
        eventually("the clock moves on", async || {
            read(&store, name).await.is_some_and(|now| now.read_at > record.read_at)
        })
        .await;
    }
    let node = NodeId::random();
    assert_eq!(claimed(&store, claim(node).limit(0)).await, []);
    let mut order = Vec::new();
    for _ in 0..4 {
        let got = claimed(&store, claim(node).limit(1)).await;
        order.extend(got.into_iter().map(|record| record.key.to_string()));
    }
    assert_eq!(order, ["c", "a", "b"]);
}

/// A node that was not connected for a whole lease leaves lapsed records to their owners.
pub async fn a_claim_skips_claimed_records_except_requested_lapsed_ones(store: Store) {
    due(&store, "a").await;
    claimed(&store, claim(NodeId::random()).lease(Duration::ZERO)).await.remove(0);
    assert_eq!(claimed(&store, claim(NodeId::random())).await, []);
    assert_eq!(claimed(&store, claim(NodeId::random()).lapsed(true)).await.len(), 1);
    // The new lease is long.
    assert_eq!(claimed(&store, claim(NodeId::random()).lapsed(true)).await, []);
}

/// A claim that ended by its lease counts; a release does not.
pub async fn lapses_are_counted(store: Store) {
    due(&store, "a").await;
    let node = NodeId::random();
    let mut record = claimed(&store, claim(node).lease(Duration::ZERO)).await.remove(0);
    assert_eq!(record.lapses, 0);
    for lapses in 1..=3 {
        record = claimed(&store, claim(node).lease(Duration::ZERO).lapsed(true)).await.remove(0);
        assert_eq!(record.lapses, lapses);
    }
    let put = Put::update(key("a"), "", record.version).release().due_in(Duration::ZERO);
    store.put(put).await.expect("an update");
    assert_eq!(claimed(&store, claim(node)).await.remove(0).lapses, 3);
}

/// A node with a free slot claims a record in the write that creates it.
pub async fn a_record_claimed_at_creation_belongs_to_its_creator(store: Store) {
    let owner = Owner { node: NodeId::random(), claim: ClaimId::random() };
    let put = Put::create(key("a"), "1", MINUTE).queue(queue("q")).due_in(Duration::ZERO).take(owner, MINUTE);
    store.put(put).await.expect("a new record");
    assert_eq!(claimed(&store, claim(NodeId::random()).lapsed(true)).await, []);
    assert_eq!(store.renew(owner.node, MINUTE).await.expect("a renewal"), [(key("a"), owner)]);
}

/// A released record goes to the next claim.
pub async fn released_records_are_due_again(store: Store) {
    due(&store, "a").await;
    let node = NodeId::random();
    let record = claimed(&store, claim(node)).await.remove(0);
    let put = Put::update(key("a"), "2", record.version).release().due_in(Duration::ZERO);
    store.put(put).await.expect("an update");
    assert_eq!(store.renew(node, MINUTE).await.expect("a renewal"), []);
    let again = claimed(&store, claim(NodeId::random())).await.remove(0);
    assert_eq!((again.value.as_ref(), again.lapses), (&b"2"[..], 0));
}

/// Renewing extends every lease of a node.
pub async fn renewing_extends_and_returns_all_claims(store: Store) {
    for name in ["a", "b", "c"] {
        due(&store, name).await;
    }
    let (one, two) = (NodeId::random(), NodeId::random());
    let taken = claimed(&store, claim(one).limit(2).lease(Duration::ZERO)).await;
    claimed(&store, claim(two)).await;
    let mut renewed = store.renew(one, MINUTE).await.expect("a renewal");
    renewed.sort_by(|a, b| a.0.cmp(&b.0));
    let mut expected: Vec<_> =
        taken.iter().map(|record| (record.key.clone(), record.owner.expect("an owner"))).collect();
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(renewed, expected);
    assert_eq!(claimed(&store, claim(two).lapsed(true)).await, [], "the leases were not extended");
    assert_eq!(store.renew(NodeId::random(), MINUTE).await.expect("a renewal"), []);
}

/// What another node claimed stays with that node.
pub async fn renewing_takes_nothing_back(store: Store) {
    due(&store, "a").await;
    let (one, two) = (NodeId::random(), NodeId::random());
    claimed(&store, claim(one).lease(Duration::ZERO)).await;
    let taken = claimed(&store, claim(two).lapsed(true)).await.remove(0);
    assert_eq!(store.renew(one, MINUTE).await.expect("a renewal"), []);
    assert_eq!(read(&store, "a").await.expect("the record").owner, taken.owner);
}

/// A renewal does not make writers repeat their work.
pub async fn renewing_keeps_the_version(store: Store) {
    due(&store, "a").await;
    let node = NodeId::random();
    let record = claimed(&store, claim(node)).await.remove(0);
    store.renew(node, MINUTE).await.expect("a renewal");
    store.put(Put::update(key("a"), "2", record.version)).await.expect("an update");
}

/// A scan reads the records of all groups and of none, whatever happens to others meanwhile.
pub async fn a_scan_reads_every_record(store: Store) {
    let mut expected = std::collections::BTreeSet::new();
    for number in 0..25 {
        let put = Put::create(key(&format!("r/{number}")), "v", MINUTE);
        let put = if number % 2 == 0 { put.group(group("g")) } else { put };
        store.put(put).await.expect("a new record");
        expected.insert(format!("r/{number}"));
    }
    store.put(Put::create(key("gone"), "v", SHORT)).await.expect("a new record");
    eventually("the record expires", || async { read(&store, "gone").await.is_none() }).await;
    let mut found = std::collections::BTreeSet::new();
    let (mut after, mut pages) = (None::<String>, 0);
    loop {
        let page = store.scan(after.as_deref(), 4).await.expect("a page");
        found.extend(page.records.iter().map(|record| record.key.to_string()));
        if pages == 0 {
            store.put(Put::create(key("a/new"), "v", MINUTE)).await.expect("a new record");
        }
        pages += 1;
        assert!(pages < 100, "the scan does not end");
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    found.remove("a/new");
    assert_eq!(found, expected);
}

/// Records that can be claimed, are claimed, and are due later are counted separately.
pub async fn the_depth_of_queues_is_counted(store: Store) {
    let none = store.depth(&[queue("q")]).await.expect("a count").expect("the engine can tell");
    assert_eq!(none, crate::Depth::default());
    for name in ["claimed", "due 1", "due 2"] {
        due(&store, name).await;
        if name == "claimed" {
            assert_eq!(claimed(&store, claim(NodeId::random())).await.len(), 1);
        }
    }
    for (name, of) in [("later", "q"), ("other", "p")] {
        let put = Put::create(key(name), "v", MINUTE).queue(queue(of)).due_in(Duration::from_secs(30));
        store.put(put).await.expect("a new record");
    }
    let never = Put::create(key("never"), "v", MINUTE).queue(queue("q"));
    store.put(never).await.expect("a new record");
    eventually("the oldest gets older", || async {
        let depth =
            store.depth(&[queue("q"), queue("none")]).await.expect("a count").expect("the engine can tell");
        assert_eq!((depth.due, depth.claimed, depth.scheduled), (2, 1, 1));
        depth.oldest > Duration::ZERO
    })
    .await;
    let both = store.depth(&[queue("q"), queue("p")]).await.expect("a count").expect("the engine can tell");
    assert_eq!(both.scheduled, 2);
}

/// Keys are ordered by bytes, and `after` is exclusive.
pub async fn lists_are_in_key_order_with_pages(store: Store) {
    for name in ["b", "a/1", "ä", "a", "B", "a0"] {
        store
            .put(Put::create(key(name), name.to_owned(), MINUTE).group(group("g")))
            .await
            .expect("a new record");
    }
    let expected = ["B", "a", "a/1", "a0", "b", "ä"];
    assert_eq!(names(&store, "g").await, expected);
    let mut paged = Vec::new();
    let mut after = None;
    loop {
        let page = store.list(&group("g"), after.as_ref(), 2).await.expect("a list");
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        assert!(page.len() <= 2);
        paged.extend(page.into_iter().map(|record| record.key.to_string()));
    }
    assert_eq!(paged, expected);
    // The key to go on after need not exist.
    let rest = store.list(&group("g"), Some(&key("a/")), 10).await.expect("a list");
    assert_eq!(rest.first().map(|record| record.key.as_str()), Some("a/1"));
    assert_eq!(store.count(&group("g")).await.expect("a count"), 6);
    assert_eq!(store.list(&group("g"), None, 0).await.expect("a list"), []);
}

/// A group shows its own records only.
pub async fn groups_do_not_mix(store: Store) {
    for (name, of) in [("a", "g"), ("b", "g2"), ("c", "G")] {
        store.put(Put::create(key(name), "", MINUTE).group(group(of))).await.expect("a new record");
    }
    create(&store, "none", "").await;
    assert_eq!(names(&store, "g").await, ["a"]);
    assert_eq!(names(&store, "g2").await, ["b"]);
    assert_eq!(names(&store, "missing").await, [""; 0]);
    assert_eq!(store.count(&group("G")).await.expect("a count"), 1);
}

/// A removed record is neither listed, claimed nor renewed.
pub async fn removing_removes_from_every_index(store: Store) {
    let node = NodeId::random();
    for name in ["a", "b"] {
        let put =
            Put::create(key(name), "", MINUTE).queue(queue("q")).group(group("g")).due_in(Duration::ZERO);
        store.put(put).await.expect("a new record");
    }
    claimed(&store, claim(node).limit(1)).await;
    store.remove(&[key("a"), key("b")]).await.expect("a removal");
    assert_eq!(names(&store, "g").await, [""; 0]);
    assert_eq!(store.count(&group("g")).await.expect("a count"), 0);
    assert_eq!(store.renew(node, MINUTE).await.expect("a renewal"), []);
    assert_eq!(claimed(&store, claim(node).lapsed(true)).await, []);
    assert_eq!(store.sweep(10).await.expect("a sweep"), 0);
}

/// A touch moves the expiry forward, never back, and changes nothing else.
pub async fn touching_never_shortens(store: Store) {
    let version = create(&store, "a", "1").await;
    let before = read(&store, "a").await.expect("the record").expires;
    store.touch(&[key("a"), key("missing")], Duration::from_secs(1)).await.expect("a touch");
    assert_eq!(read(&store, "a").await.expect("the record").expires, before);
    store.touch(&[key("a")], 2 * MINUTE).await.expect("a touch");
    let record = read(&store, "a").await.expect("the record");
    assert!(record.expires > before);
    assert_eq!((record.value.as_ref(), record.version), (&b"1"[..], version));
}

/// A sweep deletes what has expired, in portions.
pub async fn sweeping_deletes_expired_records_only(store: Store) {
    create(&store, "stays", "").await;
    for name in ["a", "b", "c"] {
        store.put(Put::create(key(name), "", SHORT).group(group("g"))).await.expect("a new record");
    }
    eventually("the records expire", async || names(&store, "g").await.is_empty()).await;
    assert_eq!(store.sweep(2).await.expect("a sweep"), 2);
    assert_eq!(store.sweep(2).await.expect("a sweep"), 1);
    assert_eq!(store.sweep(2).await.expect("a sweep"), 0);
    assert!(read(&store, "stays").await.is_some());
}

/// A value that is too large is refused, and nothing is written.
pub async fn values_have_a_limit(store: Store) {
    let refused = store.put(Put::create(key("a"), vec![0; MAX_VALUE_BYTES + 1], MINUTE)).await;
    assert!(
        matches!(&refused, Err(PutError::Store(error)) if error.kind() == ErrorKind::Invalid),
        "{refused:?}"
    );
    assert_eq!(read(&store, "a").await, None);
    store.put(Put::create(key("a"), vec![7; 1 << 20], MINUTE)).await.expect("a value of 1 MiB");
    assert_eq!(read(&store, "a").await.expect("the record").value, vec![7; 1 << 20]);
}

/// Nothing in a name or value has a meaning for the engine.
pub async fn names_and_values_are_binary_safe(store: Store) {
    let value: Vec<u8> = (0..=255).collect();
    for name in ["'; DROP TABLE records; --", "{a}:*?[b]", "%s\\", "日本語", "\u{feff} "] {
        let put = Put::create(key(name), value.clone(), MINUTE).group(group(name)).queue(queue(name));
        store.put(put.due_in(Duration::ZERO)).await.expect("a new record");
        assert_eq!(names(&store, name).await, [name]);
        let got = claimed(&store, ClaimRequest::new(NodeId::random(), [queue(name)])).await;
        assert_eq!(got.len(), 1, "{name}");
        assert_eq!(got[0].value, value);
    }
    create(&store, "empty", "").await;
    assert_eq!(read(&store, "empty").await.expect("the record").value, "");
}
