//! Where the variables of a pattern begin and end in a text, found in time linear in the text.
//!
//! For each atom of the pattern, from the last to the first, the scan computes all positions from which the
//! rest of the pattern matches. A position is one bit, so an atom costs one pass over `length / 64` words.
//! A second walk, from the first atom to the last, then takes the longest capture that leads to such a position.

use std::ops::Range;

/// A literal, then, if wanted, one or more captured octets.
#[derive(Debug, Clone)]
pub(super) struct Atom {
    pub(super) literal: Vec<u8>,
    pub(super) capture: Option<Stops>,
    /// The atom may be left out, together with all that follow up to this index.
    pub(super) skip_to: Option<usize>,
}

/// The delimiters that a capture does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stops(u8);

impl Stops {
    const DELIMITERS: [u8; 5] = *b"/?#;&";

    pub(super) fn new(delimiters: &[u8]) -> Self {
        Self(delimiters.iter().map(|&byte| Self::flag(byte)).fold(0, |flags, flag| flags | flag))
    }

    pub(super) fn and(self, delimiters: &[u8]) -> Self {
        Self(self.0 | Self::new(delimiters).0)
    }

    fn flag(byte: u8) -> u8 {
        Self::DELIMITERS.iter().position(|&delimiter| delimiter == byte).map_or(0, |index| 1 << index)
    }

    fn admits(self, byte: u8) -> bool {
        self.0 & Self::flag(byte) == 0
    }
}

/// Whether atoms that may be left out are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Skipping {
    Never,
    Allowed,
}

/// Matches all of `text`. The answer has one entry per atom: what it captured, if it did.
pub(super) fn find(atoms: &[Atom], text: &[u8], skipping: Skipping) -> Option<Vec<Option<Range<usize>>>> {
    let after = positions_after(atoms, text, skipping)?;
    let mut captures = vec![None; atoms.len()];
    let mut position = 0;
    let mut index = 0;
    while let (Some(atom), Some(next)) = (atoms.get(index), after.get(index)) {
        if let Some((capture, end)) = take(atom, text, position, next) {
            if let Some(slot) = captures.get_mut(index) {
                *slot = capture;
            }
            position = end;
            index += 1;
        } else if skipping == Skipping::Allowed {
            index = atom.skip_to?;
        } else {
            return None;
        }
    }
    (position == text.len()).then_some(captures)
}

/// For each atom the positions behind it from which the rest matches; `None` where that already fails.
fn positions_after(atoms: &[Atom], text: &[u8], skipping: Skipping) -> Option<Vec<Positions>> {
    let mut classes: Vec<(Stops, Positions)> = Vec::new();
    // Filled from the back: the set behind the last atom first.
    let mut sets = vec![Positions::end_of(text)];
    for atom in atoms.iter().rev() {
        let behind = sets.last()?;
        let mut set = match atom.capture {
            Some(stops) => {
                if !classes.iter().any(|(known, _)| *known == stops) {
                    classes.push((stops, Positions::admitted(text, stops)));
                }
                let (_, class) = classes.iter().find(|(known, _)| *known == stops)?;
                behind.before_run(class)
            }
            None => behind.clone(),
        };
        if !atom.literal.is_empty() {
            set = set.before_literal(text, &atom.literal);
        }
        if let (Skipping::Allowed, Some(target)) = (skipping, atom.skip_to) {
            set.add_all(sets.get(atoms.len().checked_sub(target)?)?);
        }
        if skipping == Skipping::Never && set.is_empty() {
            return None;
        }
        sets.push(set);
    }
    sets.pop();
    sets.reverse();
    Some(sets)
}

/// Applies one atom at `position`: what it captures, and where it ends.
fn take(
    atom: &Atom,
    text: &[u8],
    position: usize,
    next: &Positions,
) -> Option<(Option<Range<usize>>, usize)> {
    let rest = text.get(position..)?.strip_prefix(atom.literal.as_slice())?;
    let start = text.len() - rest.len();
    let Some(stops) = atom.capture else {
        return next.contains(start).then_some((None, start));
    };
    let longest = start + rest.iter().take_while(|&&byte| stops.admits(byte)).count();
    let end = next.last_in(start + 1, longest)?;
    Some((Some(start..end), end))
}

/// A set of positions in a text.
///
/// Bit `j` stands for the position `j` octets before the end, so that a step to the left in the text is a step
/// up in the bits and an addition carries through a whole run of octets at once.
#[derive(Debug, Clone)]
struct Positions {
    length: usize,
    words: Vec<u64>,
}

const BITS: usize = u64::BITS as usize;

impl Positions {
    fn none(text: &[u8]) -> Self {
        Self { length: text.len(), words: vec![0; text.len() / BITS + 1] }
    }

    fn end_of(text: &[u8]) -> Self {
        let mut set = Self::none(text);
        set.add(text.len());
        set
    }

    /// Returns the positions right after an octet that `stops` contains.
    fn admitted(text: &[u8], stops: Stops) -> Self {
        let mut set = Self::none(text);
        for (index, &byte) in text.iter().enumerate() {
            if stops.admits(byte) {
                set.add(index + 1);
            }
        }
        set
    }

    fn add(&mut self, position: usize) {
        let bit = self.length - position;
        if let Some(word) = self.words.get_mut(bit / BITS) {
            *word |= 1 << (bit % BITS);
        }
    }

    fn add_all(&mut self, other: &Self) {
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    fn contains(&self, position: usize) -> bool {
        let bit = self.length - position;
        self.words.get(bit / BITS).is_some_and(|word| word >> (bit % BITS) & 1 == 1)
    }

    fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Returns the greatest position of the set from `first` to `last`, both included.
    fn last_in(&self, first: usize, last: usize) -> Option<usize> {
        let from = self.length.checked_sub(last)?;
        let mut index = from / BITS;
        let mut word = self.words.get(index)? & (u64::MAX << (from % BITS));
        while word == 0 {
            index += 1;
            word = *self.words.get(index)?;
        }
        let bit = index * BITS + usize::try_from(word.trailing_zeros()).ok()?;
        self.length.checked_sub(bit).filter(|position| *position >= first)
    }

    /// Returns the positions from which one or more octets of `class` lead into this set.
    fn before_run(&self, class: &Self) -> Self {
        let mut shifted_out = 0;
        let mut carry = false;
        let step = |(&word, &class): (&u64, &u64)| {
            let last = word & class;
            let start = last << 1 | shifted_out;
            shifted_out = last >> (BITS - 1);
            // The carry of the addition runs through the whole run of admitted octets above each start.
            let (sum, first) = (start & class).overflowing_add(class);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            carry = first || second;
            (sum ^ class) | start
        };
        Self { length: self.length, words: self.words.iter().zip(&class.words).map(step).collect() }
    }

    /// Returns the positions from which `literal` leads into this set.
    fn before_literal(&self, text: &[u8], literal: &[u8]) -> Self {
        let mut set = Self::none(text);
        each_occurrence(text, literal, |start| {
            if self.contains(start + literal.len()) {
                set.add(start);
            }
        });
        set
    }
}

/// Calls `found` for every occurrence of `needle`, overlapping ones too, in linear time (Knuth, Morris, Pratt).
fn each_occurrence(text: &[u8], needle: &[u8], mut found: impl FnMut(usize)) {
    if let [byte] = needle {
        memchr::memchr_iter(*byte, text).for_each(found);
        return;
    }
    // borders[i] is the length of the longest proper prefix of needle[..=i] that is also its suffix.
    let mut borders = Vec::with_capacity(needle.len());
    let extend = |borders: &[usize], mut matched: usize, byte: u8| {
        loop {
            if needle.get(matched) == Some(&byte) {
                return matched + 1;
            }
            let Some(shorter) = matched.checked_sub(1).and_then(|last| borders.get(last)) else { return 0 };
            matched = *shorter;
        }
    };
    for (index, &byte) in needle.iter().enumerate() {
        let matched = borders.last().copied().unwrap_or(0);
        borders.push(if index == 0 { 0 } else { extend(&borders, matched, byte) });
    }
    let mut matched = 0;
    for (index, &byte) in text.iter().enumerate() {
        matched = extend(&borders, matched, byte);
        if matched == needle.len() {
            found(index + 1 - matched);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the same result by plain backtracking.
    fn backtrack(
        atoms: &[Atom],
        index: usize,
        text: &[u8],
        position: usize,
        skipping: Skipping,
    ) -> Option<Vec<Option<Range<usize>>>> {
        let Some(atom) = atoms.get(index) else {
            return (position == text.len()).then(Vec::new);
        };
        if text[position..].starts_with(&atom.literal) {
            let start = position + atom.literal.len();
            let mut ends = vec![start];
            if let Some(stops) = atom.capture {
                let run = text[start..].iter().take_while(|&&byte| stops.admits(byte)).count();
                ends = (start + 1..=start + run).rev().collect();
            }
            for end in ends {
                if let Some(mut rest) = backtrack(atoms, index + 1, text, end, skipping) {
                    rest.insert(0, atom.capture.map(|_| start..end));
                    return Some(rest);
                }
            }
        }
        let target = atom.skip_to.filter(|_| skipping == Skipping::Allowed)?;
        let mut rest = backtrack(atoms, target, text, position, skipping)?;
        for _ in index..target {
            rest.insert(0, None);
        }
        Some(rest)
    }

    fn atoms() -> impl Strategy<Value = Vec<Atom>> {
        let stops = prop_oneof![Just(Stops::new(b"")), Just(Stops::new(b"/")), Just(Stops::new(b"/?"))];
        let atom = ("[ab/]{0,3}", prop::option::of(stops), prop::option::of(1..3_usize));
        prop::collection::vec(atom, 0..5).prop_map(|drafts| {
            let count = drafts.len();
            let finish =
                |(index, (literal, capture, skip)): (usize, (String, Option<Stops>, Option<usize>))| Atom {
                    literal: literal.into_bytes(),
                    capture,
                    skip_to: skip.map(|skip| (index + skip).min(count)),
                };
            drafts.into_iter().enumerate().map(finish).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_scan_agrees_with_backtracking(atoms in atoms(), text in "[ab/?]{0,12}") {
            for skipping in [Skipping::Never, Skipping::Allowed] {
                let expected = backtrack(&atoms, 0, text.as_bytes(), 0, skipping);
                prop_assert_eq!(find(&atoms, text.as_bytes(), skipping), expected);
            }
        }

        #[test]
        fn captures_cross_word_boundaries(before in 0..200_usize, between in 1..200_usize, after in 1..200_usize) {
            let text = format!("{}/{}/{}", "a".repeat(before), "b".repeat(between), "c".repeat(after));
            let capture = |literal: &str| Atom {
                literal: literal.as_bytes().to_vec(),
                capture: Some(Stops::new(b"/")),
                skip_to: None,
            };
            let atoms = [capture(&"a".repeat(before)), capture("/"), capture("")];
            // The first capture has nothing but a slash before it.
            prop_assert_eq!(find(&atoms, text.as_bytes(), Skipping::Never), None);

            let atoms = [capture(&format!("{}/", "a".repeat(before))), capture("/")];
            let middle = before + 1..before + 1 + between;
            let last = middle.end + 1..text.len();
            prop_assert_eq!(
                find(&atoms, text.as_bytes(), Skipping::Never),
                Some(vec![Some(middle), Some(last)])
            );
        }

        #[test]
        fn occurrences_overlap(text in "[ab]{0,30}", needle in "[ab]{1,5}") {
            let mut found = Vec::new();
            each_occurrence(text.as_bytes(), needle.as_bytes(), |start| found.push(start));
            let expected: Vec<usize> =
                (0..text.len()).filter(|&start| text[start..].starts_with(&needle)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
