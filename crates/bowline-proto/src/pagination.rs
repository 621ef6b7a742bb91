//! Pagination: signed cursors and the pages that they refer to.
//!
//! A cursor contains the last item of the previous page and its position. It is signed, so a client can neither
//! use the cursor of one list for another nor forge one.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::seal::{KeyRing, digest};

const MAX_ENCODED: usize = 1024;
/// Longer keys are replaced by digests to keep cursors short.
const MAX_KEY: usize = 512;
const TAG_LENGTH: usize = 16;
const WHOLE_KEY: u8 = 1;
const DIGEST_OF_KEY: u8 = 2;

/// The position in a list at which the next page starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    position: u64,
    after: After,
}

/// The key of the last item.
#[derive(Debug, Clone, PartialEq, Eq)]
enum After {
    Key(String),
    Digest([u8; 32]),
}

impl Cursor {
    /// Creates a cursor after the item with this key at this index.
    pub fn new(position: usize, key: &str) -> Self {
        let after =
            if key.len() > MAX_KEY { After::Digest(key_digest(key)) } else { After::Key(key.to_owned()) };
        Self { position: u64::try_from(position).unwrap_or(u64::MAX), after }
    }

    /// Returns the key of the last item, if it has at most 512 bytes.
    pub fn key(&self) -> Option<&str> {
        match &self.after {
            After::Key(key) => Some(key),
            After::Digest(_) => None,
        }
    }

    /// Returns the index of the last item.
    pub fn position(&self) -> usize {
        usize::try_from(self.position).unwrap_or(usize::MAX)
    }

    /// Returns whether the last item has this key.
    pub fn is_after(&self, key: &str) -> bool {
        match &self.after {
            After::Key(known) => known == key,
            After::Digest(known) => key.len() > MAX_KEY && *known == key_digest(key),
        }
    }

    /// Encodes the cursor for `list`, the name of the list (with the principal, if the list differs
    /// between principals). It is valid for that list only.
    pub fn encode(&self, keys: &KeyRing, list: &str) -> String {
        let (kind, after) = match &self.after {
            After::Key(key) => (WHOLE_KEY, key.as_bytes()),
            After::Digest(digest) => (DIGEST_OF_KEY, digest.as_slice()),
        };
        let body = [&[kind], self.position.to_be_bytes().as_slice(), after].concat();
        let tag = keys.tag(&context(list), &body);
        URL_SAFE_NO_PAD.encode([tag.as_slice(), &body].concat())
    }

    /// Decodes a cursor of [`Cursor::encode`] for the same list, with any key of the ring.
    pub fn decode(keys: &KeyRing, list: &str, text: &str) -> Result<Self, CursorError> {
        if text.len() > MAX_ENCODED {
            return Err(CursorError(CursorProblem::TooLong));
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| CursorError(CursorProblem::Malformed))?;
        let (tag, body) =
            bytes.split_first_chunk::<TAG_LENGTH>().ok_or(CursorError(CursorProblem::Malformed))?;
        if !keys.verify_tag(&context(list), body, tag) {
            return Err(CursorError(CursorProblem::Foreign));
        }
        Self::read(body).ok_or(CursorError(CursorProblem::Malformed))
    }

    fn read(body: &[u8]) -> Option<Self> {
        let (kind, rest) = body.split_first()?;
        let (position, after) = rest.split_first_chunk()?;
        let after = match *kind {
            WHOLE_KEY => After::Key(str::from_utf8(after).ok()?.to_owned()),
            DIGEST_OF_KEY => After::Digest(after.try_into().ok()?),
            _ => return None,
        };
        Some(Self { position: u64::from_be_bytes(*position), after })
    }
}

fn context(list: &str) -> Vec<u8> {
    ["bowline cursor v1 ", list].concat().into_bytes()
}

fn key_digest(key: &str) -> [u8; 32] {
    digest(&[b"bowline cursor key", key.as_bytes()])
}

/// Why a text is not a cursor of a list. The request fails with -32602.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CursorError(CursorProblem);

#[derive(Debug, Clone, PartialEq, Eq)]
enum CursorProblem {
    TooLong,
    Malformed,
    Foreign,
}

impl fmt::Display for CursorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            CursorProblem::TooLong => write!(f, "expected a cursor of at most {MAX_ENCODED} characters"),
            CursorProblem::Malformed => f.write_str("invalid cursor"),
            CursorProblem::Foreign => f.write_str("the cursor was altered or belongs to another list"),
        }
    }
}

impl std::error::Error for CursorError {}

/// Returns the page after `after` with at most `size` items (zero counts as one), and the cursor of
/// the next page if there are more items.
///
/// The items may be in any order. If the last item moved, the page
/// starts after its current position. If it was removed, the page starts at its previous position, where its successor is now;
/// so no item is returned twice as long as items are only removed.
pub fn page<'a, T>(
    items: &'a [T],
    key: impl Fn(&T) -> &str,
    after: Option<&Cursor>,
    size: usize,
) -> (&'a [T], Option<Cursor>) {
    let start = after.map_or(0, |cursor| start_behind(items, &key, cursor));
    let rest = items.get(start..).unwrap_or_default();
    let taken = rest.get(..size.max(1)).unwrap_or(rest);
    let next = match taken.last() {
        Some(last) if taken.len() < rest.len() => Some(Cursor::new(start + taken.len() - 1, key(last))),
        _ => None,
    };
    (taken, next)
}

fn start_behind<T>(items: &[T], key: impl Fn(&T) -> &str, cursor: &Cursor) -> usize {
    let position = cursor.position();
    // A list that has not changed is not searched.
    if items.get(position).is_some_and(|item| cursor.is_after(key(item))) {
        return position.saturating_add(1);
    }
    match items.iter().position(|item| cursor.is_after(key(item))) {
        Some(found) => found + 1,
        None => position,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::Key;
    use proptest::prelude::*;

    fn keys() -> KeyRing {
        KeyRing::new(Key::new([7; 32]))
    }

    fn key(item: &String) -> &str {
        item
    }

    fn names(range: std::ops::Range<usize>) -> Vec<String> {
        // Not in the order of the keys.
        range.map(|index| format!("{}-{index}", index * 7 % 10)).collect()
    }

    #[test]
    fn cursors_survive_encoding() {
        let longest = "k".repeat(MAX_KEY);
        for (position, name) in [(0, ""), (7, "a"), (usize::MAX, "\u{e9}/\u{0}"), (1, &longest)] {
            let cursor = Cursor::new(position, name);
            let text = cursor.encode(&keys(), "tools");
            assert!(text.len() <= MAX_ENCODED);
            let decoded = Cursor::decode(&keys(), "tools", &text).unwrap();
            assert_eq!(decoded, cursor);
            assert_eq!((decoded.position(), decoded.key()), (position, Some(name)));
        }
    }

    #[test]
    fn long_keys_travel_as_digests() {
        let long = "k".repeat(MAX_KEY + 1);
        let cursor = Cursor::new(3, &long);
        let decoded = Cursor::decode(&keys(), "tools", &cursor.encode(&keys(), "tools")).unwrap();
        assert_eq!(decoded, cursor);
        assert_eq!(decoded.key(), None);
        assert!(decoded.is_after(&long));
        assert!(!decoded.is_after(&"l".repeat(MAX_KEY + 1)));
        assert!(!decoded.is_after("k"));
    }

    #[test]
    fn former_keys_still_read_cursors() {
        let text = Cursor::new(1, "a").encode(&keys(), "tools");
        let rotated = KeyRing::new(Key::new([8; 32])).with_previous(Key::new([7; 32]));
        assert!(Cursor::decode(&rotated, "tools", &text).is_ok());
        assert!(Cursor::decode(&KeyRing::new(Key::new([8; 32])), "tools", &text).is_err());
    }

    #[test]
    fn cursors_of_another_list_are_refused() {
        let text = Cursor::new(1, "a").encode(&keys(), "tools");
        let error = Cursor::decode(&keys(), "prompts", &text).unwrap_err();
        assert_eq!(error.to_string(), "the cursor was altered or belongs to another list");
    }

    #[test]
    fn altered_cursors_are_refused() {
        let text = Cursor::new(1, "abc").encode(&keys(), "tools");
        for index in 0..text.len() {
            for character in "AaBbYyZz09-_=".chars() {
                let mut altered = text.clone();
                altered.replace_range(index..=index, &character.to_string());
                assert_eq!(Cursor::decode(&keys(), "tools", &altered).is_ok(), altered == text);
            }
            assert!(Cursor::decode(&keys(), "tools", &text[..index]).is_err());
        }
        assert!(Cursor::decode(&keys(), "tools", &format!("{text}A")).is_err());
    }

    #[test]
    fn the_length_of_a_cursor_is_bounded() {
        let refused = |length: usize| Cursor::decode(&keys(), "tools", &"A".repeat(length)).unwrap_err();
        assert_eq!(refused(MAX_ENCODED), CursorError(CursorProblem::Foreign));
        assert_eq!(refused(MAX_ENCODED + 1), CursorError(CursorProblem::TooLong));
        assert_eq!(refused(0), CursorError(CursorProblem::Malformed));
    }

    #[test]
    fn signed_nonsense_is_malformed() {
        for body in [
            &b""[..],
            b"\x01",
            b"\x01\0\0\0\0\0\0\0",
            b"\x03\0\0\0\0\0\0\0\0",
            b"\x02\0\0\0\0\0\0\0\0x",
            b"\x01\0\0\0\0\0\0\0\0\xFF",
        ] {
            let tag = keys().tag(&context("tools"), body);
            let text = URL_SAFE_NO_PAD.encode([tag.as_slice(), body].concat());
            assert_eq!(
                Cursor::decode(&keys(), "tools", &text),
                Err(CursorError(CursorProblem::Malformed)),
                "{body:?}"
            );
        }
    }

    #[test]
    fn the_last_page_has_no_cursor() {
        let items = names(0..4);
        let (first, next) = page(&items, key, None, 2);
        assert_eq!(first, &items[..2]);
        let (second, next) = page(&items, key, next.as_ref(), 2);
        assert_eq!((second, next), (&items[2..], None));
        assert_eq!(page(&items, key, None, 4), (&items[..], None));
        assert_eq!(page(&[], key, None, 4), (&[][..], None));
    }

    #[test]
    fn a_moved_item_is_found_again() {
        let items = names(0..6);
        let (_, next) = page(&items, key, None, 2);
        let shifted: Vec<String> = std::iter::once("new".to_owned()).chain(items.clone()).collect();
        assert_eq!(page(&shifted, key, next.as_ref(), 2).0, &items[2..4]);
    }

    #[test]
    fn the_successor_of_a_removed_item_is_next() {
        let mut items = names(0..6);
        let (_, next) = page(&items, key, None, 2);
        items.remove(1);
        assert_eq!(page(&items, key, next.as_ref(), 2).0, &names(2..4));
        items.truncate(1);
        assert_eq!(page(&items, key, next.as_ref(), 2), (&[][..], None));
    }

    /// Pages through a list, through the wire form of the cursor, changing it between pages.
    fn walk(items: &mut Vec<String>, size: usize, mut change: impl FnMut(&mut Vec<String>)) -> Vec<String> {
        let mut seen = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let cursor = after.map(|text| Cursor::decode(&keys(), "list", &text).unwrap());
            let (taken, next) = page(items, key, cursor.as_ref(), size);
            assert!(taken.len() <= size.max(1));
            seen.extend_from_slice(taken);
            let Some(next) = next else { return seen };
            after = Some(next.encode(&keys(), "list"));
            change(items);
        }
    }

    proptest! {
        #[test]
        fn every_item_is_listed_exactly_once(count in 0..40_usize, size in 0..12_usize, equal in any::<bool>()) {
            let mut items = if equal { vec!["same".to_owned(); count] } else { names(0..count) };
            let expected = items.clone();
            prop_assert_eq!(walk(&mut items, size, |_| {}), expected);
        }

        #[test]
        fn removals_repeat_nothing(
            count in 0..40_usize,
            size in 1..8_usize,
            removals in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        ) {
            let mut items = names(0..count);
            let before = items.clone();
            let mut removals = removals.into_iter();
            let seen = walk(&mut items, size, |items| {
                for removal in removals.by_ref().take(2) {
                    if !items.is_empty() {
                        items.remove(removal.index(items.len()));
                    }
                }
            });
            let mut order = seen.iter().map(|name| before.iter().position(|item| item == name).unwrap());
            let mut last = order.next();
            for index in order {
                prop_assert!(Some(index) > last, "{:?}", seen);
                last = Some(index);
            }
        }

        #[test]
        fn removing_only_the_last_item_skips_nothing(count in 1..30_usize, size in 1..8_usize) {
            let mut items = names(0..count);
            let expected = items.clone();
            let mut position = 0;
            let seen = walk(&mut items, size, |items| {
                position += size - 1;
                items.remove(position);
            });
            prop_assert_eq!(seen, expected);
        }

        #[test]
        fn any_text_is_refused_without_panic(text in "[A-Za-z0-9_-]{0,80}|.{0,30}") {
            prop_assert!(Cursor::decode(&keys(), "list", &text).is_err());
        }
    }
}
