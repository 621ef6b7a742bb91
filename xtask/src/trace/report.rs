//! The trace as people read it: on the terminal, and in `spec/TRACE.md`.

use std::fmt::Write as _;

use super::catalog::{Level, Requirement};
use super::state::{State, Sums, Trace};

const COLUMNS: [&str; 7] = ["area", "level", "rows", "proven", "waived", "open", "percent"];

/// Returns the table of sums with aligned columns.
pub(super) fn table(trace: &Trace<'_>) -> String {
    let mut lines = vec![COLUMNS.map(str::to_owned)];
    lines.extend(summary(trace));
    let widths: [usize; 7] =
        std::array::from_fn(|column| lines.iter().map(|line| line[column].len()).max().unwrap_or_default());
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> = line
            .iter()
            .zip(widths)
            .enumerate()
            .map(
                |(column, (cell, width))| {
                    if column < 2 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                },
            )
            .collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// Returns the MUST and SHOULD rows that nothing proves and nothing waives, one per line.
pub(super) fn unproven(trace: &Trace<'_>, is_counted: impl Fn(&Requirement) -> bool) -> String {
    let mut text = String::new();
    for (row, state) in trace.rows() {
        if *state == State::Open && row.level != Level::May && is_counted(row) {
            push(
                &mut text,
                format_args!("{}  {}  {}: {}\n", row.id, row.level.as_str(), row.area, row.sentence),
            );
        }
    }
    text
}

/// Returns the whole trace as a page.
pub(super) fn page(trace: &Trace<'_>) -> String {
    let mut text = "\
# Trace

Which requirement of `requirements.tsv` is proven by which test. Written by `cargo xtask trace`.

*Proven*: a test or a transcript names the row. *Waived*: `waived.tsv` says why no test here can prove it. *Open*: neither.
*Percent* is the share of proven rows among all rows, rounded down; a waived row counts as not proven. `open.tsv` says why a
mandatory row of an area that is built is open.

"
    .to_owned();
    text += &levels(trace);
    text.push('\n');
    push(
        &mut text,
        format_args!("| {} |\n| --- | --- | --: | --: | --: | --: | --: |\n", COLUMNS.join(" | ")),
    );
    for line in summary(trace) {
        push(&mut text, format_args!("| {} |\n", line.join(" | ")));
    }
    for area in trace.catalog.areas() {
        push(
            &mut text,
            format_args!(
                "\n## {area}\n\n| id | level | state | proven by, or why not |\n| --- | --- | --- | --- |\n"
            ),
        );
        for (row, state) in trace.rows().filter(|(row, _)| row.area == area) {
            let (state, tests) = match state {
                State::Proven(tests) => ("proven".to_owned(), quoted(tests)),
                State::Waived(waiver) => {
                    (format!("waived: {}", waiver.class.as_str()), waiver.reason.clone())
                }
                State::Open => ("open".to_owned(), String::new()),
            };
            push(&mut text, format_args!("| {} | {} | {state} | {tests} |\n", row.id, row.level.as_str()));
        }
    }
    text
}

/// Returns one row per level of requirement: mandatory, recommended, optional.
pub(super) fn levels(trace: &Trace<'_>) -> String {
    let mut text = "\
| level | rows | proven | waived | open | percent |
| --- | --: | --: | --: | --: | --: |
"
    .to_owned();
    let groups: [(&str, &[Level]); 3] = [
        ("MUST, MUST NOT", &[Level::Must, Level::MustNot]),
        ("SHOULD, SHOULD NOT", &[Level::Should, Level::ShouldNot]),
        ("MAY", &[Level::May]),
    ];
    for (name, levels) in groups {
        let sums = trace.sums(|row| levels.contains(&row.level));
        let Sums { rows, proven, waived, open } = sums;
        let percent = sums.percent();
        push(&mut text, format_args!("| {name} | {rows} | {proven} | {waived} | {open} | {percent} % |\n"));
    }
    text
}

/// Returns the proven rows of a random sample, with the tests that claim them. The same seed draws the same rows.
pub(super) fn sample(trace: &Trace<'_>, count: usize, seed: u64) -> String {
    let mut rows: Vec<(&Requirement, &[String])> = trace
        .rows()
        .filter_map(|(row, state)| match state {
            State::Proven(tests) => Some((row, tests.as_slice())),
            State::Waived(_) | State::Open => None,
        })
        .collect();
    let mut state = seed;
    let mut text = String::new();
    for _ in 0..count.min(rows.len()) {
        let index = usize::try_from(next(&mut state) % rows.len() as u64).unwrap_or_default();
        let (row, tests) = rows.swap_remove(index);
        push(&mut text, format_args!("{}  {}  {}\n", row.id, row.level.as_str(), row.sentence));
        for test in tests {
            push(&mut text, format_args!("    {test}\n"));
        }
    }
    text
}

/// Returns the next number of SplitMix64, whose sequence is the same on every machine.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

fn summary(trace: &Trace<'_>) -> Vec<[String; 7]> {
    trace.summary().into_iter().map(|(area, level, sums)| cells(area, level, sums)).collect()
}

fn cells(area: String, level: &str, sums: Sums) -> [String; 7] {
    let percent = format!("{} %", sums.percent());
    let [rows, proven, waived, open] =
        [sums.rows, sums.proven, sums.waived, sums.open].map(|sum| sum.to_string());
    [area, level.to_owned(), rows, proven, waived, open, percent]
}

fn quoted(tests: &[String]) -> String {
    tests.iter().map(|test| format!("`{test}`")).collect::<Vec<_>>().join("<br>")
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes any text");
}

#[cfg(test)]
mod tests {
    use super::super::state::Trace;
    use super::super::state::tests::{example, proof};
    use super::{levels, page, sample, table, unproven};
    use std::collections::BTreeMap;

    #[test]
    fn the_table_is_aligned() {
        let (catalog, proofs, waivers) = example();
        let (trace, _) = Trace::new(&catalog, &proofs, &waivers);
        let expected = "\
area   level     rows  proven  waived  open  percent
tools  MUST         3       1       1     1     33 %
tools  MUST NOT     1       0       1     0      0 %
base   SHOULD       1       0       0     1      0 %
all    MUST         3       1       1     1     33 %
all    MUST NOT     1       0       1     0      0 %
all    SHOULD       1       0       0     1      0 %
all    all          5       1       2     2     20 %
";
        assert_eq!(table(&trace), expected);
    }

    #[test]
    fn unproven_rows_are_the_open_ones_that_are_asked_for() {
        let (catalog, proofs, waivers) = example();
        let (trace, _) = Trace::new(&catalog, &proofs, &waivers);
        let expected = "T-4  MUST  tools: Sentence of T-4.\nB-1  SHOULD  base: Sentence of B-1.\n";
        assert_eq!(unproven(&trace, |_| true), expected);
        assert_eq!(unproven(&trace, |row| row.area == "base"), "B-1  SHOULD  base: Sentence of B-1.\n");
    }

    #[test]
    fn a_sample_has_proven_rows_only_and_depends_on_its_seed() {
        let (catalog, proofs, waivers) = example();
        let (trace, _) = Trace::new(&catalog, &proofs, &waivers);
        let expected = "T-1  MUST  Sentence of T-1.\n    a.rs::one\n    a.rs::two\n";
        assert_eq!(sample(&trace, 9, 1), expected);
        let ids: Vec<String> = (0..40).map(|number| format!("N-{number}")).collect();
        let rows: Vec<(&str, &str, &str)> = ids.iter().map(|id| (&**id, "MUST", "n")).collect();
        let proofs: Vec<_> = ids.iter().map(|id| proof(id, "a.rs::t")).collect();
        let many = crate::trace::catalog::tests::catalog(&rows);
        let (trace, _) = Trace::new(&many, &proofs, &BTreeMap::new());
        assert_eq!(sample(&trace, 10, 7), sample(&trace, 10, 7));
        assert_ne!(sample(&trace, 10, 7), sample(&trace, 10, 8));
        let mut drawn: Vec<String> = sample(&trace, 40, 7).lines().map(str::to_owned).collect();
        drawn.retain(|line| line.starts_with("N-"));
        drawn.sort();
        drawn.dedup();
        assert_eq!(drawn.len(), 40, "no row is drawn twice");
    }

    #[test]
    fn the_levels_count_all_rows() {
        let (catalog, proofs, waivers) = example();
        let (trace, _) = Trace::new(&catalog, &proofs, &waivers);
        let expected = "\
| level | rows | proven | waived | open | percent |
| --- | --: | --: | --: | --: | --: |
| MUST, MUST NOT | 4 | 1 | 2 | 1 | 25 % |
| SHOULD, SHOULD NOT | 1 | 0 | 0 | 1 | 0 % |
| MAY | 0 | 0 | 0 | 0 | 0 % |
";
        assert_eq!(levels(&trace), expected);
        assert!(page(&trace).contains(expected));
    }

    #[test]
    fn the_page_lists_every_row() {
        let (catalog, proofs, waivers) = example();
        let (trace, _) = Trace::new(&catalog, &proofs, &waivers);
        let page = page(&trace);
        let expected = "
| all | all | 5 | 1 | 2 | 2 | 20 % |

## tools

| id | level | state | proven by, or why not |
| --- | --- | --- | --- |
| T-1 | MUST | proven | `a.rs::one`<br>`a.rs::two` |
| T-2 | MUST NOT | waived: host | The user decides. |
| T-3 | MUST | waived: not-emitted | Never sent. |
| T-4 | MUST | open |  |

## base

| id | level | state | proven by, or why not |
| --- | --- | --- | --- |
| B-1 | SHOULD | open |  |
";
        assert!(page.ends_with(expected), "{page}");
    }
}
