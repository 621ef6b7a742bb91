//! Compares two texts line by line.

/// The number of unchanged lines shown around a change.
const CONTEXT: usize = 3;
/// Above this number of line pairs, the changed part is shown as a whole, which bounds the time.
const MAX_PAIRS: usize = 4_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Gone(&'a str),
    Come(&'a str),
}

/// Returns the lines of two texts, with `-` and `+` before those that differ. Unchanged lines far from a change are
/// omitted.
pub(crate) fn diff(old: &str, new: &str) -> String {
    let lines = compare(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>());
    let changes: Vec<usize> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| !matches!(line, Line::Same(_)))
        .map(|(place, _)| place)
        .collect();
    let near = |place: usize| {
        let behind = changes.partition_point(|change| *change < place);
        let close = |change: Option<&usize>| change.is_some_and(|change| change.abs_diff(place) <= CONTEXT);
        close(changes.get(behind)) || close(behind.checked_sub(1).and_then(|before| changes.get(before)))
    };
    let mut out = String::new();
    let mut left_out = false;
    for (place, line) in lines.iter().enumerate() {
        if !near(place) {
            left_out = true;
            continue;
        }
        if std::mem::take(&mut left_out) {
            out.push_str("  ...\n");
        }
        let (mark, text) = match line {
            Line::Same(text) => (' ', text),
            Line::Gone(text) => ('-', text),
            Line::Come(text) => ('+', text),
        };
        out.extend([mark, ' ']);
        out.push_str(text);
        out.push('\n');
    }
    out
}

fn compare<'a>(mut old: &[&'a str], mut new: &[&'a str]) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    while let ([first, old_rest @ ..], [other, new_rest @ ..]) = (old, new)
        && first == other
    {
        lines.push(Line::Same(first));
        (old, new) = (old_rest, new_rest);
    }
    let mut tail = Vec::new();
    while let ([old_rest @ .., last], [new_rest @ .., other]) = (old, new)
        && last == other
    {
        tail.push(Line::Same(last));
        (old, new) = (old_rest, new_rest);
    }
    if old.len().saturating_mul(new.len()) > MAX_PAIRS {
        lines.extend(old.iter().map(|line| Line::Gone(line)));
        lines.extend(new.iter().map(|line| Line::Come(line)));
    } else {
        align(old, new, &mut lines);
    }
    lines.extend(tail.into_iter().rev());
    lines
}

/// Aligns two texts so that as many lines as possible are unchanged.
fn align<'a>(old: &[&'a str], new: &[&'a str], lines: &mut Vec<Line<'a>>) {
    let width = new.len() + 1;
    // The number of common lines between the rest of the old and the rest of the new text.
    let mut stay = vec![0_u32; (old.len() + 1) * width];
    let count =
        |stay: &[u32], row: usize, column: usize| stay.get(row * width + column).copied().unwrap_or(0);
    for (row, one) in old.iter().enumerate().rev() {
        for (column, other) in new.iter().enumerate().rev() {
            let most = if one == other {
                count(&stay, row + 1, column + 1) + 1
            } else {
                count(&stay, row + 1, column).max(count(&stay, row, column + 1))
            };
            if let Some(cell) = stay.get_mut(row * width + column) {
                *cell = most;
            }
        }
    }
    let (mut row, mut column) = (0, 0);
    loop {
        match (old.get(row), new.get(column)) {
            (Some(one), Some(other)) if one == other => {
                lines.push(Line::Same(one));
                (row, column) = (row + 1, column + 1);
            }
            (Some(one), other)
                if other.is_none() || count(&stay, row + 1, column) >= count(&stay, row, column + 1) =>
            {
                lines.push(Line::Gone(one));
                row += 1;
            }
            (_, Some(other)) => {
                lines.push(Line::Come(other));
                column += 1;
            }
            (_, None) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(old: &str, new: &str, expected: &Expect) {
        expected.assert_eq(&diff(&old.replace(' ', "\n"), &new.replace(' ', "\n")));
    }

    #[test]
    fn changes_are_marked_and_unchanged_lines_omitted() {
        check("a b c", "a b c", &expect![""]);
        check(
            "1 2 3 4 5 6 7 8 9",
            "1 2 3 4 x 6 7 8 9",
            &expect![[r"
              ...
              2
              3
              4
            - 5
            + x
              6
              7
              8
        "]],
        );
        check(
            "a b c d",
            "b x d e",
            &expect![[r"
            - a
              b
            - c
            + x
              d
            + e
        "]],
        );
        check(
            "",
            "a",
            &expect![[r"
            + a
        "]],
        );
    }

    #[test]
    fn large_texts_take_bounded_time() {
        let text = |start: u32| (start..start + 3000).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
        let shown = diff(&text(0), &text(10_000));
        assert_eq!(shown.lines().count(), 6000);
    }
}
