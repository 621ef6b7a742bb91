//! Quotes a word for a POSIX shell, so that a hostile name pastes as one inert argument.

use std::fmt::Write as _;

/// Quotes a word. Control and hidden characters become visible escapes, so that nothing acts on the terminal while it is pasted.
pub(super) fn quote(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@%+,=".contains(&byte);
    if !word.is_empty() && !word.starts_with('-') && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    let needs_escapes =
        word.chars().any(|character| character.is_control() || bowline_text::is_hidden(character));
    if !needs_escapes {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut quoted = String::from("$'");
    for character in word.chars() {
        match character {
            '\'' => quoted.push_str(r"\'"),
            '\\' => quoted.push_str(r"\\"),
            '\n' => quoted.push_str(r"\n"),
            '\r' => quoted.push_str(r"\r"),
            '\t' => quoted.push_str(r"\t"),
            _ if character.is_control() || bowline_text::is_hidden(character) => {
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(quoted, "\\{byte:03o}");
                }
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_word_is_one_inert_argument() {
        for (word, expected) in [
            ("query", "query"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$(rm -rf /)", "'$(rm -rf /)'"),
            ("`id`; echo 'x'", r"'`id`; echo '\''x'\'''"),
            ("--help", "'--help'"),
            ("a\nrm -rf /\n", r"$'a\nrm -rf /\n'"),
            ("\u{1b}]0;x\u{7}'\\", r"$'\033]0;x\007\'\\'"),
            ("a\u{202e}b", r"$'a\342\200\256b'"),
        ] {
            assert_eq!(quote(word), expected);
            assert!(!quote(word).contains(['\n', '\r', '\u{1b}']));
        }
    }

    /// A shell reads back exactly what was quoted.
    #[test]
    #[cfg(unix)]
    fn a_shell_reads_back_what_was_quoted() {
        for word in ["a b", "$(id)", "it's", "a\nb\tc", "\u{202e}\u{1b}[31m\\x'", "é \"q\" *"] {
            let script = format!("printf %s {}", quote(word));
            let Ok(output) = std::process::Command::new("bash").args(["-c", &script]).output() else {
                return;
            };
            assert_eq!(String::from_utf8_lossy(&output.stdout), word);
        }
    }
}
