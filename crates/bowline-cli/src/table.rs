//! Two-column lists that fit the terminal.

use crate::{
    failure::Failure,
    screen::{Screen, Tone},
};
use bowline_text::visible;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The maximum width of the first column at a terminal.
const NAMES: usize = 40;

/// Prints rows of a name and a text. Text is cut only at a terminal.
pub(crate) fn rows<'a>(
    screen: Screen,
    rows: impl IntoIterator<Item = (&'a str, String)>,
) -> Result<(), Failure> {
    let rows: Vec<(String, String)> =
        rows.into_iter().map(|(name, text)| (visible(name), visible(one_line(&text).as_str()))).collect();
    let most = if screen.width().is_some() { NAMES } else { usize::MAX };
    let column = rows.iter().map(|(name, _)| name.width()).max().unwrap_or_default().min(most);
    for (name, text) in rows {
        let gap = " ".repeat(column.saturating_sub(name.width()));
        let text = match screen.width() {
            Some(width) => cut(&text, width.saturating_sub(name.width().max(column) + 2)),
            None => text,
        };
        let line = format!("{}{gap}  {text}", screen.paint(Tone::Name, &name));
        screen.line(line.trim_end())?;
    }
    Ok(())
}

/// Collapses white space to single spaces.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Cuts a text to a width in columns.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut taken = 0;
    let fits = |letter: &char| {
        taken += letter.width().unwrap_or(0);
        taken < columns
    };
    let start: String = text.chars().take_while(fits).collect();
    format!("{}…", start.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_by_columns() {
        assert_eq!(cut("plain", 5), "plain");
        assert_eq!(cut("plainer", 5), "plai…");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("a b", 2), "a…");
        assert_eq!(cut("ab", 0), "…");
        assert_eq!(one_line("a\n  b\t c"), "a b c");
    }
}
