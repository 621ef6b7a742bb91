//! Matches the frames of several streams against the expected frames, in the order of each stream.

use bowline_transcript::matching::{Kept, compare};
use serde_json::Value;
use std::collections::BTreeMap;

/// Received frames by stream.
pub(super) type Streams = BTreeMap<u64, Vec<Value>>;

/// Assigns each expected frame to the next frame of some stream. Returns the values captured on the way, or `None` if
/// there is no such assignment.
pub(super) fn interleave(expected: &[&Value], streams: &Streams, kept: &Kept) -> Option<Kept> {
    let heads: Vec<&[Value]> = streams.values().map(Vec::as_slice).collect();
    step(expected, &heads, kept)
}

fn step(expected: &[&Value], heads: &[&[Value]], kept: &Kept) -> Option<Kept> {
    let Some((next, expected)) = expected.split_first() else {
        return heads.iter().all(|head| head.is_empty()).then(|| kept.clone());
    };
    for (position, head) in heads.iter().enumerate() {
        let Some((frame, rest)) = head.split_first() else { continue };
        let mut kept = kept.clone();
        if compare(next, frame, &mut kept).is_err() {
            continue;
        }
        let mut heads = heads.to_vec();
        if let Some(head) = heads.get_mut(position) {
            *head = rest;
        }
        if let Some(kept) = step(expected, &heads, &kept) {
            return Some(kept);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Each letter is a frame, each word a stream.
    fn check(written: &str, streams: &str, fits: bool) {
        let frames = |word: &str| word.chars().map(|letter| json!(letter.to_string())).collect::<Vec<_>>();
        let received: Streams = (0..).zip(streams.split(' ').map(frames)).collect();
        let expected = frames(written);
        let expected: Vec<&Value> = expected.iter().collect();
        let found = interleave(&expected, &received, &Kept::new());
        assert_eq!(found.is_some(), fits, "{written} from {streams}");
    }

    #[test]
    fn each_stream_keeps_its_order() {
        check("abc", "abc", true);
        check("abc", "ac b", true);
        check("abc", "c b a", true);
        check("abc", "ca b", false);
        check("abc", "ab", false);
        check("abc", "abc a", false);
    }

    #[test]
    fn similar_frames_are_matched_to_the_right_stream() {
        check("=b=a", "=a =b", true);
        check("=b=a", "a= =b", false);
    }

    #[test]
    fn captures_happen_in_the_order_written() {
        let streams = Streams::from([(1, vec![json!([2, 7])]), (2, vec![json!([1, 7])])]);
        let kept = interleave(&[&json!([1, "<capture:x>"]), &json!([2, "<use:x>"])], &streams, &Kept::new());
        assert_eq!(kept, Some(Kept::from([("x".to_owned(), json!(7))])));
    }
}
