//! Searches the bodies of messages, as they are shown: masked text only, so that a search cannot be used to guess.

use super::recorder::Recorder;
use crate::query::Found;
use bowline_policy::audit::Redactor;

/// How many messages a search returns at most.
const MAX_FOUND: usize = 1000;
/// How many bytes one search reads at most.
const MAX_READ: usize = 64 * 1024 * 1024;

impl Recorder {
    /// Returns the messages that contain a text, newest first.
    pub(crate) fn find(&self, text: &str, before: Option<u64>, redactor: &Redactor) -> Found {
        let wanted = text.to_ascii_lowercase();
        if wanted.is_empty() {
            return Found { seqs: Vec::new(), next: None };
        }
        // Bodies that contain the text as it passed; copied, so that nobody waits while they are masked.
        let (candidates, next) = self.with_ring(|ring| {
            let (mut candidates, mut read, mut next) = (Vec::new(), 0, None);
            for stored in ring.iter().rev() {
                let seq = stored.head.seq;
                if before.is_some_and(|before| seq >= before) {
                    continue;
                }
                let Some(body) = &stored.body else { continue };
                read += body.bytes.len();
                if contains(&body.bytes, wanted.as_bytes()) {
                    candidates.push((seq, String::from_utf8_lossy(&body.bytes).into_owned()));
                }
                if candidates.len() >= MAX_FOUND || read > MAX_READ {
                    next = Some(seq);
                    break;
                }
            }
            (candidates, next)
        });
        let is_shown = |text: &str| redactor.message(text).0.to_ascii_lowercase().contains(&wanted);
        let seqs = candidates.into_iter().filter(|(_, text)| is_shown(text)).map(|(seq, _)| seq).collect();
        Found { seqs, next }
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
