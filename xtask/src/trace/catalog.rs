//! The requirements: `spec/requirements.tsv`.

use std::collections::BTreeMap;

/// The path of the catalog, relative to the root.
pub(super) const PATH: &str = "spec/requirements.tsv";

const HEADER: [&str; 7] = ["id", "level", "role", "revisions", "area", "requirement", "how-to-test"];

/// Every requirement, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Catalog {
    pub(super) rows: Vec<Requirement>,
    by_id: BTreeMap<String, usize>,
}

/// One row: one testable sentence.
#[derive(Clone, Debug)]
pub(super) struct Requirement {
    pub(super) id: String,
    pub(super) level: Level,
    pub(super) area: String,
    pub(super) sentence: String,
}

/// How much a requirement asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Must,
    MustNot,
    Should,
    ShouldNot,
    May,
}

impl Level {
    pub(super) const ALL: [Self; 5] = [Self::Must, Self::MustNot, Self::Should, Self::ShouldNot, Self::May];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Must => "MUST",
            Self::MustNot => "MUST NOT",
            Self::Should => "SHOULD",
            Self::ShouldNot => "SHOULD NOT",
            Self::May => "MAY",
        }
    }

    /// Returns whether an implementation that breaks it does not conform.
    pub(super) fn is_mandatory(self) -> bool {
        match self {
            Self::Must | Self::MustNot => true,
            Self::Should | Self::ShouldNot | Self::May => false,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "MUST" => Some(Self::Must),
            "MUST NOT" => Some(Self::MustNot),
            "SHOULD" => Some(Self::Should),
            "SHOULD NOT" => Some(Self::ShouldNot),
            "MAY-worth-having" => Some(Self::May),
            _ => None,
        }
    }
}

impl Catalog {
    /// Reads the text of the file; reports errors with their lines.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut catalog = Self::default();
        for (line, columns) in table(text, PATH, &HEADER)? {
            let [id, level, _, _, area, sentence, _] = columns[..] else {
                unreachable!("`table` gives as many columns as the header has")
            };
            let located = |problem: String| format!("{PATH}:{line}: {problem}");
            let level = Level::parse(level).ok_or_else(|| located(format!("unknown level `{level}`")))?;
            if catalog.by_id.insert(id.to_owned(), catalog.rows.len()).is_some() {
                return Err(located(format!("`{id}` occurs twice")));
            }
            let (id, area, sentence) = (id.to_owned(), area.to_owned(), sentence.to_owned());
            catalog.rows.push(Requirement { id, level, area, sentence });
        }
        Ok(catalog)
    }

    /// Returns the place of a requirement in `rows`.
    pub(super) fn position(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Returns the areas, in the order in which the file begins them.
    pub(super) fn areas(&self) -> Vec<&str> {
        let mut areas = Vec::new();
        for row in &self.rows {
            if !areas.contains(&row.area.as_str()) {
                areas.push(row.area.as_str());
            }
        }
        areas
    }
}

/// Returns the rows of a file of tab separated values behind its header, with their lines.
pub(super) fn table<'a>(
    text: &'a str,
    path: &str,
    header: &[&str],
) -> Result<Vec<(usize, Vec<&'a str>)>, String> {
    let mut lines = (1..).zip(text.lines());
    let first = lines.next().map(|(_, line)| line.split('\t').collect::<Vec<_>>()).unwrap_or_default();
    if first != header {
        return Err(format!("{path}:1: expected the columns {}", header.join(", ")));
    }
    let mut rows = Vec::new();
    for (line, content) in lines {
        let columns: Vec<&str> = content.split('\t').collect();
        if columns.len() != header.len() {
            return Err(format!("{path}:{line}: expected {} columns, got {}", header.len(), columns.len()));
        }
        rows.push((line, columns));
    }
    Ok(rows)
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Catalog, Level};

    /// A catalog of the given ids, levels and areas.
    pub(in crate::trace) fn catalog(rows: &[(&str, &str, &str)]) -> Catalog {
        Catalog::parse(&text(rows)).expect("the rows are right")
    }

    pub(in crate::trace) fn text(rows: &[(&str, &str, &str)]) -> String {
        let header = "id\tlevel\trole\trevisions\tarea\trequirement\thow-to-test\n".to_owned();
        let lines = rows.iter().map(|(id, level, area)| {
            format!("{id}\t{level}\tboth\t2026-07-28\t{area}\tSentence of {id}.\tlook\n")
        });
        std::iter::once(header).chain(lines).collect()
    }

    #[test]
    fn rows_and_areas_keep_their_order() {
        let catalog = catalog(&[
            ("T-1", "MUST", "tools"),
            ("B-1", "MUST NOT", "base"),
            ("T-2", "MAY-worth-having", "tools"),
        ]);
        assert_eq!(catalog.areas(), ["tools", "base"]);
        assert_eq!(catalog.position("T-2"), Some(2));
        assert_eq!(catalog.rows[1].level, Level::MustNot);
        assert_eq!(catalog.position("T-3"), None);
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        let error = |text: &str| Catalog::parse(text).expect_err("the text is wrong");
        assert!(error("").starts_with("spec/requirements.tsv:1: expected the columns id, level"));
        assert_eq!(error(&text(&[("A", "WILL", "x")])), "spec/requirements.tsv:2: unknown level `WILL`");
        let twice = text(&[("A", "MUST", "x"), ("A", "MUST", "x")]);
        assert_eq!(error(&twice), "spec/requirements.tsv:3: `A` occurs twice");
        assert_eq!(error(&(text(&[]) + "A\tMUST\n")), "spec/requirements.tsv:2: expected 7 columns, got 2");
    }
}
