//! Ranks tools for a query: BM25 over names, titles, descriptions and parameters.
//!
//! Fields count together, as in BM25F: each gives a word's frequency, tempered by the field's own length and weighted;
//! the sum is what saturates. So a word in the name outweighs one in a long description, and a description cannot win by
//! repeating itself.
//!
//! What a tool contributes to a word's score is computed when the index is built, so a search only adds up.

use super::{
    counts::Counts,
    query::{QueryTerm, query_terms},
};
use bowline_types::{RawJson, Tool};
use std::{cmp::Ordering, fmt};

/// What is indexed of one tool.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The name by which it is called.
    pub name: &'a str,
    /// The name for people.
    pub title: Option<&'a str>,
    /// What it does.
    pub description: Option<&'a str>,
    /// The schema of its arguments.
    pub input_schema: &'a RawJson,
    /// What its server is called, by programs and by people: `teams Microsoft Teams`.
    ///
    /// These words count the same for all tools of a server, however often their descriptions repeat them.
    pub server: Option<&'a str>,
}

impl<'a> From<&'a Tool> for Entry<'a> {
    /// The server is what stands before `__` in the name.
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

/// A tool that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Its position in what the index was built from.
    pub position: usize,
    /// How well it answers; comparable within one search only.
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
    /// The words in order, and the place of each among the terms.
    words: Vec<(Box<str>, usize)>,
    terms: Vec<Term>,
    names: Vec<Box<str>>,
}

/// A word as the index knows it.
#[derive(Default)]
pub(super) struct Term {
    /// How much the word tells tools apart.
    pub(super) rarity: f32,
    /// The tools that have it, and how much it counts there.
    pub(super) tools: Vec<(usize, f32)>,
}

impl Index {
    /// Indexes tools.
    pub fn of(tools: &[Tool]) -> Self {
        Self::new(tools.iter().map(Entry::from))
    }

    /// Indexes entries; a [`Hit`] gives the position among them.
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

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The tools that answer a question, best first; equals in the order of their names.
    ///
    /// A tool whose name is the question comes first. Tools that share no word with the question are not found.
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
