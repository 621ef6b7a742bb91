//! Columns of text for a terminal.

use std::io::{self, Write};

/// Writes a head, a rule and rows, each column as wide as its widest cell.
pub(crate) fn write<const N: usize>(
    out: &mut impl Write,
    head: [&str; N],
    rows: &[[String; N]],
) -> io::Result<()> {
    let wide = |text: &str| text.chars().count();
    let widths: [usize; N] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| wide(&row[column]));
        cells.max().unwrap_or(0).max(wide(head[column]))
    });
    let mut line = |cells: [&str; N]| {
        let padded: Vec<String> =
            cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        writeln!(out, "{}", padded.join("  ").trim_end())
    };
    line(head)?;
    let rules: [String; N] = std::array::from_fn(|column| "-".repeat(widths[column]));
    line(rules.each_ref().map(String::as_str))?;
    rows.iter().try_for_each(|row| line(row.each_ref().map(String::as_str)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_need_to_be() {
        let mut out = Vec::new();
        let rows = [["1".into(), "two".into()], ["three".into(), "é".into()]];
        write(&mut out, ["a", "b"], &rows).unwrap();
        assert_eq!(String::from_utf8_lossy(&out), "a      b\n-----  ---\n1      two\nthree  é\n");
    }
}
