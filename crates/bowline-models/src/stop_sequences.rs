//! Stop sequences: those that the provider supports, and those that are applied here.

use bowline_types::ContentBlock;

/// Stop sequences, split by who applies them.
#[derive(Debug, Default)]
pub(super) struct StopSequences {
    /// Sequences that the provider applies.
    pub(super) sent: Vec<String>,
    /// Sequences that are applied to the output here.
    kept: Vec<String>,
}

impl StopSequences {
    /// Sends the sequences that the provider supports, up to a maximum number.
    pub(super) fn new(sequences: &[String], most: usize, takes: impl Fn(&str) -> bool) -> Self {
        let mut stops = Self::default();
        for sequence in sequences.iter().filter(|sequence| !sequence.is_empty()) {
            let room = stops.sent.len() < most && takes(sequence);
            let list = if room { &mut stops.sent } else { &mut stops.kept };
            if !list.contains(sequence) {
                list.push(sequence.clone());
            }
        }
        stops
    }

    /// Cuts the content at the first sequence that was not sent. Returns whether it was cut.
    pub(super) fn cut(&self, content: &mut Vec<ContentBlock>) -> bool {
        for place in 0..content.len() {
            let Some(ContentBlock::Text(block)) = content.get_mut(place) else { continue };
            let found = self.kept.iter().filter_map(|sequence| block.text.find(sequence.as_str())).min();
            if let Some(end) = found {
                block.text.truncate(end);
                content.truncate(place + 1);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stops(sequences: &[&str]) -> StopSequences {
        let sequences: Vec<String> = sequences.iter().map(|sequence| (*sequence).to_owned()).collect();
        StopSequences::new(&sequences, 2, |sequence| !sequence.trim().is_empty())
    }

    #[test]
    fn a_provider_gets_as_many_stop_sequences_as_it_supports() {
        let stops = stops(&["\n", "", "END", "END", "STOP", "HALT"]);
        assert_eq!(stops.sent, ["END", "STOP"]);
        assert_eq!(stops.kept, ["\n", "HALT"]);
    }

    #[test]
    fn text_ends_at_the_first_stop_sequence() {
        let stops = stops(&["a", "b", "HALT", "…"]);
        let check = |texts: &[&str], expected: &[&str], cut: bool| {
            let mut content: Vec<_> = texts.iter().map(|text| ContentBlock::text(*text)).collect();
            assert_eq!(stops.cut(&mut content), cut);
            let texts: Vec<_> = content.iter().filter_map(ContentBlock::as_text).collect();
            assert_eq!(texts, expected);
        };
        check(&["a b", "more"], &["a b", "more"], false);
        check(&["one", "twoHALT three… four", "more"], &["one", "two"], true);
        check(&["ü… HALT"], &["ü"], true);
        check(&["HALT"], &[""], true);
        check(&[], &[], false);
    }
}
