//! Computes the weight of every word for every tool, to build an index.

use super::{
    index::{Entry, Term},
    schema::parameters,
    words::each_word,
};
use std::collections::HashMap;

/// How quickly repetitions of a word stop adding to its weight.
const SATURATION: f32 = 1.0;
/// The weight of a word that names the server. Other weights are at most 1, because a query that names a server means
/// it.
const SERVER: f32 = 1.6;
/// The maximum number of words per tool.
const MAX_WORDS: usize = 4_000;

/// The weight of a field.
struct Field {
    weight: f32,
    /// How much long fields are discounted, from 0 to 1.
    length: f32,
}

const NAME: usize = 0;
const TITLE: usize = 1;
const DESCRIPTION: usize = 2;
const PARAMETERS: usize = 3;
const PARAMETER_DESCRIPTIONS: usize = 4;

/// Tuned on the training queries of the tests. The ranking changes little around these values.
const FIELDS: [Field; 5] = [
    Field { weight: 3.0, length: 0.3 },
    Field { weight: 1.0, length: 0.3 },
    Field { weight: 2.0, length: 0.6 },
    Field { weight: 0.4, length: 0.6 },
    Field { weight: 0.2, length: 0.6 },
];

/// One number for each field.
type PerField<T> = [T; FIELDS.len()];

/// The word counts of every field and tool, before they are normalized by length.
#[derive(Default)]
pub(super) struct Counts {
    words: HashMap<Box<str>, usize>,
    /// The tools that contain each word.
    occurrences: Vec<Vec<Occurrence>>,
    /// The number of words per field of each tool.
    lengths: Vec<PerField<u16>>,
}

/// A word in a tool.
struct Occurrence {
    tool: usize,
    /// Whether the word names the tool's server; its other occurrences are ignored then.
    of_server: bool,
    /// The number of occurrences per field.
    counts: PerField<u16>,
}

impl Counts {
    /// Adds the words of a tool.
    pub(super) fn add(&mut self, entry: &Entry<'_>) {
        let mut tool = Counting { counts: self, lengths: [0; FIELDS.len()], left: MAX_WORDS };
        tool.add(None, entry.server.unwrap_or_default());
        tool.add(Some(NAME), entry.name);
        tool.add(Some(TITLE), entry.title.unwrap_or_default());
        tool.add(Some(DESCRIPTION), entry.description.unwrap_or_default());
        for parameter in parameters(entry.input_schema) {
            tool.add(Some(PARAMETERS), &parameter.name);
            tool.add(Some(PARAMETER_DESCRIPTIONS), parameter.description.as_deref().unwrap_or_default());
        }
        let lengths = tool.lengths;
        self.lengths.push(lengths);
    }

    /// Converts counts to weights. Returns the sorted words and their terms.
    pub(super) fn weigh(self) -> (Vec<(Box<str>, usize)>, Vec<Term>) {
        let all = count(self.lengths.len());
        let discounts = self.discounts();
        let weigh = |Occurrence { tool, of_server, counts }| {
            let worth =
                counts.iter().zip(discounts.get(tool)?).map(|(count, worth)| f32::from(*count) * worth);
            let sum: f32 = worth.sum();
            Some((tool, if of_server { SERVER } else { sum / (SATURATION + sum) }))
        };
        let term = |occurrences: Vec<Occurrence>| {
            let having = count(occurrences.len());
            let rarity = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
            Term { rarity, tools: occurrences.into_iter().filter_map(weigh).collect() }
        };
        let terms = self.occurrences.into_iter().map(term).collect();
        let mut words: Vec<(Box<str>, usize)> = self.words.into_iter().collect();
        words.sort_unstable();
        (words, terms)
    }

    /// Returns the value of one occurrence per field, for each tool.
    fn discounts(&self) -> Vec<PerField<f32>> {
        let mut means: PerField<f32> = [0.0; FIELDS.len()];
        for (field, mean) in means.iter_mut().enumerate() {
            // Averages over tools that have the field, because an absent title says nothing about the length of titles.
            let lengths =
                self.lengths.iter().filter_map(|lengths| lengths.get(field)).filter(|length| **length > 0);
            let (sum, having) =
                lengths.fold((0.0, 0.0), |(sum, having), length| (sum + f32::from(*length), having + 1.0));
            *mean = if having > 0.0 { sum / having } else { 1.0 };
        }
        let discount = |lengths: &PerField<u16>| {
            let mut worth: PerField<f32> = [0.0; FIELDS.len()];
            for (((worth, length), mean), Field { weight, length: discount }) in
                worth.iter_mut().zip(lengths).zip(means).zip(&FIELDS)
            {
                *worth = weight / (1.0 - discount + discount * f32::from(*length) / mean);
            }
            worth
        };
        self.lengths.iter().map(discount).collect()
    }
}

/// The tool whose words are counted.
struct Counting<'a> {
    counts: &'a mut Counts,
    lengths: PerField<u16>,
    left: usize,
}

impl Counting<'_> {
    /// Counts the words of a field, or of the server name.
    fn add(&mut self, field: Option<usize>, text: &str) {
        let Self { counts: Counts { words, occurrences, lengths: tools }, lengths, left } = self;
        let tool = tools.len();
        each_word(text, |word| {
            if *left == 0 {
                return;
            }
            *left -= 1;
            let term = words.get(word).copied().unwrap_or_else(|| {
                words.insert(word.into(), occurrences.len());
                occurrences.push(Vec::new());
                occurrences.len() - 1
            });
            let Some(having) = occurrences.get_mut(term) else { return };
            if having.last().is_none_or(|last| last.tool != tool) {
                having.push(Occurrence { tool, of_server: field.is_none(), counts: [0; FIELDS.len()] });
            }
            let Some(occurrence) = having.last_mut().filter(|occurrence| !occurrence.of_server) else {
                return;
            };
            let Some(field) = field else { return };
            for count in [occurrence.counts.get_mut(field), lengths.get_mut(field)].into_iter().flatten() {
                *count = count.saturating_add(1);
            }
        });
    }
}

/// Returns the number of tools is small enough for an exact `f32`.
fn count(tools: usize) -> f32 {
    f32::from(u16::try_from(tools).unwrap_or(u16::MAX))
}
