//! Converts a query to weighted index terms, including synonyms and inflections.

use super::{
    synonyms,
    words::{each_word, is_stop_word},
};
use std::collections::HashMap;

/// The weight of a synonym.
const SYNONYM_WEIGHT: f32 = 0.5;
/// The weight of a word that starts with the word of the query: `azure` in `azureblob`.
const PREFIX_WEIGHT: f32 = 0.2;
/// The minimum length of such a prefix.
const SHORTEST: usize = 4;
/// The maximum number of words of a query.
const MAX_WORDS: usize = 64;

/// The index of a term, and its weight in the query.
pub(super) struct QueryTerm {
    pub(super) term: usize,
    pub(super) weight: f32,
}

/// Converts a query to terms. `words` are sorted.
pub(super) fn query_terms(query: &str, words: &[(Box<str>, usize)]) -> Vec<QueryTerm> {
    let mut wanted: Vec<String> = Vec::new();
    each_word(query, |word| {
        if wanted.len() < MAX_WORDS {
            wanted.push(word.to_owned());
        }
    });
    let mut parser = QueryParser { words, weights: HashMap::new() };
    for pair in wanted.windows(2) {
        // `web hook` finds `webhook`.
        parser.ask(&pair.concat(), 1.0);
    }
    if wanted.iter().any(|word| !is_stop_word(word)) {
        // Words such as `my` or `please` in a description do not make it a better match.
        wanted.retain(|word| !is_stop_word(word));
    }
    for word in &wanted {
        parser.ask(word, 1.0);
        parser.add_inflections(word);
        for synonym in synonyms::of(word) {
            parser.ask(synonym, SYNONYM_WEIGHT);
        }
    }
    let mut query_terms: Vec<QueryTerm> =
        parser.weights.into_iter().map(|(term, weight)| QueryTerm { term, weight }).collect();
    // Floating-point sums depend on their order, and results must be deterministic.
    query_terms.sort_unstable_by_key(|term| term.term);
    query_terms
}

struct QueryParser<'a> {
    words: &'a [(Box<str>, usize)],
    weights: HashMap<usize, f32>,
}

impl QueryParser<'_> {
    fn ask(&mut self, word: &str, weight: f32) {
        if let Ok(place) = self.words.binary_search_by(|(known, _)| known.as_ref().cmp(word)) {
            self.add(place, weight);
        }
    }

    fn add(&mut self, place: usize, weight: f32) {
        if let Some((_, term)) = self.words.get(place) {
            let known = self.weights.entry(*term).or_default();
            *known = known.max(weight);
        }
    }

    /// Adds inflections of a word, and longer words that start with it.
    fn add_inflections(&mut self, word: &str) {
        if word.len() < SHORTEST {
            return;
        }
        let first = self.words.partition_point(|(known, _)| known.as_ref() <= word);
        for (offset, (known, _)) in self.words.iter().skip(first).enumerate() {
            let Some(ending) = known.strip_prefix(word) else { break };
            self.add(first + offset, if is_ending(ending) { 1.0 } else { PREFIX_WEIGHT });
        }
        for (end, _) in word.char_indices().skip(SHORTEST) {
            if let Some((beginning, ending)) = word.split_at_checked(end)
                && is_ending(ending)
            {
                self.ask(beginning, 1.0);
            }
        }
    }
}

/// Returns whether words with this ending belong together: `attach` and `attachment`.
fn is_ending(ending: &str) -> bool {
    ENDINGS.contains(&ending)
}

/// Endings after [`stem`](super::stem::stem).
const ENDINGS: [&str; 18] = [
    "abl", "al", "anc", "ation", "enc", "er", "ic", "ication", "ing", "ion", "ity", "iv", "ly", "ment",
    "ness", "or", "ship", "y",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, known: &[&str], expected: &[(&str, f32)]) {
        let mut words: Vec<(Box<str>, usize)> =
            known.iter().enumerate().map(|(term, word)| ((*word).into(), term)).collect();
        words.sort_unstable();
        let query_terms = query_terms(query, &words);
        let found: Vec<(&str, f32)> =
            query_terms.iter().map(|term| (known[term.term], term.weight)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn words_of_one_family_match() {
        check(
            "attach invitations",
            &["attach", "attachment", "attack", "invit"],
            &[("attach", 1.0), ("attachment", 1.0), ("invit", 1.0)],
        );
        check("azure", &["azureblob", "azur"], &[("azureblob", PREFIX_WEIGHT), ("azur", 1.0)]);
        check("log", &["logic", "log"], &[("log", 1.0)]);
    }

    #[test]
    fn adjacent_words_may_be_joined() {
        check("web hooks", &["webhook", "web"], &[("webhook", 1.0), ("web", 1.0)]);
    }

    #[test]
    fn fillers_count_only_alone() {
        check("what is my id", &["what", "my", "id"], &[("id", 1.0)]);
        check("what is my", &["what", "my", "id"], &[("what", 1.0), ("my", 1.0)]);
    }

    #[test]
    fn synonyms_have_less_weight() {
        check("remove", &["remov", "delet"], &[("remov", 1.0), ("delet", SYNONYM_WEIGHT)]);
        check("remove or delete", &["remov", "delet"], &[("remov", 1.0), ("delet", 1.0)]);
    }
}
