//! Searches the bodies of messages, as they are shown: masked text only, so that a search cannot be used to guess.

use super::recorder::Recorder;
use crate::query::Found;
use bowline_policy::audit::Redactor;

/// How many messages a search returns at most.
const MAX_FOUND: usize = 1000;
/// How many bytes one search reads at most.
const MAX_READ: usize = 64 * 1024 * 1024;

/// How many bytes and messages are read at a time. Nobody can record meanwhile, and so much is copied at most.
const MAX_SLICE: usize = 1024 * 1024;
const MAX_MESSAGES: usize = 10_000;

/// Some messages of the buffer.
struct Slice {
    /// Those that contain the text as it passed, newest first.
    candidates: Vec<(u64, String)>,
    read: usize,
    /// The oldest number that was read. `None` if there are no older messages.
    oldest: Option<u64>,
}

impl Recorder {
    /// Returns the messages that contain a text, newest first.
    pub(crate) fn find(&self, text: &str, before: Option<u64>, redactor: &Redactor) -> Found {
        let wanted = text.to_ascii_lowercase();
        let mut found = Found { seqs: Vec::new(), next: None };
        if wanted.is_empty() {
            return found;
        }
        let is_shown = |text: &str| redactor.message(text).0.to_ascii_lowercase().contains(&wanted);
        let (mut before, mut read) = (before.unwrap_or(u64::MAX), 0);
        loop {
            let slice = self.slice(&wanted, before);
            let shown = slice.candidates.into_iter().filter(|(_, text)| is_shown(text));
            found.seqs.extend(shown.map(|(seq, _)| seq));
            read += slice.read;
            if found.seqs.len() > MAX_FOUND {
                // What was found beyond the limit is found again from there.
                found.seqs.truncate(MAX_FOUND);
                found.next = found.seqs.last().copied();
                return found;
            }
            let Some(oldest) = slice.oldest else { return found };
            if found.seqs.len() == MAX_FOUND || read > MAX_READ {
                found.next = Some(oldest);
                return found;
            }
            before = oldest;
        }
    }

    /// Reads messages before a number.
    fn slice(&self, wanted: &str, before: u64) -> Slice {
        self.with_ring(|ring| {
            let mut slice = Slice { candidates: Vec::new(), read: 0, oldest: None };
            let first = ring.first();
            for (count, seq) in (first..before.min(ring.next())).rev().enumerate() {
                if slice.read >= MAX_SLICE || count >= MAX_MESSAGES {
                    slice.oldest = Some(seq + 1);
                    break;
                }
                let Some(body) = ring.get(seq).and_then(|stored| stored.body.as_ref()) else { continue };
                slice.read += body.bytes.len();
                if contains(&body.bytes, wanted.as_bytes()) {
                    // Copied, so that nobody waits while it is masked.
                    slice.candidates.push((seq, String::from_utf8_lossy(&body.bytes).into_owned()));
                }
            }
            slice
        })
    }
}

/// Returns whether a body contains a text in ASCII lower case, in any case.
fn contains(body: &[u8], wanted: &[u8]) -> bool {
    let Some((first, rest)) = wanted.split_first() else { return true };
    let mut place = 0;
    while let Some(found) =
        body.get(place..).and_then(|rest| rest.iter().position(|byte| byte.to_ascii_lowercase() == *first))
    {
        let start = place + found + 1;
        if body.get(start..start + rest.len()).is_some_and(|here| here.eq_ignore_ascii_case(rest)) {
            return true;
        }
        place = start;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_host::{Tap as _, TapEvent};

    #[test]
    fn a_search_copies_little_at_a_time_and_finds_all() {
        let redactor = Redactor::default();
        let recorder = Recorder::new(64 * 1024 * 1024, true, redactor.clone());
        let line = format!("{} needle", "x".repeat(200 * 1024));
        for _ in 0..20 {
            recorder.event(&TapEvent::Output { server: "demo", line: &line });
        }
        let slice = recorder.slice("needle", u64::MAX);
        let copied: usize = slice.candidates.iter().map(|(_, text)| text.len()).sum();
        assert!(copied < MAX_SLICE + line.len(), "{copied}");
        let found = recorder.find("NEEDLE", None, &redactor);
        assert_eq!((found.seqs, found.next), ((1..=20).rev().collect(), None));
        assert_eq!(recorder.find("needle", Some(3), &redactor).seqs, [2, 1]);
    }

    #[test]
    fn a_search_goes_on_where_it_stopped() {
        let redactor = Redactor::default();
        let recorder = Recorder::new(64 * 1024 * 1024, true, redactor.clone());
        for _ in 0..MAX_FOUND + 5 {
            recorder.event(&TapEvent::Output { server: "demo", line: "needle" });
        }
        let found = recorder.find("needle", None, &redactor);
        assert_eq!((found.seqs.len(), found.next), (MAX_FOUND, Some(6)));
        assert_eq!(recorder.find("needle", found.next, &redactor).seqs, [5, 4, 3, 2, 1]);
    }
}
