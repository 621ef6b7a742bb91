//! What is known about each requirement, and the sums of it.

use std::collections::BTreeMap;

use super::catalog::{Catalog, Level, Requirement};
use super::proofs::Proof;
use super::waivers::{self, Waiver};
use crate::finding::Finding;

/// The catalog with what tests and waivers say about it.
#[derive(Debug)]
pub(super) struct Trace<'a> {
    pub(super) catalog: &'a Catalog,
    /// One per row of the catalog.
    states: Vec<State>,
}

/// What is known about one requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// By these tests, sorted.
    Proven(Vec<String>),
    Waived(Waiver),
    Open,
}

impl<'a> Trace<'a> {
    /// Joins the three; claims that contradict them are findings.
    pub(super) fn new(
        catalog: &'a Catalog,
        proofs: &[Proof],
        waivers: &BTreeMap<usize, Waiver>,
    ) -> (Self, Vec<Finding>) {
        let mut findings = Vec::new();
        let mut tests: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for proof in proofs {
            let Some(position) = catalog.position(&proof.id) else {
                let sentence = format!("unknown requirement `{}`", proof.id);
                findings.push(Finding::new(&proof.path, proof.line, sentence));
                continue;
            };
            tests.entry(position).or_default().push(proof.test.clone());
        }
        for (position, waiver) in waivers {
            if let (Some(row), Some(tests)) = (catalog.rows.get(*position), tests.get(position)) {
                let by = tests.first().map_or("", String::as_str);
                let sentence = format!("`{}` is proven by {by}: remove the waiver", row.id);
                findings.push(Finding::new(waivers::PATH, waiver.line, sentence));
            }
        }
        let states = (0..catalog.rows.len())
            .map(|position| match (tests.remove(&position), waivers.get(&position)) {
                (Some(mut tests), _) => {
                    tests.sort();
                    tests.dedup();
                    State::Proven(tests)
                }
                (None, Some(waiver)) => State::Waived(waiver.clone()),
                (None, None) => State::Open,
            })
            .collect();
        (Self { catalog, states }, findings)
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = (&Requirement, &State)> {
        self.catalog.rows.iter().zip(&self.states)
    }

    /// Returns the sums over the rows that `is_counted` picks.
    pub(super) fn sums(&self, is_counted: impl Fn(&Requirement) -> bool) -> Sums {
        let mut sums = Sums::default();
        for (_, state) in self.rows().filter(|(row, _)| is_counted(row)) {
            sums.rows += 1;
            match state {
                State::Proven(_) => sums.proven += 1,
                State::Open => sums.open += 1,
                State::Waived(_) => sums.waived += 1,
            }
        }
        sums
    }

    /// Returns the sums per area and level that have rows, then those per level and of everything.
    pub(super) fn summary(&self) -> Vec<(String, &'static str, Sums)> {
        let mut lines = Vec::new();
        for area in self.catalog.areas() {
            for level in Level::ALL {
                lines.push((
                    area.to_owned(),
                    level.as_str(),
                    self.sums(|row| row.area == area && row.level == level),
                ));
            }
        }
        for level in Level::ALL {
            lines.push(("all".to_owned(), level.as_str(), self.sums(|row| row.level == level)));
        }
        lines.push(("all".to_owned(), "all", self.sums(|_| true)));
        lines.retain(|(_, _, sums)| sums.rows > 0);
        lines
    }
}

/// How many rows are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) rows: usize,
    pub(super) proven: usize,
    pub(super) waived: usize,
    pub(super) open: usize,
}

impl Sums {
    /// Returns the share of all rows that is proven, rounded down. A waived row counts as not proven.
    pub(super) fn percent(self) -> usize {
        (self.proven * 100).checked_div(self.rows).unwrap_or_default()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::super::catalog::tests::catalog;
    use super::super::catalog::{Catalog, Level};
    use super::super::proofs::Proof;
    use super::super::waivers::{Class, Waiver};
    use super::{State, Sums, Trace};

    pub(in crate::trace) fn proof(id: &str, test: &str) -> Proof {
        Proof { id: id.to_owned(), test: test.to_owned(), path: "a.rs".to_owned(), line: 7 }
    }

    /// A small catalog with every state in it, apart from what contradicts itself.
    pub(in crate::trace) fn example() -> (Catalog, Vec<Proof>, BTreeMap<usize, Waiver>) {
        let catalog = catalog(&[
            ("T-1", "MUST", "tools"),
            ("T-2", "MUST NOT", "tools"),
            ("T-3", "MUST", "tools"),
            ("T-4", "MUST", "tools"),
            ("B-1", "SHOULD", "base"),
        ]);
        let proofs = vec![proof("T-1", "a.rs::two"), proof("T-1", "a.rs::one"), proof("T-1", "a.rs::two")];
        let waivers = BTreeMap::from([
            (1, Waiver { class: Class::Host, reason: "The user decides.".to_owned(), line: 2 }),
            (2, Waiver { class: Class::NotEmitted, reason: "Never sent.".to_owned(), line: 3 }),
        ]);
        (catalog, proofs, waivers)
    }

    #[test]
    fn every_row_has_one_state() {
        let (catalog, proofs, waivers) = example();
        let (trace, findings) = Trace::new(&catalog, &proofs, &waivers);
        assert_eq!(findings, []);
        assert_eq!(
            trace.states,
            [
                State::Proven(vec!["a.rs::one".to_owned(), "a.rs::two".to_owned()]),
                State::Waived(waivers[&1].clone()),
                State::Waived(waivers[&2].clone()),
                State::Open,
                State::Open,
            ]
        );
    }

    #[test]
    fn a_waiver_does_not_raise_the_percentage() {
        let (catalog, proofs, waivers) = example();
        let (trace, _) = Trace::new(&catalog, &proofs, &waivers);
        let sums = trace.sums(|row| row.level.is_mandatory());
        assert_eq!(sums, Sums { rows: 4, proven: 1, waived: 2, open: 1 });
        assert_eq!(sums.percent(), 25);
        assert_eq!(trace.sums(|row| row.level == Level::MustNot).percent(), 0);
        let (without, _) = Trace::new(&catalog, &proofs, &BTreeMap::new());
        assert_eq!(without.sums(|row| row.level.is_mandatory()).percent(), sums.percent());
    }

    #[test]
    fn contradictions_are_reported() {
        let (catalog, mut proofs, waivers) = example();
        proofs.extend([proof("T-2", "a.rs::three"), proof("T-9", "a.rs::four")]);
        let (_, findings) = Trace::new(&catalog, &proofs, &waivers);
        let found: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "a.rs:7: unknown requirement `T-9`",
                "spec/waived.tsv:2: `T-2` is proven by a.rs::three: remove the waiver"
            ]
        );
    }
}
