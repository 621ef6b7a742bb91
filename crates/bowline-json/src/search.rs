//! Finds the next byte of a string that JSON writes as an escape: a quote, a backslash or a control character.
//!
//! The loops take 16 bytes per step as two words, and 64 bytes per step in a form that the compiler turns into vector
//! instructions. Measured on text with an escape every 80 bytes, words beat vectors, because vectors do not say *where* the
//! byte is; on long runs without escapes vectors are twice as fast.

/// One in every byte.
const ONES: u64 = u64::MAX / 255;

/// How many steps of 16 bytes are taken before steps of 64 bytes.
const WORD_STEPS: usize = 8;

/// Returns how many bytes of `text` come before the first one that JSON escapes.
pub(crate) fn plain_len(text: &[u8]) -> usize {
    let mut rest = text;
    let mut wide = WORD_STEPS;
    loop {
        let Some((block, next)) = rest.split_first_chunk::<16>() else {
            return text.len() - rest.len() + short_tail(rest);
        };
        if let Some(position) = position_in_block(block) {
            return text.len() - rest.len() + position;
        }
        rest = next;
        wide = wide.wrapping_sub(1);
        if wide == 0 {
            rest = skip_wide_blocks(rest);
        }
    }
}

/// Like [`plain_len`] for at most the first 16 bytes; small enough to inline.
#[inline]
pub(crate) fn plain_len_short(text: &[u8]) -> usize {
    let Some((first, rest)) = text.split_first_chunk::<8>() else { return few(text) };
    match escaped_bytes(u64::from_le_bytes(*first)) {
        0 => {}
        found => return position(found),
    }
    let Some((second, _)) = rest.split_first_chunk::<8>() else { return 8 + few(rest) };
    match escaped_bytes(u64::from_le_bytes(*second)) {
        0 => 16,
        found => 8 + position(found),
    }
}

/// Returns whether a text of at most 16 bytes contains a backslash; `None` if it is longer. Each part is read once, and
/// parts may overlap.
#[inline]
pub(crate) fn has_backslash_short(text: &[u8]) -> Option<bool> {
    if text.len() > 16 {
        return None;
    }
    let in_word = |word: u64| backslashes(word) != 0;
    if let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        return Some(in_word(u64::from_le_bytes(*first)) | in_word(u64::from_le_bytes(*last)));
    }
    if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        return Some(in_word(halves(*first, *last)));
    }
    Some(text.contains(&b'\\'))
}

/// Returns what comes after all blocks of 64 bytes that need no escape.
fn skip_wide_blocks(mut rest: &[u8]) -> &[u8] {
    while let Some((block, next)) = rest.split_first_chunk::<64>() {
        // No early exit, so that the compiler can use vector instructions.
        if block.iter().fold(false, |found, byte| found | is_escaped(*byte)) {
            break;
        }
        rest = next;
    }
    rest
}

#[inline]
fn position_in_block(block: &[u8; 16]) -> Option<usize> {
    let block = u128::from_le_bytes(*block);
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are looked at one by one")]
    let (low, high) = (escaped_bytes(block as u64), escaped_bytes((block >> 64) as u64));
    if low | high == 0 {
        return None;
    }
    Some(if low == 0 { 8 + position(high) } else { position(low) })
}

fn short_tail(text: &[u8]) -> usize {
    let Some((first, rest)) = text.split_first_chunk::<8>() else { return few(text) };
    match escaped_bytes(u64::from_le_bytes(*first)) {
        0 => 8 + few(rest),
        found => position(found),
    }
}

/// Does the same for fewer than eight bytes. Usually nothing is escaped, which two overlapping halves show at once.
#[inline]
fn few(text: &[u8]) -> usize {
    if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>())
        && escaped_bytes(halves(*first, *last)) == 0
    {
        return text.len();
    }
    text.iter().take_while(|byte| !is_escaped(**byte)).count()
}

#[inline]
fn is_escaped(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Sets the high bit of the first byte that is escaped. Bits above that one are not reliable.
#[inline]
fn escaped_bytes(word: u64) -> u64 {
    let quotes = zero_bytes(word ^ (ONES * u64::from(b'"')));
    let controls = word.wrapping_sub(ONES * u64::from(b' ')) & !word & (ONES * 0x80);
    quotes | backslashes(word) | controls
}

/// Sets the high bit of the first byte that is a backslash. Bits above that one are not reliable.
#[inline]
fn backslashes(word: u64) -> u64 {
    zero_bytes(word ^ (ONES * u64::from(b'\\')))
}

#[inline]
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & (ONES * 0x80)
}

#[inline]
fn halves(first: [u8; 4], last: [u8; 4]) -> u64 {
    u64::from(u32::from_le_bytes(first)) | u64::from(u32::from_le_bytes(last)) << 32
}

#[inline]
fn position(escaped_bytes: u64) -> usize {
    escaped_bytes.trailing_zeros() as usize / 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &[u8]) {
        let expected = text.iter().take_while(|byte| !is_escaped(**byte)).count();
        assert_eq!(plain_len(text), expected, "{text:?}");
        assert_eq!(plain_len_short(text), expected.min(16), "{text:?}");
        let has_backslash = (text.len() <= 16).then(|| text.contains(&b'\\'));
        assert_eq!(has_backslash_short(text), has_backslash, "{text:?}");
    }

    #[test]
    fn finds_an_escaped_byte_at_every_position() {
        for length in 0..300 {
            let mut text = vec![b'x'; length];
            check(&text);
            for position in 0..length {
                for byte in [b'"', b'\\', 0, 0x1f] {
                    text[position] = byte;
                    check(&text);
                }
                text[position] = [b' ', 0x7f, 0x80, 0xff][position % 4];
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_search_by_byte(text in prop::collection::vec(any::<u8>(), 0..40)) {
            check(&text);
        }

        #[test]
        fn agrees_with_a_search_by_byte_in_long_text(
            length in 0usize..2000,
            special in prop::collection::vec((0usize..2000, any::<u8>()), 0..4),
        ) {
            let mut text = vec![b'a'; length];
            for (position, byte) in special {
                if let Some(place) = text.get_mut(position) {
                    *place = byte;
                }
            }
            check(&text);
        }
    }
}
