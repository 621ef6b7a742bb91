//! Quotes completion candidates so that a shell never interprets them.
//!
//! Names come from servers and from project configuration: a server can choose the name `x$(reboot)`.

use bowline_text::visible;
use clap::ValueEnum;

/// Longer names are not completed.
const MAX_LENGTH: usize = 256;

/// The characters at which bash splits words by default (`COMP_WORDBREAKS`).
const BASH_BREAKS: &str = "\"'@><=;|&(:";

/// A shell that can complete command lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

/// Returns a text quoted for `shell`, or `None` if it cannot be quoted safely.
///
/// Without a shell only plain texts are returned: the caller is a completion script of an earlier version, which does not quote.
pub(crate) fn quote(shell: Option<Shell>, text: &str) -> Option<String> {
    if !is_printable(text) {
        return None;
    }
    if is_plain(text) {
        return Some(text.to_owned());
    }
    match shell? {
        Shell::Bash => Some(with_backslashes(text)),
        // The completion systems of these shells quote what they insert.
        Shell::Zsh | Shell::Fish | Shell::Elvish => Some(text.to_owned()),
        // PowerShell also accepts typographic quotes, and passes `"` to programs unescaped.
        Shell::Powershell if !text.is_ascii() || text.contains('"') || text.ends_with('\\') => None,
        Shell::Powershell => Some(format!("'{}'", text.replace('\'', "''"))),
    }
}

/// Returns whether all characters are visible and the text is not too long.
pub(crate) fn is_printable(text: &str) -> bool {
    text.len() <= MAX_LENGTH && visible(text) == text
}

/// Returns whether no shell treats any character specially.
fn is_plain(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_./:=+-".contains(letter);
    // zsh expands `=name` to the path of that program.
    text.chars().all(is_plain) && !text.starts_with('=')
}

fn with_backslashes(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for letter in text.chars() {
        if !letter.is_ascii_alphanumeric() && !"_./:=+-%,@".contains(letter) {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted
}

/// A bash command line up to the cursor.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BashLine {
    /// The words before the current one, without quotes.
    pub(crate) words: Vec<String>,
    /// The word to complete, without quotes.
    pub(crate) current: String,
    /// How many bytes of `current` bash keeps: it replaces what follows.
    kept: usize,
    /// Whether the cursor is inside quotes.
    in_quotes: bool,
}

impl BashLine {
    /// Splits a line. `breaks` are the characters at which bash splits words, besides blanks.
    ///
    /// Returns `None` if the current word has a quoted part that is closed: bash does not complete these reliably.
    pub(crate) fn parse(line: &str, breaks: Option<&str>) -> Option<Self> {
        let breaks = breaks.unwrap_or(BASH_BREAKS);
        let mut words = Vec::new();
        let (mut current, mut kept, mut quote, mut quotes, mut inside) = (String::new(), 0, None, 0, false);
        let mut letters = line.chars();
        while let Some(letter) = letters.next() {
            match (letter, quote) {
                ('\\', None | Some('"')) => {
                    current.extend(letters.next());
                    inside = true;
                }
                (_, Some(open)) if letter == open => quote = None,
                (_, Some(_)) => current.push(letter),
                ('"' | '\'', None) => {
                    (quote, kept, inside) = (Some(letter), current.len(), true);
                    quotes += 1;
                }
                (_, None) if letter.is_whitespace() => {
                    if inside {
                        words.push(std::mem::take(&mut current));
                    }
                    (kept, quotes, inside) = (0, 0, false);
                }
                (_, None) => {
                    current.push(letter);
                    inside = true;
                    if breaks.contains(letter) {
                        kept = current.len();
                    }
                }
            }
        }
        let in_quotes = quote.is_some();
        (quotes == usize::from(in_quotes)).then_some(Self { words, current, kept, in_quotes })
    }

    /// Returns the text that bash inserts for a candidate that starts with the current word.
    pub(crate) fn insertion(&self, candidate: &str) -> Option<String> {
        let rest = candidate.get(self.kept..)?;
        // Other characters are special inside quotes, so only plain names are completed there.
        let shell = (!self.in_quotes).then_some(Shell::Bash);
        is_printable(candidate).then(|| quote(shell, rest))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_names_are_quoted_or_omitted() {
        let check = |shell: Option<Shell>, text: &str, expected: Option<&str>| {
            assert_eq!(quote(shell, text).as_deref(), expected, "{shell:?} {text}");
        };
        for shell in [None, Some(Shell::Bash), Some(Shell::Powershell), Some(Shell::Zsh)] {
            check(shell, "tickets__find", Some("tickets__find"));
            check(shell, "file:///a/b.txt", Some("file:///a/b.txt"));
            check(shell, "a\nb", None);
            check(shell, "a\u{1b}[2Jb", None);
            check(shell, "a\u{202e}b", None);
            check(shell, &"x".repeat(MAX_LENGTH + 1), None);
        }
        check(None, "x$(reboot)", None);
        check(None, "=ls", None);
        check(Some(Shell::Bash), "x$(reboot)", Some(r"x\$\(reboot\)"));
        check(Some(Shell::Bash), "a 'b' `c`!~", Some(r"a\ \'b\'\ \`c\`\!\~"));
        check(Some(Shell::Bash), "a%20b", Some("a%20b"));
        check(Some(Shell::Zsh), "x$(reboot)", Some("x$(reboot)"));
        check(Some(Shell::Powershell), "x$(reboot)", Some("'x$(reboot)'"));
        check(Some(Shell::Powershell), "it's; reboot", Some("'it''s; reboot'"));
        check(Some(Shell::Powershell), "x\u{2019}; reboot", None);
        check(Some(Shell::Powershell), "x\" --record y", None);
    }

    #[test]
    fn bash_replaces_the_part_after_the_last_break() {
        let check = |line: &str, candidate: &str, expected: Option<&str>| {
            let inserted = BashLine::parse(line, None).and_then(|line| line.insertion(candidate));
            assert_eq!(inserted.as_deref(), expected, "{line}");
        };
        check("bowline call x ec", "echo", Some("echo"));
        check("bowline read x test://p", "test://p/a b", Some(r"//p/a\ b"));
        check("bowline call x t color=r", "color=red", Some("red"));
        check(r"bowline call x a\:b", "a:bc", Some("a:bc"));
        check(r"bowline call x x\$", "x$(reboot)", Some(r"x\$\(reboot\)"));
        // Inside quotes the shell would still run the command, or the name could close the quote.
        check("bowline call x \"x", "x$(reboot)", None);
        check("bowline call x 'x", "x'$(reboot)", None);
        check("bowline call x 'ec", "echo", Some("echo"));
        check("bowline call x t color='r", "color=red", Some("red"));
        check("bowline call x 'ec'h", "echo", None);
    }

    #[test]
    fn the_words_of_a_bash_line_have_no_quotes() {
        let line = BashLine::parse(r#"bowline call "a b" c\ d "#, None).unwrap();
        assert_eq!(
            (line.words.as_slice(), line.current.as_str()),
            (["bowline", "call", "a b", "c d"].map(String::from).as_slice(), "")
        );
        assert_eq!(BashLine::parse("", None).unwrap().words, Vec::<String>::new());
    }
}
