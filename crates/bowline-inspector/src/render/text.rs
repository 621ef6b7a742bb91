//! Text of servers: hidden characters become visible, long text is cut.

use super::Shown;
use bowline_text::{hidden_characters, is_hidden};
use std::fmt::Write as _;

/// The longest text of a line, such as a name.
const MAX_LINE: usize = 4 * 1024;
/// The longest text that is shown at once.
const MAX_TEXT: usize = 64 * 1024;

impl Shown {
    /// Shows a short text in one line.
    pub(crate) fn line(text: &str) -> Self {
        let (kept, left_out) = cut(text, MAX_LINE);
        Self { text: bowline_text::visible(kept), hidden: hidden_characters(kept), left_out }
    }

    /// Shows a text of several lines. Line breaks and tabs stay.
    pub(crate) fn text(text: &str) -> Self {
        let (kept, left_out) = cut(text, MAX_TEXT);
        let (text, hidden) = visible_text(kept);
        Self { text, hidden, left_out }
    }
}

/// Makes hidden characters visible, except for line breaks and tabs. Returns how many there were.
pub(crate) fn visible_text(text: &str) -> (String, usize) {
    let mut shown = String::with_capacity(text.len());
    let mut hidden = 0;
    for character in text.chars() {
        match character {
            '\n' | '\t' => shown.push(character),
            '\r' => {}
            _ if is_hidden(character) || character.is_control() => {
                hidden += 1;
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    (shown, hidden)
}

fn cut(text: &str, limit: usize) -> (&str, usize) {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let kept = text.get(..end).unwrap_or_default();
    (kept, text.len() - kept.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown_and_counted() {
        let shown = Shown::text("a\u{202e}b\u{200b}c\n\td\u{e0041}\u{1b}[31m");
        assert_eq!(shown.text, "a\\u{202e}b\\u{200b}c\n\td\\u{e0041}\\u{1b}[31m");
        assert_eq!((shown.hidden, shown.left_out), (4, 0));
        assert_eq!(Shown::line("two\nlines").text.lines().count(), 1);
    }

    #[test]
    fn a_megabyte_is_cut_at_a_character() {
        let shown = Shown::text(&"é".repeat(600_000));
        assert_eq!((shown.text.len(), shown.left_out), (MAX_TEXT, 1_200_000 - MAX_TEXT));
        assert_eq!(Shown::line(&"x".repeat(MAX_LINE + 1)).left_out, 1);
    }
}
