//! Seals records again with the first key, after a rotation.

use std::time::Duration;

use bowline_proto::seal::KeyRing;

use crate::{ErrorKind, Key, Page, Put, PutError, Record, Sealed, Store, StoreError};

/// How many records are read at a time, because all of them are in memory at once and may be large.
const MAX_PAGE: usize = 16;

/// How often a record is tried that others write at the same time.
const TRIES: u32 = 20;

/// What became of some records: [`Store::rekey`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rekeyed {
    /// How many records were sealed again.
    pub sealed: u64,
    /// How many were sealed with the first key already.
    pub current: u64,
    /// Records that none of the keys opens, or that are not sealed.
    pub unreadable: Vec<Key>,
    /// Records that others changed again and again, so that they may still be sealed with another key.
    pub busy: Vec<Key>,
    /// Where to go on. `None` at the end.
    pub next: Option<String>,
}

impl Store {
    /// Seals about `limit` records again with the first key, if another key has sealed them, and about 16 at most. `after` is where
    /// an earlier call ended ([`Rekeyed::next`]).
    ///
    /// A record is written only if nobody has changed it since it was read, so servers can use the store meanwhile. Owner, due
    /// time, queue, group and expiry of a record stay as they are. What was done stays done if this is interrupted: records
    /// that the first key has sealed are left alone.
    ///
    /// Fails with [`ErrorKind::Invalid`] if the store has no keys.
    pub async fn rekey(&self, after: Option<&str>, limit: usize) -> Result<Rekeyed, StoreError> {
        let keys = self
            .keys()
            .ok_or_else(|| StoreError::invalid("the store has no keys, so its records are not sealed"))?;
        let rekeying = Rekeying {
            store: self,
            all: Sealed::new(self.plain().clone(), keys.clone(), self.namespace().as_str()),
            first: Sealed::new(
                self.plain().clone(),
                KeyRing::new(keys.current().clone()),
                self.namespace().as_str(),
            ),
        };
        let Page { records, next } = self.plain().scan(after, limit.min(MAX_PAGE)).await?;
        let mut rekeyed = Rekeyed { next, ..Rekeyed::default() };
        for record in records {
            let key = record.key.clone();
            match rekeying.seal(record).await? {
                Outcome::Sealed => rekeyed.sealed += 1,
                Outcome::Current => rekeyed.current += 1,
                Outcome::Unreadable => rekeyed.unreadable.push(key),
                Outcome::Busy => rekeyed.busy.push(key),
                Outcome::Gone => {}
            }
        }
        Ok(rekeyed)
    }
}

enum Outcome {
    Sealed,
    Current,
    Unreadable,
    Busy,
    /// Removed or expired meanwhile.
    Gone,
}

struct Rekeying<'a> {
    store: &'a Store,
    all: Sealed,
    first: Sealed,
}

impl Rekeying<'_> {
    async fn seal(&self, mut record: Record) -> Result<Outcome, StoreError> {
        let key = record.key.clone();
        for attempt in 0..TRIES {
            if self.first.open(record.clone()).is_ok() {
                return Ok(Outcome::Current);
            }
            let version = record.version;
            let Ok(opened) = self.all.open(record) else { return Ok(Outcome::Unreadable) };
            let put = self.first.seal(Put::update(key.clone(), opened.value, version))?;
            match self.store.plain().put(put).await {
                Ok(_) => return Ok(Outcome::Sealed),
                // The next read shows whether it was applied.
                Err(PutError::Store(error)) if error.kind() == ErrorKind::Unknown => {}
                Err(PutError::Store(error)) => return Err(error),
                // Somebody else wrote or claimed it: perhaps a server that still seals with another key.
                Err(_) => {}
            }
            tokio::time::sleep(Duration::from_millis(fastrand::u64(0..5 << attempt.min(6)))).await;
            let mut read = self.store.plain().get(std::slice::from_ref(&key)).await?;
            match read.pop().flatten() {
                Some(now) => record = now,
                None => return Ok(Outcome::Gone),
            }
        }
        Ok(Outcome::Busy)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bowline_proto::seal::{Key as SealKey, KeyRing};

    use super::Rekeyed;
    use crate::{
        ClaimRequest, Group, Key, Memory, MemoryBus, NodeId, Put, Queue, Reach, Records, Store, StoreError,
    };

    fn store(engine: &Arc<Memory>, keys: &[u8]) -> Store {
        let mut ring = KeyRing::new(SealKey::new([keys[0]; 32]));
        for key in &keys[1..] {
            ring = ring.with_previous(SealKey::new([*key; 32]));
        }
        let records = Arc::clone(engine) as Arc<dyn Records>;
        Store::builder("memory", records, Arc::new(MemoryBus::new()), Reach::Process).keys(ring).build()
    }

    async fn rekey(store: &Store) -> Result<Rekeyed, StoreError> {
        let mut all = Rekeyed::default();
        let mut after = None;
        loop {
            let page = store.rekey(after.as_deref(), 3).await?;
            all.sealed += page.sealed;
            all.current += page.current;
            all.unreadable.extend(page.unreadable);
            all.busy.extend(page.busy);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(all),
            }
        }
    }

    #[tokio::test]
    async fn records_are_sealed_again_and_stay_as_they_are() {
        let engine = Arc::new(Memory::new());
        let old = store(&engine, &[1]);
        let minute = Duration::from_secs(60);
        for number in 0..10 {
            let put = Put::create(Key::new(format!("r/{number}")).unwrap(), format!("v{number}"), minute)
                .queue(Queue::new("q").unwrap())
                .group(Group::new("g").unwrap())
                .due_in(Duration::ZERO);
            old.records().put(put).await.unwrap();
        }
        let claim = ClaimRequest::new(NodeId::random(), [Queue::new("q").unwrap()]).limit(4);
        let claimed = old.records().claim(claim).await.unwrap();
        let both = store(&engine, &[2, 1]);
        both.records().put(Put::create(Key::new("new").unwrap(), "new", minute)).await.unwrap();
        engine.put(Put::create(Key::new("plain").unwrap(), "not sealed", minute)).await.unwrap();

        let done = rekey(&both).await.unwrap();
        assert_eq!((done.sealed, done.current, done.busy.len()), (10, 1, 0));
        assert_eq!(done.unreadable, [Key::new("plain").unwrap()]);
        // The new key alone opens everything, and claims hold.
        let new = store(&engine, &[2]);
        let listed = new.records().list(&Group::new("g").unwrap(), None, 100).await.unwrap();
        let values: Vec<_> = listed.iter().map(|record| record.value.clone()).collect();
        assert_eq!(values, (0..10).map(|number| format!("v{number}")).collect::<Vec<_>>());
        let before = &claimed[0];
        let after = listed.iter().find(|record| record.key == before.key).unwrap();
        assert_eq!(
            (after.owner, after.due, &after.queue, after.expires),
            (before.owner, before.due, &before.queue, before.expires)
        );
        let write = Put::update(after.key.clone(), "done", after.version)
            .under_claim(after.key.clone(), before.owner.unwrap().claim);
        new.records().put(write).await.unwrap();
        // Once more: nothing is left to do.
        assert_eq!(rekey(&both).await.unwrap().sealed, 0);
    }

    #[tokio::test]
    async fn a_large_page_is_not_read_at_once() {
        let engine = Arc::new(Memory::new());
        let old = store(&engine, &[1]);
        for number in 0..20 {
            let put = Put::create(Key::new(format!("r/{number}")).unwrap(), "v", Duration::from_secs(60));
            old.records().put(put).await.unwrap();
        }
        let first = store(&engine, &[2, 1]).rekey(None, 1000).await.unwrap();
        assert_eq!(first.sealed, 16);
        let rest = store(&engine, &[2, 1]).rekey(first.next.as_deref(), 1000).await.unwrap();
        assert_eq!((rest.sealed, rest.next), (4, None));
    }

    #[tokio::test]
    async fn a_store_without_keys_has_nothing_to_seal() {
        let error = Store::memory().rekey(None, 10).await.unwrap_err().to_string();
        assert!(error.contains("the store has no keys"), "{error}");
    }
}
