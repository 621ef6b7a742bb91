//! The requirements that no test here can prove: `spec/waived.tsv`.

use std::collections::BTreeMap;

use super::catalog::{Catalog, table};
use crate::finding::Finding;

/// The path of the waivers, relative to the root.
pub(super) const PATH: &str = "spec/waived.tsv";

const HEADER: [&str; 3] = ["id", "class", "reason"];

/// Why a requirement is not proven here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// It binds people or documents; no frame shows it.
    NotOnTheWire,
    /// It belongs to a feature that is not built yet.
    LaterFeature,
    /// It binds the user interface or the policy of a host.
    Host,
    /// It constrains something that is never sent.
    NotEmitted,
}

impl Class {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::NotOnTheWire => "not-on-the-wire",
            Self::LaterFeature => "later-feature",
            Self::Host => "host",
            Self::NotEmitted => "not-emitted",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::NotOnTheWire, Self::LaterFeature, Self::Host, Self::NotEmitted]
            .into_iter()
            .find(|class| class.as_str() == text)
    }
}

/// One row: its class, its reason, and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiver {
    pub(super) class: Class,
    pub(super) reason: String,
    pub(super) line: usize,
}

/// Reads the text of the file into waivers by their position in the catalog.
pub(super) fn parse(
    text: &str,
    catalog: &Catalog,
) -> Result<(BTreeMap<usize, Waiver>, Vec<Finding>), String> {
    let mut waivers = BTreeMap::new();
    let mut findings = Vec::new();
    for (line, columns) in table(text, PATH, &HEADER)? {
        let [id, class, reason] = columns[..] else {
            unreachable!("`table` gives as many columns as the header has")
        };
        let mut tell = |sentence: String| findings.push(Finding::new(PATH, line, sentence));
        let Some(position) = catalog.position(id) else {
            tell(format!("unknown requirement `{id}`"));
            continue;
        };
        let Some(class) = Class::parse(class) else {
            tell(format!("unknown class `{class}`"));
            continue;
        };
        if reason.trim().is_empty() {
            tell(format!("the waiver of `{id}` has no reason"));
        }
        if waivers.insert(position, Waiver { class, reason: reason.to_owned(), line }).is_some() {
            tell(format!("`{id}` is waived twice"));
        }
    }
    Ok((waivers, findings))
}

#[cfg(test)]
mod tests {
    use super::super::catalog::tests::catalog;
    use super::{Class, Waiver, parse};

    #[test]
    fn waivers_name_a_row_a_class_and_a_reason() {
        let catalog = catalog(&[("A-1", "MUST", "a"), ("A-2", "MUST", "a")]);
        let text = "id\tclass\treason\nA-2\thost\tThe user decides.\n";
        let (waivers, findings) = parse(text, &catalog).unwrap();
        assert_eq!(findings, []);
        let expected = Waiver { class: Class::Host, reason: "The user decides.".to_owned(), line: 2 };
        assert_eq!(waivers.into_iter().collect::<Vec<_>>(), [(1, expected)]);
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        let catalog = catalog(&[("A-1", "MUST", "a")]);
        let text = "id\tclass\treason\nA-9\thost\tx\nA-1\tlater\tx\nA-1\thost\t \nA-1\tnot-emitted\tx\n";
        let (_, findings) = parse(text, &catalog).unwrap();
        let found: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "spec/waived.tsv:2: unknown requirement `A-9`",
                "spec/waived.tsv:3: unknown class `later`",
                "spec/waived.tsv:4: the waiver of `A-1` has no reason",
                "spec/waived.tsv:5: `A-1` is waived twice",
            ]
        );
        assert_eq!(
            parse("id\tclass\n", &catalog).unwrap_err(),
            "spec/waived.tsv:1: expected the columns id, class, reason"
        );
    }
}
