//! Random operations on the engine and on a model.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{MINUTE, group, key, queue};
use crate::{ClaimRequest, Expect, Key, NodeId, Owner, Put, PutError, Records, Version};

/// What a record of the model has.
#[derive(Debug, Clone)]
struct Row {
    value: String,
    version: Version,
    owner: Option<Owner>,
    due: bool,
    lapses: u32,
    group: String,
}

/// Runs 2,000 random operations on a few keys and compares every answer with a model. Prints its seed if it fails.
pub async fn random_operations_match_the_model(store: Arc<dyn Records>) {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut model = Model { rows: BTreeMap::new(), old: vec![Version::first()], seed };
    let nodes = [NodeId::from_bits(1), NodeId::from_bits(2)];
    for _ in 0..2_000 {
        let name = format!("k{}", random.u8(0..6));
        let node = nodes[random.usize(0..2)];
        match random.u8(0..10) {
            0..=4 => model.put(&store, &mut random, &name, node).await,
            5 => model.claim(&store, &mut random, node).await,
            6 => model.renew(&store, node).await,
            7 => model.list(&store, &mut random).await,
            8 => {
                store.remove(&[key(&name)]).await.expect("a removal");
                model.rows.remove(&name);
            }
            _ => model.get(&store, &name).await,
        }
    }
}

struct Model {
    rows: BTreeMap<String, Row>,
    /// Versions that were once valid.
    old: Vec<Version>,
    seed: u64,
}

impl Model {
    async fn put(&mut self, store: &Arc<dyn Records>, random: &mut fastrand::Rng, name: &str, node: NodeId) {
        let current = self.rows.get(name).map(|row| row.version);
        let version = match current {
            Some(version) if random.u8(0..4) > 0 => version,
            _ => self.old[random.usize(0..self.old.len())],
        };
        let value = random.u32(..).to_string();
        let mut put = if random.u8(0..3) == 0 {
            Put::create(key(name), value.clone(), MINUTE)
        } else {
            Put::update(key(name), value.clone(), version)
        };
        let of = format!("g{}", random.u8(0..2));
        put = put.queue(queue("q")).group(group(&of));
        let mut owns_claim = true;
        if random.bool() {
            let parent = format!("k{}", random.u8(0..6));
            let owner = self.rows.get(&parent).and_then(|row| row.owner);
            let claim =
                owner.filter(|_| random.bool()).map_or(crate::ClaimId::from_bits(7), |owner| owner.claim);
            owns_claim = owner.is_some_and(|owner| owner.claim == claim);
            put = put.under_claim(key(&parent), claim);
        }
        let fits = match put.expect {
            Expect::Absent => current.is_none(),
            Expect::Version(version) => current == Some(version),
        };
        let (mut owner, mut due) = self.rows.get(name).map_or((None, false), |row| (row.owner, row.due));
        match random.u8(0..4) {
            0 => {
                put = put.release().due_in(Duration::ZERO);
                (owner, due) = (None, true);
            }
            1 => {
                put = put.release().never_due();
                (owner, due) = (None, false);
            }
            2 => {
                let taken = Owner { node, claim: crate::ClaimId::from_bits(random.u64(8..)) };
                put = put.take(taken, Duration::ZERO);
                (owner, due) = (Some(taken), true);
            }
            _ => {}
        }
        let result = store.put(put).await;
        match result {
            Ok(version) if owns_claim && fits => {
                let before = self.rows.remove(name);
                self.old.push(version);
                let (lapses, group) = before.map_or((0, of), |row| (row.lapses, row.group));
                self.rows.insert(name.to_owned(), Row { value, version, owner, due, lapses, group });
            }
            Err(PutError::ClaimLost) if !owns_claim => {}
            Err(PutError::Conflict) if owns_claim && !fits => {}
            other => panic!("seed {}: {name}: owns_claim {owns_claim}, fits {fits}: {other:?}", self.seed),
        }
    }

    async fn claim(&mut self, store: &Arc<dyn Records>, random: &mut fastrand::Rng, node: NodeId) {
        let lapsed = random.bool();
        let request = ClaimRequest::new(node, [queue("q")]).limit(10).lease(Duration::ZERO).lapsed(lapsed);
        let got = store.claim(request).await.expect("a claim");
        let mut claimed: Vec<&str> = got.iter().map(|record| record.key.as_str()).collect();
        claimed.sort_unstable();
        let expected: Vec<&str> = self
            .rows
            .iter()
            .filter(|(_, row)| row.due && (lapsed || row.owner.is_none()))
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(claimed, expected, "seed {}: claimed", self.seed);
        for record in got {
            let row = self.rows.get_mut(record.key.as_str()).expect("a row of the model");
            row.lapses += u32::from(row.owner.is_some());
            (row.owner, row.version) = (record.owner, record.version);
            assert_eq!(record.owner.map(|owner| owner.node), Some(node), "seed {}", self.seed);
            assert_eq!(record.lapses, row.lapses, "seed {}: lapses", self.seed);
        }
    }

    async fn renew(&self, store: &Arc<dyn Records>, node: NodeId) {
        let mut renewed = store.renew(node, Duration::ZERO).await.expect("a renewal");
        renewed.sort_by(|a, b| a.0.cmp(&b.0));
        let claim_of = |(name, row): (&String, &Row)| {
            let owner = row.owner.filter(|owner| owner.node == node)?;
            Some((key(name), owner))
        };
        let expected: Vec<(Key, Owner)> = self.rows.iter().filter_map(claim_of).collect();
        assert_eq!(renewed, expected, "seed {}: renewed", self.seed);
    }

    async fn list(&self, store: &Arc<dyn Records>, random: &mut fastrand::Rng) {
        let of = format!("g{}", random.u8(0..2));
        let after = format!("k{}", random.u8(0..6));
        let limit = random.usize(0..4);
        let listed = store.list(&group(&of), Some(&key(&after)), limit).await.expect("a list");
        let listed: Vec<(&str, &[u8])> =
            listed.iter().map(|record| (record.key.as_str(), record.value.as_ref())).collect();
        let members = self.rows.iter().filter(|(_, row)| row.group == of);
        let expected: Vec<(&str, &[u8])> = members
            .clone()
            .filter(|(name, _)| **name > after)
            .take(limit)
            .map(|(name, row)| (name.as_str(), row.value.as_bytes()))
            .collect();
        assert_eq!(listed, expected, "seed {}: listed", self.seed);
        let count = store.count(&group(&of)).await.expect("a count");
        assert_eq!(count, members.count() as u64, "seed {}: counted", self.seed);
    }

    async fn get(&self, store: &Arc<dyn Records>, name: &str) {
        let mut records = store.get(&[key(name), key("missing")]).await.expect("a read");
        assert_eq!(records.pop(), Some(None), "seed {}", self.seed);
        let record = records.pop().flatten();
        let read = record.as_ref().map(|record| (record.value.as_ref(), record.version, record.owner));
        let expected = self.rows.get(name).map(|row| (row.value.as_bytes(), row.version, row.owner));
        assert_eq!(read, expected, "seed {}: read {name}", self.seed);
    }
}
