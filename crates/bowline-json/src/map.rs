//! Objects whose keys are not known in advance, in insertion order and without duplicates.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::RawJson;

/// An object whose values stay JSON text.
pub type RawMap = OrderedMap<RawJson>;

/// An object with values of one type, in insertion order.
///
/// Lookups are linear, because these objects have few members. Deserializing fails if a key occurs twice.
#[derive(Clone, PartialEq)]
pub struct OrderedMap<V>(Vec<(String, V)>);

impl<V> OrderedMap<V> {
    /// Creates an empty object. It does not allocate.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the value of `key`.
    pub fn get(&self, key: &str) -> Option<&V> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Returns the value of `key` for modification.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        self.0.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Returns whether `key` is present.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Sets `key` and returns its previous value. A new key is added at the end.
    pub fn insert(&mut self, key: impl Into<String>, value: V) -> Option<V> {
        let key = key.into();
        if let Some(present) = self.get_mut(&key) {
            return Some(std::mem::replace(present, value));
        }
        self.0.push((key, value));
        None
    }

    /// Removes `key` and returns its value. The other members keep their order.
    pub fn remove(&mut self, key: &str) -> Option<V> {
        let position = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(position).1)
    }

    /// Removes the members for which `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut V) -> bool) {
        self.0.retain_mut(|(key, value)| keep(key, value));
    }

    /// Iterates over the members in order.
    pub fn iter(&self) -> Iter<'_, V> {
        Iter(self.0.iter())
    }

    /// Iterates over the members in order; values can be modified.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut V)> {
        self.0.iter_mut().map(|(key, value)| (key.as_str(), value))
    }

    /// Iterates over the keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    /// Iterates over the values in order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Converts every value.
    pub fn map<T>(self, mut change: impl FnMut(V) -> T) -> OrderedMap<T> {
        OrderedMap(self.0.into_iter().map(|(key, value)| (key, change(value))).collect())
    }

    /// Appends a member without looking for its key. Call [`first_duplicate`](Self::first_duplicate) afterwards.
    pub fn push_unchecked(&mut self, key: String, value: V) {
        self.0.push((key, value));
    }

    /// Returns a key that occurs twice. Many keys are sorted first, so the time is not quadratic.
    pub fn first_duplicate(&self) -> Option<&str> {
        if self.0.len() <= 16 {
            let seen_before = |(place, (key, _)): &(usize, &(String, V))| {
                self.0.iter().take(*place).any(|(earlier, _)| earlier == key)
            };
            return self.0.iter().enumerate().find(seen_before).map(|(_, (key, _))| key.as_str());
        }
        let mut keys: Vec<&str> = self.keys().collect();
        keys.sort_unstable();
        keys.windows(2).find_map(|pair| match pair {
            [left, right] if left == right => Some(*left),
            _ => None,
        })
    }
}

impl RawMap {
    /// Deserializes the value of `key`; `None` if the key is absent.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self, key: &str) -> serde_json::Result<Option<T>> {
        self.get(key).map(RawJson::decode).transpose()
    }
}

impl<V> Default for OrderedMap<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: fmt::Debug> fmt::Debug for OrderedMap<V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Into<String>, V> FromIterator<(K, V)> for OrderedMap<V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Self {
        let mut map = Self::new();
        map.extend(members);
        map
    }
}

impl<K: Into<String>, V> Extend<(K, V)> for OrderedMap<V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, members: I) {
        for (key, value) in members {
            self.insert(key, value);
        }
    }
}

impl<K: Into<String>, V, const N: usize> From<[(K, V); N]> for OrderedMap<V> {
    fn from(members: [(K, V); N]) -> Self {
        members.into_iter().collect()
    }
}

impl<K: Into<String>, V> From<Vec<(K, V)>> for OrderedMap<V> {
    fn from(members: Vec<(K, V)>) -> Self {
        members.into_iter().collect()
    }
}

impl<V> IntoIterator for OrderedMap<V> {
    type Item = (String, V);
    type IntoIter = std::vec::IntoIter<(String, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, V> IntoIterator for &'a OrderedMap<V> {
    type Item = (&'a str, &'a V);
    type IntoIter = Iter<'a, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Iterator over the members of an [`OrderedMap`].
#[derive(Debug)]
pub struct Iter<'a, V>(std::slice::Iter<'a, (String, V)>);

impl<'a, V> Iterator for Iter<'a, V> {
    type Item = (&'a str, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, value)| (key.as_str(), value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<V> ExactSizeIterator for Iter<'_, V> {}

impl<V: Serialize> Serialize for OrderedMap<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (key, value) in self {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for OrderedMap<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MapVisitor<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for MapVisitor<V> {
            type Value = OrderedMap<V>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = OrderedMap::new();
                while let Some((key, value)) = map.next_entry()? {
                    members.push_unchecked(key, value);
                }
                match members.first_duplicate() {
                    Some(key) => Err(de::Error::custom(format_args!("duplicate key `{key}`"))),
                    None => Ok(members),
                }
            }
        }

        deserializer.deserialize_map(MapVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> serde_json::Result<RawMap> {
        serde_json::from_str(text)
    }

    #[test]
    fn order_and_bytes_survive() {
        let text = r#"{"z":1.0,"a":{"k" :[ ]},"m":null}"#;
        assert_eq!(serde_json::to_string(&read(text).unwrap()).unwrap(), text);
    }

    #[test]
    fn duplicates_are_refused() {
        let error = read(r#"{"a":1,"b":2,"\u0061":3}"#).unwrap_err();
        assert!(error.to_string().starts_with("duplicate key `a`"), "{error}");
    }

    #[test]
    fn many_members_are_read_in_linear_time() {
        let members: Vec<String> = (0..200_000).map(|index| format!("\"k{index}\":0")).collect();
        assert_eq!(read(&format!("{{{}}}", members.join(","))).unwrap().len(), 200_000);
    }

    #[test]
    fn members_can_be_replaced_and_removed() {
        let mut map = read(r#"{"a":1,"b":2}"#).unwrap();
        assert_eq!(map.insert("a", RawJson::null()), Some(RawJson::parse("1").unwrap()));
        assert_eq!(map.insert("c", RawJson::empty_object()), None);
        assert_eq!(map.remove("b"), Some(RawJson::parse("2").unwrap()));
        assert_eq!(map.decode::<Option<u8>>("a").unwrap(), Some(None));
        assert_eq!(map.decode::<u8>("b").unwrap(), None);
        assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"a":null,"c":{}}"#);
    }
}
