//! Rust sources as the checks see them: code without text and comments, and where the tests are.

mod lex;
mod outline;

pub(crate) use lex::{Audience, Source};
pub(crate) use outline::{Function, Outline};

/// Returns where `word` is in `text` as a whole word, as byte offsets. An end of `word` that is not part of an
/// identifier, such as the `!` of a macro, may touch anything.
pub(crate) fn word_offsets<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word).map(|(offset, _)| offset).filter(move |&offset| {
        let before = text[..offset].chars().next_back();
        let after = text[offset + word.len()..].chars().next();
        let touches = |outer: Option<char>, inner: Option<char>| {
            outer.is_some_and(is_identifier) && inner.is_some_and(is_identifier)
        };
        !touches(before, word.chars().next()) && !touches(after, word.chars().next_back())
    })
}

fn is_identifier(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::word_offsets;

    #[test]
    fn words_match_completely() {
        let found = |text, word| word_offsets(text, word).collect::<Vec<_>>();
        assert_eq!(found("println!(); eprintln!(); my_println!()", "println!"), [0]);
        assert_eq!(found("dbg!(x)dbg!(y)", "dbg!"), [0, 7]);
        assert_eq!(found("XXX XXXX (XXX)", "XXX"), [0, 10]);
        assert_eq!(found("Instant::now() Instant::nowhere()", "Instant::now"), [0]);
    }
}
