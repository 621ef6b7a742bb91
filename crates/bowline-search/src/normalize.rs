//! Puts text of a server on one line and removes hidden characters.

use bowline_text::is_hidden;
use std::fmt::Write as _;

/// Returns the text on one line of at most `longest` characters. `…` marks omitted text.
///
/// Whitespace and control characters become single spaces. Invisible characters that a model would read, such as
/// zero-width characters, direction changes and tags, are written as `<U+200B>`.
pub(super) fn one_line(text: &str, longest: usize) -> String {
    let mut line = String::new();
    let (mut length, mut blank) = (0_usize, false);
    for char in text.chars() {
        if char.is_whitespace() || char.is_control() {
            blank = !line.is_empty();
            continue;
        }
        if length + 1 + usize::from(blank) > longest {
            line.push('…');
            return line;
        }
        if std::mem::take(&mut blank) {
            line.push(' ');
            length += 1;
        }
        if is_hidden(char) {
            let _ = write!(line, "<U+{:04X}>", u32::from(char));
            length += 8;
        } else {
            line.push(char);
            length += 1;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_starts_another_line_and_nothing_stays_hidden() {
        // V-100
        assert_eq!(one_line("a\r\n2. b\t\u{85}c \u{2029}", 99), "a 2. b c");
        assert_eq!(one_line("a\u{200b}b\u{202e}c\u{e0041}", 99), "a<U+200B>b<U+202E>c<U+E0041>");
        assert_eq!(one_line("\u{1b}[2Jx\u{0}", 99), "[2Jx");
    }

    #[test]
    fn long_texts_end_in_an_ellipsis() {
        assert_eq!(one_line("four", 4), "four");
        assert_eq!(one_line("fives", 4), "five…");
        assert_eq!(one_line("five six", 5), "five…");
        assert_eq!(one_line("ÄÖÜ", 2), "ÄÖ…");
        assert_eq!(one_line("", 0), "");
    }
}
