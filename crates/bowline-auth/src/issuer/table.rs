//! Entries that expire, limited in number and in bytes.

use std::collections::{BTreeMap, HashMap};

/// A table that drops its oldest entries when it is full.
#[derive(Debug)]
pub(super) struct Table<T> {
    entries: HashMap<String, Entry<T>>,
    /// The keys, from the oldest to the newest.
    order: BTreeMap<u64, String>,
    next: u64,
    bytes: usize,
    max_entries: usize,
    max_bytes: usize,
}

#[derive(Debug)]
struct Entry<T> {
    value: T,
    expires: u64,
    bytes: usize,
    number: u64,
}

impl<T> Table<T> {
    pub(super) fn new(max_entries: usize, max_bytes: usize) -> Self {
        Self { entries: HashMap::new(), order: BTreeMap::new(), next: 0, bytes: 0, max_entries, max_bytes }
    }

    /// Inserts or replaces an entry of about `bytes` bytes, and drops the oldest ones if there are too many.
    pub(super) fn insert(&mut self, key: &str, value: T, bytes: usize, expires: u64) {
        self.remove(key);
        let bytes = bytes.saturating_add(key.len());
        let number = self.next;
        self.next += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.order.insert(number, key.to_owned());
        self.entries.insert(key.to_owned(), Entry { value, expires, bytes, number });
        while self.entries.len() > self.max_entries || self.bytes > self.max_bytes {
            let Some((_, oldest)) = self.order.first_key_value() else { return };
            let oldest = oldest.clone();
            self.remove(&oldest);
        }
    }

    /// Returns the entry, unless it has expired.
    pub(super) fn get(&self, key: &str, now: u64) -> Option<&T> {
        self.entries.get(key).filter(|entry| now <= entry.expires).map(|entry| &entry.value)
    }

    /// Returns the entry, to be changed.
    pub(super) fn get_mut(&mut self, key: &str, now: u64) -> Option<&mut T> {
        self.entries.get_mut(key).filter(|entry| now <= entry.expires).map(|entry| &mut entry.value)
    }

    /// Takes an entry out. It may have expired.
    pub(super) fn remove(&mut self, key: &str) -> Option<T> {
        let entry = self.entries.remove(key)?;
        self.order.remove(&entry.number);
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        Some(entry.value)
    }

    /// Takes an entry out, unless it has expired.
    pub(super) fn take(&mut self, key: &str, now: u64) -> Option<T> {
        let is_current = self.entries.get(key).is_some_and(|entry| now <= entry.expires);
        self.remove(key).filter(|_| is_current)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_are_dropped_at_either_limit() {
        let mut table = Table::new(3, 100);
        for key in ["a", "b", "c", "d"] {
            table.insert(key, key.to_owned(), 9, 10);
        }
        assert_eq!((table.get("a", 0), table.len()), (None, 3));
        table.insert("e", String::new(), 80, 10);
        assert_eq!((table.get("c", 0), table.len()), (None, 2));
        table.insert("huge", String::new(), 1000, 10);
        assert_eq!((table.len(), table.bytes), (0, 0), "an entry beyond the limit is not kept");
    }

    #[test]
    fn an_expired_entry_is_not_found() {
        let mut table = Table::new(3, 100);
        table.insert("a", 1, 1, 10);
        assert_eq!((table.get("a", 10), table.get("a", 11)), (Some(&1), None));
        assert_eq!((table.take("a", 11), table.len()), (None, 0));
    }
}
