//! The trace as people read it: on the terminal, and in `spec/TRACE.md`.

use std::fmt::Write as _;

use super::catalog::Requirement;
use super::state::{State, Sums, Trace};

const COLUMNS: [&str; 7] = ["area", "level", "rows", "proven", "waived", "open", "percent"];

/// The table of sums with aligned columns.
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

/// The mandatory rows that nothing proves and nothing waives, one per line.
pub(super) fn unproven(trace: &Trace<'_>, is_counted: impl Fn(&Requirement) -> bool) -> String {
    let mut text = String::new();
    for (row, state) in trace.rows() {
        if *state == State::Open && row.level.is_mandatory() && is_counted(row) {
            push(
                &mut text,
                format_args!("{}  {}  {}: {}\n", row.id, row.level.as_str(), row.area, row.sentence),
            );
        }
    }
    text
}

/// The whole trace as a page.
pub(super) fn page(trace: &Trace<'_>) -> String {
    let mut text = "\
# Trace

Which requirement of `requirements.tsv` is proven by which test. Written by `cargo xtask trace`.

*Proven*: a test or a transcript names the row. *Waived*: `waived.tsv` says why no test here can prove it. *Open*: neither.
*Percent* is the share of proven rows among those that can be proven here, rounded down.

"
    .to_owned();
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
            format_args!("\n## {area}\n\n| id | level | state | proven by |\n| --- | --- | --- | --- |\n"),
        );
        for (row, state) in trace.rows().filter(|(row, _)| row.area == area) {
            let (state, tests) = match state {
                State::Proven(tests) => ("proven".to_owned(), quoted(tests)),
                State::Waived(class) => (format!("waived: {}", class.as_str()), String::new()),
                State::Open => ("open".to_owned(), String::new()),
            };
            push(&mut text, format_args!("| {} | {} | {state} | {tests} |\n", row.id, row.level.as_str()));
        }
    }
    text
}

fn summary(trace: &Trace<'_>) -> Vec<[String; 7]> {
    trace.summary().into_iter().map(|(area, level, sums)| cells(area, level, sums)).collect()
}

fn cells(area: String, level: &str, sums: Sums) -> [String; 7] {
    let percent = sums.percent().map_or_else(|| "-".to_owned(), |percent| format!("{percent} %"));
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
    use super::super::state::tests::example;
    use super::{page, table, unproven};

    #[test]
    fn the_table_is_aligned() {
        let (catalog, proofs, waivers) = example();
        let (trace, _) = Trace::new(&catalog, &proofs, &waivers);
        let expected = "\
area   level     rows  proven  waived  open  percent
tools  MUST         3       1       1     1     33 %
tools  MUST NOT     1       0       1     0        -
base   SHOULD       1       0       0     1      0 %
all    MUST         3       1       1     1     33 %
all    MUST NOT     1       0       1     0        -
all    SHOULD       1       0       0     1      0 %
all    all          5       1       2     2     25 %
";
        assert_eq!(table(&trace), expected);
    }

    #[test]
    fn unproven_rows_are_the_open_mandatory_ones() {
        let (catalog, proofs, waivers) = example();
        let (trace, _) = Trace::new(&catalog, &proofs, &waivers);
        assert_eq!(unproven(&trace, |_| true), "T-4  MUST  tools: Sentence of T-4.\n");
        assert_eq!(unproven(&trace, |row| row.area == "base"), "");
    }

    #[test]
    fn the_page_lists_every_row() {
        let (catalog, proofs, waivers) = example();
        let (trace, _) = Trace::new(&catalog, &proofs, &waivers);
        let page = page(&trace);
        let expected = "
| all | all | 5 | 1 | 2 | 2 | 25 % |

## tools

| id | level | state | proven by |
| --- | --- | --- | --- |
| T-1 | MUST | proven | `a.rs::one`<br>`a.rs::two` |
| T-2 | MUST NOT | waived: host |  |
| T-3 | MUST | waived: not-emitted |  |
| T-4 | MUST | open |  |

## base

| id | level | state | proven by |
| --- | --- | --- | --- |
| B-1 | SHOULD | open |  |
";
        assert!(page.ends_with(expected), "{page}");
    }
}
