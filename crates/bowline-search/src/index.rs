//! Ranks tools for a query: BM25 over names, titles, descriptions and parameters.
//!
//! Fields are combined as in BM25F: the frequency of a word in each field is normalized by the length of the field and
//! weighted, and the sum is saturated. So a word in the name outweighs one in a long description, and repetition in a
//! description does not help.
//!
//! Scores per word and tool are computed when the index is built; a search only adds them.

use super::{
    counts::Counts,
    query::{QueryTerm, query_terms},
};
use bowline_types::{RawJson, Tool};
use std::{cmp::Ordering, fmt};

/// The indexed parts of a tool.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The name of the tool.
    pub name: &'a str,
    /// The display name.
    pub title: Option<&'a str>,
    /// The description.
    pub description: Option<&'a str>,
    /// The input schema.
    pub input_schema: &'a RawJson,
    /// The names of its server: `teams Microsoft Teams`.
    ///
    /// These words have the same weight for all tools of a server, no matter how often descriptions repeat them.
    pub server: Option<&'a str>,
}

impl<'a> From<&'a Tool> for Entry<'a> {
    /// Splits a name: the server is the part before `__`.
    fn from(tool: &'a Tool) -> Self {
        let annotated = tool.annotations.as_ref().and_then(|annotations| annotations.title.as_deref());
        Self {
            name: &tool.name,
            title: tool.title.as_deref().or(annotated),
            description: tool.description.as_deref(),
            input_schema: &tool.input_schema,
            server: tool.name.split_once("__").map(|(server, _)| server),
        }
    }
}

/// A search result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The position of the tool in the input of the index.
    pub position: usize,
    /// The score. Comparable only within one search.
    pub score: f32,
}

/// An index of tools, built once and rebuilt when the tools change.
///
/// ```
/// use bowline_search::Index;
/// use bowline_types::{RawJson, Tool};
///
/// let tools = [
///     Tool::new("create_issue", RawJson::empty_object()).description("Open an issue in a repository."),
///     Tool::new("forecast", RawJson::empty_object()).description("The weather of the next days."),
/// ];
/// let index = Index::of(&tools);
/// assert_eq!(index.search("will it rain? show me the weather", 1)[0].position, 1);
/// ```
pub struct Index {
    /// The sorted words, each with the index of its term.
    words: Vec<(Box<str>, usize)>,
    terms: Vec<Term>,
    names: Vec<Box<str>>,
}

/// A term of the index.
#[derive(Default)]
pub(super) struct Term {
    /// How well the word distinguishes tools.
    pub(super) rarity: f32,
    /// The tools that contain it, with their weights.
    pub(super) tools: Vec<(usize, f32)>,
}

impl Index {
    /// Indexes tools.
    pub fn of(tools: &[Tool]) -> Self {
        Self::new(tools.iter().map(Entry::from))
    }

    /// Indexes entries. [`Hit::position`] is the position among them.
    pub fn new<'a>(entries: impl IntoIterator<Item = Entry<'a>>) -> Self {
        let mut counts = Counts::default();
        let mut names = Vec::new();
        for entry in entries {
            counts.add(&entry);
            names.push(entry.name.into());
        }
        let (words, terms) = counts.weigh();
        Self { words, terms, names }
    }

    /// Returns the number of tools.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns whether the index is empty.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the best tools for a query. Ties are sorted by name.
    ///
    /// A tool whose name equals the query comes first. Tools that share no word with the query are not returned.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        let mut scores = vec![0.0_f32; self.names.len()];
        for QueryTerm { term, weight } in query_terms(query, &self.words) {
            let Some(term) = self.terms.get(term) else { continue };
            for (tool, count) in &term.tools {
                if let Some(score) = scores.get_mut(*tool) {
                    *score += weight * term.rarity * count;
                }
            }
        }
        let query = query.trim();
        let mut hits = Vec::new();
        for (position, (name, score)) in self.names.iter().zip(scores).enumerate() {
            let score = if name.eq_ignore_ascii_case(query) { f32::MAX } else { score };
            if score > 0.0 {
                hits.push(Hit { position, score });
            }
        }
        let by_rank = |left: &Hit, right: &Hit| self.by_rank(left, right);
        if limit < hits.len() {
            hits.select_nth_unstable_by(limit, by_rank);
            hits.truncate(limit);
        }
        hits.sort_unstable_by(by_rank);
        hits
    }

    fn by_rank(&self, left: &Hit, right: &Hit) -> Ordering {
        let name = |hit: &Hit| self.names.get(hit.position);
        right
            .score
            .total_cmp(&left.score)
            .then_with(|| name(left).cmp(&name(right)))
            .then_with(|| left.position.cmp(&right.position))
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Index")
            .field("tools", &self.names.len())
            .field("words", &self.words.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str, description: &str) -> Tool {
        Tool::new(name, RawJson::empty_object()).description(description)
    }

    #[track_caller]
    fn check(tools: &[Tool], query: &str, expected: &[&str]) {
        let hits = Index::of(tools).search(query, 10);
        let found: Vec<&str> = hits.iter().map(|hit| tools[hit.position].name.as_str()).collect();
        assert_eq!(found, expected, "{query}: {hits:?}");
    }

    #[test]
    fn equal_ranks_are_ordered_by_name() {
        let tools = [tool("c", "same words"), tool("a", "same words"), tool("b", "same words")];
        check(&tools, "words", &["a", "b", "c"]);
        assert_eq!(Index::of(&tools).search("words", 2), Index::of(&tools).search("words", 10)[..2]);
        assert_eq!(Index::of(&tools).search("words", 0), []);
    }

    #[test]
    fn a_name_outweighs_a_description_and_that_a_parameter() {
        let schema = RawJson::from(json!({"properties": {"invoice": {"description": "the invoice"}}}));
        let tools = [
            Tool::new("third", schema),
            tool("second", "Pays an invoice, now or later."),
            tool("invoice_first", "Pays what is due."),
        ];
        check(&tools, "invoices", &["invoice_first", "second", "third"]);
    }

    #[test]
    fn the_exact_name_ranks_first() {
        let tools =
            [tool("run", "Start a query"), tool("query", "x"), tool("query_run_all", "query run query run")];
        assert_eq!(Index::of(&tools).search(" RUN ", 3)[0].position, 0);
    }

    #[test]
    fn the_server_counts_once_for_each_of_its_tools() {
        let tools = [
            tool("teams__b", "Send to Teams, only Teams, always Teams."),
            tool("teams__a", "Something else."),
        ];
        check(&tools, "teams", &["teams__a", "teams__b"]);
        let entries =
            tools.iter().map(|tool| Entry { server: Some("teams Microsoft Teams"), ..Entry::from(tool) });
        assert_eq!(Index::new(entries).search("microsoft", 9).len(), 2);
    }

    #[test]
    fn a_query_without_known_words_finds_nothing() {
        let tools = [tool("a", "b")];
        for query in ["", " ", "zzz", "?!"] {
            check(&tools, query, &[]);
        }
        check(&[], "anything", &[]);
        assert!(Index::of(&[]).is_empty());
    }

    #[test]
    fn a_question_of_fillers_alone_still_finds() {
        check(
            &[tool("who_am_i", "Tells who you are."), tool("other", "Lists things.")],
            "who am I?",
            &["who_am_i"],
        );
    }

    #[test]
    fn endless_texts_are_read_to_a_bound() {
        let long = "word ".repeat(100_000) + "end";
        let tools = [tool("a", &long), tool("b", "word end")];
        check(&tools, "end", &["b"]);
        assert_eq!(Index::of(&tools).search(&long, 5).len(), 2);
    }
}
