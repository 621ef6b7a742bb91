//! Quotes a word for a POSIX shell, so that a hostile name pastes as one inert argument.

use std::fmt::Write as _;

/// Quotes a word. Control and hidden characters become visible escapes, so that nothing acts on the terminal while it is pasted.
pub(crate) fn quote(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@%+,=".contains(&byte);
    if !word.is_empty() && !word.starts_with('-') && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    // Fish reads a backslash inside quotes as an escape, so that it could end the quotes.
    let needs_escapes = word
        .chars()
        .any(|character| character == '\\' || character.is_control() || bowline_text::is_hidden(character));
    if !needs_escapes {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut quoted = String::from("$'");
    for character in word.chars() {
        match character {
            // Numbers, because a shell without `$'…'` sees plain quotes, which a quote or backslash would end.
            '\'' => quoted.push_str(r"\047"),
            '\\' => quoted.push_str(r"\134"),
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
            ("\u{1b}]0;x\u{7}'\\", r"$'\033]0;x\007\047\134'"),
            (r"a\b", r"$'a\134b'"),
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

    /// Shells without `$'…'` read another word or refuse the line, but run nothing of it.
    #[test]
    #[cfg(unix)]
    fn no_shell_runs_a_part_of_a_word() {
        // Only a shell that runs it prints 42.
        let command = r#"; echo 4""2; echo "#;
        for shell in ["sh", "bash", "dash", "fish", "zsh"] {
            for start in ["'", r"\'", r"\", r"\\'", "\n'", "\n\\'", "\n\\\\'", "$("] {
                let word = format!("{start}{command}{start}");
                let script = format!("printf %s {}", quote(&word));
                let run = std::process::Command::new(shell).args(["-c", &script]).output();
                let Ok(output) = run else { continue };
                let printed = String::from_utf8_lossy(&output.stdout);
                assert!(!printed.contains("42"), "{shell}: {script}: {printed}");
            }
        }
    }
}
