//! Markdown for terminals: headings, emphasis, code, lists, quotes and links.
//!
//! Supports a subset of Markdown; everything else is printed unchanged. The input is text of a server, so control characters are
//! escaped before rendering.

use crate::screen::{Screen, Tone};
use bowline_text::visible_lines;

/// Longer lines are printed without inline formatting.
const MAX_LINE: usize = 4_000;

/// Returns whether a text is probably Markdown: it uses at least two different constructs.
pub(crate) fn is_likely(text: &str) -> bool {
    let (mut heading, mut fence, mut bold, mut link, mut list) = (false, false, false, false, false);
    for line in text.lines().take(500) {
        heading |= heading_text(line).is_some();
        fence |= line.starts_with("```");
        list |= line.starts_with("- ") || line.starts_with("* ");
        if line.len() <= MAX_LINE {
            bold |= line.matches("**").count() >= 2;
            link |= line
                .split_once("](")
                .is_some_and(|(before, after)| before.contains('[') && after.contains(')'));
        }
    }
    [heading, fence, bold, link, list].into_iter().filter(|used| *used).count() >= 2
}

/// Renders Markdown to lines.
pub(crate) fn render(screen: Screen, text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut in_code = false;
    for line in visible_lines(text) {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if in_code {
            lines.push(screen.paint(Tone::Name, &line));
        } else {
            lines.push(block(screen, &line));
        }
    }
    lines
}

fn block(screen: Screen, line: &str) -> String {
    if line.len() > MAX_LINE {
        return line.to_owned();
    }
    if let Some(heading) = heading_text(line) {
        return screen.paint(Tone::Heading, &heading.replace("**", "").replace('`', ""));
    }
    let text = line.trim_start();
    let indent = &line[..line.len() - text.len()];
    if let Some(item) = ["- ", "* ", "+ "].iter().find_map(|mark| text.strip_prefix(mark)) {
        return format!("{indent}• {}", inline(screen, item));
    }
    if let Some(quoted) = text.strip_prefix("> ").or_else(|| (text == ">").then_some("")) {
        return format!("{indent}{} {}", screen.paint(Tone::Faint, "│"), inline(screen, quoted));
    }
    let is_rule = text.len() >= 3 && ["-", "*", "_"].iter().any(|mark| text.replace(mark, "").is_empty());
    if is_rule {
        return screen.paint(Tone::Faint, &"─".repeat(screen.width().unwrap_or(40).min(40)));
    }
    format!("{indent}{}", inline(screen, text))
}

fn heading_text(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let depth = line.len() - text.len();
    (1..=6).contains(&depth).then(|| text.strip_prefix(' '))?.map(str::trim)
}

/// Renders emphasis, code and links within a line.
fn inline(screen: Screen, text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if let Some((styled, after)) = span(screen, rest) {
            shown.push_str(&styled);
            rest = after;
            continue;
        }
        shown.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    shown
}

/// Returns the styled construct at the start of a text, and the rest.
fn span(screen: Screen, text: &str) -> Option<(String, &str)> {
    if let Some(after) = text.strip_prefix("**") {
        let (bold, after) = after.split_once("**").filter(|(bold, _)| !bold.trim().is_empty())?;
        return Some((screen.paint(Tone::Heading, bold), after));
    }
    if let Some(after) = text.strip_prefix('`') {
        let (code, after) = after.split_once('`').filter(|(code, _)| !code.is_empty())?;
        return Some((screen.paint(Tone::Name, code), after));
    }
    let after = text.strip_prefix("![").or_else(|| text.strip_prefix('['))?;
    let (label, after) = after.split_once("](")?;
    let (url, after) = after.split_once(')')?;
    if label.contains(['[', ']']) || url.contains(char::is_whitespace) || url.is_empty() {
        return None;
    }
    // Always show the URL: a label must not hide where a link leads.
    let url = screen.paint(Tone::Faint, url);
    let shown = if label.is_empty() { url } else { format!("{label} ({url})") };
    Some((shown, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn markdown_is_recognized_by_two_constructs() {
        assert!(is_likely("# Title\n\n- item\n"));
        assert!(is_likely("See [the page](https://example.com), **now**."));
        assert!(!is_likely("# a comment of a script\necho '**'\n"));
        assert!(!is_likely("plain text\nof two lines"));
        assert!(!is_likely("- only\n- a list"));
    }

    #[test]
    fn markdown_is_rendered_with_color() {
        let text = "# Plan **B**\n\nUse `call`, **now**: [docs](https://a.example/x).\n  - one\n* two **open\n> quoted\n---\n```rust\nfn x() { **y }\n```\nend";
        let rendered = render(Screen::colored(Some(20)), text).join("\n").replace('\u{1b}', "^");
        expect![[r"
            ^[1mPlan B^[0m

            Use ^[36mcall^[0m, ^[1mnow^[0m: docs (^[2mhttps://a.example/x^[0m).
              • one
            • two **open
            ^[2m│^[0m quoted
            ^[2m────────────────────^[0m
            ^[36mfn x() { **y }^[0m
            end"]]
        .assert_eq(&rendered);
    }

    #[test]
    fn control_characters_are_escaped_in_markdown() {
        let rendered =
            render(Screen::colored(None), "**a\u{1b}]0;x\u{7}** `\u{9b}2J` [\u{202e}a](b\u{1b}[2J)");
        let rendered = rendered.join("\n");
        assert!(!rendered.contains(['\u{7}', '\u{9b}', '\u{202e}']), "{rendered:?}");
        assert!(!rendered.contains("\u{1b}]") && !rendered.contains("\u{1b}[2J"), "{rendered:?}");
    }

    #[test]
    fn long_lines_are_rendered_quickly() {
        let line = "[".repeat(2_000_000);
        assert_eq!(render(Screen::colored(None), &line).concat(), line);
    }
}
