//! Makes text of a server safe to show: no hidden characters, no reordered lines, no cursor movement.

/// Returns whether a character is invisible, or changes how other characters are displayed.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            u32::from(character),
            0xAD // soft hyphen
            | 0x34F // grapheme joiner
            | 0x600..=0x605 | 0x61C | 0x6DD | 0x70F | 0x890..=0x891 | 0x8E2
            | 0x115F..=0x1160 // fillers
            | 0x17B4..=0x17B5
            | 0x180B..=0x180F
            | 0x200B..=0x200F // zero width, directional marks
            | 0x2028..=0x202E // line separators, directional overrides
            | 0x2060..=0x206F // joiners, isolates
            | 0x2800 // the Braille pattern without dots
            | 0x3164 | 0xFFA0 // fillers
            | 0xE000..=0xF8FF // private use
            | 0xFE00..=0xFE0F // variation selectors
            | 0xFEFF
            | 0xFFF0..=0xFFFB
            | 0xFFFE..=0xFFFF
            | 0x110BD | 0x110CD
            | 0x13430..=0x1345F
            | 0x1BCA0..=0x1BCA3
            | 0x1D173..=0x1D17A
            | 0xE0000..=0xE0FFF // tags, more variation selectors
            | 0xF0000..=0x10_FFFF // private use
        )
}

/// Returns the number of invisible characters in a text, not counting line breaks and tabs.
pub fn hidden_characters(text: &str) -> usize {
    let mut count = 0;
    each(text, |character, shown| {
        count += usize::from(!shown && !matches!(character, '\n' | '\r' | '\t'));
    });
    count
}

/// Returns a text on one line, with invisible characters written as `<U+202E>`.
///
/// ```
/// assert_eq!(bowline_text::visible("a\u{202e}b\n"), "a<U+202E>b<U+000A>");
/// ```
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    each(text, |character, shown| {
        if shown {
            out.push(character);
        } else {
            out.extend(["<U+", &format!("{:04X}", u32::from(character)), ">"]);
        }
    });
    out
}

/// Returns the lines of a text, with invisible characters escaped like in [`visible`]. A tab becomes four spaces.
pub fn visible_lines(text: &str) -> impl Iterator<Item = String> {
    text.split('\n').map(|line| visible(&line.strip_suffix('\r').unwrap_or(line).replace('\t', "    ")))
}

/// Calls `visit` with each character and whether it may be shown unchanged.
fn each(text: &str, mut visit: impl FnMut(char, bool)) {
    let mut follows_visible = false;
    for character in text.chars() {
        // One variation selector after a symbol selects its presentation; several can hide a message.
        let picks_picture = matches!(character, '\u{fe0e}' | '\u{fe0f}') && follows_visible;
        let shown = picks_picture || !is_hidden(character);
        visit(character, shown);
        follows_visible = shown && !picks_picture;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_made_visible() {
        // V-100
        for (text, shown) in [
            ("plain é 漢 ⚠\u{fe0f}", "plain é 漢 ⚠\u{fe0f}"),
            ("\u{1b}[2J\u{7}", "<U+001B>[2J<U+0007>"),
            ("a\u{200b}b\u{feff}", "a<U+200B>b<U+FEFF>"),
            ("\u{202e}txt\u{2066}", "<U+202E>txt<U+2066>"),
            ("x\u{e0041}\u{e007f}", "x<U+E0041><U+E007F>"),
            ("x\u{fe0f}\u{fe0e}\u{fe01}", "x\u{fe0f}<U+FE0E><U+FE01>"),
            ("\u{9b}31m", "<U+009B>31m"),
            ("\u{2028}\u{3164}\u{ad}", "<U+2028><U+3164><U+00AD>"),
        ] {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(hidden_characters("a\nb\u{200b}\u{e0041}"), 2);
    }

    #[test]
    fn lines_stay_lines() {
        let lines: Vec<String> = visible_lines("a\r\nb\rc\n\td").collect();
        assert_eq!(lines, ["a", "b<U+000D>c", "    d"]);
    }
}
